"""Watches of task groups: one email, sent through the outbox, when a group is resolved or has its first failure."""

import secrets

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from ... import clock
from ...core.errors import Conflict, Invalid, NotFound
from ...models import GroupWatch, StandaloneTask
from ...models.outbox import ALERT, PUBLISH
from ...store import outbox_messages
from .. import audit
from ..sweep_items import handle_each
from .standalone_rows import find_group

LIMIT = 20
"""The maximum number of open watches of a group."""
ENDED_BADLY = ("FAILED", "TIMED_OUT", "CANCELED")


def watch_group(group_id: str, event: str, mail: str, by: str) -> None:
    """Send an email when the event happens to a group.

    Raises:
        NotFound: when there is no such group.
        Invalid: when the event or the address is invalid.
        Conflict: when the event has happened already, or the group has too many watches.
    """
    find_group(group_id)
    if event not in GroupWatch.EVENTS:
        raise Invalid(f"Unknown event {event[:64]!r}. Use one of: {', '.join(GroupWatch.EVENTS)}.")
    try:
        validate_email(mail)
    except ValidationError as wrong:
        raise Invalid(f"{mail[:80]!r} is not a valid email address.") from wrong
    if _event_sentence(group_id, event):
        raise Conflict("The event has happened already.")
    if GroupWatch.objects.filter(group_id=group_id, notified_at=None).count() >= LIMIT:
        raise Conflict(f"The group already has {LIMIT} watches.")
    with transaction.atomic():
        GroupWatch.objects.create(group_id=group_id, event=event, mail=mail, by=by[:255], created_at=clock.now())
        audit.record("task_group", group_id, "watch", by, facts={"event": event})


def unwatch_group(group_id: str, watch_id: str, by: str) -> None:
    """Delete a watch.

    Raises:
        NotFound: when there is no such open watch.
    """
    number = int(watch_id) if watch_id.isascii() and watch_id.isdecimal() and len(watch_id) < 19 else 0
    with transaction.atomic():
        if not GroupWatch.objects.filter(pk=number, group_id=group_id, notified_at=None).delete()[0]:
            raise NotFound("The watch no longer exists.")
        audit.record("task_group", group_id, "unwatch", by)


def check_watched_groups(limit: int) -> int:
    """Check up to `limit` open watches, least recently checked first. Returns how many."""
    watched = GroupWatch.objects.filter(notified_at=None).order_by("checked_at", "id").values_list("pk", flat=True)
    return handle_each(list(watched[:limit]), _check_watch)


def _check_watch(watch_id: int) -> None:
    now = clock.now()
    row = GroupWatch.objects.filter(pk=watch_id, notified_at=None).first()
    if row is None:
        return
    sentence = _event_sentence(row.group_id, row.event)
    with transaction.atomic():
        seen = {"checked_at": now, **({"notified_at": now} if sentence else {})}
        # The update lets only one process send the email.
        if GroupWatch.objects.filter(pk=watch_id, notified_at=None).update(**seen) and sentence:
            _send_mail(row, sentence, now)


def _send_mail(row: GroupWatch, sentence: str, now: int) -> None:
    payload = {"sentence": sentence, "at": now, "taskGroupId": row.group_id}
    facts = {"sink": ALERT, "id": secrets.token_hex(16), "to": row.mail, "payload": payload}
    outbox_messages.send(PUBLISH, now, to=f"watch {row.pk}", facts=facts)


def _event_sentence(group_id: str, event: str) -> str:
    """Return the text of the email, or an empty string if the event has not happened."""
    own = StandaloneTask.objects.filter(group_id=group_id)
    bad = own.filter(ever_resolved=True, task__status__in=ENDED_BADLY)
    if event == GroupWatch.FAILED:
        first = bad.order_by("task__attempts__ended_at", "pk").values_list("task__name", "task__status").first()
        return f"In task group {group_id}, task {first[0]} was not successful: {first[1]}." if first else ""
    if own.filter(ever_resolved=False).exists() or not own.exists():
        return ""
    return (
        f"All {own.count():,} tasks of task group {group_id} are resolved; {bad.count():,} of them were not successful."
    )
