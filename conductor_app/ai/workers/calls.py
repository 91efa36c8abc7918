"""Paid calls of models through the journal: each is made once per attempt, also if the process ends in between.

A budget reserves what a request may use at most while its call is open.
"""

import json
import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any, NamedTuple, TypeVar

from django.db import connections

from ...core.errors import RequestRefused
from ...core.expressions import quote_value
from ...core.primitives import JsonValue
from ...db.transient_errors import describe_transient, discard_broken_connection, is_transient
from ...settings import conf
from ...system_tasks.cancellation import CANCELED, current_cancellation
from ...system_tasks.network_guard import Deadline
from ...system_tasks.registry import BuiltInWorker, WorkResult
from ...tasks.commands.pollers import release_connection
from ...tasks.commands.reports import add_logs, renew_lease
from ...tasks.secrets import redact_work, secret_names
from ...tasks.store import ClaimedAttempt
from ...utils import clock
from ..commands.budgets import CallHeld, begin_call
from ..commands.calls import (
    REPLIED,
    Usage,
    call_key,
    discard_replies,
    estimate_call,
    fail_call,
    has_lost_call,
    lose_calls_of_task,
    save_reply,
)
from ..commands.integrations import ModelSettings, model_settings
from ..commands.prompts import prompt_text
from . import messages

MESSAGE_TOKENS = 16
"""The tokens for the role and the boundaries of a message or a tool."""
IMAGE_TOKENS = 5_000
"""The tokens of an image, more than providers count for the largest."""
AUDIO_BYTES = 50
"""The bytes of audio per token. Providers count 10 tokens a second, and speech has at least 1,000 bytes a second."""
LINKED_DOCUMENT_TOKENS = 200_000
"""The tokens of a document that the provider loads: the usual limit of a request."""
log = logging.getLogger(__name__)
WRITE_SECONDS = 1.0
STORING_SECONDS = 600.0
"""The time after which a reply that cannot be stored is lost."""
MAX_PAUSE_SECONDS = 15.0
ResultT = TypeVar("ResultT")
MAX_CLAIMS = 100
"""The number of claims of an attempt after which it fails instead of waiting for the provider again."""
MAX_PROMPT_NAME = 255
TASK_ERRORS = (messages.InputRejected, RequestRefused, messages.CallFailed)
"""The errors that `failed_result` turns into the result of a task."""
LOST = (
    "The process ended after it had sent the request, and its reply was lost: the call may have been paid. "
    "repeatLostCalls is false, so it is not sent again. Retry the task to call the model again."
)


class TokenEstimate(NamedTuple):
    """The tokens that a call may use."""

    prompt: int
    completion: int = 0


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
        return replace(result, reason=messages.without_keys(result.reason, settings))

    def call(self, attempt: ClaimedAttempt, inputs: dict[str, Any], settings: ModelSettings) -> WorkResult:
        """Make the call and return the result of the task.

        Raises:
            CallFailed: when there is no reply.
            CallHeld: when a budget has no room.
        """
        raise NotImplementedError

    def finish(self, attempt: ClaimedAttempt, result: WorkResult) -> None:
        """Delete the stored replies of the task, unless it waits, or failed because one of its calls has no reply.

        A retry after such a failure uses the replies of the other calls.
        """
        if result.status != "IN_PROGRESS" and not isinstance(result, Unanswered):
            discard_replies(attempt.task_id)


def read_settings(inputs: Mapping[str, Any]) -> ModelSettings:
    """Return the settings of the model that the input names.

    Raises:
        InputRejected: when a name is missing.
        UnknownIntegration: when there is no such integration or model.
    """
    for name in ("llmProvider", "model"):
        if not isinstance(inputs.get(name), str) or not inputs[name] or "\0" in inputs[name]:
            raise messages.InputRejected(f"{name} not specified: {quote_value(inputs.get(name), 60)}")
    return model_settings(inputs["llmProvider"], inputs["model"])


