"""Skip a step before control reaches it (execution §7.2)."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..decision_context import Command, DecisionContext
from ..definition import Key, Step
from ..effects import CreateTask, Effect
from ..errors import Conflict
from ..frozen import fast_replace
from ..rules.advance import assign_branch
from ..snapshot import Run, Task
from ..states import COMPLETED, SKIPPED
from ..step_types.base import new_task
from .step_lookup import find_step_position, require_running, steps_skipped_together


def skip_step(ref: str, input: Mapping[str, Any] | None = None, output: Mapping[str, Any] | None = None) -> Command:
    """Return the command that creates the task of a later step as SKIPPED, with this input and output.

    Control continues with the next step. A fork is skipped with its branches and its join; a loop, a switch and a
    sub-workflow with everything inside.

    Raises:
        Conflict: when the command is applied and the step has a task.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        require_running(run)
        place = find_step_position(run, ref)
        if place.key in run.tasks:
            raise Conflict(f"Task {place.key} of workflow {run.id} cannot be skipped: it has already been scheduled.")
        yield skipped_task(place.step, place.key, run, now, place.source, dict(input or {}), dict(output or {}))
        for step in steps_skipped_together(run, place.step, place.source):
            if (key := Key(step.ref, place.key.iteration_path)) not in run.tasks:
                yield skipped_task(step, key, run, now, place.source)

    return command


def skipped_task(
    step: Step,
    key: Key,
    run: Run,
    now: int,
    source: Task | None = None,
    input: dict[str, Any] | None = None,
    output: dict[str, Any] | None = None,
    **facts: Any,
) -> CreateTask:
    """Return the effect that creates a task as SKIPPED."""
    payloads: dict[str, Any] = {"input": input or {}, "output": output or {}}
    task = new_task(step, key, run, now, status=COMPLETED, started_at=now, ended_at=now, **payloads, **facts)
    effect = CreateTask(fast_replace(task, status=SKIPPED))
    return effect if source is None else assign_branch(effect, source)
