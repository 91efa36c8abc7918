"""Commands of operators on undelivered messages: try them again, or discard them."""

from collections.abc import Iterable, Sequence
from functools import partial

from django.db import transaction

from .. import clock
from ..core.errors import Invalid
from ..insight.monitoring.undelivered_messages import GROUP, RUN, TASK, receiver_kind
from ..models import Message
from ..models.outbox import PUBLISH
from ..store import outbox_messages
from . import audit
from .delivery import deliver_after_commit

AUDITED_RECEIVERS = {RUN: "run", TASK: "task", GROUP: "task_group"}
"""Receivers whose pages show the audit entries about their messages. Other entries are about the message itself."""


def retry_messages(ids: Iterable[int], by: str, reason: str) -> int:
    """Try undelivered messages again, the first ones at once. Returns how many; the others are delivered already.

    Raises:
        Invalid: when the reason is missing.
    """
    with transaction.atomic():
        found = _lock_and_audit(ids, "retry_message", by, reason)
        outbox_messages.retry_undelivered([message.pk for message in found], clock.now())
        internal = tuple(message.pk for message in found if message.subject != PUBLISH)
        # Publishers find messages to other systems within a second.
        transaction.on_commit(partial(deliver_after_commit, internal))
    return len(found)


def discard_messages(ids: Iterable[int], by: str, reason: str) -> int:
    """Delete undelivered messages. Returns how many. A run that waits for one of them waits until it is terminated.

    Raises:
        Invalid: when the reason is missing.
    """
    with transaction.atomic():
        found = _lock_and_audit(ids, "discard_message", by, reason)
        outbox_messages.discard_undelivered([message.pk for message in found])
    return len(found)


def _lock_and_audit(ids: Iterable[int], action: str, by: str, reason: str) -> Sequence[Message]:
    if not reason.strip():
        raise Invalid("Enter a reason.")
    rows = Message.objects.undelivered().defer("facts").filter(pk__in=list(ids)).order_by("pk")
    found = list(rows.select_for_update())
    for message in found:
        kind = AUDITED_RECEIVERS.get(receiver_kind(message.subject))
        facts = {
            "message": message.pk,
            "subject": message.subject,
            "receiver": message.to,
            "tries": message.tries,
            "error": message.error,
        }
        audit.record(kind or "message", message.to if kind else message.pk, action, by, reason=reason, facts=facts)
    return found
