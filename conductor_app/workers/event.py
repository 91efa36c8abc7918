"""EVENT tasks that go to other systems: the event is published, and what was told is the task's output."""

from typing import Any

from ..core.events import event_name
from ..core.step_types.event import EventStep
from ..models import Attempt
from .sinks import SinkFailed, publish
from .worker import BuiltInWorker, WorkResult


class EventWorker(BuiltInWorker):
    """Publishes the task's input to its sink, once (execution §8.15)."""

    type = EventStep.type

    def inputs_of(self, attempt: Attempt) -> dict[str, Any]:
        """The event. What is told becomes the task's output, so it holds no secrets."""
        run = attempt.run
        event = event_name(str(attempt.input.get("sink")), run.name, attempt.task.ref)
        about = {
            "workflowInstanceId": run.id,
            "workflowType": run.name,
            "workflowVersion": run.version,
            "correlationId": run.correlation_id or None,
            "taskToDomain": run.domains,
        }
        return {"id": attempt.id, "event": event, "payload": {**attempt.input, **about, "event_produced": event}}

    def perform(self, inputs: dict[str, Any]) -> WorkResult:
        """Publish; with asyncComplete the task stays open until somebody completes it."""
        payload = inputs["payload"]
        try:
            publish(inputs["event"], inputs["id"], payload)
        except SinkFailed as failed:
            return WorkResult("FAILED", payload, str(failed))
        return WorkResult("IN_PROGRESS" if payload.get("asyncComplete") is True else "COMPLETED", payload)
