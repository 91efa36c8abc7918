"""What others are told of a decision: the run's status, and its steps' states (execution §10.4, §10.5).

Only definitions that ask for it come here. What is told is decided with what it is about, and saved with it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .decision_context import DecisionContext, conductor_status, conductor_task_type
from .definition import Key, Step
from .effects import CreateTask, Effect, OpenAttempt, PublishEvent, SnapshotBuilder, TransitionAttempt, TransitionRun
from .events import event_name, is_internal, run_event_facts
from .ids import derived_id
from .masking import redact_for_listeners
from .snapshot import Run, Task
from .states import COMPLETED, PENDING, RUN

STATE, STATUS, TASK = "state", "status", "task"
"""What a message is about, where its sink leaves open where it goes."""
STATUS_EVENTS = {
    "pause": "PAUSED",
    "resume": "RESUMED",
    "retry": "RETRIED",
    "rerun": "RERAN",
    "restart": "RESTARTED",
    "reopen": "RETRIED",
    "complete": "COMPLETED",
}
"""How listeners know the events of a run's life; every other end is TERMINATED."""
STATES = {
    "claim": "onStart",
    "complete": "onSuccess",
    "fail": "onFailed",
    "fail_for_good": "onFailed",
    "expire": "onFailed",
    "cancel": "onCancelled",
}
"""How definitions spell the events of an attempt's life."""


def listener_events(before: Run, effects: Iterable[Effect], ctx: DecisionContext, now: int) -> list[Effect]:
    """The messages that follow from the effects; what their payloads name is asked for."""
    told: list[Effect] = []
    publishes_task_events = before.definition.publishes_task_events
    if not (publishes_task_events or _is_listened_to(before) or _is_any_step_told(ctx.run)):
        return told
    builder = SnapshotBuilder(before)
    if before.revision == 0 and _is_listened_to(before):
        told.append(_run_status_event(before, before.status, "STARTED", ctx, now, len(told)))
    for effect in effects:
        key = _task_key_of(effect) if publishes_task_events else None
        was = _status_of(builder.tasks.get(key)) if key else ""
        effect.apply(builder)
        if key and (task := builder.tasks.get(key)) is not None and _status_of(task) != was:
            told += _task_status(task, ctx, now, len(told))
        if isinstance(effect, TransitionRun) and _is_listened_to(before):
            status = builder.get("status")
            for event in _status_events(effect.event, status):
                told.append(_run_status_event(ctx.run, status, event, ctx, now, len(told)))
        for key, state in _published_states_of(effect):
            told += _state_change_events(builder.tasks[key], state, ctx, now, len(told))
    return told


def started_command(attempt_id: str):
    """The command that tells of a worker's claim: claims are made without a decision."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if task := run.task_of_attempt(attempt_id):
            yield from _state_change_events(task, "onStart", ctx, now, 0)
            if run.definition.publishes_task_events:
                yield from _task_status(task, ctx, now, 1)

    return command


def publishes_start(step: Step, run: Run) -> bool:
    """Whether somebody is told that a worker has begun with an attempt at this step."""
    return "onStart" in published_states(step) or (run.definition.publishes_task_events and _is_published(step))


def _is_published(step: Step) -> bool:
    """Whether the task definition lets the listener hear of its tasks; one that says nothing does."""
    definition = step.document.get("taskDefinition")
    return not isinstance(definition, dict) or definition.get("taskStatusListenerEnabled") is not False


def _task_key_of(effect: Effect) -> Key | None:
    """The task that an effect is about."""
    return effect.task.key if isinstance(effect, CreateTask) else getattr(effect, "key", None)


def _status_of(task: Task | None) -> str:
    return conductor_status(task.attempt.status, task.status) if task else ""


def _task_status(task: Task, ctx: DecisionContext, now: int, number: int) -> Iterator[PublishEvent]:
    """A task's status, for the listener; payloads are not told."""
    if not _is_published(task.step):
        return
    run, attempt = ctx.run, task.attempt
    name = task.resolved_name
    payload = {
        "event": "TASK_STATUS",
        "taskId": attempt.id,
        "taskType": conductor_task_type(task.resolved_type, name),
        "taskDefName": name,
        "referenceTaskName": str(task.key),
        "status": _status_of(task),
        **run_event_facts(run),
        "retryCount": attempt.number,
        "workerId": attempt.worker or None,
        "domain": attempt.domain or None,
        "reasonForIncompletion": attempt.reason or None,
        "scheduledTime": attempt.scheduled_at,
        "startTime": attempt.started_at or 0,
        "updateTime": now,
        "endTime": attempt.ended_at or 0,
    }
    yield PublishEvent("", _event_id(run, now, attempt.id, TASK, number), payload, about=TASK)


