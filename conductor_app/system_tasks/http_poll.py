"""HTTP_POLL tasks: one request, repeated until its reply meets a condition."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..core.step_types.worker_tasks import HttpPollStep
from ..scripts.pool import ScriptsUnavailable, evaluate
from .http import HttpLimits, HttpTransport, RequestFailed, configured_limits
from .registry import BuiltInWorker, WorkResult

STRATEGIES = {
    "FIXED": lambda polls: 1,
    "LINEAR_BACKOFF": lambda polls: polls,
    "EXPONENTIAL_BACKOFF": lambda polls: 2 ** min(polls - 1, 32),
}
"""The factor of the interval after a number of polls, by strategy."""
DEFAULT_INTERVAL = 60
MAX_INTERVAL = 86_400


class InvalidPollInput(Exception):
    """The input of the task does not describe a valid poll."""


class HttpPoll(BuiltInWorker):
    """Sends the request once per claim, and releases the attempt until the next poll, so that no thread waits."""

    type = HttpPollStep.type

    def __init__(self, limits: Callable[[], HttpLimits] = configured_limits) -> None:
        self._transport = HttpTransport(limits)

    def perform(self, inputs: dict[str, Any]) -> WorkResult:
        """Poll for the first time."""
        return self.perform_again(inputs, 1)

    def perform_again(self, inputs: dict[str, Any], polls: int) -> WorkResult:
        """Poll once. A reply that meets the condition completes the task; any other becomes its current output."""
        try:
            policy = parse_policy(inputs)
            outcome = self._transport.reply_to(inputs).outcome
        except InvalidPollInput as error:
            return WorkResult("FAILED_WITH_TERMINAL_ERROR", {}, str(error))
        except RequestFailed as failure:
            outcome = failure.outcome
            if not failure.is_retryable:
                return WorkResult(outcome.status, outcome.output | {"polls": polls}, outcome.reason)
        return schedule_next_poll(
            policy, inputs, WorkResult(outcome.status, outcome.output | {"polls": polls}, outcome.reason)
        )


@dataclass(frozen=True)
class PollPolicy:
    """The policy of a poll. `interval`: in seconds. `most`: the maximum number of polls, 0 for no limit."""

    condition: str
    interval: float
    strategy: str
    most: int

    def seconds(self, polls: int) -> int:
        """Return the seconds to wait after a number of polls."""
        return math.ceil(min(self.interval * STRATEGIES[self.strategy](polls), MAX_INTERVAL))


def parse_policy(inputs: dict[str, Any]) -> PollPolicy:
    """Return the policy in the input, at its top level or in `http_request`.

    Raises:
        InvalidPollInput: when it is invalid.
    """
    request = inputs.get("http_request")
    options = {**(request if isinstance(request, dict) else {}), **inputs}
    condition, strategy = options.get("terminationCondition"), options.get("pollingStrategy") or "FIXED"
    if condition is not None and not isinstance(condition, str):
        raise InvalidPollInput("terminationCondition must be text: a script such as $.output.response.body.done")
    if not isinstance(strategy, str) or strategy.upper() not in STRATEGIES:
        raise InvalidPollInput(f"pollingStrategy must be one of {', '.join(STRATEGIES)}")
    interval = parse_number(options, "pollingInterval", DEFAULT_INTERVAL)
    return PollPolicy(
        (condition or "").strip(), max(interval, 1), strategy.upper(), int(parse_number(options, "maxPollCount", 0))
    )


def parse_number(options: dict[str, Any], name: str, default: float) -> float:
    """Return an option as a number of at least zero.

    Raises:
        InvalidPollInput: when the option is not such a number.
    """
    value = options.get(name)
    try:
        number = default if value in (None, "") else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise InvalidPollInput(f"{name} must be a number of at least 0, not {value!r:.100}")
    return number


def schedule_next_poll(policy: PollPolicy, inputs: dict[str, Any], reply: WorkResult) -> WorkResult:
    """Return the result of a reply: completed, in progress until the next poll, or failed.

    An error reply can complete the task only if there is a condition.
    """
    output, polls, is_refusal = reply.output, reply.output["polls"], reply.status == "FAILED"
    try:
        is_met, error = (
            is_condition_met(policy.condition, inputs, output) if policy.condition or not is_refusal else (False, "")
        )
    except ScriptsUnavailable:
        # No helper process was available. The next poll evaluates the condition again.
        is_met, error = False, ""
    if error and not is_refusal:
        reason = f"The terminationCondition failed: {error}"
        return WorkResult("FAILED_WITH_TERMINAL_ERROR", output, reason)
    if is_met:
        return WorkResult("COMPLETED", output)
    if policy.most and polls >= policy.most:
        last = f" The last reply: {reply.reason}" if is_refusal else ""
        return WorkResult("FAILED", output, f"The terminationCondition did not become true within {polls} polls.{last}")
    return WorkResult("IN_PROGRESS", output, reply.reason, policy.seconds(polls))


def is_condition_met(condition: str, inputs: dict[str, Any], output: dict[str, Any]) -> tuple[bool, str]:
    """Return True if the reply meets the condition, and an error message. An empty condition is always met."""
    if not condition:
        return True, ""
    answer = evaluate(
        "javascript",
        condition,
        condition_scope(inputs, output),
        # A worker does not know the definition of its task, but most definitions have conditions of their own.
        key=f"condition {condition}",
    )
    if answer.error:
        return False, answer.error
    is_number = isinstance(answer.value, int | float)
    return answer.value is True or (is_number and answer.value > 0), ""


def condition_scope(inputs: dict[str, Any], output: dict[str, Any]) -> dict[str, Any]:
    """Return the scope of the condition as `$`.

    It has the output of the task as `output` and its input as `input`. The parts of the reply, the fields of its body,
    and the fields of the input are also available at the top level. In an error reply, the body is text.
    """
    response = output["response"]
    parts = response if isinstance(response, dict) else {"statusCode": output.get("statusCode"), "body": response}
    fields = parts["body"] if isinstance(parts["body"], dict) else {}
    return {**inputs, **fields, **parts, "input": inputs, "output": {**parts, **output}}
