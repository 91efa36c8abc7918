"""Definition documents in API replies: the workflow definition and its steps. Cached per resolved definition."""

from functools import cached_property, lru_cache
from typing import Any

import orjson

from ....core.document.checks.normalization import normalize_step, normalize_task, normalize_workflow
from ....core.document.workflow import ALLOWED_SECRETS
from ....core.step_structure import DEFAULT_TYPE, structure_of_step
from ....core.step_tree import bodies_of
from ....core.step_types.dynamic import Dynamic
from ....models import ResolvedDefinition
from ....models.fields import dumps

Document = dict[str, Any]


class StepDocument:
    """A document with its cached JSON, so that replies need not serialize it again."""

    def __init__(self, document: Document | None) -> None:
        self.document = document

    @cached_property
    def json(self) -> orjson.Fragment:
        return orjson.Fragment(dumps(self.document) or "null")

    @cached_property
    def task_definition(self) -> "StepDocument":
        """Return the task definition that is embedded in the step, or an empty document."""
        return StepDocument((self.document or {}).get("taskDefinition"))

    def named(self, name: str) -> "StepDocument":
        """Return the document of a DYNAMIC step with the name of its task, as Conductor shows it."""
        document = self.document or {}
        if document.get("type") != Dynamic.type or document.get("name") == name:
            return self
        own = document.get("taskDefinition")
        definition = own if own is not default_definition(document) else default_definition({**document, "name": name})
        return StepDocument({**document, "name": name, "taskDefinition": definition})

    @cached_property
    def has_rate_limit(self) -> bool:
        """Return True if the tasks of the step show a rate limit window: those with a task definition or a worker."""
        document = self.document or {}
        return document.get("type") == DEFAULT_TYPE or document.get("taskDefinition") is not default_definition(
            document
        )

    @cached_property
    def isolation_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the isolation group and the execution namespace of the step's tasks."""
        structure, definition = structure_of_step(self.document or {}), self.task_definition.document or {}
        has_group = structure.is_isolated or structure.shows_isolation_group
        group = definition.get("isolationGroupId") if has_group else None
        name_space = definition.get("executionNameSpace") if structure.is_isolated else None
        return (("isolationGroupId", group or ""), ("executionNameSpace", name_space or ""))


Steps = dict[str, StepDocument]


class DefinitionDocuments:
    """Documents of a resolved definition."""

    def __init__(self, document: Document) -> None:
        normalized = normalize_workflow({key: value for key, value in document.items() if key != ALLOWED_SECRETS})
        self.steps = steps_within(normalized["tasks"])
        self.workflow = StepDocument(normalized)


@lru_cache(maxsize=500)
def definition_documents(resolved_definition_id: str) -> DefinitionDocuments:
    """Return the documents of a resolved definition. They are cached: a resolved definition never changes."""
    return DefinitionDocuments(ResolvedDefinition.objects.get(pk=resolved_definition_id).document)


def branch_documents(document: Document) -> Steps:
    """Return the steps of one dynamic branch, by reference."""
    return steps_within([normalize_step(document)])


def steps_within(steps: list[Document]) -> Steps:
    """Return the steps and their nested steps, by reference. Adds missing default task definitions."""
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
    """Return a step for a task that is missing in its definition: name and reference only, never null (api §3.6)."""
    return steps_within([normalize_step({"name": name, "taskReferenceName": ref})])[ref]


def default_definition(step: Document) -> Document:
    """Return the task definition that Conductor shows for a step without one."""
    return _default_definition(step.get("name") or "", step.get("type") == DEFAULT_TYPE)


@lru_cache(maxsize=5_000)
def _default_definition(name: str, is_simple: bool) -> Document:
    limits = {} if is_simple else {"retryCount": 0, "responseTimeoutSeconds": 0}
    return {**normalize_task({"name": name, **limits})}
