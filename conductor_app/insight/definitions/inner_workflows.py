"""Sub-workflows of a definition, recursively, for its simulation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.simulation.mock_outcomes import INSIDE
from ...core.step_structure import type_of
from ...core.step_tree import walk
from ...core.step_types.sub_workflow import SubWorkflow
from ...models import WorkflowDefinition
from .recorded_outputs import recorded_outputs

MAX_DEPTH = 3
MAX_SUB_WORKFLOWS = 12


@dataclass(frozen=True, slots=True)
class InnerWorkflow:
    """One sub-workflow: its definition, and the recent outputs of its steps."""

    document: Mapping[str, Any]
    recorded: Mapping[str, Any]


def inner_workflows(document: Mapping[str, Any]) -> dict[str, InnerWorkflow]:
    """Return the sub-workflows with a known definition, by the path to their steps, such as `first>second`."""
    found: dict[str, InnerWorkflow] = {}
    level = [("", document)]
    for _depth in range(MAX_DEPTH):
        level_references = [(path, *reference) for path, around in level for reference in _named_sub_workflows(around)]
        level = []
        for path, ref, named, inline_document in level_references[: MAX_SUB_WORKFLOWS - len(found)]:
            inner = inline_document if inline_document is not None else _newest_document(*named)
            if inner is None:
                continue
            found[f"{path}{ref}"] = InnerWorkflow(inner, recorded_outputs(str(inner.get("name") or "")))
            level.append((f"{path}{ref}{INSIDE}", inner))
    return found


def _named_sub_workflows(
    document: Mapping[str, Any],
) -> Iterator[tuple[str, tuple[str, Any], Mapping[str, Any] | None]]:
    """Yield reference, name and version, and inline definition of each sub-workflow in a definition."""
    for spot in walk(document.get("tasks")):
        param = spot.step.get("subWorkflowParam")
        if type_of(spot.step) != SubWorkflow.type or not spot.ref or not isinstance(param, Mapping):
            continue
        inline_document = param.get("workflowDefinition")
        if isinstance(inline_document, Mapping):
            yield spot.ref, ("", None), inline_document
        elif inline_document:
            continue  # An expression has a value only in a run.
        elif isinstance(name := param.get("name"), str) and "${" not in name:
            yield spot.ref, (name, param.get("version")), None


def _newest_document(name: str, version: Any) -> Mapping[str, Any] | None:
    rows = WorkflowDefinition.objects.filter(name=name)
    if isinstance(version, int) and not isinstance(version, bool):
        rows = rows.filter(version=version)
    row = rows.order_by("-version").first()
    return row.document if row else None
