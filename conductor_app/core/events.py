"""Events: the names of sinks, the contents of payloads, the conditions of WAIT_FOR_WEBHOOK tasks, and listener events.

Listener events report the changes of runs and tasks that a decision causes (execution §10.4, §10.5). Only definitions
with `publishes_listener_events` produce them. They are saved together with the decision.

A condition is a map from JSONPaths to values. A digest of paths and values finds the matching tasks by index, so that
the number of waiting tasks does not matter.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .decision_context import Command, DecisionContext, conductor_status, conductor_task_type
from .definition import Key, Step
from .effects import (
    CreateTask,
    Effect,
    OpenAttempt,
    PublishEvent,
    SnapshotBuilder,
    TransitionAttempt,
    TransitionRun,
    task_key_of,
)
from .errors import CONDUCTOR_LENGTH
from .expressions import MISSING, field_text, resolve_template, script_names
from .expressions.jsonpath import compile_path
from .expressions.jsonpath_segments import ABSENT, BadPath
from .masking import redact_for_listeners
from .primitives import JsonValue, derived_id
from .snapshot import Run, Task
from .states import COMPLETED, PENDING, RUN

INTERNAL = "conductor"
"""The provider of events that stay in this server."""
NAMED = re.compile(r"\$(?:\.[A-Za-z_$][\w$]*(?![\w$]|\s*\()|\[\d+\]|\['[^']*'\]|\[\"[^\"]*\"\])+")
STEP = re.compile(r"\.([A-Za-z_$][\w$]*)|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
MAX_SEEN = 50
MAX_VALUE_LENGTH = 500


def event_name(sink: str, workflow: str, ref: str) -> str:
    """Return the name of the event for a sink (execution §8.15); events of this server contain the workflow's name."""
    if sink == INTERNAL:
        return f"{INTERNAL}:{workflow}:{ref}"
    if is_internal(sink):
        return f"{INTERNAL}:{workflow}:{sink.partition(':')[2]}"
    return sink


def is_internal(sink: str) -> bool:
    return sink.partition(":")[0] == INTERNAL


def run_event_facts(run: Run) -> dict[str, Any]:
    """Return the fields about the run that every event contains."""
    return {
        "workflowInstanceId": run.id,
        "workflowType": run.definition.name,
        "workflowVersion": run.definition.version,
        "correlationId": run.correlation_id or None,
        "taskToDomain": dict(run.domains),
    }


