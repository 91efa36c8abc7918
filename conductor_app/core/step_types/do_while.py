"""DO_WHILE: its body again and again, as long as a condition holds or a list has items."""

from collections.abc import Iterator
from typing import Any

from ..data_requests import Outcome
from ..decision_context import Knowledge
from ..definition import Key, Step
from ..effects import Effect, ForgetTasks, UpdateTask
from ..errors import StepRefused
from ..snapshot import Task
from .base import Kind, complete, fail, finished_at_once, held_by_engine, inputs_of
from .iterations import first_failure, items_of, kept_turns, outcomes_of_turn, outputs_by_ref


class DoWhile(Kind):
    """Active while it turns; leads to the head of its body in the present turn (execution §8.9)."""

    type = "DO_WHILE"
    waits_for_tasks = True
    is_retried = False
    is_reopened = True
    counts_turns = True

    def enter(self, step: Step, key: Key, know: Knowledge, now: int) -> Iterator[Effect]:
        if not step.heads:
            raise StepRefused(f"The loop {step.ref} has nothing to repeat: its 'loopOver' is empty.")
        inputs = inputs_of(step, know, key, know.run, now)
        items = items_of(step, inputs, know)
        if items == []:
            yield finished_at_once(step, key, know.run, now, input=inputs, output={"iteration": 0})
            return
        yield held_by_engine(step, key, know.run, now, iteration=1, input=inputs, output=turn_output({}, 1, items))

    def settle(self, task: Task, know: Knowledge, now: int) -> Iterator[Effect]:
        outcomes = outcomes_of_turn(task, know)
        if outcomes is None or not outcomes:
            return
        bad = first_failure(outcomes)
        output = with_turn(know.attempt_payload(task, "output"), task.iteration, outcomes)
        if bad:
            yield from fail(task, now, bad.reason or f"{bad.key} did not succeed.", output)
            return
        yield from self._turn_or_end(task, know, now, outcomes, output)

    def _turn_or_end(
        self, task: Task, know: Knowledge, now: int, outcomes: list[Outcome], output: dict
    ) -> Iterator[Effect]:
        inputs = inputs_of(task.step, know, task.key, know.run, now)
        items = items_of(task.step, inputs, know)
        goes_on, error = continues(task, know, inputs, items, outcomes, output)
        if error:
            yield from fail(task, now, error, output, event="fail_for_good")
            return
        yield from forget_old(task, inputs, output)
        if goes_on:
            turn = task.iteration + 1
            yield UpdateTask(
                task.key, {"iteration": turn}, {"output": turn_output(output, turn, items), "updated_at": now}
            )
        else:
            yield from complete(task, now, output)

    def reopened(self, task: Task, know: Knowledge, now: int, turn: int | None = None) -> Iterator[Effect]:
        yield from super().reopened(task, know, now)
        if turn is not None:
            items = items_of(task.step, inputs_of(task.step, know, task.key, know.run, now), know)
            output = turn_output(without_turns(know.attempt_payload(task, "output"), turn), turn, items)
            yield UpdateTask(task.key, {"iteration": turn}, {"output": output})

    def leads_to(self, task: Task) -> Iterator[Key]:
        if task.is_open:
            yield Key(task.step.heads[0], (*task.key.turn, task.iteration))
        else:
            yield from super().leads_to(task)


def turn_output(output: dict[str, Any], turn: int, items: list[Any] | None) -> dict[str, Any]:
    """The loop's output as the tasks of this turn see it."""
    now = {**output, "iteration": turn}
    if items is not None and turn <= len(items):
        now |= {"loopIndex": turn - 1, "loopItem": items[turn - 1]}
    return now


def without_turns(output: dict[str, Any], first: int) -> dict[str, Any]:
    """The loop's output without those of its turns from this one on."""
    return {name: value for name, value in output.items() if not (name.isdecimal() and int(name) >= first)}


def with_turn(output: dict[str, Any], turn: int, outcomes: list[Outcome]) -> dict[str, Any]:
    """The loop's output with the outputs of this turn under its number."""
    return {**output, str(turn): outputs_by_ref(outcomes), "iteration": turn}


def continues(
    task: Task, know: Knowledge, inputs: dict, items: list | None, outcomes: list[Outcome], output: dict
) -> tuple[bool, str]:
    """Whether another turn follows, or why that cannot be said."""
    if items is not None and task.iteration >= len(items):
        return False, ""
    condition = task.step.document.get("loopCondition")
    if not isinstance(condition, str) or not condition.strip():
        return items is not None, ""
    seen = {**inputs, **outputs_by_ref(outcomes), task.step.ref: output}
    if items is not None:
        seen |= {"loopIndex": task.iteration - 1, "loopItem": items[task.iteration - 1]}
    # The original ignores the evaluatorType of loops, so only Python, which it cannot mean there, is heeded.
    language = "python" if task.step.document.get("evaluatorType") == "python" else "javascript"
    answer = know.script(language, condition, seen)
    if answer.error:
        return False, f"The loop condition of {task.step.ref} failed: {answer.error}"
    return answer.value is True or (isinstance(answer.value, int | float) and answer.value > 0), ""


def forget_old(task: Task, inputs: dict[str, Any], output: dict[str, Any]) -> Iterator[Effect]:
    """With keepLastN, the outputs and tasks of older turns are dropped."""
    keep = kept_turns(task.step, inputs)
    oldest = task.iteration - keep
    if keep and oldest > 0:
        output.pop(str(oldest), None)
        yield ForgetTasks(task.key, oldest)
