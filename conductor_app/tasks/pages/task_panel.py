"""Panel of one task: its attempts side by side, and input mapping, output, log and gates of one attempt.

A log shows the newest lines first, older ones behind a link.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db.models import Case, F, Q, QuerySet, When
from django.http import StreamingHttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.timezone import get_current_timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ...core.definition import structure_of
from ...core.failure_grouping import informative_line
from ...core.human_tasks import ANSWER_SCHEMA_KEY
from ...core.states import ATTEMPT, CANCELED, COMPLETED
from ...core.step_types.waiting import Human
from ...db.fields import DocumentField, dumps
from ...definitions.store import attempts_allowed, parsed_definition
from ...failures.models import FailureGroup
from ...failures.queries import shared_group_of
from ...failures.store import FAILED_STATUSES
from ...runs.models import Attempt, Run, Task, TaskLog
from ...runs.timeline.queries import phases_of
from ...runs.timeline.tree import is_held_type, shown_status
from ...utils import process_state
from ...utils.formatting import format_duration
from ...utils.process_state import Wiring
from ...web.badges import exact_time, machine_time, mark_names, precise_time, render_badge
from ...web.documents import (
    MAX_INLINE_BYTES,
    PayloadDocument,
    annotate_documents,
    clean_log,
    mark_matches,
    payload_documents,
)
from ...web.links import LOG_PARAMETERS, RunPageQuery, render_trace
from ..queries.input_origins import InputOrigin, input_origins
from ..queries.tasks import LogPosition, LogRequest, LogWindow, iterate_chunks, log_window, logged_at, position_of
from ..queries.waiting import GateVerdict, persons_of, verdicts_on, wait_reason, why_not_retried
from .actions import step_after_task

LEVEL_PATTERN = re.compile(r"\b(FATAL|CRITICAL|ERROR|WARN|WARNING|DEBUG|TRACE)\b", re.I)
LEVEL_CLASSES = {"FATAL": "error", "CRITICAL": "error", "ERROR": "error", "WARN": "warn", "WARNING": "warn"} | {
    "DEBUG": "debug",
    "TRACE": "debug",
}
MAX_LINE_LENGTH = 4_000


@dataclass(frozen=True, slots=True)
class LogLine:
    """One log line. `level` determines its color, `address` is its permalink."""

    id: int
    place: str
    at: SafeString
    level: str
    text: SafeString
    is_cut: bool
    address: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class LogView:
    lines: list[LogLine]
    find: str
    earlier: str
    later: str
    newest: str
    current_choices: tuple[tuple[str, str], ...]
    follows: bool
    """True if new lines may arrive. The panel then shows them as they arrive."""

    @property
    def is_empty(self) -> bool:
        return not (self.lines or self.find or self.newest)


def parse_log_request(query: RunPageQuery) -> LogRequest:
    """Return the lines that an address requests.

    Parameters: `log=before.<place>` or `log=after.<place>`, `line=<place>`, `find=<text>`.
    """
    direction, _, place = query["log"].partition(".")
    positions = {"before": None, "after": None} | {direction: LogPosition.parse(place)}
    find = query["find"].strip().replace("\0", "")[:200]
    return LogRequest(positions["before"], positions["after"], LogPosition.parse(query["line"]), find)


def log_view(attempt: Attempt, query: RunPageQuery) -> LogView:
    """Return the requested lines. A search keeps the other parameters of the address."""
    criteria = parse_log_request(query)
    found = log_window(attempt.pk, criteria)
    return LogView(
        [_log_line(line, criteria, query.address) for line in found.lines],
        criteria.find,
        **_page_addresses(found, query.address),
        current_choices=tuple(query.current_choices(*LOG_PARAMETERS).items()),
        follows=criteria.is_tail and attempt.status in ATTEMPT.open,
    )


def _page_addresses(found: LogWindow, address: Callable[..., str]) -> dict[str, str]:
    criteria = found.criteria
    return {
        "earlier": address(log=f"before.{found.earlier}", line=None) if found.earlier else "",
        "later": address(log=f"after.{found.later}", line=None) if found.later and not criteria.find else "",
        "newest": "" if criteria.is_tail else address(log=None, line=None, find=None),
    }


def _log_line(line: TaskLog, criteria: LogRequest, address: Callable[..., str]) -> LogLine:
    place = position_of(line)
    text = clean_log(line.line[:MAX_LINE_LENGTH])
    return LogLine(
        place.id,
        str(place),
        _render_time(logged_at(line.at)),
        log_level(text),
        mark_matches(text, criteria.find),
        len(line.line) > MAX_LINE_LENGTH,
        f"{address(line=str(place), log=None, find=None)}#log-{place.id}",
        criteria.line == place,
    )


def _render_time(at: int) -> SafeString:
    """Return the time of day in milliseconds in the user's time zone, with the full time as tooltip."""
    local = datetime.fromtimestamp(min(max(at, 0), 253_402_300_799_000) / 1000, UTC).astimezone(get_current_timezone())
    words = f"{local:%H:%M:%S}.{local.microsecond // 1000:03d}"
    return format_html('<time datetime="{}" title="{}">{}</time>', machine_time(at), exact_time(at), words)


