"""EVENT tasks for other systems. The payload of the event becomes the output of the task."""

from typing import Any

from ..core.events import event_name
from ..core.expressions import field_text
from ..core.step_types.event import EventStep
from ..models.claimed_attempts import ClaimedAttempt
from .sinks import SinkFailed, SinkUnavailable, publish
from .worker import BuiltInWorker, WorkResult


class EventWorker(BuiltInWorker):
    """Publishes the input of the task to its sink, once (execution §8.15)."""

    type = EventStep.type

    def inputs_of(self, attempt: ClaimedAttempt) -> dict[str, Any]:
        """Return the event. Its payload becomes the output of the task, so secrets are not resolved."""
        run, input = attempt.run, attempt.input
        event = event_name(field_text(input.get("sink")), run.name, attempt.task.ref)
        run_facts = {
            "workflowInstanceId": run.id,
            "workflowType": run.name,
            "workflowVersion": run.version,
            "correlationId": run.correlation_id or None,
            "taskToDomain": run.domains,
        }
        return {"id": attempt.id, "event": event, "payload": {**input, **run_facts, "event_produced": event}}

    def perform(self, inputs: dict[str, Any]) -> WorkResult:
        """Publish the event. With asyncComplete the task stays open until a client completes it.

        Raises:
            SinkUnavailable: when the broker does not answer. The task waits, within its timeouts.
        """
        payload = inputs["payload"]
        try:
            publish(inputs["event"], inputs["id"], payload)
        except SinkUnavailable:
            raise
        except SinkFailed as failed:
            return WorkResult("FAILED", payload, str(failed))
        return WorkResult("IN_PROGRESS" if payload.get("asyncComplete") is True else "COMPLETED", payload)
