"""Paid calls through the journal: each is made once per attempt, also if the process ends in between."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from conductor_app import conf
from conductor_app.access.redaction import redact
from conductor_app.core.errors import RequestRefused
from conductor_app.core.expressions import quote_value
from conductor_app.engine.ai import model_calls
from conductor_app.engine.ai.budgets import CallHeld, begin_call
from conductor_app.engine.ai.integration_settings import ModelSettings, model_settings
from conductor_app.engine.ai.model_calls import Usage
from conductor_app.engine.ai.prompts import prompt_text
from conductor_app.engine.ai.reservations import estimate_call
from conductor_app.engine.queues.queue_lookups import release_connection
from conductor_app.models.claimed_attempts import ClaimedAttempt
from conductor_app.transient_errors import is_transient
from conductor_app.workers.ai.call_outcomes import store_outcome
from conductor_app.workers.ai.chat_request import InputRejected, boolean, whole_number
from conductor_app.workers.ai.lease_renewal import renewed_lease
from conductor_app.workers.ai.provider_errors import TOO_LONG, CallFailed, without_keys
from conductor_app.workers.ai.templating import as_text
from conductor_app.workers.ai.token_estimates import TokenEstimate
from conductor_app.workers.socket_deadline import Deadline
from conductor_app.workers.worker import BuiltInWorker, WorkResult

MAX_CLAIMS = 100
"""The number of claims of an attempt after which it fails instead of waiting for the provider again."""
MAX_PROMPT_NAME = 255
TASK_ERRORS = (InputRejected, RequestRefused, CallFailed)
"""The errors that `failed_result` turns into the result of a task."""
LOST = (
    "The process ended after it had sent the request, and its reply was lost: the call may have been paid. "
    "repeatLostCalls is false, so it is not sent again. Retry the task to call the model again."
)


@dataclass(frozen=True)
class Unanswered(WorkResult):
    """The result of a task one of whose calls has no reply."""


class ModelWorker(BuiltInWorker):
    """A worker that calls a model. Its failures are results with readable reasons."""

    def work_on(self, attempt: ClaimedAttempt) -> WorkResult | None:
        """Call the model, or use a stored reply. Returns None if the attempt was put back because of a budget."""
        settings: ModelSettings | None = None
        try:
            inputs = self.inputs_of(attempt)
            settings = read_settings(inputs)
            return self.call(attempt, inputs, settings)
        except CallHeld:
            return None
        except TASK_ERRORS as error:
            result = failed_result(error, attempt.poll_count)
        if settings is None:
            return result
        return replace(result, reason=without_keys(result.reason, settings))

    def call(self, attempt: ClaimedAttempt, inputs: dict[str, Any], settings: ModelSettings) -> WorkResult:
        """Make the call and return the result of the task.

        Raises:
            InputRejected: when the input is invalid.
            CallFailed: when there is no reply.
            CallHeld: when a budget has no room.
        """
        raise NotImplementedError

    def finish(self, attempt: ClaimedAttempt, result: WorkResult) -> None:
        """Delete the stored replies of the task, unless it waits, or failed because one of its calls has no reply.

        A retry after such a failure uses the replies of the other calls.
        """
        if result.status != "IN_PROGRESS" and not isinstance(result, Unanswered):
            model_calls.discard_replies(attempt.task_id)


def read_settings(inputs: Mapping[str, Any]) -> ModelSettings:
    """Return the settings of the model that the input names.

    Raises:
        InputRejected: when a name is missing.
        UnknownIntegration: when there is no such integration or model.
    """
    for name in ("llmProvider", "model"):
        if not isinstance(inputs.get(name), str) or not inputs[name] or "\0" in inputs[name]:
            raise InputRejected(f"{name} not specified: {quote_value(inputs.get(name), 60)}")
    return model_settings(inputs["llmProvider"], inputs["model"])


def named_prompt(inputs: Mapping[str, Any], given: Any, settings: ModelSettings) -> tuple[str, str]:
    """Return the text of a prompt, and its name if `given` is the name of one; otherwise `given` is the text.

    Raises:
        PromptRefused: when the prompt may not be used with this model.
    """
    text = as_text(given) if given is not None else ""
    if not text or len(text) > MAX_PROMPT_NAME or "\0" in text:
        return text, ""
    version = whole_number(inputs, "promptVersion")
    found = prompt_text(text, version, settings.integration, settings.model)
    return (text, "") if found is None else (found, text)


def failed_result(failure: InputRejected | RequestRefused | CallFailed, claims: int) -> WorkResult:
    """Return the result of a task whose input is invalid (a terminal failure, as in Conductor), or without a reply.

    Without a reply, the attempt waits if the provider says so; otherwise it fails.

    Raises:
        Busy: when that is the failure: it says nothing about the task.
    """
    if is_transient(failure):
        raise failure
    if not isinstance(failure, CallFailed):
        message = failure.message if isinstance(failure, RequestRefused) else str(failure)
        return WorkResult("FAILED_WITH_TERMINAL_ERROR", {}, f"Non-retryable error: {message}")
    if failure.is_final:
        return WorkResult("FAILED_WITH_TERMINAL_ERROR", {}, f"Non-retryable error: {failure.reason}")
    if failure.wait_seconds and claims < MAX_CLAIMS:
        reason = f"{failure.reason}. The provider asks to wait for {failure.wait_seconds} s."
        return WorkResult("IN_PROGRESS", {}, reason, failure.wait_seconds)
    return Unanswered("FAILED", {}, f"Task execution failed: {failure.reason}")


def paid_call(
    attempt: ClaimedAttempt,
    settings: ModelSettings,
    content: Any,
    send: Callable[[str], tuple[dict[str, Any], Usage]],
    tokens: TokenEstimate,
    prompt: str = "",
) -> dict[str, Any]:
    """Return the reply to a request, which is sent unless the journal has its reply.

    `content`: the request as JSON, without secrets; it identifies the request within the task. `send`: sends the
    request with an idempotency key. `tokens`: what the call may use. `prompt`: the name of the prompt, if the request
    uses one.

    Raises:
        CallFailed: when there is no reply.
        CallHeld: when a budget has no room.
        InputRejected: when an earlier call was lost and must not be repeated.
        OSError: when this server could not send the request.
    """
    key = model_calls.call_key(attempt, [settings.integration, settings.model, content])
    if not repeats_lost_calls(attempt) and model_calls.has_lost_call(attempt, key):
        model_calls.lose_calls_of_task(attempt, key)
        raise InputRejected(LOST)
    estimate = estimate_call(settings, tokens.prompt, tokens.completion)
    call = begin_call(attempt, settings, key, estimate, prompt)
    if call.status == model_calls.REPLIED:
        return dict(call.reply or {})
    secrets = attempt.task.step_state.get("secrets", ())
    # A pool has fewer connections than its process has threads, and a call takes minutes.
    release_connection()
    with renewed_lease(attempt):
        try:
            reply, usage = _send_within_deadline(send, key.request, settings)
        except MemoryError:
            # It is not known whether the request was sent: the call stays open, and counts as lost at the next claim.
            raise
        except Exception as error:
            reason = str(error) if isinstance(error, CallFailed | InputRejected) else type(error).__name__

            def store_failure() -> None:
                model_calls.fail_call(call, without_keys(redact(reason, secrets, tuple(attempt.masked)), settings))

            store_outcome(store_failure)
            raise

        def store_reply() -> dict[str, Any]:
            redacted = redact(reply, secrets)
            model_calls.save_reply(call, redacted, usage)
            return redacted

        return store_outcome(store_reply)


def _send_within_deadline(
    send: Callable[[str], tuple[dict[str, Any], Usage]], request_key: str, settings: ModelSettings
) -> tuple[dict[str, Any], Usage]:
    with Deadline(conf.ai_task_seconds) as deadline:
        try:
            return send(request_key)
        except CallFailed:
            if deadline.has_passed:
                raise CallFailed(TOO_LONG.format(settings.integration, conf.ai_task_seconds)) from None
            raise


def repeats_lost_calls(attempt: ClaimedAttempt) -> bool:
    """Return False if the input says `repeatLostCalls: false`."""
    given = attempt.input
    return boolean({"repeatLostCalls": True, **(given if isinstance(given, dict) else {})}, "repeatLostCalls")
