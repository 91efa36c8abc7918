"""EVENT: publishes an event to a sink."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import CreateTask, Effect, PublishEvent
from ..errors import StepRefused
from ..events import event_name, is_internal, run_event_facts
from ..expressions import quote_value
from .base import StepType, completed_task, engine_held_task, resolve_inputs
from .queued import QueuedWork, queued_task


class EventStep(StepType):
    """Completes when the event is published, or when a client completes it (asyncComplete) (execution §8.15).

    An event of this server is published in the decision itself, as a message in its transaction: once, and never lost.
    A built-in worker publishes to other sinks, and executes the step if the run is held by its concurrency limit.
    """

    type = "EVENT"
    icon = "event"
    required_fields = ("sink",)
    is_built_in = True
    is_forked_by_type = True
    result_comes_from_outside = True
    is_queued = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        run = ctx.run
        inputs = resolve_inputs(step, ctx, key, run, now)
        # A step that is an EVENT by its name has the sink among its inputs.
        sink = ctx.resolve(step.document["sink"]) if "sink" in step.document else inputs.get("sink")
        if not isinstance(sink, str):
            raise StepRefused(f"The sink of {step.ref} must be a text, not {quote_value(sink)}.")
        inputs |= {"sink": sink, "asyncComplete": step.async_complete}
        event = event_name(sink, run.definition.name, step.ref)
        if run.is_held or not is_internal(event):
            yield queued_task(step, key, ctx, now, QueuedWork(self.type, inputs))
            return
        payload = {**inputs, **run_event_facts(run), "event_produced": event}
        create: CreateTask
        if step.async_complete:
            create = engine_held_task(step, key, run, now, input=inputs, output=payload)
        else:
            create = completed_task(step, key, run, now, input=inputs, output=payload)
        yield create
        yield PublishEvent(event, create.task.attempt.id, payload)
