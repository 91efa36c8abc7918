"""One task opened: its attempts side by side, and of one of them the input, the output, the log and the gates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils.safestring import SafeString

from ..insight.explain import Verdict, verdicts_on
from ..insight.spans import span
from ..insight.timeline import Row
from ..insight.waits import first_line
from ..models import Attempt, TaskLog
from .documents import Document, documents, with_documents
from .marks import ago, badge, exact, marked

DOCUMENTS = ("input", "output")
Known = Mapping[str, Sequence[Verdict]]
MOST_LINES = 200
MOST_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class Try:
    """One attempt as a column."""

    attempt: Attempt
    badge: SafeString
    number: int
    waited: str
    worked: str
    reason: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Panel:
    """What is known of one task."""

    tries: list[Try]
    hidden: int
    attempt: Attempt | None
    facts: list[tuple[str, Any]]
    verdicts: list[tuple[Verdict, SafeString]]
    documents: list[Document]
    log: list[tuple[str, str]]


def panel(row: Row, number: str, known: Known, now: int) -> Panel:
    """The panel of one task, with the attempt of this number (counted from one), else the last one."""
    chosen = next((a for a in row.attempts if str(a.number + 1) == number), row.last)
    attempt = readable().filter(pk=chosen.pk).first() if chosen else None
    tries = [_try(a, attempt, now) for a in row.attempts[-MOST_ATTEMPTS:]]
    return of_attempt(attempt, tries, len(row.attempts) - len(tries), known, now)


def readable() -> QuerySet[Attempt]:
    """Attempts with all that a panel shows of them, and their runs without payloads."""
    payloads = [f"run__{name}" for name in ("input", "output", "variables")]
    attempts = Attempt.objects.of_runs().light().select_related("task", "run")
    attempts = attempts.defer("input", "output", "task__memo", *payloads)
    return with_documents(attempts, DOCUMENTS)


def of_attempt(attempt: Attempt | None, tries: list[Try], hidden: int, known: Known, now: int) -> Panel:
    """The panel around one attempt; `known`: verdicts that have been asked for already."""
    if attempt is None:
        return Panel([], 0, None, [], [], [], [])
    verdicts = known[attempt.pk] if attempt.pk in known else verdicts_on(attempt, now)
    return Panel(
        tries,
        hidden,
        attempt,
        facts_of(attempt, now),
        [(verdict, marked(verdict.sentence)) for verdict in verdicts],
        documents(attempt, DOCUMENTS),
        log_of(attempt.pk) if attempt.poll_count else [],
    )


def facts_of(attempt: Attempt, now: int) -> list[tuple[str, Any]]:
    """What there is to say of the attempt, in the order of its life."""
    facts = [
        ("Queue", attempt.queue),
        ("Worker", attempt.worker),
        ("Scheduled", ago(attempt.scheduled_at, now)),
        ("Started", ago(attempt.started_at, now) if attempt.started_at else ""),
        ("Lease ends", ago(attempt.lease_ends_at, now) if attempt.lease_ends_at and not attempt.ended_at else ""),
        ("Ended", ago(attempt.ended_at, now) if attempt.ended_at else ""),
        ("Polled", f"{attempt.poll_count} times" if attempt.poll_count > 1 else ""),
    ]
    return [(name, value) for name, value in facts if value]


def log_of(attempt_id: str) -> list[tuple[str, str]]:
    """The last lines that the worker logged, oldest first."""
    lines = TaskLog.objects.filter(attempt_id=attempt_id).order_by("-at", "-id")[:MOST_LINES]
    return [(exact(line.at), line.line) for line in reversed(lines)]


def _try(attempt: Attempt, chosen: Attempt | None, now: int) -> Try:
    end = now if attempt.ended_at is None else attempt.ended_at
    begun = end if attempt.started_at is None else attempt.started_at
    return Try(
        attempt,
        badge(attempt.status),
        attempt.number + 1,
        span(begun - attempt.scheduled_at),
        span(end - begun) if attempt.started_at is not None else "–",
        first_line(attempt.reason, 160),
        chosen is not None and chosen.pk == attempt.pk,
    )
