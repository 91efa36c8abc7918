"""Errors of providers' clients → why a task has no reply, and what follows from it."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from conductor_app import clock
from conductor_app.access.redaction import redact
from conductor_app.engine.ai.integration_settings import ModelSettings
from conductor_app.transient_errors import own_error_of_exchange
from conductor_app.workers.http_exchange import exception_chain
from conductor_app.workers.network_guard import AddressRefused

MAX_WAIT_SECONDS = 3600
MAX_REPLY_BYTES = 10 << 20
"""The maximum size of a reply to an AI task."""
REFUSED_STATUSES = frozenset({400, 404, 405, 413, 422})
"""Statuses of requests that a provider refuses for their content, so that a retry cannot succeed."""
MAX_MESSAGE_LENGTH = 1_000
TOO_LONG = "{} did not reply within AI_TASK_SECONDS ({:g} s); the call may have been paid"
REFUSED_ADDRESS = "{} is not a public address, and no network in HTTP_TASK_ALLOWED_NETWORKS contains it"


class CallFailed(Exception):
    """The call has no reply.

    `wait_seconds`: how long the provider asks to wait, 0 if it does not. `is_final`: True if a retry cannot succeed.
    """

    def __init__(self, reason: str, wait_seconds: int = 0, is_final: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.wait_seconds, self.is_final = reason, wait_seconds, is_final


def status_failure(provider: str, status: int, headers: Mapping[str, str], body: Any) -> CallFailed:
    """Return the failure for an error response."""
    message = error_message(body)
    reason = f"{provider} replied with status {status}" + (f": {message}" if message else "")
    wait = retry_after(headers) if status in (408, 409, 425, 429) or status >= 500 else 0
    return CallFailed(reason, wait, is_final=status in REFUSED_STATUSES)


def connection_failure(provider: str, error: BaseException, seconds: float) -> CallFailed:
    """Return the failure for a request without a response. Texts of libraries may contain addresses with secrets.

    Raises:
        OSError: when this server is the cause, for example because it has too many open files.
    """
    if own := own_error_of_exchange(error):
        raise own from None
    chain = exception_chain(error)
    names = {type(each).__name__ for each in chain}
    refused = next((each for each in chain if isinstance(each, AddressRefused)), None)
    if refused is not None:
        return CallFailed(REFUSED_ADDRESS.format(refused.address), is_final=True)
    if "ReplyTooLarge" in names:
        return CallFailed(f"the reply of {provider} is larger than {MAX_REPLY_BYTES} bytes", is_final=True)
    if "ConnectTimeout" in names:
        return CallFailed(f"no connection to {provider} within its time limit")
    if names & {"ReadTimeout", "WriteTimeout", "TimeoutError", "CancelledError"}:
        return CallFailed(TOO_LONG.format(provider, seconds))
    if "ConnectError" in names or "ConnectionRefusedError" in names:
        return CallFailed(f"no connection to {provider}: its address cannot be resolved or refuses connections")
    if "DecodingError" in names:
        return CallFailed(f"the reply of {provider} is compressed or not readable")
    return CallFailed(f"the connection to {provider} ended before the reply was complete; the call may have been paid")


def retry_after(headers: Mapping[str, str]) -> int:
    """Return the seconds that a provider asks to wait, at most MAX_WAIT_SECONDS; 0 if it does not say so."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return 0
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - clock.now() / 1000
        except ValueError:
            return 0
    if seconds != seconds:
        return 0
    return max(1, min(MAX_WAIT_SECONDS, int(min(seconds, MAX_WAIT_SECONDS) + 0.999)))


def error_message(body: Any) -> str:
    """Return the message in the body of an error response."""
    if isinstance(body, Mapping):
        error = body.get("error", body)
        text = error.get("message") if isinstance(error, Mapping) else error
    else:
        text = body
    return " ".join(text.split())[:MAX_MESSAGE_LENGTH] if isinstance(text, str) else ""


def without_keys(text: str, settings: ModelSettings) -> str:
    """Return a text without the API key and the other secrets of an integration."""
    return redact(text, (), [value for value in (settings.api_key, *settings.secrets.values()) if value])
