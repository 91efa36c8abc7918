"""FORK_JOIN_DYNAMIC: as many branches as the input says."""

from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

from ..data_requests import InUse, PolicyNamed
from ..decision_context import Knowledge, gather
from ..definition import Key, Step
from ..effects import Effect
from ..errors import StepRefused, ValidationFailed
from ..language.layout import joined_branch, lay_out
from ..snapshot import Run, Task
from .base import Kind, finished_at_once, inputs_of
from .forked import forked_documents, require_join

FILLED_BY_FORK = ("dynamicForkTasksParam", "dynamicForkTasksInputParamName")


class ForkJoinDynamic(Kind):
    """Makes one branch of each task that the input lists, then leads to its join (execution §8.6)."""

    type = "FORK_JOIN_DYNAMIC"
    is_retried = False

    def enter(self, step: Step, key: Key, know: Knowledge, now: int) -> Iterator[Effect]:
        require_join(step, know.run)
        inputs = inputs_of(step, know, key, know.run, now, holds_steps=True)
        written = forked_documents(step, inputs, partial(has_forked, step, know), know.run.definition)
        documents = with_policies(written, know)
        grown = grow(step, documents)
        refs = [document["taskReferenceName"] for document in documents]
        if used := in_use(grown.keys(), step, key, know):
            raise StepRefused(f"The forked reference '{used[0]}' is in use already: give each forked task its own.")
        has_cases = {"has_cases": True} if any(grown[ref].cases for ref in refs) else {}
        shown = {name: value for name, value in inputs.items() if name not in params_of(step)}
        yield finished_at_once(
            step,
            key,
            know.run,
            now,
            output={},
            memo={"forked": refs, **has_cases},
            grown=grown,
            input={**shown, "forkedTasks": refs, "forkedTaskDefs": documents},
        )

    def leads_to(self, task: Task) -> Iterator[Key]:
        for ref in (*task.memo.get("forked", ()), task.step.follower):
            if ref:
                yield Key(ref, task.key.turn)


def may_follow_another(step: Step, run: Run) -> bool:
    """Whether the run may have forked dynamically before: elsewhere, or here in an earlier turn."""
    written = [other for other in run.definition.steps.values() if other.type == step.type]
    return len(written) != 1 or bool(step.loops) or written[0].ref != step.ref


def has_forked(step: Step, know: Knowledge) -> bool:
    """Whether the run has forked dynamically before."""
    run = know.run
    if any("forked" in task.memo for task in run.tasks.values()):
        return True
    if run.is_whole or not may_follow_another(step, run):
        return False
    # What a fork has made may fork too; the one that made it stands in the definition.
    refs = frozenset(other.ref for other in run.definition.steps.values() if other.type == step.type)
    return bool(know.ask(InUse(refs)))


def in_use(refs: Collection[str], step: Step, key: Key, know: Knowledge) -> list[str]:
    """Those of the references that steps of the definition have, or tasks in this turn, in the order given."""
    run = know.run
    used = {ref for ref in refs if ref in run.definition.steps or Key(ref, key.turn) in run.tasks}
    if not used and not run.is_whole and may_follow_another(step, run):
        used = know.ask(InUse(frozenset(refs), key.turn))
    return [ref for ref in refs if ref in used]


def params_of(step: Step) -> set[str]:
    """The inputs that only say what to fork; the fork's row does not repeat them."""
    return {str(step.document.get(name)) for name in FILLED_BY_FORK}


def with_policies(documents: list[dict[str, Any]], know: Knowledge) -> list[dict[str, Any]]:
    """The documents with the task definitions that are registered for them."""
    names = sorted({document["name"] for document in documents if not document.get("taskDefinition")})
    found = dict(zip(names, gather(partial(know.ask, PolicyNamed(name)) for name in names), strict=True))
    return [
        document
        if document.get("taskDefinition") or not found.get(document["name"])
        else {**document, "taskDefinition": found[document["name"]]}
        for document in documents
    ]


def laid_out(document: dict[str, Any], fork: Step) -> dict[str, Step]:
    """The steps of one branch. Nobody has checked its document: whatever is wrong with it is a reason to refuse it."""
    try:
        return lay_out([document], loops=fork.loops, is_ad_hoc=False)
    except ValidationFailed as refused:
        raise StepRefused("; ".join(complaint.message for complaint in refused.complaints)) from refused
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise StepRefused(f"The forked task '{document['taskReferenceName']}' cannot be read: {error}.") from error


def grow(step: Step, documents: list[dict[str, Any]]) -> dict[str, Step]:
    """The steps of all branches, each branch by its own; their heads are joined by what follows the fork."""
    grown: dict[str, Step] = {}
    for document in documents:
        branch = laid_out(document, step)
        if twice := branch.keys() & grown.keys():
            raise StepRefused(f"The forked reference '{min(twice)}' occurs twice: give each forked task its own.")
        grown |= joined_branch(branch, document["taskReferenceName"], step.follower)
    return grown
