"""Steps that repeat a body: DO_WHILE, FOR_EACH, FOR_EACH_ITEM.

`RunLimits.max_iterations` limits the iterations of a DO_WHILE. The effects of one decision are limited as well
(`core/decide.py`); a longer loop continues in the next decision.

FOR_EACH is not a type of Conductor. It executes its body once for each item of a list, in sequence or in parallel:

    {"type": "FOR_EACH", "name": "each", "taskReferenceName": "each",
     "items": "${workflow.input.orders}",
     "inputParameters": {"parallel": 10, "onItemFailure": "CONTINUE", "keepLastN": 100},
     "loopOver": [{"name": "ship", "taskReferenceName": "ship", "type": "SIMPLE",
                   "inputParameters": {"order": "${each.output.item}", "number": "${each.output.index}"}}]}

Inside the body, `${each.output.item}` and `${each.output.index}` (from 0) refer to the current item, and
`${ship.output.x}` to the output of `ship` for the same item. Each item has a task of its own, `each_item__3`, of the
type FOR_EACH_ITEM, which the engine creates and documents never contain. It encloses the tasks of the item:
`ship__3__1`. At most `parallel` items (default 1) are open at once.

If a task of an item fails finally and is neither optional nor permissive, the other tasks of the item are canceled.
With `onItemFailure` FAIL, the default, the other items are canceled as well and the step fails; with CONTINUE it
continues. The output is `count`, `results` in the order of the items (the outputs of each by reference, null for a
failed one) and `errors` (`index`, `reason`). With `keepLastN`, only the tasks and results of the items that ended
last are kept; the other results are null.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from ..data_requests import DataRequest, DataRequired, IterationOutcomes, ListItem, StepOutcomes, TaskOutcome
from ..decision_context import DecisionContext
from ..definition import Body, Document, Flow, Key, Step, body_at, references_inside
from ..effects import Effect, PruneIteration, ResolveTask, TransitionAttempt, UpdateTask
from ..errors import StepRefused
from ..expressions import quote_value
from ..schemas import CHOICE, LONG
from ..snapshot import GOOD_ENDS, UNKNOWN, Task, TaskState
from . import base
from .base import (
    DEFAULT_ITERATIONS,
    ITEM_FAILURE_LABELS,
    REFERENCES,
    SCRIPT_LANGUAGES,
    StepMember,
    choice_member,
    gettext_noop,
    input_member,
    loop_condition,
    step_of,
)

ITERATION_LIMIT = re.compile(r"iteration['\"]?\]?\s*<(=?)\s*(\d{1,9})\b")


class DoWhile(base.StepType):
    """Active while it iterates; leads to the head of its body in the current iteration (execution §8.9)."""

    type = "DO_WHILE"
    label = gettext_noop("Loop")
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
    summary = gettext_noop("Repeat steps while a condition holds")
    search_words = gettext_noop("while until iterate")
    sample = (step_of(type, "loop", loopCondition=loop_condition("loop", DEFAULT_ITERATIONS), loopOver=[]),)
    members = (
        StepMember("items", gettext_noop("Items"), help=gettext_noop("A list to iterate over"), options=REFERENCES),
        StepMember("evaluatorType", gettext_noop("Language of the condition"), CHOICE, choices=SCRIPT_LANGUAGES[1:]),
        StepMember("loopCondition", gettext_noop("Condition"), LONG, gettext_noop("Repeats while it is true.")),
        input_member("keepLastN", gettext_noop("Keep iterations"), options=""),
    )

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
        inputs = base.resolve_inputs(step, ctx, key, ctx.run, now)
        items = _items_of(step, inputs, ctx)
        if items == []:
            yield base.completed_task(step, key, ctx.run, now, input=inputs, output={"iteration": 0})
            return
        yield base.engine_held_task(
            step, key, ctx.run, now, iteration=1, input=inputs, output=_iteration_output(step, {}, 1, items)
        )

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        try:
            outcomes = outcomes_of_iteration(task, ctx)
        except DataRequired as missing:
            raise DataRequired(missing.data_requests | _requests_at_end(task, ctx, now)) from None
        if outcomes is None or not outcomes:
            return
        failure = first_failure(outcomes)
        output = _add_iteration_output(ctx.attempt_payload(task, "output"), task.iteration, outcomes)
        if failure:
            yield from base.fail_task(task, now, failure.reason or f"{failure.key} did not succeed.", output)
            return
        yield from self._iterate_or_end(task, ctx, now, outcomes, output)

    def _iterate_or_end(
        self, task: Task, ctx: DecisionContext, now: int, outcomes: list[TaskOutcome], output: dict[str, Any]
    ) -> Iterator[Effect]:
        inputs = base.resolve_inputs(task.step, ctx, task.key, ctx.run, now)
        items = _items_of(task.step, inputs, ctx)
        continues, error = _should_continue(task, ctx, inputs, items, outcomes, output)
        if error:
            yield from base.fail_task(task, now, error, output, event="fail_for_good")
            return
        yield from _prune_old_iterations(task, inputs, output)
        limit = ctx.run.definition.limits.max_iterations
        if continues and limit and task.iteration >= limit:
            reason = f"The loop has run {limit} iterations, which is the maximum (MAX_LOOP_ITERATIONS)."
            yield from base.fail_task(task, now, reason, output, event="fail_for_good")
        elif continues:
            iteration = task.iteration + 1
            yield UpdateTask(
                task.key,
                {"iteration": iteration},
                {"output": _iteration_output(task.step, output, iteration, items), "updated_at": now},
            )
        else:
            yield from base.complete_task(task, now, output)

    def reopen(self, task: Task, ctx: DecisionContext, now: int, iteration: int | None = None) -> Iterator[Effect]:
        yield from super().reopen(task, ctx, now)
        if iteration is not None:
            items = _items_of(task.step, base.resolve_inputs(task.step, ctx, task.key, ctx.run, now), ctx)
            former = _drop_iterations_from(ctx.attempt_payload(task, "output"), iteration)
            output = _iteration_output(task.step, former, iteration, items)
            yield UpdateTask(task.key, {"iteration": iteration}, {"output": output})

    def successors(self, task: Task) -> Iterator[Key]:
        if task.is_open:
            yield Key(task.step.heads[0], (*task.key.iteration_path, task.iteration))
        else:
            yield from super().successors(task)


def _requests_at_end(task: Task, ctx: DecisionContext, now: int) -> frozenset[DataRequest]:
    """Return the requests for the output and the inputs of a loop, which are read when an iteration has ended."""
    try:
        base.gather_values(
            [
                partial(ctx.attempt_payload, task, "output"),
                partial(base.resolve_inputs, task.step, ctx, task.key, ctx.run, now),
            ]
        )
    except DataRequired as missing:
        return missing.data_requests
    return frozenset()


def _iteration_output(step: Step, output: dict[str, Any], iteration: int, items: list[Any] | None) -> dict[str, Any]:
    """Return the loop's output as the tasks of this iteration see it."""
    current = {**output, "iteration": iteration}
    if items is not None and iteration <= len(items):
        current |= {"loopIndex": iteration - 1, "loopItem": items[iteration - 1]}
        if iterates_over_input(step.document):
            # The names of Orkes, in whose definitions the list is the input `items`.
            current |= {"index": iteration - 1, "item": items[iteration - 1]}
    return current


