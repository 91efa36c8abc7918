"""Verification of webhook senders, with one verifier per signature method. All comparisons take constant time."""

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import Unauthenticated

WINDOW_SECONDS = 300
"""The maximum age of a signature."""
DELIVERY_HEADERS = ("x-github-delivery", "x-gitlab-event-uuid", "x-shopify-webhook-id", "webhook-id", "x-message-id")
"""Headers in which senders put the id of a message."""


@dataclass(frozen=True, slots=True)
class ReceivedWebhook:
    """A webhook request: its headers with names in lower case, its raw body, and the time of its receipt."""

    headers: Mapping[str, str]
    body: bytes
    now: int


@dataclass(frozen=True, slots=True)
class WebhookSecrets:
    """The fields of a webhook's definition that verify its sender, and its decrypted secrets."""

    document: Mapping[str, Any]
    secret: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


def verify_webhook(expected: WebhookSecrets, webhook: ReceivedWebhook) -> str:
    """Verify the sender, and return the id of the message, or "" if it has none.

    Raises:
        Unauthenticated: when the verification fails.
    """
    # Every sender could compute a signature with an empty secret.
    _require(expected.document["verifier"] == "HEADER_BASED" or bool(expected.secret))
    message_id = VERIFIERS[expected.document["verifier"]](expected, webhook)
    received = next((webhook.headers[name] for name in DELIVERY_HEADERS if webhook.headers.get(name)), "")
    return received or message_id


def _verify_headers(expected: WebhookSecrets, webhook: ReceivedWebhook) -> str:
    """Verify headers with secret values."""
    matches = [
        _constant_time_equal(value, webhook.headers.get(name.lower(), "")) for name, value in expected.headers.items()
    ]
    return _require(any(expected.headers.values()) and all(matches))


def _verify_basic_auth(expected: WebhookSecrets, webhook: ReceivedWebhook) -> str:
    """Verify HTTP basic authentication."""
    pair = f"{expected.document.get('secretKey') or ''}:{expected.secret}"
    required = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return _require(_constant_time_equal(required, webhook.headers.get("authorization", "")))


def _verify_hmac(expected: WebhookSecrets, webhook: ReceivedWebhook) -> str:
    """Verify a header with the HMAC of the body, in hex or base64, with or without `sha256=`.

    If the definition names a header with the time, the signature covers `<time>.<body>`. Then an old message is
    refused, and a repeated one has the same id.
    """
    received = webhook.headers.get(str(expected.document.get("headerKey") or "").lower(), "")
    timestamp_header = str(expected.document.get("timestampHeaderKey") or "").lower()
    if not timestamp_header:
        return _require(_is_signed(expected, webhook.body, received.removeprefix("sha256=")))
    timestamp = webhook.headers.get(timestamp_header, "")
    _require_recent(timestamp, webhook)
    _require(_is_signed(expected, b"%s.%s" % (timestamp.encode(), webhook.body), received.removeprefix("sha256=")))
    return hashlib.sha256(received.encode()).hexdigest()


def _verify_slack(expected: WebhookSecrets, webhook: ReceivedWebhook) -> str:
    """Verify Slack's signature: `v0=` and the HMAC of `v0:<time>:<body>`."""
    timestamp, received = (
        webhook.headers.get("x-slack-request-timestamp", ""),
        webhook.headers.get("x-slack-signature", ""),
    )
    _require_recent(timestamp, webhook)
    _require(_is_signed(expected, b"v0:%s:%s" % (timestamp.encode(), webhook.body), received.removeprefix("v0=")))
    return hashlib.sha256(received.encode()).hexdigest()


def _verify_stripe(expected: WebhookSecrets, webhook: ReceivedWebhook) -> str:
    """Verify Stripe's signature, `t=<time>,v1=<HMAC>`, with the HMAC of `<time>.<body>`. A rotation sends several."""
    pairs = [part.strip().partition("=") for part in webhook.headers.get("stripe-signature", "").split(",")]
    timestamp = next((value for name, _, value in pairs if name == "t"), "")
    _require_recent(timestamp, webhook)
    signed = b"%s.%s" % (timestamp.encode(), webhook.body)
    received = [value for name, _, value in pairs if name == "v1"]
    _require(any(_is_signed(expected, signed, each) for each in received))
    return hashlib.sha256(f"{timestamp}.{','.join(received)}".encode()).hexdigest()


def _is_signed(expected: WebhookSecrets, content: bytes, received: str) -> bool:
    digest = hmac.new(expected.secret.encode(), content, hashlib.sha256).digest()
    return any(
        [
            _constant_time_equal(digest.hex(), received.lower()),
            _constant_time_equal(base64.b64encode(digest).decode(), received),
        ]
    )


def _require_recent(timestamp: str, webhook: ReceivedWebhook) -> None:
    """Check that the time is near now. The window covers differences of clocks and repeated deliveries."""
    seconds = int(timestamp) if timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 13 else 0
    seconds = seconds // 1000 if seconds > 10**11 else seconds
    _require(abs(webhook.now - seconds * 1000) <= WINDOW_SECONDS * 1000)


def _constant_time_equal(required: str, received: str) -> bool:
    return hmac.compare_digest(required.encode("utf-8", "surrogatepass"), received.encode("utf-8", "surrogatepass"))


def _require(is_valid: bool) -> str:
    if not is_valid:
        # All failures have the same message, so that an attacker learns nothing from it.
        raise Unauthenticated("The signature of the webhook is wrong or too old.")
    return ""


VERIFIERS: dict[str, Callable[[WebhookSecrets, ReceivedWebhook], str]] = {
    "HEADER_BASED": _verify_headers,
    "BASIC": _verify_basic_auth,
    "HMAC_BASED": _verify_hmac,
    "SIGNATURE_BASED": _verify_hmac,
    "SLACK_BASED": _verify_slack,
    "STRIPE": _verify_stripe,
}