def expand_json_texts(value: JsonValue) -> Any:
    """Return the value with each text that is JSON parsed, not recursively."""
    if isinstance(value, str):
        try:
            return json.loads(value, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return value
    if isinstance(value, dict):
        return {name: expand_json_texts(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [expand_json_texts(inner) for inner in value]
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def is_true(value: object) -> bool:
    """Return True if the result of a condition lets the event pass: true, or a number above zero."""
    return value is True or (isinstance(value, int | float) and value > 0)


def observed_values(condition: str, payload: Any, language: str = "javascript") -> dict[str, Any]:
    """Return the payload values that a condition names, by their path; long values are truncated."""
    if language == "python":
        read = [name for name in script_names(condition) if name in payload] if isinstance(payload, dict) else []
        return {name: _shorten(payload[name]) for name in read[:MAX_SEEN]}
    named = dict.fromkeys(match[0] for match in NAMED.finditer(condition))
    return {place: _shorten(_value_at(place, payload)) for place in list(named)[:MAX_SEEN]}


def _value_at(place: str, value: JsonValue) -> Any:
    for name, index, single, double in STEP.findall(place):
        if index and isinstance(value, list):
            value = value[int(index)] if int(index) < len(value) else None
        elif isinstance(value, dict):
            value = value.get(name or single or double or index)
        else:
            return None
    return value


def _shorten(value: Any) -> Any:
    if isinstance(value, dict | list):
        text = json.dumps(value, default=str)
        return value if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"
    return f"{value[:MAX_VALUE_LENGTH]}…" if isinstance(value, str) and len(value) > MAX_VALUE_LENGTH else value


def resolve_event_template(template: JsonValue, payload: JsonValue, max_bytes: int) -> Any:
    """Return the template with each `${field.path}` replaced by the value in the payload, or null.

    Raises:
        PayloadOverLimit: when more than `max_bytes` would be inserted.
    """
    return resolve_template(template, _payload_scope(payload), max_bytes, "The input of the action")


def _payload_scope(payload: JsonValue) -> Callable[[str, str], Any]:
    fields = payload if isinstance(payload, dict) else {}

    def find(root: str, key: str) -> Any:
        value = fields.get(root)
        if not key:
            return value
        return value.get(key, MISSING) if isinstance(value, dict) else MISSING

    return find


Paths = tuple[str, ...]


def parse_matches(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the condition in a task's input: its `matches`, or entries whose names begin with `$`.

    The JavaScript SDK writes the entries beside the other inputs.

    Raises:
        ValueError: when `matches` is not an object.
    """
    matches = inputs.get("matches")
    if matches is not None and not isinstance(matches, Mapping):
        raise ValueError("'matches' must be an object that maps JSONPaths of the payload to expected values.")
    return {**{name: value for name, value in inputs.items() if name.startswith("$")}, **(matches or {})}


def path_error(path: str) -> str:
    """Return why this is not a JSONPath into a payload, or "" if it is one."""
    if not path.startswith("$"):
        return "a path must begin with $, such as $['event']['type']"
    try:
        compile_path(path)
    except BadPath as error:
        return str(error)
    return ""


def match_paths(matches: Mapping[str, Any]) -> Paths:
    """Return the paths of a condition in a fixed order."""
    return tuple(sorted(matches))


def match_digest(matches: Mapping[str, Any]) -> str:
    """Return the digest under which a task with this condition is stored."""
    paths = match_paths(matches)
    return _digest(paths, [matches[path] for path in paths])


def payload_digest(payload: JsonValue, paths: Paths) -> str | None:
    """Return the digest of the payload's values at the paths; None if it lacks one of them."""
    found = [compile_path(path).find(payload) for path in paths]
    return None if any(value is ABSENT for value in found) else _digest(paths, found)


def _digest(paths: Paths, values: Sequence[Any]) -> str:
    text = json.dumps([paths, [_comparable(value) for value in values]], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _comparable(value: JsonValue) -> Any:
    """Return the value with whole floats as integers, because 1 and 1.0 are the same number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _comparable(inner) for name, inner in value.items()}
    return [_comparable(inner) for inner in value] if isinstance(value, list) else value


STATE, STATUS, TASK = "state", "status", "task"
"""Subjects of events whose destination is a setting of the server."""
STATUS_EVENTS = {
    "pause": "PAUSED",
    "resume": "RESUMED",
    "retry": "RETRIED",
    "rerun": "RERAN",
    "restart": "RESTARTED",
    "reopen": "RETRIED",
    "complete": "COMPLETED",
}
"""Names of run events for listeners; every other final status is reported as TERMINATED."""
STATES = {
    "claim": "onStart",
    "complete": "onSuccess",
    "fail": "onFailed",
    "fail_for_good": "onFailed",
    "expire": "onFailed",
    "cancel": "onCancelled",
}
"""Names of attempt events in the `onStateChange` of a step."""


def listener_events(before: Run, effects: Iterable[Effect], ctx: DecisionContext, now: int) -> list[Effect]:
    """Return a PublishEvent effect for each subscribed change.

    Raises:
        DataRequired: when a payload template needs data that is not loaded.
    """
    events: list[Effect] = []
    publishes_task_events = before.definition.publishes_task_events
    if not (publishes_task_events or _is_listened_to(before) or _has_state_change_events(ctx.run)):
        return events
    builder = SnapshotBuilder(before)
    if before.revision == 0 and _is_listened_to(before):
        events.append(_run_status_event(before, before.status, "STARTED", ctx, now, len(events)))
    for effect in effects:
        key = task_key_of(effect) if publishes_task_events else None
        was = _status_of(builder.tasks.get(key)) if key else ""
        effect.apply(builder)
        if key and (task := builder.tasks.get(key)) is not None and _status_of(task) != was:
            events += _task_status(task, ctx, now, len(events))
        if isinstance(effect, TransitionRun) and _is_listened_to(before):
            status = builder.get("status")
            for name in _status_events(effect.event, status):
                events.append(_run_status_event(ctx.run, status, name, ctx, now, len(events)))
        for key, state in _published_states_of(effect):
            events += _state_change_events(builder.tasks[key], state, ctx, now, len(events))
    return events


def started_command(attempt_id: str) -> Command:
    """Return the command that publishes the claim of an attempt. Claims themselves need no decision."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if task := run.task_of_attempt(attempt_id):
            yield from _state_change_events(task, "onStart", ctx, now, 0)
            if run.definition.publishes_task_events:
                yield from _task_status(task, ctx, now, 1)

    return command


def publishes_start(step: Step, run: Run) -> bool:
    return "onStart" in _published_states(step) or (run.definition.publishes_task_events and _is_published(step))


def _is_published(step: Step) -> bool:
    """Return True unless the task definition disables its status events (`taskStatusListenerEnabled`)."""
    definition = step.document.get("taskDefinition")
    return not isinstance(definition, dict) or definition.get("taskStatusListenerEnabled") is not False


def _status_of(task: Task | None) -> str:
    return conductor_status(task.attempt.status, task.status) if task else ""


def _task_status(task: Task, ctx: DecisionContext, now: int, number: int) -> Iterator[PublishEvent]:
    """Yield the task's status for the listener, without payloads."""
    if not _is_published(task.step):
        return
    run, attempt = ctx.run, task.attempt
    name = task.step.name
    payload = {
        "event": "TASK_STATUS",
        "taskId": attempt.id,
        "taskType": conductor_task_type(task.step.type, name),
        "taskDefName": name,
        "referenceTaskName": str(task.key),
        "status": _status_of(task),
        **run_event_facts(run),
        "retryCount": attempt.number,
        "workerId": attempt.worker or None,
        "domain": attempt.domain or None,
        "reasonForIncompletion": attempt.reason[:CONDUCTOR_LENGTH] or None,
        "scheduledTime": attempt.scheduled_at,
        "startTime": attempt.started_at or 0,
        "updateTime": now,
        "endTime": attempt.ended_at or 0,
    }
    yield PublishEvent("", _event_id(run, now, attempt.id, TASK, number), payload, about=TASK)


def _published_states(step: Step) -> frozenset[str]:
    """Return the states of a step that are published (`onStateChange`)."""
    written = step.document.get("onStateChange") or {}
    return frozenset(name.strip() for names in written for name in names.split(","))


def _is_listened_to(run: Run) -> bool:
    return bool(run.definition.document.get("workflowStatusListenerEnabled"))


def _has_state_change_events(after: Run) -> bool:
    touched = (after.tasks[key] for key in after.touched if key in after.tasks)
    return any(task.step.document.get("onStateChange") for task in touched)


def _status_events(event: str, status: str) -> tuple[str, ...]:
    if status in RUN.final:
        return STATUS_EVENTS.get(event, "TERMINATED"), "FINALIZED"
    return (STATUS_EVENTS[event],) if event in STATUS_EVENTS else ()


def _run_status_event(run: Run, status: str, event: str, ctx: DecisionContext, now: int, number: int) -> PublishEvent:
    resolved = ctx.resolve(run.definition.document.get("workflowStatusListenerSink") or "")
    sink = field_text(resolved)
    if is_internal(sink):
        sink = event_name(sink, run.definition.name, STATUS)
    return PublishEvent(
        sink, _event_id(run, now, STATUS, number), _run_summary(run, status, event, ctx, now), about=STATUS
    )


def _run_summary(run: Run, status: str, event: str, ctx: DecisionContext, now: int) -> dict[str, Any]:
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
    if not written or state not in _published_states(task.step):
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
