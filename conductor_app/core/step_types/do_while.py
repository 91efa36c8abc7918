"""DO_WHILE: repeats its body while a condition holds or a list has items.

`RunLimits.max_iterations` limits the iterations of a loop. The effects of one decision are limited as well
(`core/decide.py`); a longer loop continues in the next decision.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from ..data_requests import DataRequest, DataRequired, TaskOutcome
from ..decision_context import DecisionContext, gather_values
from ..definition import Key, Step
from ..effects import Effect, PruneIteration, UpdateTask
from ..errors import StepRefused
from ..snapshot import Task
from ..step_structure import Body, Document, Flow, body_at
from ..step_tree import references_inside
from .base import StepType, complete_task, completed_task, engine_held_task, fail_task, resolve_inputs
from .iterations import (
    first_failure,
    has_items,
    items_of,
    iterates_over_input,
    kept_iterations,
    outcomes_of_iteration,
    outputs_by_ref,
)

ITERATION_LIMIT = re.compile(r"iteration['\"]?\]?\s*<(=?)\s*(\d{1,9})\b")
"""A comparison of the iteration with a number in a loop condition."""


class DoWhile(StepType):
    """Active while it iterates; leads to the head of its body in the current iteration (execution §8.9)."""

    type = "DO_WHILE"
    flow = Flow.LOOP
    required_fields = ("loopOver",)
    script_field = "loopCondition"
    allows_python = True
    checks_bodies = False
    forwards_failures = True
    waits_for_tasks = True
    is_retried = False
    is_reopened = True
    counts_iterations = True

    def bodies(self, step: Document) -> Iterator[Body]:
        if step.get("loopOver"):
            yield body_at(step, "loopOver")

    def check(self, step: Document, template: Document) -> Iterator[str]:
        # A list of items needs no condition. An empty condition alone is valid as well, as in Conductor.
        if step.get("loopCondition") is None and not has_items(step):
            yield "loopCondition"
        yield from super().check(step, template)

    def script_inputs(self, step: Document) -> set[str]:
        own = step.get("taskReferenceName")
        names = {own} if isinstance(own, str) else set()
        return {"loopIndex", "loopItem", *names, *references_inside(step)}

    def max_iterations(self, step: Document) -> int:
        found = ITERATION_LIMIT.search(str(step.get("loopCondition") or ""))
        return int(found[2]) + bool(found[1]) if found else 0

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if not step.heads:
            raise StepRefused(f"The loop {step.ref} has an empty body: add steps to 'loopOver'.")
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        items = items_of(step, inputs, ctx)
        if items == []:
            yield completed_task(step, key, ctx.run, now, input=inputs, output={"iteration": 0})
            return
        yield engine_held_task(
            step, key, ctx.run, now, iteration=1, input=inputs, output=iteration_output(step, {}, 1, items)
        )

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        try:
            outcomes = outcomes_of_iteration(task, ctx)
        except DataRequired as missing:
            raise DataRequired(missing.data_requests | _requests_at_end(task, ctx, now)) from None
        if outcomes is None or not outcomes:
            return
        failure = first_failure(outcomes)
        output = add_iteration_output(ctx.attempt_payload(task, "output"), task.iteration, outcomes)
        if failure:
            yield from fail_task(task, now, failure.reason or f"{failure.key} did not succeed.", output)
            return
        yield from self._iterate_or_end(task, ctx, now, outcomes, output)

    def _iterate_or_end(
        self, task: Task, ctx: DecisionContext, now: int, outcomes: list[TaskOutcome], output: dict[str, Any]
    ) -> Iterator[Effect]:
        inputs = resolve_inputs(task.step, ctx, task.key, ctx.run, now)
        items = items_of(task.step, inputs, ctx)
        continues, error = should_continue(task, ctx, inputs, items, outcomes, output)
        if error:
            yield from fail_task(task, now, error, output, event="fail_for_good")
            return
        yield from prune_old_iterations(task, inputs, output)
        limit = ctx.run.definition.limits.max_iterations
        if continues and limit and task.iteration >= limit:
            reason = f"The loop has run {limit} iterations, which is the maximum (MAX_LOOP_ITERATIONS)."
            yield from fail_task(task, now, reason, output, event="fail_for_good")
        elif continues:
            iteration = task.iteration + 1
            yield UpdateTask(
                task.key,
                {"iteration": iteration},
                {"output": iteration_output(task.step, output, iteration, items), "updated_at": now},
            )
        else:
            yield from complete_task(task, now, output)

    def reopen(self, task: Task, ctx: DecisionContext, now: int, iteration: int | None = None) -> Iterator[Effect]:
        yield from super().reopen(task, ctx, now)
        if iteration is not None:
            items = items_of(task.step, resolve_inputs(task.step, ctx, task.key, ctx.run, now), ctx)
            former = drop_iterations_from(ctx.attempt_payload(task, "output"), iteration)
            output = iteration_output(task.step, former, iteration, items)
            yield UpdateTask(task.key, {"iteration": iteration}, {"output": output})

    def successors(self, task: Task) -> Iterator[Key]:
        if task.is_open:
            yield Key(task.step.heads[0], (*task.key.iteration_path, task.iteration))
        else:
            yield from super().successors(task)


def _requests_at_end(task: Task, ctx: DecisionContext, now: int) -> frozenset[DataRequest]:
    """Return the requests for the output and the inputs of a loop, which are read when an iteration has ended."""
    try:
        gather_values(
            [
                partial(ctx.attempt_payload, task, "output"),
                partial(resolve_inputs, task.step, ctx, task.key, ctx.run, now),
            ]
        )
    except DataRequired as missing:
        return missing.data_requests
    return frozenset()


def iteration_output(step: Step, output: dict[str, Any], iteration: int, items: list[Any] | None) -> dict[str, Any]:
    """Return the loop's output as the tasks of this iteration see it."""
    current = {**output, "iteration": iteration}
    if items is not None and iteration <= len(items):
        current |= {"loopIndex": iteration - 1, "loopItem": items[iteration - 1]}
        if iterates_over_input(step.document):
            # The names of Orkes, in whose definitions the list is the input `items`.
            current |= {"index": iteration - 1, "item": items[iteration - 1]}
    return current


