"""Step types that authors can add, in the order of the editor's list, the fields of their forms, and new definitions.

The classes of `core/step_types` declare the rest: `label`, `summary`, `search_words`, `sample` and `members`.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext, gettext_lazy

from ...core.step_types import DECLARED_TYPES
from ...core.step_types.ai import CallMcpToolStep, LlmChatComplete, LlmTextComplete
from ...core.step_types.base import Simple, StepMember, StepType, step_of
from ...core.step_types.decisions import Noop, SetVariable, Switch, Terminate
from ...core.step_types.forks import ForkJoin, ForkJoinDynamic
from ...core.step_types.loops import DoWhile, ForEach
from ...core.step_types.sub_workflows import (
    GetWorkflowStep,
    StartWorkflow,
    SubWorkflow,
    TerminateWorkflowStep,
    UpdateTaskStep,
)
from ...core.step_types.try_catch import TryCatch
from ...core.step_types.waiting import Human, Wait
from ...core.step_types.worker_tasks import Dynamic, EventStep, HttpStep, Inline, JsonJqTransform
from ...utils.formatting import LazyText
from ..policies import type_label

FIRST: Sequence[type[StepType]] = (
    *(Simple, HttpStep, Human, Switch, ForkJoin, DoWhile, ForEach, TryCatch, Wait, SubWorkflow, StartWorkflow),
    *(GetWorkflowStep, UpdateTaskStep, TerminateWorkflowStep, SetVariable, Inline, JsonJqTransform, EventStep),
    *(Dynamic, ForkJoinDynamic, Terminate, LlmChatComplete, LlmTextComplete, CallMcpToolStep, Noop),
)
"""The order of the list. Other types that have a summary come after these."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A step type in the list of types."""

    step_type: StepType

    @property
    def type(self) -> str:
        return self.step_type.type

    @property
    def label(self) -> str:
        return type_label(self.type)

    @property
    def summary(self) -> str:
        return gettext(self.step_type.summary)

    @property
    def search_words(self) -> str:
        """Return the words other than its label that find the type, separated by blanks."""
        return gettext(self.step_type.search_words) if self.step_type.search_words else ""

    def sample(self) -> list[dict[str, Any]]:
        """Return new steps, whose references get a number if they are in use."""
        return [deepcopy(dict(step)) for step in self.step_type.sample]


def catalog() -> dict[str, CatalogEntry]:
    """Return the entries of the list by type."""
    names = dict.fromkeys((*(each.type for each in FIRST), *DECLARED_TYPES))
    return {name: CatalogEntry(found) for name in names if (found := DECLARED_TYPES[name]).summary}


def members_of(type: str) -> Sequence[StepMember]:
    return found.members if (found := DECLARED_TYPES.get(type)) else ()


NEW_WORKFLOW: dict[str, Any] = {
    "name": "my_workflow",
    "version": 1,
    "description": "",
    "ownerEmail": "",
    "inputParameters": [],
    "tasks": [],
    "outputParameters": {},
    "timeoutSeconds": 0,
    "timeoutPolicy": "ALERT_ONLY",
}


@dataclass(frozen=True, slots=True)
class WorkflowTemplate:
    """A workflow that a new definition can begin with."""

    name: str
    label: str | LazyText
    members: Callable[[], dict[str, Any]]

    def document(self) -> dict[str, Any]:
        """Return a new definition."""
        return {**NEW_WORKFLOW, **self.members()}


def _sample(step_type: type[StepType]) -> list[dict[str, Any]]:
    return CatalogEntry(step_type()).sample()


def _approval_template() -> dict[str, Any]:
    decide = {
        "inputParameters": {"approved": "${approval.output.approved}"},
        "evaluatorType": "value-param",
        "expression": "approved",
        "decisionCases": {"true": [step_of(Simple.type, "carry_out", inputParameters={})]},
        "defaultCase": [],
    }
    return {
        "tasks": [*_sample(Human), step_of(Switch.type, "decide", **decide)],
        "outputParameters": {"approved": "${approval.output.approved}"},
    }


def _parallel_template() -> dict[str, Any]:
    fork, join = _sample(ForkJoin)
    branches = [[step_of(Simple.type, name, inputParameters={})] for name in ("first", "second")]
    return {"tasks": [fork | {"forkTasks": branches}, join | {"joinOn": ["first", "second"]}]}


def _list_template() -> dict[str, Any]:
    [each] = _sample(ForEach)
    task = step_of(Simple.type, "handle_item", inputParameters={"item": "${each.output.item}"})
    return {"inputParameters": ["items"], "tasks": [each | {"loopOver": [task]}]}


def _http_template() -> dict[str, Any]:
    return {"tasks": _sample(HttpStep), "outputParameters": {"response": "${http.output.response.body}"}}


def _worker_template() -> dict[str, Any]:
    task = step_of(Simple.type, "my_task", inputParameters={"order": "${workflow.input.order}"})
    return {"inputParameters": ["order"], "tasks": [task], "outputParameters": {"result": "${my_task.output.result}"}}


TEMPLATES = {
    template.name: template
    for template in (
        WorkflowTemplate("worker", gettext_lazy("One worker task"), _worker_template),
        WorkflowTemplate("approval", gettext_lazy("Approval by a person"), _approval_template),
        WorkflowTemplate("http", gettext_lazy("HTTP request"), _http_template),
        WorkflowTemplate("parallel", gettext_lazy("Parallel branches"), _parallel_template),
        WorkflowTemplate("list", gettext_lazy("A task for each item of a list"), _list_template),
    )
}
"""What a new workflow definition can begin with, instead of without steps."""
NEW_TASK = {
    "name": "my_task",
    "description": "",
    "ownerEmail": "",
    "retryCount": 3,
    "retryLogic": "FIXED",
    "retryDelaySeconds": 60,
    "timeoutSeconds": 3600,
    "responseTimeoutSeconds": 600,
    "timeoutPolicy": "TIME_OUT_WF",
}
