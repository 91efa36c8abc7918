"""The documents that a plan shows: the workflow definition, and each step by its reference. Read once per plan."""

from functools import cached_property, lru_cache
from typing import Any

import orjson

from ...core.document.checks.normalization import normalize_step, normalize_task, normalize_workflow
from ...core.step_structure import DEFAULT_TYPE, structure_of_step
from ...core.step_tree import bodies_of
from ...models import ResolvedDefinition
from ...models.fields import dumps

Document = dict[str, Any]


class StepDocument:
    """A document, and the same as JSON that need not be written again for every reply."""

    def __init__(self, document: Document | None) -> None:
        self.document = document

    @cached_property
    def json(self) -> orjson.Fragment:
        return orjson.Fragment(dumps(self.document) or "null")

    @cached_property
    def task_definition(self) -> "StepDocument":
        """Of a step: the task definition that is written into it, or nothing."""
        return StepDocument((self.document or {}).get("taskDefinition"))

    @cached_property
    def has_rate_limit(self) -> bool:
        """Of a step: whether its tasks have a rate window, as those have that have a task definition, or a worker."""
        document = self.document or {}
        return document.get("type") == DEFAULT_TYPE or document.get("taskDefinition") is not default_definition(
            document
        )

    @cached_property
    def isolation_fields(self) -> tuple[tuple[str, str], ...]:
        """Of a step: the isolation group and the name space that its tasks bear."""
        structure, definition = structure_of_step(self.document or {}), self.task_definition.document or {}
        has_group = structure.is_isolated or structure.shows_isolation_group
        group = definition.get("isolationGroupId") if has_group else None
        name_space = definition.get("executionNameSpace") if structure.is_isolated else None
        return (("isolationGroupId", group or ""), ("executionNameSpace", name_space or ""))


Steps = dict[str, StepDocument]


class DefinitionDocuments:
    """What a plan shows."""

    def __init__(self, document: Document) -> None:
        shown = normalize_workflow(document)
        self.steps = steps_within(shown["tasks"])
        self.workflow = StepDocument(shown)


@lru_cache(maxsize=500)
def definition_documents(plan_id: str) -> DefinitionDocuments:
    """What the plan shows; a plan never changes."""
    return DefinitionDocuments(ResolvedDefinition.objects.get(pk=plan_id).document)


def branch_documents(document: Document) -> Steps:
    """The steps of one branch of a dynamic fork, by reference."""
    return steps_within([normalize_step(document)])


def steps_within(steps: list[Document]) -> Steps:
    """The steps and all that are inside them, by reference; those without a task definition get the default one."""
    found: Steps = {}
    waiting = list(steps)
    while waiting:
        if step := waiting.pop():
            if not step.get("taskDefinition"):
                step["taskDefinition"] = default_definition(step)
            found[step.get("taskReferenceName") or ""] = StepDocument(step)
            waiting.extend(each for body in bodies_of(step) for each in body.steps)
    return found


def unknown_step(ref: str, name: str) -> StepDocument:
    """The step of a task whose plan does not know it: never null, name and reference filled in (api §3.6)."""
    return steps_within([normalize_step({"name": name, "taskReferenceName": ref})])[ref]


def default_definition(step: Document) -> Document:
    """Return what the original shows as the task definition of a step that has none."""
    return _default_definition(step.get("name") or "", step.get("type") == DEFAULT_TYPE)


@lru_cache(maxsize=5_000)
def _default_definition(name: str, is_simple: bool) -> Document:
    limits = {} if is_simple else {"retryCount": 0, "responseTimeoutSeconds": 0}
    return {**normalize_task({"name": name, **limits})}
