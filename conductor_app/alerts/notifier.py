"""Send alerts to their targets, with the network guard of HTTP tasks. Errors and answers never contain secrets."""

from datetime import UTC
from email.utils import parsedate_to_datetime

from django.core.mail import EmailMessage

from ..access.encryption import DecryptionFailed
from ..core import alerts
from ..core.errors import NotFound
from ..events.sinks.base import SinkFailed
from ..settings import conf
from ..system_tasks.http import FAILURE, HttpLimits, HttpTransport, Reply, RequestFailed, decode_body
from ..utils import clock
from .commands import find_target, is_obsolete, target_settings
from .models import AlertTarget

TIMEOUT_MS = 5_000
MAX_ANSWER_LENGTH = 300
_transport = HttpTransport(lambda: HttpLimits(conf.http_task_allowed_networks, total_seconds=15, max_bytes=1 << 20))


class TargetFailed(SinkFailed):
    """The target did not accept the notification. `pause_ms`: the pause that it demands before the next try."""

    def __init__(self, message: str, pause_ms: int = 0) -> None:
        super().__init__(message)
        self.pause_ms = pause_ms


class NotificationDropped(Exception):
    """The notification is not tried again."""


def notify_target(target_id: int, notice: alerts.AlertNotice, message_id: str) -> str:
    """Send a notice to a target and return its answer. A test is tried once.

    Raises:
        TargetFailed: when the target does not accept the notification.
        NotificationDropped: when the target or the reason of the notification no longer exists, this server does not
            support the kind of the target, or a test fails.
    """
    try:
        target = find_target(target_id)
    except NotFound:
        raise NotificationDropped("The target was deleted.") from None
    if target.kind not in alerts.ALERT_TARGET_KINDS:
        raise NotificationDropped(
            f"This server sends no alerts to targets of the kind {target.kind}. "
            "Delete the target, and create one of another kind."
        )
    if notice.event == alerts.TRIGGER and target.kind in alerts.INCIDENT_KINDS and is_obsolete(notice):
        raise NotificationDropped("The alert cleared before the target accepted the notification.")
    try:
        return _notify(target, notice, message_id)
    except TargetFailed as failed:
        if notice.event == alerts.TEST:
            raise NotificationDropped(str(failed)) from None
        raise


def _notify(target: AlertTarget, notice: alerts.AlertNotice, message_id: str) -> str:
    try:
        settings = target_settings(target)
    except DecryptionFailed:
        raise TargetFailed("No key of this server decrypts the secrets of the target. Enter them again.") from None
    if target.kind == alerts.EMAIL:
        return _send_email(settings, notice)
    try:
        answers = [_send(each) for each in alerts.requests_for(target.kind, settings, notice, message_id)]
    except TargetFailed as failed:
        raise TargetFailed(alerts.redact_target_secrets(str(failed), target.kind, settings), failed.pause_ms) from None
    return alerts.redact_target_secrets(" · ".join(answers), target.kind, settings)


def _send_email(settings: dict[str, str], notice: alerts.AlertNotice) -> str:
    subject = f"Conductor: {notice.sentence}"[:200].replace("\n", " ")
    body = f"{notice.sentence}\n\n{notice.link}\n" if notice.link else f"{notice.sentence}\n"
    addresses = alerts.split_addresses(settings["addresses"])
    try:
        EmailMessage(subject, body, None, addresses).send()
    except OSError as error:
        # Texts of a mail server may contain the account.
        raise TargetFailed(f"The mail server refused the message: {type(error).__name__}.") from None
    return f"The mail server accepted the message for {len(addresses)} addresses."


def _send(request: alerts.TargetRequest) -> str:
    """Send a request and return the answer."""
    inputs = {"uri": request.url, "method": "POST", "headers": dict(request.headers), "body": request.body}
    try:
        # The whole request is confidential: a redirect to another origin gets none of it.
        reply = _transport.reply_to({**inputs, "connectionTimeOut": TIMEOUT_MS, "readTimeOut": TIMEOUT_MS}, [()])
    except RequestFailed as failure:
        raise TargetFailed(failure.outcome.reason.removeprefix(FAILURE).strip()) from None
    answer = _answer_text(reply)
    if not 200 <= reply.response.status_code < 300:
        raise TargetFailed(answer, _pause_ms(reply))
    return answer


def _answer_text(reply: Reply) -> str:
    text = decode_body(reply.content, reply.response.headers.get("content-type", ""))
    status = f"{reply.response.status_code} {reply.response.reason or ''}".strip()[:100]
    # Databases cannot store NUL.
    text = " ".join(text.replace("\0", "").split())[:MAX_ANSWER_LENGTH]
    return f"{status}: {text}" if text else status


def _pause_ms(reply: Reply) -> int:
    """Return the pause in the header Retry-After, which has seconds or a date. 0 if there is none."""
    text = reply.response.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return int(text[:9]) * 1000
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return 0
    return max(round((until if until.tzinfo else until.replace(tzinfo=UTC)).timestamp() * 1000) - clock.now(), 0)
