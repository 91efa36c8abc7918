"""Commands on a whole run: pause, resume, terminate, fail, change variables; and those of the debugger.

The debugger sets and removes breakpoints, lets a stopped task continue, and runs it again.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..breakpoints import (
    BEFORE,
    FAILURE,
    MAX_BREAKPOINTS,
    Breakpoint,
    breakpoints_of,
    require_valid,
    steps_ahead,
    stops_of,
    with_breakpoints,
)
from ..decide import Report, apply_report
from ..decision_context import Command, DecisionContext, WithoutRules, conductor_task_type
from ..effects import Effect, ResolveTask, SetVariables, TransitionRun, UpdateRun, apply_effects
from ..errors import Conflict, Forbidden, Invalid, NotAllowedInState, NotFound, StepRefused, shorten_reason
from ..masking import masked_names, restore_named, restored_paths
from ..primitives import JsonValue
from ..rules.advance import continue_task
from ..rules.finish import end_run
from ..rules.retries_and_timeouts import give_up
from ..secret_places import SECRET_PLACES, kept_places, places_of, refuse_new_receiver
from ..snapshot import Run, Task
from ..states import COMPLETED, PAUSED, RUN, TERMINATED
from ..step_types.base import require_named_objects
from ..step_types.decisions import MAX_BYTES
from ..step_types.sub_workflows import SubWorkflow
from .reopen import require_whole_run
from .rerun import Rerun


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


CONTINUE, OVER, INTO, TO = ACTIONS = ("continue", "over", "into", "to")
"""How a stopped run continues: to the next breakpoint, to the next step, into a sub-workflow, or to a named step."""


def set_breakpoint(found: Breakpoint) -> Command:
    """Return the command that adds a breakpoint to a run. One at the same place of the same step is replaced.

    Raises:
        NotAllowedInState: when the command is applied and the run has ended.
        Invalid: when the command is applied and the breakpoint is invalid, or the run has too many.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if not run.is_open:
            raise NotAllowedInState(f"Workflow {run.id} is {run.status}. Only a run in progress can have breakpoints.")
        require_valid(found, run.definition)
        yield UpdateRun({"debug": with_breakpoints(run.debug, add_breakpoint(breakpoints_of(run.debug), found, now))})

    return command


def add_breakpoint(known: Iterator[Breakpoint], found: Breakpoint, now: int) -> list[Breakpoint]:
    """Return the breakpoints with a new one, without those that it replaces or that have expired.

    Raises:
        Invalid: when there are too many.
    """
    kept = [each for each in known if (each.ref, each.place) != (found.ref, found.place) and now < each.until]
    if len(kept) >= MAX_BREAKPOINTS:
        raise Invalid(f"There are {len(kept)} breakpoints, which is the maximum. Remove one first.")
    return [*kept, found]