def drop_iterations_from(output: dict[str, Any], first: int) -> dict[str, Any]:
    """Return the loop's output without the outputs of the iterations from `first` on."""
    return {name: value for name, value in output.items() if not (name.isdecimal() and int(name) >= first)}


def add_iteration_output(output: dict[str, Any], iteration: int, outcomes: list[TaskOutcome]) -> dict[str, Any]:
    """Return the loop's output with the outputs of this iteration under its number."""
    return {**output, str(iteration): outputs_by_ref(outcomes), "iteration": iteration}


def should_continue(
    task: Task,
    ctx: DecisionContext,
    inputs: dict[str, Any],
    items: list[Any] | None,
    outcomes: list[TaskOutcome],
    output: dict[str, Any],
) -> tuple[bool, str]:
    """Return True if another iteration follows, and an error message if the condition fails."""
    if items is not None and task.iteration >= len(items):
        return False, ""
    condition = task.step.document.get("loopCondition")
    if not isinstance(condition, str) or not condition.strip() or iterates_over_input(task.step.document):
        return items is not None, ""
    script_inputs = {**inputs, **outputs_by_ref(outcomes), task.step.ref: output}
    if items is not None:
        script_inputs |= {"loopIndex": task.iteration - 1, "loopItem": items[task.iteration - 1]}
    # Conductor ignores the evaluatorType of loops. Only Python, which cannot be meant there, is supported.
    language = "python" if task.step.document.get("evaluatorType") == "python" else "javascript"
    result = ctx.script(language, condition, script_inputs)
    if result.error:
        return False, f"The loop condition of {task.step.ref} failed: {result.error}"
    return result.value is True or (isinstance(result.value, int | float) and result.value > 0), ""


def prune_old_iterations(task: Task, inputs: dict[str, Any], output: dict[str, Any]) -> Iterator[Effect]:
    """Yield the effect that deletes the outputs and tasks of older iterations, with `keepLastN`."""
    keep = kept_iterations(task.step, inputs)
    oldest = task.iteration - keep
    if keep and oldest > 0:
        output.pop(str(oldest), None)
        yield PruneIteration(task.key, oldest)
