"""FOR_EACH: its body once for each item of a list, one after another or side by side. A step type of our own.

    {"type": "FOR_EACH", "name": "each", "taskReferenceName": "each",
     "items": "${workflow.input.orders}",
     "inputParameters": {"parallel": 10, "onItemFailure": "CONTINUE", "keepLastN": 100},
     "loopOver": [{"name": "ship", "taskReferenceName": "ship", "type": "SIMPLE",
                   "inputParameters": {"order": "${each.output.item}", "number": "${each.output.index}"}}]}

Inside, `${each.output.item}` and `${each.output.index}` (from 0) are those of the present item, and `${ship.output.x}`
is what `ship` gave for the same item. Each item has a task of its own, `each_item__3`, around what is done for it:
`ship__3__1`. At most `parallel` items (1) are under way at once.

Where a task of an item fails, its retries over and neither optional nor permissive, the rest of that item is canceled.
With `onItemFailure` FAIL, which is the default, so are the other items, and the step fails; with CONTINUE it goes on.
Its output is `count`, `results` in the order of the items (the outputs of each by reference, null for one that failed)
and `errors` (`index`, `reason`). With `keepLastN` the tasks of the items that ended last are kept, and only
their results; the others are null.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from ..data_requests import EveryTurn, Outcome
from ..decision_context import Knowledge, gather
from ..definition import Key, Step
from ..effects import Effect, ForgetTasks, MoveAttempt, UpdateTask
from ..errors import StepRefused
from ..snapshot import Task
from .base import Kind, complete, finished_at_once, held_by_engine, inputs_of
from .iterations import COUNTED, ENDS_AS, items_of, kept_turns
from .outcomes import outcome_of

CONTINUE, FAIL = "CONTINUE", "FAIL"


class ForEach(Kind):
    """Active while items are left; leads to the tasks of the items that begin. `iteration`: how many have begun.

    Its memo: the `count` of items, how many may be open (`most`), have begun (`to`; `since`: with the last change) and
    ended; of how many the tasks were `forgotten`, and the turns that are `kept`.
    """

    type = "FOR_EACH"
    waits_for_tasks = True
    is_retried = False
    is_reopened = True
    counts_turns = True
    takes_failures = True
    takes_every_turn = True

    def enter(self, step: Step, key: Key, know: Knowledge, now: int) -> Iterator[Effect]:
        if not step.heads:
            raise StepRefused(f"There is nothing to do for each in {step.ref}: its 'loopOver' is empty.")
        inputs = inputs_of(step, know, key, know.run, now)
        items = items_of(step, inputs, know)
        if items is None:
            raise StepRefused(f"{step.ref} has no list to go through: it needs 'items'.")
        shown = {**{name: value for name, value in inputs.items() if name != "_items"}, "items": items}
        if not items:
            yield finished_at_once(step, key, know.run, now, input=shown, output=together(0, []))
            return
        memo = {"count": len(items), "most": most_at_once(step, inputs), "keep": kept_turns(step, inputs), "ended": 0}
        memo |= {"since": 1, "to": min(memo["most"], memo["count"]), "goes_on": goes_on(step, inputs)}
        output = {"count": len(items)}
        yield held_by_engine(step, key, know.run, now, iteration=memo["to"], memo=memo, input=shown, output=output)

    def settle(self, task: Task, know: Knowledge, now: int) -> Iterator[Effect]:
        over = [item for item in know.inside(task.key) if not item.is_open]
        fresh = sorted((item for item in over if COUNTED not in item.memo), key=lambda item: item.key.turn)
        memo = dict(task.memo)
        if know.run.is_whole:
            # Commands that open an ended run again may have taken items back: all are counted anew.
            memo |= counted(memo, over)
        if not fresh and memo == task.memo:
            return
        for item in fresh:
            yield UpdateTask(item.key, {"memo": {**item.memo, COUNTED: True}})
        gone = with_ended(memo, [item.key.turn[-1] for item in fresh])
        if memo["ended"] < memo["count"]:
            yield UpdateTask(task.key, {"iteration": memo["to"], "memo": memo}, {"updated_at": now})
        else:
            output = together(memo["count"], outcomes_of_items(task, know, set(gone)))
            yield UpdateTask(task.key, {"memo": memo})
            yield from complete(task, now, output)
        for turn in gone:
            yield ForgetTasks(task.key, turn)

    def take(self, task: Task, failed: Task, know: Knowledge, now: int) -> Iterator[Effect]:
        """An item has failed, and nothing else is open any more."""
        output = together(task.memo["count"], outcomes_of_items(task, know, set()))
        facts = {"reason": failed.attempt.reason, "output": output}
        yield MoveAttempt(task.key, ENDS_AS.get(failed.attempt.status, "fail"), now, facts)

    def leads_to(self, task: Task) -> Iterator[Key]:
        if not task.is_open:
            yield from super().leads_to(task)
        elif task.attempt.is_open:
            for turn in range(task.memo["since"], task.memo["to"] + 1):
                yield Key(task.step.heads[0], (*task.key.turn, turn))

    def turns_follow(self, task: Task) -> bool:
        return task.memo.get("most", 1) == 1

    def reopened(self, task: Task, know: Knowledge, now: int, turn: int | None = None) -> Iterator[Effect]:
        yield from super().reopened(task, know, now)
        memo = dict(task.memo)
        if turn is not None and self.turns_follow(task):
            memo |= {"since": turn, "to": turn}
        yield UpdateTask(task.key, {"memo": memo, "iteration": memo["to"]}, {"output": {"count": memo["count"]}})


def most_at_once(step: Step, inputs: dict[str, Any]) -> int:
    """How many items may be under way at once."""
    value = inputs.get("parallel")
    try:
        most = 1 if value in (None, "") else int(value)
    except (TypeError, ValueError):
        most = 0
    if most < 1:
        raise StepRefused(f"parallel of {step.ref} must be a whole number from 1 on; it is {value!r}.")
    return most


def goes_on(step: Step, inputs: dict[str, Any]) -> bool:
    """Whether the failure of an item leaves the others alone."""
    value = inputs.get("onItemFailure") or FAIL
    if value not in (CONTINUE, FAIL):
        raise StepRefused(f"onItemFailure of {step.ref} must be {FAIL} or {CONTINUE}; it is {value!r}.")
    return value == CONTINUE


def counted(memo: dict[str, Any], over: Sequence[Task]) -> dict[str, Any]:
    """What the memo says of ended items, by the tasks that are there."""
    turns = {item.key.turn[-1] for item in over if COUNTED in item.memo}
    found: dict[str, Any] = {"ended": memo.get("forgotten", 0) + len(turns)}
    return found | ({"kept": [turn for turn in memo["kept"] if turn in turns]} if "kept" in memo else {})


def with_ended(memo: dict[str, Any], turns: list[int]) -> list[int]:
    """Note in the memo that these items have ended, and which begin; returns those whose tasks are kept no longer."""
    gone: list[int] = []
    memo["ended"] += len(turns)
    if memo["keep"]:
        kept = [*memo.get("kept", ()), *turns]
        gone = kept[: -memo["keep"]]
        memo |= {"kept": kept[-memo["keep"] :], "forgotten": memo.get("forgotten", 0) + len(gone)}
    begun = max(memo["to"], min(memo["count"], memo["ended"] + memo["most"]))
    memo |= {"since": memo["to"] + 1, "to": begun}
    return gone


def outcomes_of_items(task: Task, know: Knowledge, gone: set[int]) -> list[Outcome]:
    """What the items came to whose tasks are kept, in their order."""
    known = {item.key: item for item in know.inside(task.key)}
    here = gather(partial(outcome_of, item, know) for item in known.values())
    others = [] if know.run.is_whole else know.ask(EveryTurn(task.key, task.step.heads[0], frozenset(known)))
    found = (outcome for outcome in (*here, *others) if outcome.key.turn[-1] not in gone)
    return sorted(found, key=lambda outcome: outcome.key.turn)


def together(count: int, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The output: what each item came to at its place."""
    results: list[Any] = [None] * count
    for outcome in outcomes:
        if outcome.status == "COMPLETED":
            results[outcome.key.turn[-1] - 1] = outcome.output
    errors = [
        {"index": outcome.key.turn[-1] - 1, "reason": outcome.reason}
        for outcome in outcomes
        if outcome.status not in ("COMPLETED", "ACTIVE")
    ]
    return {"count": count, "results": results, "errors": errors}
