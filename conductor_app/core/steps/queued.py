"""Tasks that wait in a queue for a worker."""

from ..definition import Key, Step
from ..effects import CreateTask
from ..knowledge import Knowledge, spelled_type
from ..states import PENDING
from .kind import new_task


def queued(step: Step, key: Key, know: Knowledge, now: int, task_type: str, domain: str, inputs: dict) -> CreateTask:
    """A task that waits in the queue `[domain:]type`."""
    return CreateTask(
        new_task(
            step,
            key,
            know.run,
            now,
            status=PENDING,
            input=inputs,
            output={},
            domain=domain,
            queue=queue_name(task_type, domain),
            delay_seconds=step.start_delay,
            memo={} if task_type == spelled_type(step.type, step.name) else {"type": task_type, "name": task_type},
        )
    )


def queue_name(task_type: str, domain: str = "") -> str:
    """The name of the queue of a task type in a domain."""
    return f"{domain}:{task_type}" if domain else task_type
