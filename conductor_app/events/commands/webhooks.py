"""Commands on webhooks, whose secrets are encrypted, and the receipt of their requests as events.

Each signature method has a verifier. All comparisons take constant time.
"""

import base64
import hashlib
import hmac
import json
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError
from django.db.models import F, Q

from ...access import audit
from ...access.authentication import current_user_id
from ...access.encryption import decrypt, encrypt, is_current
from ...access.grants import require_starts
from ...core.errors import Conflict, Invalid, NotFound, Unauthenticated, ValidationFailed
from ...core.events import payload_digest
from ...core.primitives import JsonValue, derived_id
from ...core.trace_context import HEADER, parse_traceparent
from ...core.validation.checks import read_webhook
from ...db.database import transaction
from ...db.fields import loads
from ...utils import clock, randomness
from ..models import EventHandler, Webhook, built_in_handler_name
from ..store import condition_paths, waiting_attempts
from .intake import receive_event

WINDOW_SECONDS = 300
DELIVERY_HEADERS = ("x-github-delivery", "x-gitlab-event-uuid", "x-shopify-webhook-id", "webhook-id", "x-message-id")
"""Headers in which senders put the id of a message."""
Document = dict[str, Any]
ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
MAX_COMPLETED = 10_000


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


def create_webhook(document: Document, by: str) -> Webhook:
    """Create a webhook, with the id in the document if there is one.

    Raises:
        ValidationFailed: when the document is invalid.
        Invalid: when the id is not one for addresses.
        Conflict: when the id or the name is taken.
    """
    read, validation_errors = read_webhook(document)
    if validation_errors:
        raise ValidationFailed(validation_errors)
    _require_workflows(read)
    now = clock.now()
    id = read.get("id") or derived_id(now, randomness.random_hex())
    if not ID.fullmatch(id):
        raise Invalid("The id must have 1 to 64 letters, digits, _, - or ., and must not begin with - or a dot.")
    # Grants name webhooks by name.
    if Webhook.objects.filter(Q(pk=id) | Q(name=id)).exists():
        raise Conflict(f"A webhook with the id or the name {id} already exists. Choose another id, or omit it.")
    row = Webhook(id=id, created_at=now, created_by=by)
    return _save_webhook(row, read, by, "create")


def update_webhook(id: str, document: Document, by: str) -> Webhook:
    """Replace the document of a webhook. A secret that the document omits stays unchanged.

    Raises:
        ValidationFailed: when the document is invalid.
        Conflict: when the name is taken.
    """
    row = find_webhook(id)
    read, validation_errors = read_webhook(document, has_secret=_has_secret(row, document.get("verifier")))
    if validation_errors:
        raise ValidationFailed(validation_errors)
    _require_workflows(read)
    row.updated_at, row.updated_by = clock.now(), by
    return _save_webhook(row, read, by, "overwrite")


def rotate_secret(id: str, fresh: Document, keep_seconds: int, by: str) -> None:
    """Replace the secret of a webhook (`secretValue`) or the values of its headers (`headers`).

    The former secret stays valid for `keep_seconds`, so that the sender can be reconfigured.

    Raises:
        NotFound: when there is no such webhook.
        Invalid: when neither a secret nor headers are given.
    """
    given = {"secret": fresh.get("secretValue"), "headers": fresh.get("headers")}
    given = {name: value for name, value in given.items() if value}
    if not given:
        raise Invalid("Enter the new secret.")
    _require_literal(given)
    with transaction.atomic():
        row = Webhook.objects.select_for_update().filter(pk=id).first()
        if row is None:
            raise NotFound(f"No such webhook: {id}")
        now, known = clock.now(), _decrypt_secrets(row)
        known.pop("former", None)
        former = {"former": {**known, "until": now + keep_seconds * 1000}} if keep_seconds > 0 else {}
        row.sealed = _encrypt_secrets(row, {**known, **given, **former})
        redacted = dict.fromkeys(given.get("headers") or row.document.get("headers") or {}, "")
        row.document, row.updated_at, row.updated_by = {**row.document, "headers": redacted}, now, by
        row.save()
        audit.record("webhook", row.id, "rotate", by)


