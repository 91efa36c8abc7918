"""FOR_EACH: executes its body once for each item of a list, in sequence or in parallel. Not a type of Conductor.

    {"type": "FOR_EACH", "name": "each", "taskReferenceName": "each",
     "items": "${workflow.input.orders}",
     "inputParameters": {"parallel": 10, "onItemFailure": "CONTINUE", "keepLastN": 100},
     "loopOver": [{"name": "ship", "taskReferenceName": "ship", "type": "SIMPLE",
                   "inputParameters": {"order": "${each.output.item}", "number": "${each.output.index}"}}]}

Inside the body, `${each.output.item}` and `${each.output.index}` (from 0) refer to the current item, and
`${ship.output.x}` to the output of `ship` for the same item. Each item has a task of its own, `each_item__3`, which
encloses the tasks of the item: `ship__3__1`. At most `parallel` items (default 1) are open at once.

If a task of an item fails finally and is neither optional nor permissive, the other tasks of the item are canceled.
With `onItemFailure` FAIL, the default, the other items are canceled as well and the step fails; with CONTINUE it
continues. The output is `count`, `results` in the order of the items (the outputs of each by reference, null for a
failed one) and `errors` (`index`, `reason`). With `keepLastN`, only the tasks and results of the items that ended
last are kept; the other results are null.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, cast

from ..data_requests import StepOutcomes, TaskOutcome
from ..decision_context import DecisionContext, gather_values
from ..definition import Key, Step
from ..effects import Effect, PruneIteration, TransitionAttempt, UpdateTask
from ..errors import StepRefused
from ..expressions import quote_value
from ..snapshot import Task
from ..step_state import TaskState
from ..step_structure import Body, Document, Flow, body_at
from .base import StepType, complete_task, completed_task, engine_held_task, resolve_inputs
from .field_checks import is_expression, is_whole_number, unknown_word_message, whole_number
from .for_each_item import ForEachItem
from .iterations import COUNTED, ENDS_AS, is_null_list, items_of, kept_iterations
from .task_outcomes import outcome_of

CONTINUE, FAIL = "CONTINUE", "FAIL"


class ForEachState(TaskState, total=False):
    """Progress of the items.

    `count`: number of items. `most`: maximum number of open items. `keep`: number of ended items that keep their tasks,
    0 for all. `ended`: number of ended items. `since`, `to`: first and last item that the latest change started.
    `goes_on`: continue after the failure of an item. `kept`: ended items that have tasks. `forgotten`: number of ended
    items without tasks.
    """

    count: int
    most: int
    keep: int
    ended: int
    since: int
    to: int
    goes_on: bool
    kept: list[int]
    forgotten: int


class ForEach(StepType):
    """Active while items are left; leads to the tasks of the items that start. `iteration`: number of started items."""

    type = "FOR_EACH"
    flow = Flow.LOOP
    item_type = ForEachItem.type
    required_fields = ("loopOver",)
    waits_for_tasks = True
    is_retried = False
    is_reopened = True
    counts_iterations = True
    handles_failures = True
    stops_all_iterations = True

    def bodies(self, step: Document) -> Iterator[Body]:
        if step.get("loopOver"):
            yield body_at(step, "loopOver")

    def check(self, step: Document, template: Document) -> Iterator[str]:
        yield from super().check(step, template)
        given, name = {**template, **step["inputParameters"]}, step.get("name", "")
        if step.get("items") in (None, "") and "_items" not in given:
            yield f"items field is required for taskType: {self.type} taskName: {name}"
        for field, least in (("parallel", 1), ("keepLastN", 0)):
            if not is_whole_number(given.get(field), least):
                yield f"{field} of taskName: {name} must be a whole number of at least {least}, or an expression"
        policy = given.get("onItemFailure")
        if policy not in (None, "", FAIL, CONTINUE) and not is_expression(policy):
            yield f"onItemFailure of taskName: {name}: {unknown_word_message(str(policy), (FAIL, CONTINUE))}"

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if not step.heads:
            raise StepRefused(f"{step.ref} has an empty body: add steps to 'loopOver'.")
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        items = items_of(step, inputs, ctx)
        if items is None:
            raise StepRefused(f"{step.ref} has no list of items: set 'items'.")
        if not items and is_null_list(step, inputs, ctx):
            raise StepRefused(f"The items of {step.ref} are null. Give a list: an empty one runs nothing.")
        task_input = {**{name: value for name, value in inputs.items() if name != "_items"}, "items": items}
        if not items:
            yield completed_task(step, key, ctx.run, now, input=task_input, output=combine_results(0, []))
            return
        most = max_parallel_items(step, inputs)
        step_state: ForEachState = {
            "count": len(items),
            "most": most,
            "keep": kept_iterations(step, inputs),
            "ended": 0,
            "since": 1,
            "to": min(most, len(items)),
            "goes_on": continues_on_item_failure(step, inputs),
        }
        output = {"count": len(items)}
        yield engine_held_task(
            step, key, ctx.run, now, iteration=step_state["to"], step_state=step_state, input=task_input, output=output
        )

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        over = [item for item in ctx.inside(task.key) if not item.is_open]
        fresh = sorted(
            (item for item in over if COUNTED not in item.step_state), key=lambda item: item.key.iteration_path
        )
        step_state = copy_state(task)
        if ctx.run.is_whole:
            # Commands that open an ended run again may have deleted items, so all are counted again.
            count_ended(step_state, over)
        if not fresh and step_state == task.step_state:
            return
        for item in fresh:
            yield UpdateTask(item.key, {"step_state": {**item.step_state, COUNTED: True}})
        pruned = record_ended_items(step_state, [item.key.iteration_path[-1] for item in fresh])
        if step_state["ended"] < step_state["count"]:
            yield UpdateTask(task.key, {"iteration": step_state["to"], "step_state": step_state}, {"updated_at": now})
        else:
            output = combine_results(step_state["count"], outcomes_of_items(task, ctx, set(pruned)))
            yield UpdateTask(task.key, {"step_state": step_state})
            yield from complete_task(task, now, output)
        for iteration in pruned:
            yield PruneIteration(task.key, iteration)

    def on_child_failure(self, task: Task, failed: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        """Fail the step after the failure of an item, when nothing else inside is open."""
        output = combine_results(task.step_state["count"], outcomes_of_items(task, ctx, set()))
        facts = {"reason": failed.attempt.reason, "output": output}
        yield TransitionAttempt(task.key, ENDS_AS.get(failed.attempt.status, "fail"), now, facts)

    def successors(self, task: Task) -> Iterator[Key]:
        if not task.is_open:
            yield from super().successors(task)
        elif task.attempt.is_open:
            for iteration in range(task.step_state["since"], task.step_state["to"] + 1):
                yield Key(task.step.heads[0], (*task.key.iteration_path, iteration))

    def iterations_are_sequential(self, task: Task) -> bool:
        return task.step_state.get("most", 1) == 1

    def reopen(self, task: Task, ctx: DecisionContext, now: int, iteration: int | None = None) -> Iterator[Effect]:
        yield from super().reopen(task, ctx, now)
        step_state = copy_state(task)
        if iteration is not None and self.iterations_are_sequential(task):
            step_state["since"] = step_state["to"] = iteration
        yield UpdateTask(
            task.key,
            {"step_state": step_state, "iteration": step_state["to"]},
            {"output": {"count": step_state["count"]}},
        )


def max_parallel_items(step: Step, inputs: dict[str, Any]) -> int:
    """Return the maximum number of open items.

    Raises:
        StepRefused: when `parallel` is not a whole number of at least 1.
    """
    value = inputs.get("parallel")
    most = 1 if value in (None, "") else whole_number(value)
    if most is None or most < 1:
        raise StepRefused(f"parallel of {step.ref} must be a whole number of at least 1, not {quote_value(value)}.")
    return most


def continues_on_item_failure(step: Step, inputs: dict[str, Any]) -> bool:
    """Return True if the step continues after the failure of an item.

    Raises:
        StepRefused: when `onItemFailure` is neither FAIL nor CONTINUE.
    """
    value = inputs.get("onItemFailure") or FAIL
    if value not in (CONTINUE, FAIL):
        raise StepRefused(f"onItemFailure of {step.ref} must be {FAIL} or {CONTINUE}, not {quote_value(value)}.")
    return value == CONTINUE


def copy_state(task: Task) -> ForEachState:
    """Return a copy of the state of a FOR_EACH."""
    return cast(ForEachState, dict(task.step_state))


def count_ended(step_state: ForEachState, over: Sequence[Task]) -> None:
    """Count the ended items by the existing tasks."""
    iterations = {item.key.iteration_path[-1] for item in over if COUNTED in item.step_state}
    step_state["ended"] = step_state.get("forgotten", 0) + len(iterations)
    if "kept" in step_state:
        step_state["kept"] = [iteration for iteration in step_state["kept"] if iteration in iterations]


def record_ended_items(step_state: ForEachState, iterations: list[int]) -> list[int]:
    """Record the end of items in the state, and start further ones. Return the items whose tasks are deleted."""
    pruned: list[int] = []
    step_state["ended"] += len(iterations)
    if step_state["keep"]:
        kept = [*step_state.get("kept", ()), *iterations]
        pruned = kept[: -step_state["keep"]]
        step_state["kept"] = kept[-step_state["keep"] :]
        step_state["forgotten"] = step_state.get("forgotten", 0) + len(pruned)
    started = max(step_state["to"], min(step_state["count"], step_state["ended"] + step_state["most"]))
    step_state["since"], step_state["to"] = step_state["to"] + 1, started
    return pruned


def outcomes_of_items(task: Task, ctx: DecisionContext, pruned: set[int]) -> list[TaskOutcome]:
    """Return the outcomes of the items whose tasks are kept, in their order."""
    known = {item.key: item for item in ctx.inside(task.key)}
    here = gather_values(partial(outcome_of, item, ctx) for item in known.values())
    others = [] if ctx.run.is_whole else ctx.require(StepOutcomes(task.key, task.step.heads[0], frozenset(known)))
    found = (outcome for outcome in (*here, *others) if outcome.key.iteration_path[-1] not in pruned)
    return sorted(found, key=lambda outcome: outcome.key.iteration_path)


def combine_results(count: int, outcomes: Sequence[TaskOutcome]) -> dict[str, Any]:
    """Return the output, with the outcome of each item at its position."""
    results: list[Any] = [None] * count
    for outcome in outcomes:
        if outcome.status == "COMPLETED":
            results[outcome.key.iteration_path[-1] - 1] = outcome.output
    errors = [
        {"index": outcome.key.iteration_path[-1] - 1, "reason": outcome.reason}
        for outcome in outcomes
        if outcome.status not in ("COMPLETED", "ACTIVE")
    ]
    return {"count": count, "results": results, "errors": errors}