def log_level(line: str) -> str:
    """Return the severity of a line from the level near its start."""
    found = LEVEL_PATTERN.search(line[:120])
    return LEVEL_CLASSES[found.group(1).upper()] if found else ""


def log_text_response(attempt: Attempt) -> StreamingHttpResponse:
    headers = {
        "Content-Disposition": f'attachment; filename="{attempt.pk}.log"',
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingHttpResponse(_text_chunks(attempt.pk), content_type="text/plain; charset=utf-8", headers=headers)


def _text_chunks(attempt_id: str) -> Iterator[str]:
    for chunk in iterate_chunks(attempt_id):
        yield "".join(f"{machine_time(logged_at(line.at))} {line.line}\n" for line in chunk)


DOCUMENTS = ("input", "output")
KnownVerdicts = Mapping[str, Sequence[GateVerdict]]
MAX_VALUE_LENGTH = 200
MAX_ERROR_LINES = 12
MAX_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class InputOriginView:
    origin: InputOrigin
    value: str
    hint: SafeString


@dataclass(frozen=True, slots=True)
class AttemptColumn:
    attempt: Attempt
    badge: SafeString
    number: int
    times: str
    reason: str
    is_chosen: bool
    address: str
    is_by_hand: bool


@dataclass(frozen=True, slots=True)
class ErrorText:
    """Lines of an error: those that the panel shows at once, and the folded ones before or after them."""

    shown: str
    folded: str = ""
    folded_count: int = 0
    is_cause_last: bool = False

    @property
    def is_trace(self) -> bool:
        return "\n" in self.shown


@dataclass(frozen=True, slots=True)
class PanelSection:
    """A section that another slice adds to the panel: its template, and the rows that the template shows."""

    template: str
    rows: Sequence[Any]


class GateLists(NamedTuple):
    """The gates of a waiting attempt: those that it waits at, and those that it has passed."""

    closed: list[tuple[GateVerdict, SafeString]]
    passed: list[tuple[GateVerdict, SafeString]]


def gate_lists(verdicts: Iterable[GateVerdict]) -> GateLists:
    """Return the verdicts with their sentences."""
    rows = [(verdict, mark_names(verdict.sentence)) for verdict in verdicts]
    return GateLists([row for row in rows if not row[0].is_open], [row for row in rows if row[0].is_open])


_sections: Wiring[tuple[Callable[[Attempt], PanelSection | None], ...]] = process_state.wiring(())


def add_section(build: Callable[[Attempt], PanelSection | None]) -> None:
    """Add a section to the panel. `build`: returns the section for an attempt, or None."""
    _sections.value = (*_sections.value, build)


@dataclass(frozen=True, slots=True)
class TaskPanel:
    attempt_columns: list[AttemptColumn]
    hidden: int
    attempt: Attempt | None
    facts: list[tuple[str, Any]]
    verdicts: list[GateVerdict]
    documents: list[PayloadDocument]
    log: LogView | None
    origins: list[InputOriginView]
    child: str = ""
    failure_group: FailureGroup | None = None
    """The failure group of the attempt, if other failures belong to it."""
    next_step: str = ""
    """The step to jump to in order to skip the task."""
    sections: Sequence[PanelSection] = ()
    wait: SafeString | str = ""
    """What the attempt waits for, if no queue has it."""

    @property
    def gates(self) -> GateLists:
        """Return the gates, the closed ones first."""
        return gate_lists(self.verdicts)

    @property
    def shown_column(self) -> AttemptColumn | None:
        """Return the facts of the attempt that the panel shows."""
        return next((column for column in self.attempt_columns if column.is_chosen), None)

    @property
    def has_failed(self) -> bool:
        """Return True if the attempt failed and the run can be rerun with another input of its task."""
        return self.attempt is not None and self.attempt.status in ATTEMPT.final - {COMPLETED, CANCELED}

    @property
    def error_line(self) -> str:
        return informative_line(self.attempt.reason) if self.attempt else ""

    @property
    def error_text(self) -> ErrorText | None:
        """Return the whole error, or None if `error_line` has it all."""
        text = self.attempt.reason.strip() if self.attempt else ""
        if "\n" not in text and text.endswith(self.error_line):
            return None
        lines = text.splitlines()
        # A traceback ends with its cause, other errors begin with it.
        is_cause_last = lines[-1].strip() == self.error_line
        cut = max(len(lines) - MAX_ERROR_LINES, 0) if is_cause_last else MAX_ERROR_LINES
        head, tail = "\n".join(lines[:cut]), "\n".join(lines[cut:])
        if is_cause_last:
            return ErrorText(tail, head, cut, is_cause_last=True)
        return ErrorText(head, tail, max(len(lines) - cut, 0))

    @property
    def not_retried(self) -> str:
        """Return why the failed attempt of the panel was the last one."""
        attempt = self.attempt
        if attempt is None or attempt.run is None or attempt.pk != attempt.task.attempt_id:
            return ""
        definition = parsed_definition(attempt.run.resolved_definition_id)
        step = definition.step(attempt.task.ref) if definition else None
        document = step.document if step else {}
        has_policy = bool(document.get("taskDefinition")) or document.get("retryCount") is not None
        return why_not_retried(attempt, attempts_allowed(definition, attempt.task), has_policy=has_policy)

    @property
    def is_for_people(self) -> bool:
        """Return True if the task is an open human task."""
        return self.attempt is not None and self.attempt.task.type == Human.type and self.attempt.ended_at is None


def task_panel(
    run: Run,
    task: Task,
    query: RunPageQuery,
    known: KnownVerdicts,
    now: int,
    persons: Mapping[str, str],
    reopened: Collection[int] = (),
) -> TaskPanel:
    """Return the panel of a task, with the attempt whose number (from 1) is in the address, otherwise the last one.

    `persons`: for whom attempts wait, as far as it is known, by their ids. `reopened`: when a retry or rerun opened the
    run again.
    """
    number = query.number("attempt")
    attempts = attempts_of(task, number)
    for each in attempts:
        each.run, each.task = run, task
    for before, each in zip(attempts[-2::-1], attempts[:0:-1], strict=True):
        # An attempt has the error of the one before until it has one itself.
        if each.reason == before.reason and each.status not in FAILED_STATUSES:
            each.reason = ""
    chosen = [
        each for each in attempts if (each.pk == task.attempt_id if number is None else each.number == number - 1)
    ]
    attempt = next(iter(chosen or attempts[-1:]), None)
    attempt_columns = [
        _attempt_column(each, attempt, now, query.address(attempt=each.number + 1), each.scheduled_at in reopened)
        for each in attempts[-MAX_ATTEMPTS:]
    ]
    panel = attempt_panel(attempt, attempt_columns, len(attempts) - len(attempt_columns), known, now, query)
    return replace(panel, wait=_wait_sentence(attempt, persons, now)) if attempt is not None else panel


def _wait_sentence(attempt: Attempt, persons: Mapping[str, str], now: int) -> SafeString | str:
    """Return what an open attempt without a queue waits for. Gates explain the wait of others."""
    if attempt.ended_at is not None or attempt.queue:
        return ""
    person = persons.get(attempt.pk) or persons_of([attempt], now).get(attempt.pk, "")
    return mark_names(capfirst(wait_reason(attempt, None, now, person=person).sentence) + ".")


def _times_text(attempt: Attempt, now: int) -> str:
    """Return how long an attempt was delayed, queued and executed, or only waited: for a person or other tasks."""
    due, begin, end = phases_of(attempt, now)
    if attempt.started_at is None or is_held_type(attempt.task.type):
        return _("waiting %(waited)s") % {"waited": format_duration(end - attempt.scheduled_at)}
    facts = {"waited": format_duration(begin - due), "worked": format_duration(end - begin)}
    if due > attempt.scheduled_at:
        facts["delay"] = format_duration(due - attempt.scheduled_at)
        return _("delayed %(delay)s, queued %(waited)s, working %(worked)s") % facts
    return _("queued %(waited)s, working %(worked)s") % facts


def attempts_of(task: Task, number: int | None) -> list[Attempt]:
    """Return all attempts of a task in one query. The selected one has its small payloads."""
    is_requested = Q(pk=task.attempt_id) if number is None else Q(number=number - 1)
    found = Attempt.objects.defer_payloads().filter(task_id=task.pk).order_by("number")
    small = {
        f"small_{name}": Case(
            When(is_requested & Q(**{f"{name}_size__lte": MAX_INLINE_BYTES}), then=F(name)),
            output_field=DocumentField(null=True),
        )
        for name in DOCUMENTS
    }
    return list(found.annotate(**small))


def attempts_for_panel() -> QuerySet[Attempt]:
    """Return a query for attempts with everything that a panel shows, and the small payloads of their runs."""
    payloads = [f"run__{name}" for name in ("input", "output", "variables")]
    attempts = Attempt.objects.of_runs().defer_payloads().select_related("task", "run")
    attempts = attempts.defer("input", "output", "task__step_state", *payloads)
    return annotate_documents(attempts, DOCUMENTS)


def attempt_panel(
    attempt: Attempt | None,
    attempt_columns: list[AttemptColumn],
    hidden: int,
    known: KnownVerdicts,
    now: int,
    query: RunPageQuery,
) -> TaskPanel:
    """Return the panel of one attempt. `known`: gate verdicts that have already been loaded."""
    if attempt is None:
        return TaskPanel([], 0, None, [], [], [], None, [])
    verdicts = known[attempt.pk] if attempt.pk in known else verdicts_on(attempt, now)
    return TaskPanel(
        attempt_columns,
        hidden,
        attempt,
        attempt_facts(attempt, now),
        list(verdicts),
        payload_documents(without_question(attempt), DOCUMENTS),
        _worker_log(attempt, query),
        origin_views(attempt),
        attempt.child_id,
        shared_group_of(attempt),
        step_after_task(attempt),
        [section for build in _sections.value if (section := build(attempt)) is not None],
    )


def without_question(attempt: Attempt) -> Attempt:
    """Return the attempt with only the run's input: the page of a human task has title, question and assignee."""
    given = attempt.small_input
    attempt.small_input = (
        {name: value for name, value in given.items() if name != ANSWER_SCHEMA_KEY} if given else given
    )
    return attempt


def _worker_log(attempt: Attempt, query: RunPageQuery) -> LogView | None:
    """Return the log of an attempt, or None if no worker has claimed it, or a built-in one that sent no lines."""
    if not attempt.poll_count:
        return None
    view = log_view(attempt, query)
    return view if not structure_of(attempt.task.type).is_built_in or not view.is_empty else None


def attempt_facts(attempt: Attempt, now: int) -> list[tuple[str, Any]]:
    """Return the facts of an attempt in chronological order."""
    facts = [
        (_("Queue"), attempt.queue),
        (_("Domain"), attempt.domain),
        (_("Worker"), attempt.worker),
        (_("Scheduled"), precise_time(attempt.scheduled_at, now)),
        (_("Started"), precise_time(attempt.started_at, now) if attempt.started_at else ""),
        (
            _("Lease expires"),
            precise_time(attempt.lease_ends_at, now) if attempt.lease_ends_at and not attempt.ended_at else "",
        ),
        (_("Ended"), precise_time(attempt.ended_at, now) if attempt.ended_at else ""),
        (_("Polled"), _format_times(attempt.poll_count) if attempt.poll_count > 1 else ""),
        (_("Trace"), render_trace(attempt.run.traceparent, attempt.pk) if attempt.run else ""),
    ]
    return [(name, value) for name, value in facts if value]


def _format_times(count: int) -> str:
    return ngettext("%(count)s time", "%(count)s times", count) % {"count": count}


def origin_views(attempt: Attempt) -> list[InputOriginView]:
    """Return the origin of each input expression: its text, its source, its value, and a hint if it is null."""
    definition = parsed_definition(attempt.own_run.resolved_definition_id)
    found = input_origins(attempt, definition.step(attempt.task.ref) if definition else None)
    return [InputOriginView(each, _shorten(each.value), mark_names(each.hint)) for each in found]


def _shorten(value: Any) -> str:
    text = "null" if value is None else str(dumps(value))
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"


def _attempt_column(
    attempt: Attempt, selected: Attempt | None, now: int, address: str, is_by_hand: bool
) -> AttemptColumn:
    return AttemptColumn(
        attempt,
        render_badge(shown_status(attempt.task.type, attempt.status)),
        attempt.number + 1,
        _times_text(attempt, now),
        informative_line(attempt.reason, 160),
        selected is not None and selected.pk == attempt.pk,
        address,
        is_by_hand and attempt.number > 0,
    )
