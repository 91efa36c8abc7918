"""HTTP_POLL tasks: the same request again and again, until its answer is as wanted."""

import math
from dataclasses import dataclass
from typing import Any

from conductor_app import conf
from conductor_app.core.step_types.http_poll import HttpPollStep
from conductor_app.scripts.pool import ScriptsUnavailable, evaluate
from conductor_app.workers.http_exchange import HttpTransport, RequestFailed, configured_limits
from conductor_app.workers.worker import BuiltInWorker, WorkResult

STRATEGIES = {
    "FIXED": lambda polls: 1,
    "LINEAR_BACKOFF": lambda polls: polls,
    "EXPONENTIAL_BACKOFF": lambda polls: 2 ** min(polls - 1, 32),
}
"""The growth of the interval after a number of polls."""
DEFAULT_INTERVAL = 60
MAX_INTERVAL = 86_400


class InvalidPollInput(Exception):
    """The input of the task does not describe a poll."""


class HttpPoll(BuiltInWorker):
    """Asks, and hands its attempt back until the next time: no thread waits, and the task's own timeout ends it."""

    type = HttpPollStep.type

    def __init__(self, limits=configured_limits) -> None:
        self._transport = HttpTransport(limits)

    def perform(self, inputs: dict[str, Any]) -> WorkResult:
        """Poll for the first time."""
        return self.perform_again(inputs, 1)

    def perform_again(self, inputs: dict[str, Any], polls: int) -> WorkResult:
        """Poll once. A reply that meets the condition completes the task; any other is its current output."""
        try:
            plan = parse_policy(inputs)
            outcome = self._transport.reply_to(inputs).outcome
        except InvalidPollInput as error:
            return WorkResult("FAILED_WITH_TERMINAL_ERROR", {}, str(error))
        except RequestFailed as failure:
            outcome = failure.outcome
            if not failure.is_retryable:
                return WorkResult(outcome.status, outcome.output | {"polls": polls}, outcome.reason)
        return schedule_next_poll(
            plan, inputs, WorkResult(outcome.status, outcome.output | {"polls": polls}, outcome.reason)
        )


@dataclass(frozen=True)
class PollPolicy:
    """The policy of a poll. `most`: the maximum number of polls, 0 for any."""

    condition: str
    interval: float
    strategy: str
    most: int

    def seconds(self, polls: int) -> int:
        """Return the seconds to wait after a number of polls."""
        return math.ceil(min(self.interval * STRATEGIES[self.strategy](polls), MAX_INTERVAL))


def parse_policy(inputs: dict[str, Any]) -> PollPolicy:
    """Return the policy in the input, beside or in `http_request`.

    Raises:
        InvalidPollInput: when it is invalid.
    """
    request = inputs.get("http_request")
    given = {**(request if isinstance(request, dict) else {}), **inputs}
    condition, strategy = given.get("terminationCondition"), given.get("pollingStrategy") or "FIXED"
    if condition is not None and not isinstance(condition, str):
        raise InvalidPollInput("terminationCondition must be text: a script such as $.output.response.body.done")
    if not isinstance(strategy, str) or strategy.upper() not in STRATEGIES:
        raise InvalidPollInput(f"pollingStrategy must be one of {', '.join(STRATEGIES)}")
    interval = parse_number(given, "pollingInterval", DEFAULT_INTERVAL)
    return PollPolicy(
        (condition or "").strip(), max(interval, 1), strategy.upper(), int(parse_number(given, "maxPollCount", 0))
    )


def parse_number(given: dict[str, Any], name: str, default: float) -> float:
    """Return a member that is a number of at least zero.

    Raises:
        InvalidPollInput: when it is not.
    """
    value = given.get(name)
    try:
        number = default if value in (None, "") else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise InvalidPollInput(f"{name} must be a number of at least 0, not {value!r:.100}")
    return number


def schedule_next_poll(plan: PollPolicy, inputs: dict[str, Any], answer: WorkResult) -> WorkResult:
    """Return the result of a reply: completed, poll again later, or failed.

    Error replies only count with a condition for them.
    """
    output, polls, is_refusal = answer.output, answer.output["polls"], answer.status == "FAILED"
    try:
        wanted, error = (
            is_condition_met(plan.condition, inputs, output) if plan.condition or not is_refusal else (False, "")
        )
    except ScriptsUnavailable:
        # No helper was available to evaluate the condition: the next poll will.
        wanted, error = False, ""
    if error and not is_refusal:
        reason = f"The terminationCondition failed: {error}"
        return WorkResult("FAILED_WITH_TERMINAL_ERROR", output, reason)
    if wanted:
        return WorkResult("COMPLETED", output)
    if plan.most and polls >= plan.most:
        last = f" The last answer: {answer.reason}" if is_refusal else ""
        return WorkResult("FAILED", output, f"The terminationCondition did not become true within {polls} polls.{last}")
    return WorkResult("IN_PROGRESS", output, answer.reason, plan.seconds(polls))


def is_condition_met(condition: str, inputs: dict[str, Any], output: dict[str, Any]) -> tuple[bool, str]:
    """Return True if the reply meets the condition, or an error message. Without a condition, every reply does."""
    if not condition:
        return True, ""
    answer = evaluate(
        "javascript", condition, condition_scope(inputs, output), conf.script_seconds, pool_size=conf.script_pool_size
    )
    if answer.error:
        return False, answer.error
    is_number = isinstance(answer.value, int | float)
    return answer.value is True or (is_number and answer.value > 0), ""


def condition_scope(inputs: dict[str, Any], output: dict[str, Any]) -> dict[str, Any]:
    """Return the scope of the condition as `$`.

    It has `output` as stored, the parts of the reply in it, and the inputs of the task. The parts of the reply and the
    fields of its body are also available without `output.response`. In an error reply, the response is text.
    """
    response = output["response"]
    parts = response if isinstance(response, dict) else {"statusCode": output.get("statusCode"), "body": response}
    fields = parts["body"] if isinstance(parts["body"], dict) else {}
    return {**inputs, **fields, **parts, "input": inputs, "output": {**parts, **output}}
