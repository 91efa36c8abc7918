"""The state of an order: its run, the run of its parcel, and its failure workflow."""

from collections.abc import Iterator
from typing import Any

from conductor.client.http.models.task import Task
from conductor.client.http.models.workflow import Workflow
from conductor.client.workflow_client import WorkflowClient

from .orders import Order
from .workflows import APPROVAL

ENDED = ("COMPLETED", "FAILED", "TIMED_OUT", "TERMINATED")
FAILURE_WORKFLOW = "conductor.failure_workflow"


class WatchedOrder:
    """An order and its runs as of the last refresh."""

    def __init__(self, order: Order, run_id: str) -> None:
        self.order = order
        self.run_id = run_id
        self.run: Workflow | None = None
        self.parcel: Workflow | None = None
        self.compensation: Workflow | None = None

    def refresh(self, client: WorkflowClient) -> None:
        """Load the current state of the runs, unless the order is settled."""
        if self.is_settled:
            return
        self.run = client.get_workflow(self.run_id)
        parcel_id = next((task.sub_workflow_id for task in self.run.tasks if task.sub_workflow_id), None)
        if parcel_id:
            self.parcel = client.get_workflow(parcel_id)
        if compensation_id := self.run.output.get(FAILURE_WORKFLOW):
            self.compensation = client.get_workflow(compensation_id)

    @property
    def status(self) -> str:
        return self.run.status if self.run else "RUNNING"

    @property
    def is_settled(self) -> bool:
        """Return True if the order has ended or waits for a user."""
        if self.compensation and self.compensation.status not in ENDED:
            return False
        return self.status in ENDED or self.is_waiting_for_person

    @property
    def is_waiting_for_person(self) -> bool:
        return any(task.reference_task_name == APPROVAL and task.status == "IN_PROGRESS" for task in self.tasks)

    @property
    def tasks(self) -> Iterator[Task]:
        """Yield the tasks of all runs, those of the order first."""
        for run in (self.run, self.parcel, self.compensation):
            yield from run.tasks if run else ()

    @property
    def open_steps(self) -> list[str]:
        """Return the reference names of the open tasks."""
        return [task.reference_task_name for task in self.tasks if task.status in ("SCHEDULED", "IN_PROGRESS")]

    @property
    def progress(self) -> str:
        """Return one sentence about the progress of the order."""
        total = (self.run.variables or {}).get("total", 0) if self.run else 0
        count = len(self.order.lines)
        purchase = f"{count} {'line' if count == 1 else 'lines'}, {total:.2f} EUR"
        if self.status == "COMPLETED":
            return f"{purchase}; {self._describe_delivery()}."
        if self.is_waiting_for_person:
            return f"{purchase}; waits for a person at {APPROVAL}."
        if self.status == "RUNNING":
            return f"{purchase}; is at {', '.join(self.open_steps) or 'its start'}."
        return f"{self._reason()}."

    def _describe_delivery(self) -> str:
        attempts = self._output.get("courier_attempts")
        if attempts is None:
            return "ready at the counter"
        return f"delivered by {self.order.courier}, booked on attempt {attempts}"

    def _reason(self) -> str:
        failed = (task.reason_for_incompletion for task in self.tasks if task.status.startswith("FAILED"))
        run_reason = self.run.reason_for_incompletion if self.run else None
        return next(filter(None, failed), run_reason or "No reason given").rstrip(".")

    @property
    def _output(self) -> dict[str, Any]:
        return self.run.output if self.run else {}

    @property
    def problem(self) -> str | None:
        """Return the unexpected result as a sentence, or None."""
        order = self.order
        if not self.is_settled:
            return f"Order {order.number} has not ended in time. It is at {', '.join(self.open_steps) or 'its start'}."
        if self.status != order.status:
            return f"Order {order.number} is {self.status}, not {order.status}: {self.progress}"
        if self._output.get("courier_attempts") != order.courier_attempts:
            return f"Order {order.number} did not take {order.courier_attempts} attempts: {self.progress}"
        if order.status == "FAILED" and (self.compensation is None or self.compensation.status != "COMPLETED"):
            return f"Order {order.number} failed, but its failure workflow has not completed."
        return None
