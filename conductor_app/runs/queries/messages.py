"""Messages that could not be delivered: their receivers, the list of operators, and the runs that wait for them."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast, Length

from ...access.visibility import visible
from ...core.commands import RESUME
from ...db import keyset_pages
from ...db.keyset_pages import KeysetPage, SortById
from ..models import ABOUT_GROUP, OVERDUE_RUN, OVERDUE_TASK, PUBLISH, Message

RUN, TASK, GROUP, SINK, EVENT, LIMIT = "run", "task", "group", "sink", "event", "limit"
RECEIVER_KINDS = {
    "begin": RUN,
    "child_ended": RUN,
    "child_reopened": RUN,
    RESUME: RUN,
    "terminate": RUN,
    "started": RUN,
    "inbox": RUN,
    "resolved": TASK,
    "asked": TASK,
    ABOUT_GROUP: GROUP,
    PUBLISH: SINK,
    "event": EVENT,
    "act": EVENT,
    "release": LIMIT,
    OVERDUE_RUN: RUN,
    OVERDUE_TASK: TASK,
}
MAX_COUNTED = 1_000


@dataclass(frozen=True, slots=True)
class UndeliveredFilter:
    """Filter of the list. Empty fields do not restrict it."""

    kind: str = ""
    receiver: str = ""
    error: str = ""


class WaitingMessage(NamedTuple):
    id: int
    to: str
    subject: str
    error: str


def receiver_kind(subject: str) -> str:
    """Return the kind of receiver of messages with this subject. Subjects of a newer version have none."""
    return RECEIVER_KINDS.get(subject, "")


def undelivered_page(rows: QuerySet[Message], after: str = "", before: str = "") -> KeysetPage:
    """Return a page of these messages without their payloads, newest first, with `payload_size` in bytes."""
    after, before = (place if place.isdecimal() and len(place) <= 18 else "" for place in (after, before))
    return keyset_pages.keyset_page(_with_size(rows), SortById(), after, before)


def undelivered_messages(selection: UndeliveredFilter, rows: QuerySet[Message]) -> QuerySet[Message]:
    if selection.kind:
        rows = rows.filter(subject__in=[name for name, kind in RECEIVER_KINDS.items() if kind == selection.kind])
    if selection.receiver:
        rows = rows.filter(to=selection.receiver)
    return rows.filter(error__icontains=selection.error) if selection.error else rows


def find_undelivered(message_id: int, rows: QuerySet[Message]) -> Message | None:
    """Return one of these undelivered messages without its payload, or None."""
    return _with_size(rows).filter(pk=min(message_id, 2**62)).first()


def _with_size(rows: QuerySet[Message]) -> QuerySet[Message]:
    return rows.defer("facts").annotate(payload_size=Length(Cast("facts", TextField())))


def count_undelivered() -> int:
    """Return the number of undelivered messages, up to MAX_COUNTED."""
    return visible(Message.objects.undelivered()).order_by()[:MAX_COUNTED].count()


def undelivered_to(run_ids: Collection[str]) -> list[WaitingMessage]:
    """Return the undelivered messages to these runs, oldest first."""
    of_runs = [subject for subject, kind in RECEIVER_KINDS.items() if kind == RUN]
    rows = Message.objects.undelivered().filter(to__in=run_ids, subject__in=of_runs).order_by("pk")
    return [WaitingMessage(*values) for values in rows.values_list("pk", "to", "subject", "error")]
