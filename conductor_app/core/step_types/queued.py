"""Tasks that wait in a queue for a worker."""

from dataclasses import dataclass
from typing import Any

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import CreateTask
from ..states import PENDING
from .base import new_task
from .named_objects import QUEUE_SUFFIX, require_named_objects


@dataclass(frozen=True, slots=True)
class QueuedWork:
    """The work of a queued task: its task type, its resolved inputs, and the domain of its queue."""

    task_type: str
    inputs: dict[str, Any]
    domain: str = ""


def queued_task(step: Step, key: Key, ctx: DecisionContext, now: int, work: QueuedWork) -> CreateTask:
    """Return a task in the queue of its type, and of its isolation group and name space if it has any.

    Raises:
        StepRefused: when the run may not use an object that the inputs name.
    """
    task_type = work.task_type
    require_named_objects(step, task_type, work.inputs, ctx)
    return CreateTask(
        new_task(
            step,
            key,
            ctx.run,
            now,
            status=PENDING,
            input=work.inputs,
            output={},
            domain=work.domain,
            queue=queue_name(task_type, work.domain, step.policy.name_space, step.policy.isolation_group),
            delay_seconds=step.start_delay,
        )
    )


def async_marker(step: Step) -> dict[str, bool]:
    """Return the input by which a built-in worker knows that a client will complete the task."""
    return {"asyncComplete": True} if step.async_complete else {}


def type_of_queue(queue: str) -> str:
    """Return the type of the tasks that wait in the queue of a built-in worker, which has no domain."""
    return QUEUE_SUFFIX.sub("", queue)


def queue_name(task_type: str, domain: str = "", name_space: str = "", group: str = "") -> str:
    """Return the name of a queue: `[domain:]type[@name space][-isolation group]` (api §1.4)."""
    named = f"{task_type}@{name_space}" if name_space else task_type
    grouped = f"{named}-{group}" if group else named
    return f"{domain}:{grouped}" if domain else grouped
