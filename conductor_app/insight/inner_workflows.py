"""The sub-workflows of a definition, and theirs: what a try of it can play."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.document.lint.step_positions import all_steps
from ..core.document.parts import type_of
from ..core.simulation.outcomes import INSIDE
from ..models import WorkflowDefinition
from .recorded_outputs import recorded_outputs

DEEPEST = 3
MOST = 12


@dataclass(frozen=True, slots=True)
class InnerWorkflow:
    """One sub-workflow: its definition, and what its steps gave lately."""

    document: Mapping[str, Any]
    recorded: Mapping[str, Any]


def inner_workflows(document: Mapping[str, Any]) -> dict[str, InnerWorkflow]:
    """The sub-workflows whose definitions are known, by the way to their steps: `first` and `first>second`."""
    found: dict[str, InnerWorkflow] = {}
    level = [("", document)]
    for _depth in range(DEEPEST):
        asked = [(way, *asks) for way, around in level for asks in _named_sub_workflows(around)]
        level = []
        for way, ref, named, written in asked[: MOST - len(found)]:
            inner = written if written is not None else _newest_document(*named)
            if inner is None:
                continue
            found[f"{way}{ref}"] = InnerWorkflow(inner, recorded_outputs(str(inner.get("name") or "")))
            level.append((f"{way}{ref}{INSIDE}", inner))
    return found


def _named_sub_workflows(
    document: Mapping[str, Any],
) -> Iterator[tuple[str, tuple[str, Any], Mapping[str, Any] | None]]:
    """The sub-workflows that a definition names or holds."""
    for spot in all_steps(document.get("tasks")):
        param = spot.step.get("subWorkflowParam")
        if type_of(spot.step) != "SUB_WORKFLOW" or not spot.ref or not isinstance(param, Mapping):
            continue
        written = param.get("workflowDefinition")
        if isinstance(written, Mapping):
            yield spot.ref, ("", None), written
        elif written:
            continue  # Only a run knows the definition that an expression comes to.
        elif isinstance(name := param.get("name"), str) and "${" not in name:
            yield spot.ref, (name, param.get("version")), None


def _newest_document(name: str, version: Any) -> Mapping[str, Any] | None:
    rows = WorkflowDefinition.objects.filter(name=name)
    if isinstance(version, int) and not isinstance(version, bool):
        rows = rows.filter(version=version)
    row = rows.order_by("-version").first()
    return row.document if row else None