def delete_webhook(id: str, by: str) -> None:
    with transaction.atomic():
        if not Webhook.objects.filter(pk=id).delete()[0]:
            raise NotFound(f"No such webhook: {id}")
        audit.record("webhook", id, "delete", by)


def find_webhook(id: str) -> Webhook:
    row = Webhook.objects.filter(pk=id).first()
    if row is None:
        raise NotFound(f"No such webhook: {id}")
    return row


def _save_webhook(row: Webhook, read: Document, by: str, action: str) -> Webhook:
    stored = _decrypt_secrets(row) if row.sealed else {}
    headers = _merge_kept_headers(read.pop("headers", None) or {}, stored.get("headers") or {})
    secret = {"secret": read.pop("secretValue", None), "headers": headers}
    given = {name: value for name, value in secret.items() if value}
    _require_literal(given)
    row.sealed = _encrypt_secrets(row, {**stored, **given})
    redacted = dict.fromkeys(given.get("headers") or stored.get("headers") or {}, "")
    row.owner_id = current_user_id()
    row.name, row.document = read["name"], {**read, "id": row.id, "headers": redacted}
    try:
        with transaction.atomic():
            row.save(force_insert=action == "create")
            audit.record("webhook", row.id, action, by)
    except IntegrityError:
        raise Conflict(f"A webhook with the name {row.name} or the id {row.id} already exists.") from None
    return row


def _require_workflows(read: Document) -> None:
    """Check that the current actor may start the workflows that the webhook starts, and those whose tasks it completes.

    Raises:
        Forbidden: when it may not start one of them.
    """
    require_starts([*(read.get("workflowsToStart") or {}), *(read.get("receiverWorkflowNamesToVersions") or {})])


def _require_literal(given: Mapping[str, Any]) -> None:
    """Check that what a request is compared with has no expression, which nothing would resolve."""
    values = [value for part in given.values() for value in (part.values() if isinstance(part, dict) else [part])]
    if any("${" in str(value) for value in values):
        raise Invalid("The secret and the headers of a webhook are compared as they are: `${…}` is not resolved.")


