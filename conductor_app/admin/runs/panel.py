"""One task opened: its attempts side by side, and of one of them where its input came from, output, log and gates."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import BooleanField, Case, F, Q, QuerySet, Value, When
from django.utils.safestring import SafeString

from ...insight.explain import Verdict, verdicts_on
from ...insight.origins import Origin, origins
from ...insight.plans import plan
from ...insight.spans import span
from ...insight.waits import first_line
from ...models import Attempt, Run, Task, TaskLog
from ...models.fields import DocumentField, dumps
from ..documents import LARGE, Document, documents, with_documents
from ..marks import ago, badge, exact, marked

DOCUMENTS = ("input", "output")
Known = Mapping[str, Sequence[Verdict]]
MOST_LINES = 200
MOST_OF_A_VALUE = 200
LEVEL = re.compile(r"\b(FATAL|CRITICAL|ERROR|WARN|WARNING|DEBUG|TRACE)\b", re.I)
LEVELS = {"FATAL": "error", "CRITICAL": "error", "ERROR": "error", "WARN": "warn", "WARNING": "warn"} | {
    "DEBUG": "debug",
    "TRACE": "debug",
}
MOST_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class Told:
    """Where a value of the input came from, as the page says it."""

    origin: Origin
    value: str
    hint: SafeString


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
    address: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that the worker logged; `level` gives its colour."""

    number: int
    at: str
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Panel:
    """What is known of one task."""

    tries: list[Try]
    hidden: int
    attempt: Attempt | None
    facts: list[tuple[str, Any]]
    verdicts: list[tuple[Verdict, SafeString]]
    documents: list[Document]
    log: list[LogLine]
    origins: list[Told]
    child: str = ""

    @property
    def is_for_people(self) -> bool:
        """Whether it waits for a person's answer."""
        return self.attempt is not None and self.attempt.task.type == "HUMAN" and self.attempt.ended_at is None


def panel(run: Run, task: Task, number: int | None, known: Known, now: int, address: Callable[..., str]) -> Panel:
    """The panel of one task of a run, with the attempt of this number (counted from one), else the last one."""
    attempts = tries_of(task, number)
    for each in attempts:
        each.run, each.task = run, task
    attempt = next((each for each in attempts if each.is_chosen), attempts[-1] if attempts else None)
    tries = [_try(each, attempt, now, address(attempt=each.number + 1)) for each in attempts[-MOST_ATTEMPTS:]]
    return of_attempt(attempt, tries, len(attempts) - len(tries), known, now)


def tries_of(task: Task, number: int | None) -> list[Attempt]:
    """All attempts of a task, the chosen one with its payloads where they are small; one query."""
    chosen = Q(pk=task.attempt_id) if number is None else Q(number=number - 1)
    found = Attempt.objects.light().filter(task_id=task.pk).order_by("number")
    small = {
        f"small_{name}": Case(
            When(chosen & Q(**{f"{name}_size__lte": LARGE}), then=F(name)), output_field=DocumentField(null=True)
        )
        for name in DOCUMENTS
    }
    is_chosen = Case(When(chosen, then=Value(True)), default=Value(False), output_field=BooleanField())
    return list(found.annotate(is_chosen=is_chosen, **small))


def readable() -> QuerySet[Attempt]:
    """Attempts with all that a panel shows of them, and their runs with what their inputs are made of, where small."""
    payloads = [f"run__{name}" for name in ("input", "output", "variables")]
    attempts = Attempt.objects.of_runs().light().select_related("task", "run")
    attempts = attempts.defer("input", "output", "task__memo", *payloads)
    return with_documents(attempts, DOCUMENTS)


def of_attempt(attempt: Attempt | None, tries: list[Try], hidden: int, known: Known, now: int) -> Panel:
    """The panel around one attempt; `known`: verdicts that have been asked for already."""
    if attempt is None:
        return Panel([], 0, None, [], [], [], [], [])
    verdicts = known[attempt.pk] if attempt.pk in known else verdicts_on(attempt, now)
    return Panel(
        tries,
        hidden,
        attempt,
        facts_of(attempt, now),
        [(verdict, marked(verdict.sentence)) for verdict in verdicts],
        documents(attempt, DOCUMENTS),
        log_of(attempt.pk) if attempt.poll_count else [],
        origins_of(attempt),
        attempt.child_id,
    )


def facts_of(attempt: Attempt, now: int) -> list[tuple[str, Any]]:
    """What there is to say of the attempt, in the order of its life."""
    facts = [
        ("Queue", attempt.queue),
        ("Domain", attempt.domain),
        ("Worker", attempt.worker),
        ("Scheduled", ago(attempt.scheduled_at, now)),
        ("Started", ago(attempt.started_at, now) if attempt.started_at else ""),
        ("Lease ends", ago(attempt.lease_ends_at, now) if attempt.lease_ends_at and not attempt.ended_at else ""),
        ("Ended", ago(attempt.ended_at, now) if attempt.ended_at else ""),
        ("Polled", f"{attempt.poll_count} times" if attempt.poll_count > 1 else ""),
    ]
    return [(name, value) for name, value in facts if value]


def origins_of(attempt: Attempt) -> list[Told]:
    """Each expression of the input: what it says, what it reads, what came of it; what is null has a hint."""
    definition = plan(attempt.run.plan_id)
    found = origins(attempt, definition.step(attempt.task.ref) if definition else None)
    return [Told(each, _short(each.value), marked(each.hint)) for each in found]


def _short(value: Any) -> str:
    text = "null" if value is None else str(dumps(value))
    return text if len(text) <= MOST_OF_A_VALUE else f"{text[:MOST_OF_A_VALUE]}…"


def log_of(attempt_id: str) -> list[LogLine]:
    """The last lines that the worker logged, oldest first."""
    lines = list(TaskLog.objects.filter(attempt_id=attempt_id).order_by("-at", "-id")[:MOST_LINES])
    return [LogLine(n, exact(line.at), level_of(line.line), line.line) for n, line in enumerate(reversed(lines), 1)]


def level_of(line: str) -> str:
    """How grave a line is, by the word that its logger has put near its beginning."""
    found = LEVEL.search(line[:120])
    return LEVELS[found.group(1).upper()] if found else ""


def _try(attempt: Attempt, chosen: Attempt | None, now: int, address: str) -> Try:
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
        address,
    )
