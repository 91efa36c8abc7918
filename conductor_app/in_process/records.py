"""What the Python API returns about workflows and their tasks: values that were read at one moment."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class WorkflowTask:
    """A task of a workflow: the newest attempt of a step, in one iteration of the loops around it.

    `status`: in Conductor's words, such as SCHEDULED, IN_PROGRESS, COMPLETED, FAILED, TIMED_OUT and CANCELED.
    `step`: the reference of the step, such as `charge`, in a loop with the iteration, such as `charge__2`.
    `name`: the name of the task, which a `worker_task` has. `attempt_id`: its id in the pages and in the REST API.
    """

    step: str
    name: str
    type: str
    status: str
    attempt_id: str
    reason: str
    input: dict[str, Any]
    output: dict[str, Any]


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """One execution of a workflow, as it was when it was read.

    `status`: RUNNING, PAUSED, COMPLETED, FAILED, TIMED_OUT or TERMINATED. `reason`: why it did not complete.
    `tasks`: in the order of their creation; empty unless they were asked for.
    """

    id: str
    name: str
    version: int
    status: str
    reason: str
    input: dict[str, Any]
    output: dict[str, Any]
    variables: dict[str, Any]
    correlation_id: str
    priority: int
    started_by: str
    labels: tuple[str, ...]
    created_at: datetime
    ended_at: datetime | None
    tasks: tuple[WorkflowTask, ...] = field(default=())

    @property
    def is_open(self) -> bool:
        """Return True if the workflow can still change on its own: it is RUNNING or PAUSED."""
        return self.ended_at is None

    def task(self, step: str) -> WorkflowTask:
        """Return the newest task of a step, from a run that was read with its tasks.

        Raises:
            KeyError: when there is none.
        """
        found = [task for task in self.tasks if step in (task.step, task.step.partition("__")[0])]
        if not found:
            raise KeyError(step)
        return found[-1]

    @property
    def is_completed(self) -> bool:
        """Return True if the workflow has ended as defined."""
        return self.status == "COMPLETED"