def _drop_iterations_from(output: dict[str, Any], first: int) -> dict[str, Any]:
    """Return the loop's output without the outputs of the iterations from `first` on."""
    return {name: value for name, value in output.items() if not (name.isdecimal() and int(name) >= first)}


def _add_iteration_output(output: dict[str, Any], iteration: int, outcomes: list[TaskOutcome]) -> dict[str, Any]:
    """Return the loop's output with the outputs of this iteration under its number."""
    return {**output, str(iteration): outputs_by_ref(outcomes), "iteration": iteration}


def _should_continue(
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


def _prune_old_iterations(task: Task, inputs: dict[str, Any], output: dict[str, Any]) -> Iterator[Effect]:
    """Yield the effect that deletes the outputs and tasks of older iterations, with `keepLastN`."""
    keep = _kept_iterations(task.step, inputs)
    oldest = task.iteration - keep
    if keep and oldest > 0:
        output.pop(str(oldest), None)
        yield PruneIteration(task.key, oldest)


class ForEachItemState(TaskState, total=False):
    """State of an item.

    `goes_on`: continue with other items after a failure. `is_counted`: the FOR_EACH has recorded its end.
    """

    goes_on: bool
    is_counted: bool


class ForEachItem(base.StepType):
    """Active while the body is executed for its item.

    Its single iteration separates the body from those of other items.
    """

    type = "FOR_EACH_ITEM"
    label = gettext_noop("Item of a list")
    runs_by_name = False
    waits_for_tasks = True
    is_retried = False
    is_reopened = True
    handles_failures = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        each, index = ctx.run.tasks[Key(step.loops[-1], key.iteration_path[:-1])], key.iteration_path[-1] - 1
        payload = each.attempt.input
        item = ctx.require(ListItem(each.attempt.id, index)) if payload is UNKNOWN else payload["items"][index]
        item_input = {"item": item, "index": index}
        step_state = ForEachItemState(goes_on=each.step_state["goes_on"])
        yield base.engine_held_task(
            step, key, ctx.run, now, iteration=1, step_state=step_state, input=item_input, output=item_input
        )

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        outcomes = outcomes_of_iteration(task, ctx)
        if not outcomes:
            return
        if failure := first_failure(outcomes):
            yield from _fail_item(task, failure.status, failure.reason, now)
        else:
            yield from base.complete_task(task, now, outputs_by_ref(outcomes))

    def on_child_failure(self, task: Task, failed: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        """Fail the item after the failure of one of its tasks, when nothing else of it is open."""
        yield from _fail_item(task, failed.attempt.status, failed.attempt.reason, now)

    def successors(self, task: Task) -> Iterator[Key]:
        if task.is_open and task.attempt.is_open:
            yield Key(task.step.heads[0], (*task.key.iteration_path, 1))

    def reopen(self, task: Task, ctx: DecisionContext, now: int, iteration: int | None = None) -> Iterator[Effect]:
        yield from super().reopen(task, ctx, now)
        step_state = {name: value for name, value in task.step_state.items() if name != COUNTED}
        yield UpdateTask(task.key, {"step_state": step_state}, {"output": ctx.attempt_payload(task, "input")})


def _fail_item(task: Task, status: str, reason: str, now: int) -> Iterator[Effect]:
    """End the item like the task that failed. If other items continue, the item completes with errors."""
    facts: dict[str, Any] = {"reason": reason, "output": {}}
    yield TransitionAttempt(task.key, ENDS_AS.get(status, "fail"), now, facts)
    if cast(ForEachItemState, task.step_state)["goes_on"]:
        yield ResolveTask(task.key, "complete_with_errors")


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


class ForEach(base.StepType):
    """Active while items are left; leads to the tasks of the items that start. `iteration`: number of started items."""

    type = "FOR_EACH"
    label = gettext_noop("For each")
    flow = Flow.LOOP
    item_type = ForEachItem.type
    required_fields = ("loopOver",)
    waits_for_tasks = True
    is_retried = False
    is_reopened = True
    counts_iterations = True
    handles_failures = True
    stops_all_iterations = True
    summary = gettext_noop("Run steps once for each item of a list")
    search_words = gettext_noop("map iterate")
    sample = (step_of(type, "each", items="${workflow.input.items}", inputParameters={"parallel": 1}, loopOver=[]),)
    members = (
        StepMember("items", gettext_noop("Items"), help=gettext_noop("A list to iterate over"), options=REFERENCES),
        input_member("parallel", gettext_noop("In parallel"), options=""),
        choice_member("onItemFailure", gettext_noop("If an item fails"), ITEM_FAILURE_LABELS),
    )

    def bodies(self, step: Document) -> Iterator[Body]:
        if step.get("loopOver"):
            yield body_at(step, "loopOver")

    def check(self, step: Document, template: Document) -> Iterator[str]:
        yield from super().check(step, template)
        given, name = {**template, **step["inputParameters"]}, step.get("name", "")
        if step.get("items") in (None, "") and "_items" not in given:
            yield f"items field is required for taskType: {self.type} taskName: {name}"
        for field, least in (("parallel", 1), ("keepLastN", 0)):
            if not base.is_whole_number(given.get(field), least):
                yield f"{field} of taskName: {name} must be a whole number of at least {least}, or an expression"
        policy = given.get("onItemFailure")
        if policy not in (None, "", FAIL, CONTINUE) and not base.is_expression(policy):
            yield f"onItemFailure of taskName: {name}: {base.unknown_word_message(str(policy), (FAIL, CONTINUE))}"

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if not step.heads:
            raise StepRefused(f"{step.ref} has an empty body: add steps to 'loopOver'.")
        inputs = base.resolve_inputs(step, ctx, key, ctx.run, now)
        items = _items_of(step, inputs, ctx)
        if items is None:
            raise StepRefused(f"{step.ref} has no list of items: set 'items'.")
        if not items and _is_null_list(step, inputs, ctx):
            raise StepRefused(f"The items of {step.ref} are null. Give a list: an empty one runs nothing.")
        task_input = {**{name: value for name, value in inputs.items() if name != "_items"}, "items": items}
        if not items:
            yield base.completed_task(step, key, ctx.run, now, input=task_input, output=_combine_results(0, []))
            return
        most = _max_parallel_items(step, inputs)
        step_state: ForEachState = {
            "count": len(items),
            "most": most,
            "keep": _kept_iterations(step, inputs),
            "ended": 0,
            "since": 1,
            "to": min(most, len(items)),
            "goes_on": _continues_on_item_failure(step, inputs),
        }
        output = {"count": len(items)}
        yield base.engine_held_task(
            step, key, ctx.run, now, iteration=step_state["to"], step_state=step_state, input=task_input, output=output
        )

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        over = [item for item in ctx.inside(task.key) if not item.is_open]
        fresh = sorted(
            (item for item in over if COUNTED not in item.step_state), key=lambda item: item.key.iteration_path
        )
        step_state = _copy_state(task)
        if ctx.run.is_whole:
            # Commands that open an ended run again may have deleted items, so all are counted again.
            _count_ended(step_state, over)
        if not fresh and step_state == task.step_state:
            return
        for item in fresh:
            yield UpdateTask(item.key, {"step_state": {**item.step_state, COUNTED: True}})
        pruned = _record_ended_items(step_state, [item.key.iteration_path[-1] for item in fresh])
        if step_state["ended"] < step_state["count"]:
            yield UpdateTask(task.key, {"iteration": step_state["to"], "step_state": step_state}, {"updated_at": now})
        else:
            output = _combine_results(step_state["count"], _outcomes_of_items(task, ctx, set(pruned)))
            yield UpdateTask(task.key, {"step_state": step_state})
            yield from base.complete_task(task, now, output)
        for iteration in pruned:
            yield PruneIteration(task.key, iteration)

    def on_child_failure(self, task: Task, failed: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        """Fail the step after the failure of an item, when nothing else inside is open."""
        output = _combine_results(task.step_state["count"], _outcomes_of_items(task, ctx, set()))
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
        step_state = _copy_state(task)
        if iteration is not None and self.iterations_are_sequential(task):
            step_state["since"] = step_state["to"] = iteration
        yield UpdateTask(
            task.key,
            {"step_state": step_state, "iteration": step_state["to"]},
            {"output": {"count": step_state["count"]}},
        )


def _max_parallel_items(step: Step, inputs: dict[str, Any]) -> int:
    """Return the maximum number of open items."""
    value = inputs.get("parallel")
    most = 1 if value in (None, "") else base.whole_number(value)
    if most is None or most < 1:
        raise StepRefused(f"parallel of {step.ref} must be a whole number of at least 1, not {quote_value(value)}.")
    return most


def _continues_on_item_failure(step: Step, inputs: dict[str, Any]) -> bool:
    value = inputs.get("onItemFailure") or FAIL
    if value not in (CONTINUE, FAIL):
        raise StepRefused(f"onItemFailure of {step.ref} must be {FAIL} or {CONTINUE}, not {quote_value(value)}.")
    return value == CONTINUE


def _copy_state(task: Task) -> ForEachState:
    return cast(ForEachState, dict(task.step_state))


def _count_ended(step_state: ForEachState, over: Sequence[Task]) -> None:
    """Count the ended items by the existing tasks."""
    iterations = {item.key.iteration_path[-1] for item in over if COUNTED in item.step_state}
    step_state["ended"] = step_state.get("forgotten", 0) + len(iterations)
    if "kept" in step_state:
        step_state["kept"] = [iteration for iteration in step_state["kept"] if iteration in iterations]


def _record_ended_items(step_state: ForEachState, iterations: list[int]) -> list[int]:
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


def _outcomes_of_items(task: Task, ctx: DecisionContext, pruned: set[int]) -> list[TaskOutcome]:
    """Return the outcomes of the items whose tasks are kept, in their order."""
    known = {item.key: item for item in ctx.inside(task.key)}
    here = base.gather_values(partial(base.outcome_of, item, ctx) for item in known.values())
    others = [] if ctx.run.is_whole else ctx.require(StepOutcomes(task.key, task.step.heads[0], frozenset(known)))
    found = (outcome for outcome in (*here, *others) if outcome.key.iteration_path[-1] not in pruned)
    return sorted(found, key=lambda outcome: outcome.key.iteration_path)


def _combine_results(count: int, outcomes: Sequence[TaskOutcome]) -> dict[str, Any]:
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


def outcomes_of_iteration(task: Task, ctx: DecisionContext) -> list[TaskOutcome] | None:
    """Return the outcomes of the tasks of the current iteration; None while one is open."""
    iteration_path = (*task.key.iteration_path, task.iteration)
    known = {t.key: t for t in ctx.inside(task.key) if t.key.iteration_path == iteration_path}
    if any(t.is_open for t in known.values()) or not ctx.run.has_changes_for(task, known):
        return None
    others = [] if ctx.run.is_whole else ctx.require(IterationOutcomes(task.key, task.iteration, frozenset(known)))
    if others is None:
        return None
    here = base.gather_values(partial(base.outcome_of, each, ctx) for each in known.values())
    return sorted([*here, *others], key=lambda outcome: outcome.seq)


def first_failure(outcomes: list[TaskOutcome]) -> TaskOutcome | None:
    return next((outcome for outcome in outcomes if outcome.status not in GOOD_ENDS), None)


def outputs_by_ref(outcomes: list[TaskOutcome]) -> dict[str, object]:
    return {outcome.key.ref: outcome.output for outcome in outcomes}


NEVER_TRUE = re.compile(
    r"if\s*\(\s*\$\..+\.iteration\s*<\s*0\s*\)\s*\{\s*true;?\s*\}\s*else\s*\{\s*false;?\s*\}", re.DOTALL
)
"""The condition of a loop of the Python SDK's class `ForEachTask`."""
COUNTED = "is_counted"
"""Key in the step state of an item's task: the FOR_EACH has recorded its end."""
ENDS_AS = {
    "TIMED_OUT": "expire",
    "EXPIRED": "expire",
    "CANCELED": "cancel",
    "FAILED_FOR_GOOD": "fail_for_good",
    "FAILED_WITH_TERMINAL_ERROR": "fail_for_good",
}
"""Event that ends a step after the failure of a task inside it, by the status of that task; `fail` for any other."""


def _items_of(step: Step, inputs: dict[str, Any], ctx: DecisionContext) -> list[Any] | None:
    """Return the list that the step iterates over; None if it has none.

    It is the step's `items`, the input `_items`, or the input `items` of a loop that `iterates_over_input`.
    """
    written = step.document.get("items")
    name = "items" if iterates_over_input(step.document) else "_items"
    value = ctx.resolve(written) if written not in (None, "") else inputs.get(name)
    if value is None:
        return None if written in (None, "") and name not in inputs else []
    return list(value) if isinstance(value, list) else [value]


def _is_null_list(step: Step, inputs: dict[str, Any], ctx: DecisionContext) -> bool:
    """Return True if the expression of the list has no value."""
    written = step.document.get("items")
    return (ctx.resolve(written) if written not in (None, "") else inputs.get("_items")) is None


def has_items(step: Document) -> bool:
    """Return True if a step's document names a list to iterate over."""
    return bool(step.get("items")) or "_items" in _inputs_of(step) or iterates_over_input(step)


def iterates_over_input(step: Document) -> bool:
    """Return True if the input `items` is the list, as in definitions of Orkes.

    The loop has no condition then, or the one that the class `ForEachTask` of the Python SDK writes, which is never
    true. With any other condition, `items` is an input that the condition may read.
    """
    if step.get("items") or "items" not in (inputs := _inputs_of(step)) or "_items" in inputs:
        return False
    condition = step.get("loopCondition")
    return not isinstance(condition, str) or not condition.strip() or bool(NEVER_TRUE.fullmatch(condition.strip()))


def _inputs_of(step: Document) -> Mapping[str, Any]:
    inputs = step.get("inputParameters")
    return inputs if isinstance(inputs, Mapping) else {}


def _kept_iterations(step: Step, inputs: dict[str, Any]) -> int:
    """Return the number of iterations to keep, by `keepLastN`; 0 for all."""
    keep = inputs.get("keepLastN")
    number = 0 if keep in (None, "") else base.whole_number(keep)
    if number is None:
        raise StepRefused(f"keepLastN of {step.ref} must be a whole number, not {quote_value(keep)}.")
    return max(number, 0)
