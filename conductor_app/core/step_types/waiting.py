"""Steps that wait: WAIT, WAIT_FOR_WEBHOOK, HUMAN, YIELD, PULL_WORKFLOW_MESSAGES."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

from ..data_requests import InboxMessages
from ..decision_context import DecisionContext
from ..definition import Document, Key, Step
from ..effects import AwaitWebhook, ConsumeMessages, Effect, ResolveTask, TransitionAttempt
from ..errors import StepRefused
from ..events import match_digest, match_paths, parse_matches, path_error
from ..expressions import quote_value
from ..human_tasks import ANSWER_SCHEMA_KEY, APPROVAL_SCHEMA, last_assignment_ends_at, parse_question
from ..primitives import JsonValue
from ..schemas import LONG, TEXT
from ..snapshot import NEVER, Run, Task, TaskState
from .base import (
    StepType,
    complete_task,
    engine_held_task,
    gettext_noop,
    input_member,
    is_expression,
    resolve_inputs,
    step_of,
    whole_number,
)

SPAN = re.compile(
    r"^\s*(?:(\d+)\s*(?:days|day|d))?\s*(?:(\d+)\s*(?:hours|hour|hrs|hr|h))?\s*(?:(\d+)\s*(?:minutes|minute|mins|min|m))?"
    r"\s*(?:(\d+)\s*(?:seconds|second|secs|sec|s))?\s*$",
    re.IGNORECASE,
)
MOMENT = re.compile(
    r"^\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2}))?)?\s*([A-Za-z+\-:\d]*)\s*$"
)
OFFSET = re.compile(r"^(?:GMT|UTC)?([+-])(\d{1,2}):?(\d{2})?$", re.IGNORECASE)
ZONES = {
    "": 0,
    "Z": 0,
    "UTC": 0,
    "GMT": 0,
    "PST": -8,
    "PDT": -7,
    "EST": -5,
    "EDT": -4,
    "CST": -6,
    "CDT": -5,
    "MST": -7,
    "MDT": -6,
    "CET": 1,
    "CEST": 2,
    "IST": 5.5,
    "JST": 9,
}


class Wait(StepType):
    """Completes at its time, or earlier when a report completes it (execution §8.13)."""

    type = "WAIT"
    label = gettext_noop("Wait")
    icon = "wait"
    shows_isolation_group = True
    is_forked_by_type = True
    is_completed_externally = True
    summary = gettext_noop("Continue after a duration, at a time or on a signal")
    search_words = gettext_noop("delay sleep timer pause")
    sample = (step_of(type, "wait", inputParameters={"duration": "1 minute"}),)
    members = (
        input_member("duration", gettext_noop("Duration"), help=gettext_noop("For example: 2 hours 30 minutes")),
        input_member("until", gettext_noop("Until"), help=gettext_noop("For example: 2027-01-31 12:00 CET")),
    )

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        end = _wait_ends_at(inputs, now)
        if ctx.input_override(key) is None:
            end = _previous_end(ctx.run, key) or end
        yield engine_held_task(step, key, ctx.run, now, input=inputs, output={}, ends_at=end)

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if task.attempt.ends_at <= now:
            yield from complete_task(task, now, {})

    def check(self, step: Document, template: Document) -> Iterator[str]:
        inputs = step["inputParameters"]
        duration, until = inputs.get("duration") or "", _until_of(inputs) or ""
        if duration and until:
            yield "Both 'duration' and 'until' specified. Please provide only one input"
        for value, parse in ((duration, parse_duration), (until, parse_timestamp)):
            try:
                if value and not is_expression(value):
                    parse(value)
            except StepRefused as refused:
                yield refused.message

    def needs_simulated_result(self, step: Document) -> bool:
        parameters = step.get("inputParameters")
        inputs = parameters if isinstance(parameters, Mapping) else {}
        return not (inputs.get("duration") or _until_of(inputs))


def _previous_end(run: Run, key: Key) -> int | None:
    """Return the end of the attempt that a retry repeats: its timer continues, while that of a rerun begins again.

    None if there is no such attempt, or if it only waited for a report.
    """
    task = None if key in run.identities else run.tasks.get(key)
    return None if task is None or task.attempt.ends_at == NEVER else task.attempt.ends_at


def _wait_ends_at(inputs: dict[str, Any], now: int) -> int:
    """Return the time at which the wait ends, in epoch milliseconds; NEVER if it waits for a report."""
    duration, until = inputs.get("duration"), _until_of(inputs)
    if duration not in (None, "") and until not in (None, ""):
        raise StepRefused("Set 'duration' or 'until' of a WAIT, not both.")
    if duration not in (None, ""):
        return now + parse_duration(duration)
    return NEVER if until in (None, "") else parse_timestamp(until)


def _until_of(inputs: Mapping[str, Any]) -> Any:
    """Return the input `until`, or `wait_until`, which the class `WaitTask` of the Python SDK writes in its place."""
    until = inputs.get("until")
    return inputs.get("wait_until") if until in (None, "") else until


def parse_duration(text: JsonValue) -> int:
    """Return a duration such as `2 days 3 hours 5m 10 secs` in milliseconds."""
    found = SPAN.match(str(text))
    if not found or not any(found.groups()):
        raise StepRefused(
            f"Invalid duration {quote_value(text)}. Use the format '2 days 3 hours 5 minutes 10 seconds'."
        )
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return min(((days * 24 + hours) * 60 + minutes) * 60 + seconds, 10**11) * 1000


def parse_timestamp(text: Any) -> int:
    """Return a timestamp such as `2026-02-28 14:30 GMT+01:00` in epoch milliseconds. The default zone is UTC."""
    found = MOMENT.match(str(text))
    if not found:
        raise StepRefused(f"Invalid timestamp {quote_value(text)}. Use the format '2026-02-28 14:30 GMT+01:00'.")
    *parts, zone = found.groups()
    year, month, day, hour, minute, second = (int(part or 0) for part in parts)
    try:
        first = datetime(year, month, 1, tzinfo=_zone(zone, text))
        exact = first + timedelta(days=day - 1, hours=hour, minutes=minute, seconds=second)
    except (ValueError, OverflowError):
        raise StepRefused(f"The timestamp {quote_value(text)} does not exist.") from None
    return int(exact.astimezone(UTC).timestamp() * 1000)


def _zone(name: str, text: JsonValue) -> timezone:
    if name.upper() in ZONES:
        return timezone(timedelta(hours=ZONES[name.upper()]))
    found = OFFSET.match(name)
    if not found:
        raise StepRefused(f"Invalid time zone in {quote_value(text)}. Use the format GMT+01:00, +0100 or UTC.")
    sign, hours, minutes = found.groups()
    return timezone((1 if sign == "+" else -1) * timedelta(hours=int(hours), minutes=int(minutes or 0)))


class HeldStep(StepType):
    """Stays open until its result comes from outside of the engine."""

    is_forked_by_type = True
    result_comes_from_outside = True
    is_completed_externally = True


class WaitForWebhook(HeldStep):
    """Stays open until a webhook with this workflow as a receiver gets a payload with all values in `matches`.

    The output is the payload. A task update or a signal completes the task as well.
    """

    type = "WAIT_FOR_WEBHOOK"
    label = gettext_noop("Wait for a webhook")
    icon = "message"

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        try:
            matches = parse_matches(inputs)
        except ValueError as error:
            raise StepRefused(str(error)) from None
        for path in matches:
            if problem := path_error(path):
                raise StepRefused(f"Invalid path {quote_value(path)} in 'matches': {problem}.")
        task = engine_held_task(step, key, ctx.run, now, input=inputs, output={})
        yield task
        yield AwaitWebhook(task.task.attempt.id, match_paths(matches), match_digest(matches))


UNANSWERED_REASON = "The last assignment expired before the task was completed."


class Human(HeldStep):
    """Stays open until a person, a client or a worker reports on it (execution §8.14)."""

    type = "HUMAN"
    label = gettext_noop("Human task")
    icon = "human"
    summary = gettext_noop("A person answers a question or fills in a form")
    search_words = gettext_noop("approval approve manual person user review form")
    sample = (
        step_of(
            type,
            "approval",
            inputParameters={
                ANSWER_SCHEMA_KEY: {"displayName": "Approval", "question": "", "jsonSchema": APPROVAL_SCHEMA}
            },
        ),
    )
    members = (
        input_member(f"{ANSWER_SCHEMA_KEY}.displayName", gettext_noop("Title"), TEXT, options=""),
        input_member(f"{ANSWER_SCHEMA_KEY}.question", gettext_noop("Question"), LONG, options=""),
    )

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        question = parse_question(inputs)
        end = last_assignment_ends_at(question.assignees, now) if question.terminates else None
        yield engine_held_task(step, key, ctx.run, now, input=inputs, output={}, ends_at=NEVER if end is None else end)

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if task.attempt.is_open and task.attempt.ends_at <= now:
            yield TransitionAttempt(task.key, "expire", now, {"reason": UNANSWERED_REASON})
            yield ResolveTask(task.key, "time_out")


class Yield(HeldStep):
    """Stays open until a signal or a task update completes it (Orkes' step type)."""

    type = "YIELD"
    label = gettext_noop("Yield")
    icon = "wait"

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        yield engine_held_task(step, key, ctx.run, now, input=inputs, output={})


MAX_AT_ONCE = 100


class PullState(TaskState, total=False):
    """State of a pull. `takes`: maximum number of messages. `blocks`: wait for a message if there is none."""

    takes: int
    blocks: bool


class PullWorkflowMessages(StepType):
    """Completes with the oldest messages; without any, it waits if it is blocking (execution §8.23).

    Waiting tasks take turns, the earliest first. Each receives the messages that the one before it left.
    """

    type = "PULL_WORKFLOW_MESSAGES"
    label = gettext_noop("Receive messages")
    icon = "message"
    output_sample = {"messages": [{}], "count": 1}
    result_comes_from_outside = True
    is_completed_externally = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        blocks = str(inputs.get("blocking", True)).lower() != "false"
        step_state: PullState = {"takes": batch_size(inputs.get("batchSize")), "blocks": blocks}
        yield engine_held_task(step, key, ctx.run, now, input=inputs, output={}, step_state=step_state)

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        run, state = ctx.run, cast(PullState, task.step_state)
        if not run.inbox:
            if not state["blocks"]:
                yield from complete_task(task, now, {"messages": [], "count": 0})
            return
        first = min(run.tasks_of_type(self.type), key=lambda other: other.seq)
        if first.key != task.key:
            return
        batch = ctx.require(InboxMessages(state["takes"], run.inbox_taken))
        yield ConsumeMessages(batch.up_to, batch.left)
        if batch.messages:
            messages = [dict(message) for message in batch.messages]
            yield from complete_task(task, now, {"messages": messages, "count": len(messages)})


def batch_size(value: JsonValue) -> int:
    """Return the maximum number of messages to consume; one if the input does not set it."""
    number = whole_number(value)
    return 1 if number is None else min(max(number, 1), MAX_AT_ONCE)