def published_states(step: Step) -> frozenset[str]:
    """The states of a step that are told."""
    written = step.document.get("onStateChange") or {}
    return frozenset(name.strip() for names in written for name in names.split(","))


def _is_listened_to(run: Run) -> bool:
    return bool(run.definition.document.get("workflowStatusListenerEnabled"))


def _is_any_step_told(after: Run) -> bool:
    touched = (after.tasks[key] for key in after.touched if key in after.tasks)
    return any(task.step.document.get("onStateChange") for task in touched)


def _status_events(event: str, status: str) -> tuple[str, ...]:
    if status in RUN.final:
        return STATUS_EVENTS.get(event, "TERMINATED"), "FINALIZED"
    return (STATUS_EVENTS[event],) if event in STATUS_EVENTS else ()


def _run_status_event(run: Run, status: str, event: str, ctx: DecisionContext, now: int, number: int) -> PublishEvent:
    given = ctx.resolve(run.definition.document.get("workflowStatusListenerSink") or "")
    sink = str(given or "")
    if is_internal(sink):
        sink = event_name(sink, run.definition.name, STATUS)
    return PublishEvent(
        sink, _event_id(run, now, STATUS, number), _run_summary(run, status, event, ctx, now), about=STATUS
    )


def _run_summary(run: Run, status: str, event: str, ctx: DecisionContext, now: int) -> dict[str, Any]:
    """A run as its listeners see it."""
    is_over = status in RUN.final
    return {
        "event": event,
        "workflowId": run.id,
        "workflowType": run.definition.name,
        "version": run.definition.version,
        "status": status,
        "correlationId": run.correlation_id or None,
        "parentWorkflowId": run.parent_id or None,
        "priority": run.priority,
        "startTime": run.created_at,
        "updateTime": now,
        "endTime": now if is_over else 0,
        "executionTime": max(now - run.created_at, 0) if is_over else 0,
        "reasonForIncompletion": run.reason or None,
        "failedReferenceTaskNames": sorted(run.failed_refs),
        "input": redact_for_listeners(ctx.input(), run.definition),
        "output": redact_for_listeners(dict(ctx.output() or {}) if is_over else {}, run.definition),
    }


def _published_states_of(effect: Effect) -> Iterator[tuple[Key, str]]:
    """The states that an attempt comes to by an effect."""
    if isinstance(effect, OpenAttempt):
        yield effect.key, "onScheduled"
    elif isinstance(effect, TransitionAttempt) and effect.event in STATES:
        yield effect.key, STATES[effect.event]
    elif isinstance(effect, CreateTask):
        key, attempt = effect.task.key, effect.task.attempt
        yield key, "onScheduled"
        if attempt.status != PENDING:
            yield key, "onStart"
        if not attempt.is_open:
            yield key, "onSuccess" if attempt.status == COMPLETED else "onFailed"


def _state_change_events(task: Task, state: str, ctx: DecisionContext, now: int, number: int) -> list[Effect]:
    written = task.step.document.get("onStateChange")
    if not written or state not in published_states(task.step):
        return []
    changes = [change for names, several in written.items() if state in _split_words(names) for change in several]
    return [_state_change_event(task, state, change, ctx, now, number + place) for place, change in enumerate(changes)]


def _split_words(names: str) -> list[str]:
    return [name.strip() for name in names.split(",")]


def _state_change_event(
    task: Task, state: str, change: Mapping[str, Any], ctx: DecisionContext, now: int, number: int
) -> PublishEvent:
    run, type = ctx.run, str(change.get("type") or "state")
    payload = {
        **redact_for_listeners(ctx.resolve(dict(change.get("payload") or {})), run.definition),
        **run_event_facts(run),
        "type": type,
        "stateChange": state,
        "taskId": task.attempt.id,
        "referenceTaskName": str(task.key),
        "taskType": task.step.type,
        "taskStatus": conductor_status(task.attempt.status, task.status),
        "retryCount": task.attempt.number,
    }
    sink = event_name(type if ":" in type else f"conductor:{type}", run.definition.name, task.key.ref)
    return PublishEvent(
        sink, _event_id(run, now, task.attempt.id, state, number), payload, about="" if ":" in type else STATE
    )


def _event_id(run: Run, now: int, *parts: object) -> str:
    return derived_id(now, run.id, run.revision, "told", *parts)
