"""Drawings of a task definition: its retry schedule and its time limits."""

from collections.abc import Mapping
from typing import Any

from ...insight.definitions.task_policy import policy_of, retry_schedule, time_limits


def task_drawings(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context of `ops/definition/task_drawings.html`. The document may be invalid."""
    policy = policy_of(document)
    return {"drawn": {"schedule": retry_schedule(policy), "limits": time_limits(policy)}}
