"""The documents that a plan shows: the workflow definition, and each step by its reference. Read once per plan."""

from functools import cached_property, lru_cache
from typing import Any

import orjson

from ...core.language.checks.reading import inner_steps, normalised_step, normalised_workflow
from ...models import Plan
from ...models.fields import dumps

Document = dict[str, Any]


class Written:
    """A document, and the same as JSON that need not be written again for every reply."""

    def __init__(self, document: Document | None) -> None:
        self.document = document

    @cached_property
    def json(self) -> orjson.Fragment:
        return orjson.Fragment(dumps(self.document) or "null")

    @cached_property
    def task_definition(self) -> "Written":
        """Of a step: the task definition that is written into it, or nothing."""
        return Written((self.document or {}).get("taskDefinition"))


Steps = dict[str, Written]


class Shown:
    """What a plan shows."""

    def __init__(self, document: Document) -> None:
        shown = normalised_workflow(document)
        self.workflow = Written(shown)
        self.steps = steps_within(shown["tasks"])


@lru_cache(maxsize=500)
def plan(plan_id: str) -> Shown:
    """What the plan shows; a plan never changes."""
    return Shown(Plan.objects.get(pk=plan_id).document)


def branch(document: Document) -> Steps:
    """The steps of one branch of a dynamic fork, by reference."""
    return steps_within([normalised_step(document)])


def steps_within(steps: list[Document]) -> Steps:
    """The steps and all that are inside them, by reference."""
    found: Steps = {}
    waiting = list(steps)
    while waiting:
        if step := waiting.pop():
            found[step.get("taskReferenceName") or ""] = Written(step)
            waiting.extend(each for _place, inside in inner_steps(step) for each in inside)
    return found


def unknown_step(ref: str, name: str) -> Written:
    """The step of a task whose plan does not know it: never null, name and reference filled in (api §3.6)."""
    return Written(normalised_step({"name": name, "taskReferenceName": ref}))