def remove_breakpoint(id: str) -> Command:
    """Return the command that removes a breakpoint from a run. A stop that it has caused remains."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        known = list(breakpoints_of(run.debug))
        kept = [each for each in known if each.id != id]
        if len(kept) == len(known):
            raise NotFound(f"Workflow {run.id} has no breakpoint {id}.")
        yield UpdateRun({"debug": with_breakpoints(run.debug, kept)})

    return command


@dataclass(frozen=True, slots=True)
class ContinueFromStop:
    """Command that lets a stopped task continue.

    `attempt_id`: its attempt. `next`: the temporary breakpoint of a step, without its reference; `ref`: the step to run
    to. `input`, `output` and `variables` replace those of the task and of the run; None keeps them.
    """

    attempt_id: str
    action: str
    next: Breakpoint
    ref: str = ""
    input: dict[str, Any] | None = None
    output: dict[str, Any] | None = None
    variables: Mapping[str, Any] | None = None

    def __call__(self, run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        task = self._require_stopped(run)
        stop = stops_of(run.debug)[self.attempt_id]
        if self.variables:
            yield from set_variables(self.variables)(run, ctx, now)
        yield UpdateRun({"debug": self._next_debug(run, task)})
        facts, step_state = self._changed_payloads(run, task, stop["place"], ctx)
        # As for a paused run, the timeout of the run starts again.
        yield UpdateRun({"last_retried_at": now})
        yield continue_task(task, stop, now, facts, **step_state)

    def _require_stopped(self, run: Run) -> Task:
        if self.action not in ACTIONS:
            raise Invalid(f"Unknown action {self.action[:64]!r}. Use one of: {', '.join(ACTIONS)}.")
        task = run.task_of_attempt(self.attempt_id)
        if task is None or not task.is_stopped or self.attempt_id not in stops_of(run.debug):
            raise NotAllowedInState(f"Task {self.attempt_id} of workflow {run.id} is not stopped at a breakpoint.")
        if run.status == PAUSED:
            raise NotAllowedInState(f"Workflow {run.id} is paused. Resume it first.")
        return task

    def _next_debug(self, run: Run, task: Task) -> dict[str, Any]:
        """Return the document of the run with the temporary breakpoint that the action needs."""
        debug = {name: value for name, value in run.debug.items() if name != "into"}
        if self.action == CONTINUE:
            return debug
        next = self.next
        if self.action == TO:
            next = replace(next, ref=self.ref)
            require_valid(next, run.definition)
            tasks = {key: each.is_open for key, each in run.tasks.items()}
            if self.ref not in steps_ahead(run.definition, tasks, task.key):
                raise Invalid(f"Step {self.ref} has begun already: the run would not stop. Choose a later step.")
        elif self.action == INTO:
            if task.step.type != SubWorkflow.type or stops_of(run.debug)[self.attempt_id]["place"] != BEFORE:
                raise Invalid(f"Task {task.key} is not about to start a sub-workflow. Step over it instead.")
            debug["into"] = {"attempt": self.attempt_id, "breakpoint": next.to_document()}
        return with_breakpoints(debug, [*breakpoints_of(debug), next])

    def _changed_payloads(
        self, run: Run, task: Task, place: str, ctx: DecisionContext
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the changed payloads as facts of the attempt and as step state."""
        facts: dict[str, Any] = {}
        step_state: dict[str, Any] = {}
        masked = masked_names(run.definition)
        if self.input is not None:
            if place not in (BEFORE, FAILURE):
                raise Invalid("The input can be changed before a step, and after a failure for its next attempt.")
            before = ctx.attempt_payload(task, "input") or {}
            given = restore_named(dict(self.input), before, masked)
            _require_uses(task, given, ctx)
            places = kept_places(places_of(task, before), before, given)
            kept = [*(tuple(keys) for keys, _ in places), *restored_paths(self.input, given)]
            refuse_new_receiver(task.step, before, given, kept)
            step_state |= {"input": given, **({SECRET_PLACES: places} if task.step.secrets else {})}
            facts |= {"input": given} if place == BEFORE else {}
        if self.output is not None:
            if place in (BEFORE, FAILURE):
                raise Invalid("The output can be changed after a step was completed.")
            facts["output"] = restore_named(dict(self.output), ctx.attempt_payload(task, "output") or {}, masked)
        return facts, step_state


def _require_uses(task: Task, given: Mapping[str, Any], ctx: DecisionContext) -> None:
    try:
        require_named_objects(task.step, conductor_task_type(task.step.type, task.step.name), given, ctx)
    except StepRefused as refused:
        raise Forbidden(refused.message, code="FORBIDDEN") from None


@dataclass(frozen=True, slots=True)
class Rewind:
    """Command that returns a run to one of its tasks: what came after it is undone, and the run stops before it.

    A run in progress is terminated first, in the same decision. `next`: the temporary breakpoint, without its step.
    """

    rerun: Rerun
    next: Breakpoint

    def __call__(self, run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if self.rerun.key is None:
            raise Invalid("Name the task to rewind to.")
        ended: list[Effect] = []
        if run.is_open:
            if run.parent_id:
                raise Conflict(
                    f"Workflow {run.id} is a sub-workflow in progress. Rewind the workflow that waits for it."
                )
            ended = list(end_run(run, ctx, now, "terminate", "Rewound by the debugger.", with_failure=False))
        temporary = replace(self.next, ref=self.rerun.key.ref)
        ended.append(UpdateRun({"debug": with_breakpoints({}, [*breakpoints_of(run.debug), temporary])}))
        yield from ended
        after = apply_effects(run, ended)
        yield from self.rerun(after, DecisionContext(after, ctx.data), now)
