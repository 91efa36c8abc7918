"""What the debugger shows of a run: its stops, its breakpoints, and the values of expressions, which stay masked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..access.visibility import visible
from ..core.breakpoints import (
    Breakpoint,
    breakpoints_of,
    evaluate_values,
    require_expression,
    split_expression,
    stops_of,
)
from ..core.definition import Key
from ..core.errors import Invalid
from ..core.expressions import MISSING, resolve_template
from ..core.step_types.sub_workflows import SubWorkflow
from ..runs.documents.workflows import find_run
from ..runs.models import Attempt, Run
from ..runs.store.rows import parse_iteration_path
from ..tasks.gates import BREAKPOINT, GateFacts, stop_facts
from ..tasks.queries.tasks import find_task

PAYLOADS = ("input", "output", "variables")
MAX_DEBUGGED_RUNS = 200
"""The newest open runs with breakpoints among which those are searched that stand at one."""


@dataclass(frozen=True, slots=True)
class StopDetails:
    """One stop of a run. `payload`: the payload that can be changed here, `input` or `output`."""

    attempt_id: str
    task: str
    key: Key
    type: str
    place: str
    sentence: str
    by: str
    since: int
    until: int
    payload: str
    value: Any
    can_step_into: bool


def stops_of_run(run: Run, now: int) -> list[StopDetails]:
    """Return the stops of a run, earliest first, with the payloads of their tasks. Runs one query, or none."""
    stops = stops_of(run.debug or {})
    if not stops or run.ended_at is not None:
        return []
    attempts = Attempt.objects.filter(pk__in=list(stops)).select_related("task")
    found = [_stop_details(attempt, stops[attempt.pk], now) for attempt in attempts]
    return sorted(found, key=lambda stop: (stop.since, stop.task))


@dataclass(frozen=True, slots=True)
class StoppedRun:
    """A run at a breakpoint: the task of its first stop, who set the breakpoint, and when the run continues."""

    run: Run
    task: str
    by: str
    until: int


def stopped_runs(limit: int) -> list[StoppedRun]:
    """Return the newest open runs that stand at a breakpoint and that the actor may see. Runs one query."""
    rows = Run.objects.defer_payloads().open().filter(debug__isnull=False).defer("input", "output", "variables")
    found = visible(rows).order_by("-id")[:MAX_DEBUGGED_RUNS]
    stops = [(run, next(iter(stops_of(run.debug or {}).values()), None)) for run in found]
    return [StoppedRun(run, stop["task"], stop["by"], stop["until"]) for run, stop in stops if stop][:limit]


def _stop_details(attempt: Attempt, stop: Mapping[str, Any], now: int) -> StopDetails:
    payload = "output" if stop["place"] == "after" else "input"
    is_stored_outside = bool(getattr(attempt, f"{payload}_path"))
    return StopDetails(
        attempt_id=attempt.pk,
        task=stop["task"],
        key=Key(attempt.task.ref, parse_iteration_path(attempt.task.iteration_path)),
        type=attempt.task.type,
        place=stop["place"],
        sentence=BREAKPOINT.sentence(GateFacts(now, 0, **stop_facts(stop))),
        by=stop["by"],
        since=stop["since"],
        until=stop["until"],
        payload="" if is_stored_outside else payload,
        value=None if is_stored_outside else getattr(attempt, payload),
        can_step_into=stop["place"] == "before" and attempt.task.type == SubWorkflow.type,
    )


def live_breakpoints_of(debug: Mapping[str, Any] | None, now: int) -> list[Breakpoint]:
    """Return the breakpoints that have not expired, without temporary ones."""
    return [each for each in breakpoints_of(debug or {}) if now < each.until and not each.is_temporary]


def evaluate_expression(run_id: str, text: str) -> Any:
    """Return the value of an expression in the context of a run. Nothing is changed, and masked values are `***`.

    Raises:
        Invalid: when the expression cannot be read or evaluated.
    """
    require_expression(text)
    run = find_run(run_id, PAYLOADS)
    _script, references = split_expression(text)
    scope = MaskedScope(run)
    values = {name: resolve_template(reference, scope.value) for name, reference in references.items()}
    result = evaluate_values(text, values)
    if result.error:
        raise Invalid(f"The expression cannot be evaluated: {result.error}"[:500])
    return result.value


class MaskedScope:
    """The values that expressions can read of a run, as pages show them."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.attempts: dict[str, Attempt | None] = {}

    def value(self, root: str, key: str) -> Any:
        """Return the value of a reference, or MISSING."""
        if root == "workflow":
            return self._run_value(key)
        if root not in self.attempts:
            task = find_task(self.run, root)
            found = Attempt.objects.filter(pk=task.attempt_id).select_related("task").first() if task else None
            self.attempts[root] = found
        attempt = self.attempts[root]
        if attempt is None:
            return MISSING
        if key in ("input", "output"):
            _require_in_row(attempt, key, root)
            return getattr(attempt, key)
        facts = {
            "status": attempt.status,
            "reasonForIncompletion": attempt.reason or None,
            "retryCount": attempt.number,
            "workerId": attempt.worker or None,
            "taskId": attempt.pk,
            "referenceTaskName": str(attempt.task),
        }
        return facts.get(key, MISSING)

    def _run_value(self, key: str) -> Any:
        if key in PAYLOADS:
            _require_in_row(self.run, key, "workflow")
            return getattr(self.run, key)
        run = self.run
        facts = {
            "workflowId": run.pk,
            "workflowType": run.name,
            "version": run.version,
            "status": run.status,
            "correlationId": run.correlation_id or None,
        }
        return facts.get(key, MISSING)


def _require_in_row(row: Run | Attempt, part: str, name: str) -> None:
    if getattr(row, f"{part}_path", ""):
        raise Invalid(f"The {part} of {name} is stored outside the database. An expression here cannot read it.")
