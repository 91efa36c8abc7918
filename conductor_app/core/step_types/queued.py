"""Tasks that wait in a queue for a worker."""

from typing import Any

from ..decision_context import DecisionContext, conductor_task_type
from ..definition import Key, Step
from ..effects import CreateTask
from ..states import PENDING
from .base import new_task


def queued_task(
    step: Step, key: Key, ctx: DecisionContext, now: int, task_type: str, domain: str, inputs: dict[str, Any]
) -> CreateTask:
    """Return a task in the queue of its type, and of its isolation group and name space if it has any."""
    return CreateTask(
        new_task(
            step,
            key,
            ctx.run,
            now,
            status=PENDING,
            input=inputs,
            output={},
            domain=domain,
            queue=queue_name(task_type, domain, step.policy.name_space, step.policy.isolation_group),
            delay_seconds=step.start_delay,
            step_state={}
            if task_type == conductor_task_type(step.type, step.name)
            else {"type": task_type, "name": task_type},
        )
    )


def async_marker(step: Step) -> dict[str, bool]:
    """Return the input by which a built-in worker knows that a client will complete the task."""
    return {"asyncComplete": True} if step.async_complete else {}


def queue_name(task_type: str, domain: str = "", name_space: str = "", group: str = "") -> str:
    """Return the name of a queue: `[domain:]type[@name space][-isolation group]` (api §1.4)."""
    named = f"{task_type}@{name_space}" if name_space else task_type
    grouped = f"{named}-{group}" if group else named
    return f"{domain}:{grouped}" if domain else grouped
