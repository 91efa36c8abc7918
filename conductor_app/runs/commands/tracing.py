"""Export of traces: the spans of ended runs, read from their rows and sent to an OpenTelemetry collector.

Ids of spans follow from the ids of rows, and each run stores until when its spans are exported. So a restart loses
none, and a repetition, or the export of a run that was reopened, sends spans again under the same ids.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.db.models import Q

from ...core.states import COMPLETED
from ...core.trace_context import is_sampled, parent_span_of, span_id_of, trace_id_of
from ...telemetry import log_context
from ...utils import clock
from ..models import IS_TO_TRACE, Attempt, Run, Task
from ..store.writing import mark_as_traced

log = logging.getLogger(__name__)
MAX_AGE_MS = 7 * 24 * 3_600_000
"""How long after its end the spans of a run are sent. So neither a run that a collector refuses nor the history of a
server that gets its first collector occupies the export for long."""
MAX_RUNS = 50
"""The maximum number of runs per query."""
MAX_SPANS = 500
"""The maximum number of spans per request to the collector, and of attempts per query."""
FACTS = {
    Run: {"run_id": "id", "workflow": "name", "version": "version", "correlation_id": "correlation_id"},
    Task: {
        "run_id": "run_id", "task_id": "id", "task": "ref", "iteration": "iteration", "type": "type", "name": "name",
    },
    Attempt: {
        "run_id": "run_id", "task_id": "task_id", "attempt_id": "id", "attempt": "number", "queue": "queue",
        "worker": "worker", "child_run_id": "child_id",
    },
}  # fmt: skip
"""The attributes of a span, and the columns that they come from. Payloads and reasons may contain data of users."""
RUN_COLUMNS = (*FACTS[Run].values(), "status", "created_at", "ended_at", "traceparent", "traced_at")
ATTEMPT_COLUMNS = (
    *FACTS[Attempt].values(), "seq", "status", "scheduled_at", "delay_ms", "started_at", "ended_at",
    *(f"task__{name}" for name in (*FACTS[Task].values(), "status", "created_at", "attempt_id")),
)  # fmt: skip


def export_traces(is_stopping: Callable[[], bool] = lambda: False) -> int:
    """Send the spans of ended runs whose spans are not sent yet. Returns the number of runs.

    If the collector does not accept them, the next call repeats it.
    """
    count = 0
    if (exporter := log_context.process_exporter.value) is None:
        return count
    from opentelemetry.sdk.trace.export import SpanExportResult

    while not is_stopping() and (found := list(_runs_to_trace())):
        for spans, complete in _batches(found):
            if spans and exporter.export(spans) is not SpanExportResult.SUCCESS:
                log.warning("traces_not_exported", extra={"spans": len(spans)})
                return count
            for run in complete:
                mark_as_traced(run.pk, run.ended_at)
            count += len(complete)
    return count


def _batches(runs: Iterable[Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield the spans of each request, and the runs of which it has the last ones."""
    spans: list[Any] = []
    complete: list[Any] = []
    for run in runs:
        for span in _spans_of(run) if is_sampled(run.traceparent) else ():
            if len(spans) == MAX_SPANS:
                yield spans, complete
                spans, complete = [], []
            spans.append(span)
        complete.append(run)
    yield spans, complete


def _runs_to_trace() -> Iterable[Any]:
    found = Run.objects.filter(IS_TO_TRACE, ended_at__gt=clock.now() - MAX_AGE_MS)
    return found.only(*RUN_COLUMNS).order_by("ended_at")[:MAX_RUNS]


def _spans_of(run: Any) -> Iterator[Any]:
    """Yield the spans of a run, and of the attempts that have ended since its last export, with their tasks."""
    span = SpanFactory(run)
    parent = parent_span_of(run.traceparent, run.pk)
    yield span.of(run, run.name, parent, run.created_at, run.ended_at)
    for attempt in _ended_attempts(run):
        task, begin = attempt.task, attempt.scheduled_at
        if task.attempt_id == attempt.pk:
            yield span.of(task, task.ref, span_id_of(run.pk), task.created_at, attempt.ended_at)
        yield span.of(attempt, f"attempt {attempt.number + 1}", span_of_row(task), begin, attempt.ended_at)
        if attempt.queue and attempt.started_at is not None:
            yield span.of_queue(attempt, begin + attempt.delay_ms, attempt.started_at)


def _ended_attempts(run: Any) -> Iterator[Any]:
    ended = Attempt.objects.filter(run_id=run.pk, ended_at__gt=run.traced_at or 0).select_related("task")
    ended, place = ended.only(*ATTEMPT_COLUMNS).order_by("seq", "id"), Q()
    while found := list(ended.filter(place)[:MAX_SPANS]):
        yield from found
        place = Q(seq__gt=found[-1].seq) | Q(seq=found[-1].seq, id__gt=found[-1].pk)


def span_of_row(row: Any) -> str:
    """Return the id of the span of a row. A task may have the id of its first attempt."""
    return span_id_of(f"{row.pk} task" if isinstance(row, Task) else row.pk)


class SpanFactory:
    """Creates the spans of one run."""

    def __init__(self, run: Any) -> None:
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        self._trace_id = int(trace_id_of(run.traceparent), 16)
        self._resource, self._scope = log_context.resource_of_spans(), InstrumentationScope("conductor_app")

    def of(self, row: Any, name: str, parent: str, begin: int, end: int) -> Any:
        """Return the span of a run, a task or an attempt. Times are in milliseconds."""
        from opentelemetry.trace import StatusCode

        status = StatusCode.OK if row.status == COMPLETED else StatusCode.ERROR
        facts = {f"conductor.{fact}": getattr(row, column) for fact, column in FACTS[type(row)].items()}
        return self._span(name, span_of_row(row), parent, begin, end, status, row.status, facts)

    def of_queue(self, attempt: Any, begin: int, end: int) -> Any:
        """Return the span of the time in which an attempt waited for a worker."""
        from opentelemetry.trace import StatusCode

        facts = {"conductor.attempt_id": attempt.pk, "conductor.queue": attempt.queue}
        id, parent = span_id_of(f"{attempt.pk} queue"), span_id_of(attempt.pk)
        return self._span("queue", id, parent, begin, end, StatusCode.UNSET, "", facts)

    def _span(
        self, name: str, id: str, parent: str, begin: int, end: int, code: Any, status: str, facts: dict[str, Any]
    ) -> Any:
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import Status, StatusCode

        if status:
            facts["conductor.status"] = status
        return ReadableSpan(
            name=name,
            context=self._context(id),
            parent=self._context(parent) if parent else None,
            resource=self._resource,
            attributes={name: fact for name, fact in facts.items() if fact not in ("", None)},
            status=Status(code, status if code is StatusCode.ERROR else None),
            start_time=begin * 1_000_000,
            end_time=max(begin, end) * 1_000_000,
            instrumentation_scope=self._scope,
        )

    def _context(self, span_id: str) -> Any:
        from opentelemetry.trace import SpanContext, TraceFlags

        return SpanContext(
            self._trace_id, int(span_id, 16), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)
        )
