"""Due timers that could not be handled: they are put off, and a message has their error for operators."""

from ..models import Message
from ..models.outbox import IS_OVERDUE, OVERDUE_RUN, OVERDUE_TASK
from .due_rows import DUE_ROWS_SQL
from .statements import execute, fetch

MAX_DELAY_MS = 3_600_000
KEPT_MS = 60_000
"""The time after the next try at which a message is deleted, unless that try has failed."""
TIMERS = {
    OVERDUE_RUN: (DUE_ROWS_SQL["set_timers_of_run"], DUE_ROWS_SQL["set_timer_of_run"]),
    OVERDUE_TASK: (DUE_ROWS_SQL["set_timers_of_task"], DUE_ROWS_SQL["set_timer_of_task"]),
}
"""The statements that set the due timers of a run, or of a standalone task."""
FIND_MESSAGE = f'SELECT id, tries FROM conductor_message WHERE "to" = %s AND subject = %s AND {IS_OVERDUE}'


def growing_delay_ms(tries: int) -> int:
    """Return the delay after this number of failed tries. The first failure is repeated by the next sweep."""
    return 0 if tries < 2 else min(1000 * 2 ** min(tries - 2, 20), MAX_DELAY_MS)


def put_off_timers(subject: str, to: str, error: str, now: int) -> None:
    """Put off the due timers of a run or a standalone task, longer after each failure, and store the error.

    In a transaction of the caller.
    """
    found = fetch(FIND_MESSAGE, [to, subject])
    id, tries = found[0] if found else (None, 0)
    until = now + growing_delay_ms(tries + 1)
    fields = {"facts": {"until": until}, "due_at": until + KEPT_MS, "tries": tries + 1, "error": error[:2000]}
    if id is None:
        Message.objects.create(to=to, subject=subject, sent_at=now, **fields)
    else:
        Message.objects.filter(pk=id).update(**fields)
    _set_timers(subject, to, until, now)


def bring_timers_forward(message: Message, now: int) -> None:
    """Make the timers due that were put off when this message was written."""
    _set_timers(message.subject, message.to, now, message.facts["until"])


def _set_timers(subject: str, to: str, moment: int, due_before: int) -> None:
    for statement in TIMERS[subject]:
        execute(*statement.bind(moment=moment, to=to, due_before=due_before))