def named_prompt(inputs: Mapping[str, Any], given: JsonValue, settings: ModelSettings) -> tuple[str, str]:
    """Return the text of a prompt, and its name if `given` is the name of one; otherwise `given` is the text.

    Raises:
        PromptRefused: when the prompt may not be used with this model.
    """
    text = messages.as_text(given) if given is not None else ""
    if not text or len(text) > MAX_PROMPT_NAME or "\0" in text:
        return text, ""
    version = messages.whole_number(inputs, "promptVersion")
    found = prompt_text(text, version, settings.integration, settings.model)
    return (text, "") if found is None else (found, text)


def failed_result(failure: messages.InputRejected | RequestRefused | messages.CallFailed, claims: int) -> WorkResult:
    """Return the result of a task whose input is invalid (a terminal failure, as in Conductor), or without a reply.

    Without a reply, the attempt waits if the provider says so; otherwise it fails.

    Raises:
        Busy: when that is the failure: it says nothing about the task.
    """
    if is_transient(failure):
        raise failure
    if not isinstance(failure, messages.CallFailed):
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
    content: JsonValue,
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
    key = call_key(attempt, [settings.integration, settings.model, content])
    if not repeats_lost_calls(attempt) and has_lost_call(attempt, key):
        lose_calls_of_task(attempt, key)
        raise messages.InputRejected(LOST)
    estimate = estimate_call(settings, tokens.prompt, tokens.completion)
    call = begin_call(attempt, settings, key, estimate, prompt)
    if call.status == REPLIED:
        return dict(call.reply or {})
    # A pool has fewer connections than its process has threads, and a call takes minutes.
    release_connection()
    with renewed_lease(attempt):
        try:
            reply, usage = _send_within_deadline(send, key.request, settings)
        except MemoryError:
            # It is not known whether the request was sent: the call stays open, and counts as lost at the next claim.
            raise
        except Exception as error:
            reason = (
                str(error) if isinstance(error, messages.CallFailed | messages.InputRejected) else type(error).__name__
            )

            def store_failure() -> None:
                fail_call(call, messages.without_keys(redact_work(attempt, reason), settings))

            store_outcome(store_failure)
            raise

        def store_reply() -> dict[str, Any]:
            redacted = redact_work(attempt, reply, with_masked=False)
            save_reply(call, redacted, usage)
            return redacted

        return store_outcome(store_reply)


def repeats_lost_calls(attempt: ClaimedAttempt) -> bool:
    """Return False if the input says `repeatLostCalls: false`."""
    given = attempt.input
    return messages.boolean({"repeatLostCalls": True, **(given if isinstance(given, dict) else {})}, "repeatLostCalls")


def _send_within_deadline(
    send: Callable[[str], tuple[dict[str, Any], Usage]], request_key: str, settings: ModelSettings
) -> tuple[dict[str, Any], Usage]:
    with Deadline(conf.ai_task_seconds) as deadline:
        try:
            return send(request_key)
        except messages.CallFailed:
            if current_cancellation().is_canceled:
                raise messages.CallFailed(CANCELED) from None
            if deadline.has_passed:
                raise messages.CallFailed(
                    messages.TOO_LONG.format(settings.integration, conf.ai_task_seconds)
                ) from None
            raise


def store_outcome(store: Callable[[], ResultT], seconds: float = STORING_SECONDS) -> ResultT:
    """Return the result of `store`, which is repeated for `seconds` while it raises transient errors.

    Raises:
        Exception: the last error of `store`.
    """
    gives_up_at, pause = monotonic() + seconds, 0.0
    while True:
        try:
            return store()
        except Exception as error:
            if not is_transient(error) or monotonic() + pause > gives_up_at:
                raise
            log.warning("call_outcome_not_stored", extra={"why": describe_transient(error)})
        discard_broken_connection()
        # The first repetition follows at once: mostly the connection was lost long before.
        sleep(pause)
        pause = min(pause * 2 or 0.5, MAX_PAUSE_SECONDS)


