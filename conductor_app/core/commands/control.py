"""Commands on a whole run: pause, resume, terminate, fail, and change variables."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..decide import Report, apply_report
from ..decision_context import Command, DecisionContext, WithoutRules
from ..effects import Effect, ResolveTask, SetVariables, TransitionRun, apply_effects
from ..errors import Invalid, NotAllowedInState, shorten_reason
from ..masking import masked_names, restore_named
from ..primitives import JsonValue
from ..rules.finish import end_run
from ..rules.retries import give_up
from ..snapshot import Run
from ..states import COMPLETED, PAUSED, RUN, TERMINATED
from ..step_types.decisions import MAX_BYTES
from .reopen import require_whole_run


def pause_run(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Pause the run: nothing new is scheduled until it is resumed."""
    if run.status != PAUSED:
        yield TransitionRun("pause", now)


def simpler_command(command: Command) -> WithoutRules | None:
    """Return the command for the same end that evaluates less, or None if there is none."""
    if command is pause_run:
        return WithoutRules(pause_run, publishes=False)
    return command.simpler() if isinstance(command, WithoutRules) and command.simpler is not None else None


def resume_run(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Resume a paused run; its timeout starts again (execution §7.2)."""
    yield TransitionRun("resume", now, {"last_retried_at": now})


def terminate_run(reason: str = "", with_failure: bool = False) -> WithoutRules:
    """Return the command that terminates a run. `with_failure`: also start its failure workflow."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if run.status == TERMINATED:
            return
        if not run.is_open:
            RUN.after(run.status, "terminate")
            yield TransitionRun("terminate", now, {"reason": shorten_reason(reason) or run.reason})
            return
        yield from end_run(run, ctx, now, "terminate", reason, with_failure=with_failure)

    return WithoutRules(command, simpler=lambda: _terminate_undecidable_run(reason))


def terminate_if_open(reason: str) -> WithoutRules:
    """Return the command that terminates a run if it is open; an ended one keeps its status."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if run.is_open:
            yield from end_run(run, ctx, now, "terminate", reason, with_failure=False)

    return WithoutRules(command, simpler=lambda: _terminate_undecidable_run(reason))


def _terminate_undecidable_run(reason: str) -> WithoutRules:
    """Return the command that terminates a run whose output or listener events prevent an ordinary termination."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if run.is_open:
            yield from end_run(run, ctx, now, "terminate", reason, output={}, with_failure=False)

    return WithoutRules(command, publishes=False)


class FailUndecidableRun(WithoutRules):
    """Command that fails a run which cannot be decided or saved. Its output is not evaluated.

    `report`: a command whose own effects are kept, although the decision after it failed.
    """

    def __init__(
        self, reason: str, with_failure: bool = False, report: Command | None = None, *, publishes: bool = True
    ) -> None:
        is_simplest = not (with_failure or report or publishes)
        super().__init__(self._effects, publishes=publishes, simpler=None if is_simplest else self._simplify)
        self.reason, self.with_failure, self.report = reason, with_failure, report

    def _simplify(self) -> "FailUndecidableRun":
        if self.report is not None:
            return FailUndecidableRun(self.reason, self.with_failure)
        return FailUndecidableRun(self.reason, publishes=False)

    def _effects(self, run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if self.report is not None:
            effects = self._report_effects(self.report, run, ctx, now)
            yield from effects
            run = apply_effects(run, effects)
            ctx = DecisionContext(run, ctx.data)
        if run.is_open:
            event = "terminate" if run.status == PAUSED else "fail"
            yield from end_run(run, ctx, now, event, self.reason, output={}, with_failure=self.with_failure)

    def _report_effects(self, command: Command, run: Run, ctx: DecisionContext, now: int) -> list[Effect]:
        """Return the effects of the command, and resolve each task whose attempt it ended."""
        require_whole_run(run)
        effects = list(command(run, ctx, now))
        for task in apply_effects(run, effects).open_tasks:
            if task.attempt.status == COMPLETED:
                effects.append(ResolveTask(task.key, "complete"))
            elif task.attempt.ended_badly:
                effects.append(give_up(task))
        return effects


def set_variables(given: Mapping[str, Any], appends: bool = False) -> Command:
    """Return the command that merges variables into those of the run, by name.

    A masked variable given as `***` keeps its value. `appends`: values are appended to variables that are lists.

    Raises:
        NotAllowedInState: when the command is applied and the run has ended.
        Invalid: when the command is applied and the variables exceed the size limit.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if not run.is_open:
            raise NotAllowedInState(f"Workflow {run.id} is {run.status}. Its variables can no longer be changed.")
        known = ctx.variables()
        fresh = (
            {name: _append_value(known.get(name), value) for name, value in given.items()}
            if appends
            else restore_named(dict(given), known, masked_names(run.definition))
        )
        variables = {**known, **fresh}
        size = len(json.dumps(variables, default=str))
        if size > MAX_BYTES:
            raise Invalid(f"The variables of the workflow have {size} bytes. The limit is {MAX_BYTES} bytes.")
        yield SetVariables(variables)

    return command


def _append_value(known: JsonValue, value: JsonValue) -> Any:
    if not isinstance(known, list):
        return value
    return [*known, *(value if isinstance(value, list) else [value])]


def update_state(variables: Mapping[str, Any], attempt_id: str, report: Report | None) -> Command:
    """Return the command that sets variables and applies a report to an attempt, both or neither."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if variables or report is None:
            yield from set_variables(variables)(run, ctx, now)
        if report is not None:
            yield from apply_report(attempt_id, report)(run, ctx, now)

    return command
