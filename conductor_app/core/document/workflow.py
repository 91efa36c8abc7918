"""The workflow document → Definition."""

from collections.abc import Mapping
from typing import Any

from ..definition import DEFAULT_LIMITS, TIME_OUT_RUN, Definition, RunLimits, Step
from ..step_structure import Flow, structure_of
from .layout import layout_steps
from .policy import read_whole_number
from .schemas import enforced_schemas

ALLOWED_SECRETS = "_allowedSecrets"
"""Key in a resolved document: its steps may name only these secrets. Only the engine writes it; replies omit it."""


def read_definition(
    document: Mapping[str, Any],
    *,
    hash: str = "",
    publishes_task_events: bool = False,
    limits: RunLimits = DEFAULT_LIMITS,
) -> Definition:
    """Return the definition that the document describes. `limits`: those of its runs.

    Raises:
        ValidationFailed: when it cannot be laid out.
    """
    tasks = document.get("tasks") or ()
    allowed = document.get(ALLOWED_SECRETS)
    allowed_secrets = None if allowed is None else frozenset(allowed)
    steps = layout_steps(tasks, allowed_secrets=allowed_secrets)
    return Definition(
        name=str(document.get("name") or ""),
        version=read_whole_number(document, "version", 1),
        document=document,
        steps=steps,
        first=str(tasks[0].get("taskReferenceName")) if tasks else None,
        hash=hash,
        timeout_seconds=read_whole_number(document, "timeoutSeconds", 0),
        times_out=document.get("timeoutPolicy") == TIME_OUT_RUN,
        **enforced_schemas(document, by_default=True),
        output_parameters=document.get("outputParameters") or {},
        # Steps of a dynamic fork may be permissive too; only its input says so.
        has_permissive=any(step.permissive or makes_branches(step) for step in steps.values()),
        publishes_task_events=publishes_task_events,
        publishes_listener_events=publishes_task_events
        or bool(document.get("workflowStatusListenerEnabled"))
        or any(step.document.get("onStateChange") or makes_branches(step) for step in steps.values()),
        limits=limits,
        allowed_secrets=allowed_secrets,
        breakpoints=(),
    )


def makes_branches(step: Step) -> bool:
    """Return True if tasks of the step bring steps of their own, which the definition does not show."""
    return structure_of(step.type).flow is Flow.DYNAMIC_FORK