def estimate_chat(request: messages.ChatRequest) -> TokenEstimate:
    """Return what a request may use: its maximum of output, and one token per byte of its texts.

    Tokenizers never make more tokens than bytes. Usual texts have a quarter or less.
    """
    tools = [json.dumps([tool.name, tool.description, tool.schema], ensure_ascii=False) for tool in request.tools]
    schema = [json.dumps(request.schema, ensure_ascii=False)] if request.schema else []
    prompt = sum(_message_tokens(message) for message in request.messages) + estimate_texts([*tools, *schema]).prompt
    return TokenEstimate(prompt, request.max_results * (request.max_tokens + request.thinking_tokens))


def estimate_texts(texts: Iterable[str]) -> TokenEstimate:
    """Return what the embedding of texts may use."""
    return TokenEstimate(sum(len(text.encode("utf-8", "surrogatepass")) + MESSAGE_TOKENS for text in texts))


def _message_tokens(message: messages.ChatMessage) -> int:
    calls = [json.dumps([call.id, call.name, call.arguments], ensure_ascii=False) for call in message.calls]
    outputs = [messages.as_text(call.output) for call in message.calls if message.role == "tool"]
    return estimate_texts([message.text, *calls, *outputs]).prompt + sum(map(_media_tokens, message.media))


def _media_tokens(medium: messages.Medium) -> int:
    size = len(medium.data) * 3 // 4
    if medium.kind == messages.AUDIO:
        return max(size // AUDIO_BYTES, IMAGE_TOKENS)
    if medium.kind == messages.DOCUMENT:
        return LINKED_DOCUMENT_TOKENS if medium.address else max(size, IMAGE_TOKENS)
    return IMAGE_TOKENS


class StreamedLog:
    """Writes what has arrived, at most once per second.

    The text of a task with secrets or masked values is written when it is complete: only then can they be recognized.
    """

    def __init__(self, attempt: ClaimedAttempt) -> None:
        self._attempt = attempt
        self._is_confidential = bool(secret_names(attempt.task.step_state) or attempt.masked)
        self._parts: list[str] = []
        self._written_at = monotonic()

    def add(self, text: str) -> None:
        """Add a part of the reply."""
        self._parts.append(text)
        if not self._is_confidential and monotonic() - self._written_at >= WRITE_SECONDS:
            self.write()

    def write(self) -> None:
        """Write the parts that are not written yet."""
        text = "".join(self._parts)
        if not text:
            return
        now, self._written_at = clock.now(), monotonic()
        try:
            add_logs(self._attempt.id, [(redact_work(self._attempt, text), now)], now)
        except Exception as error:
            if not is_transient(error):
                raise
            # The log only shows the progress: the paid reply must not be lost with it.
            why = describe_transient(error)
            log.warning("progress_not_written", extra={"attempt_id": self._attempt.id, "why": why})
            discard_broken_connection()
            return
        self._parts.clear()
        release_connection()


@contextmanager
def renewed_lease(attempt: ClaimedAttempt) -> Generator[None]:
    """Renew the lease at each third of its duration, for the duration of the block."""
    ended = Event()
    renewer = Thread(target=_renew_until, args=(attempt, ended), name="renews a lease", daemon=True)
    renewer.start()
    try:
        yield
    finally:
        ended.set()
        renewer.join()


def _renew_until(attempt: ClaimedAttempt, ended: Event) -> None:
    if not attempt.lease_ms:
        return
    while not ended.wait(attempt.lease_ms / 3000):
        try:
            renew_lease(attempt.run_id, attempt.id, attempt.worker, worker=attempt.worker)
        except Exception as error:
            # The next try follows within the lease.
            log.warning("lease_not_renewed", extra={"attempt_id": attempt.id, "why": type(error).__name__})
            discard_broken_connection()
        finally:
            connections.close_all()