def _merge_kept_headers(headers: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with stored values in place of empty ones: clients see webhooks without their secrets."""
    return {name: value or stored.get(name, "") for name, value in headers.items()}


def _has_secret(row: Webhook, verifier: JsonValue) -> bool:
    """Return True if the secret that this verifier needs is stored: header values or a signing secret."""
    known = _decrypt_secrets(row) if row.sealed else {}
    return any((known.get("headers") or {}).values()) if verifier == "HEADER_BASED" else bool(known.get("secret"))


def _encrypt_secrets(row: Webhook, secrets: Document) -> str:
    return encrypt(f"webhook {row.id}", json.dumps(secrets))


def _decrypt_secrets(row: Webhook) -> dict[str, Any]:
    return json.loads(decrypt(f"webhook {row.id}", row.sealed))


def reencrypt_webhooks() -> int:
    """Encrypt the secrets of every webhook with the newest key. Returns how many were encrypted with another one."""
    count = 0
    for row in Webhook.objects.exclude(sealed="").order_by("pk"):
        if not is_current(row.sealed):
            again = _encrypt_secrets(row, _decrypt_secrets(row))
            count += Webhook.objects.filter(pk=row.pk, sealed=row.sealed).update(sealed=again)
    return count


def receive_webhook(id: str, headers: Mapping[str, str], body: bytes) -> str:
    """Verify a webhook request and receive it as the event `webhook:<name>`.

    Returns the text of the response. Slack sends a challenge once and expects it back.

    Raises:
        Unauthenticated: when the verification fails.
        Busy: when no helper process can evaluate the condition of an event handler.
    """
    row = find_webhook(id)
    try:
        message_id = _verify_request(row, ReceivedWebhook(headers, body, clock.now()))
    except Unauthenticated:
        _record_refusal(row)
        raise
    payload = _parse_body(body)
    if row.document["verifier"] == "SLACK_BASED" and payload.get("type") == "url_verification":
        return str(payload.get("challenge") or "")
    if traceparent := parse_traceparent(headers.get(HEADER)):
        payload.setdefault(HEADER, traceparent)
    built_in = built_in_handlers(row, payload)
    receive_event(f"webhook:{row.name}", message_id or str(uuid.uuid4()), payload, "webhook", extra_handlers=built_in)
    return ""


def _verify_request(row: Webhook, sent: ReceivedWebhook) -> str:
    """Verify a request by the secret, or by the former secret while that is valid. Returns the id of the message."""
    known = _decrypt_secrets(row)
    former = known.get("former") or {}
    try:
        return verify_webhook(_expected_secrets(row, known), sent)
    except Unauthenticated:
        if sent.now >= former.get("until", 0):
            raise
        return verify_webhook(_expected_secrets(row, former), sent)


def _expected_secrets(row: Webhook, secrets: Document) -> WebhookSecrets:
    return WebhookSecrets(row.document, secrets.get("secret", ""), secrets.get("headers", {}))


def _record_refusal(row: Webhook) -> None:
    """Count a refused request. Writes at most once per second, because the endpoint is public."""
    now = clock.now()
    lately = Q(refused_at__isnull=True) | Q(refused_at__lt=now - 1000)
    Webhook.objects.filter(lately, pk=row.pk).update(refusals=F("refusals") + 1, refused_at=now)


def former_secret_valid_until(row: Webhook) -> int | None:
    """Return the time until which the former secret of a webhook is valid, in milliseconds, or None."""
    until = (_decrypt_secrets(row).get("former") or {}).get("until", 0)
    return until if until > clock.now() else None


def _parse_body(body: bytes) -> Any:
    """Return the body as JSON, otherwise as text. A value that is not an object is wrapped as `{"body": …}`."""
    text = body.decode("utf-8", "replace")
    try:
        value = loads(text) if text else {}
    except (ValueError, RecursionError):
        value = text
    return value if isinstance(value, dict) else {"body": value}


def built_in_handlers(row: Webhook, payload: Document) -> list[EventHandler]:
    """Return the handlers built into a webhook's definition: workflows to start, and waiting tasks to complete."""
    wanted = dict(row.document.get("workflowsToStart") or {})
    actions = [
        {"action": "start_workflow", "start_workflow": {"name": name, "version": version}, "takesPayload": True}
        for name, version in wanted.items()
    ]
    actions += [
        {"action": "complete_task", "complete_task": {"taskId": attempt_id}, "takesPayload": True}
        for attempt_id in matching_tasks(row, payload)
    ]
    handler = EventHandler(name=built_in_handler_name(row.name), owner_id=row.owner_id, document={"actions": actions})
    return [handler] if actions else []


def matching_tasks(row: Webhook, payload: Document) -> list[str]:
    """Return the WAIT_FOR_WEBHOOK attempts of the receiving workflows whose conditions the payload meets.

    An event completes at most MAX_COMPLETED tasks: those that have waited longest.
    """
    found: list[str] = []
    for workflow, version in receiving_workflows(row).items():
        for paths in condition_paths(workflow):
            if (digest := payload_digest(payload, paths)) is not None:
                found += waiting_attempts(workflow, version, digest, MAX_COMPLETED - len(found))
    return found


def receiving_workflows(row: Webhook) -> dict[str, int]:
    """Return the versions of the workflows whose tasks the webhook completes, by name; 0 is any version."""
    given = row.document.get("receiverWorkflowNamesToVersions") or {}
    return {name: version if isinstance(version, int) else 0 for name, version in given.items()}


def verify_webhook(expected: WebhookSecrets, webhook: ReceivedWebhook) -> str:
    """Verify the sender, and return the id of the message, or "" if it has none."""
    # Every sender could compute a signature with an empty secret.
    _require(expected.document["verifier"] == "HEADER_BASED" or bool(expected.secret))
    message_id = VERIFIERS[expected.document["verifier"]](expected, webhook)
    received = next((webhook.headers[name] for name in DELIVERY_HEADERS if webhook.headers.get(name)), "")
    return received or message_id


def _verify_headers(expected: WebhookSecrets, webhook: ReceivedWebhook) -> str:
    matches = [
        _constant_time_equal(value, webhook.headers.get(name.lower(), "")) for name, value in expected.headers.items()
    ]
    return _require(any(expected.headers.values()) and all(matches))


def _verify_basic_auth(expected: WebhookSecrets, webhook: ReceivedWebhook) -> str:
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
