"""The journal of calls of models: a repeated attempt uses the stored reply instead of paying again.

A call is committed before its request is sent, and its reply before the attempt reports. So after the end of a process
the journal has either a reply that can be used, or a call whose outcome is unknown (LOST).
"""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from django.db import transaction

from ... import clock
from ...core.ids import derived_id
from ...models import Attempt, ModelCall, Run
from ...models.claimed_attempts import ClaimedAttempt
from ...randomness import random_hex
from ...store.rows import strip_nul
from .integration_settings import ModelSettings
from .usage import record_usage

STARTED, REPLIED, FAILED, LOST = "STARTED", "REPLIED", "FAILED", "LOST"
MAX_ERROR_LENGTH = 2_000
DAY_MS = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Usage:
    """What a reply says about its use. `first_token_ms`: the time until the first token of a streamed reply."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish_reason: str = ""
    first_token_ms: int | None = None


def request_key(attempt: ClaimedAttempt, content: Any) -> str:
    """Return the key of a request of this attempt: the same if the attempt is repeated after the end of a process.

    A retry is another attempt, and an attempt that an operator reopens has another scheduled time, so both call again.
    `content`: the request as a JSON value, without secrets.
    """
    known = [attempt.run_id, str(attempt.task), attempt.id, attempt.scheduled_at, content]
    return sha256(json.dumps(known, sort_keys=True, default=str).encode("utf-8", "surrogatepass")).hexdigest()


def has_lost_call(request_key: str) -> bool:
    """Return True if a call with this key was sent and its outcome is unknown, and no other call has a reply."""
    statuses = set(ModelCall.objects.filter(request_key=request_key).values_list("status", flat=True))
    return bool(statuses & {STARTED, LOST}) and REPLIED not in statuses


def lose_open_calls(request_key: str) -> None:
    """Record that the process which made the open calls with this key has ended before their replies."""
    with transaction.atomic():
        _lose(request_key, clock.now())


def begin_call(attempt: ClaimedAttempt, settings: ModelSettings, request_key: str, prompt: str = "") -> ModelCall:
    """Return the call to send, which is committed, or the call whose stored reply answers the request.

    `prompt`: the name of the prompt, if the request uses one.
    """
    now = clock.now()
    with transaction.atomic():
        replied = ModelCall.objects.filter(request_key=request_key, status=REPLIED, reply__isnull=False).first()
        if replied is not None:
            replied.reused_at = now
            replied.save(update_fields=["reused_at"])
            return replied
        _lose(request_key, now)
        caller = Run.objects.filter(pk=attempt.run_id).values_list("started_by", flat=True).first()
        return ModelCall.objects.create(
            id=derived_id(now, request_key, random_hex()),
            request_key=request_key,
            run_id=attempt.run_id,
            task_id=attempt.task_id,
            attempt_id=attempt.id,
            reference=str(attempt.task)[:255],
            task_type=attempt.task.step_state.get("type", attempt.task.type)[:64],
            definition=attempt.run.name,
            version=attempt.run.version,
            caller=caller or "",
            integration=settings.integration[:255],
            model=settings.model[:255],
            prompt=prompt[:255],
            status=STARTED,
            started_at=now,
        )


def save_reply(call: ModelCall, reply: dict[str, Any], usage: Usage) -> None:
    """Save the reply to a call, with its tokens and cost. `reply`: as the worker needs it, with secrets redacted."""
    call.status, call.reply, call.ended_at = REPLIED, reply, clock.now()
    call.prompt_tokens, call.completion_tokens = usage.prompt_tokens, usage.completion_tokens
    call.finish_reason, call.first_token_ms = usage.finish_reason[:32], usage.first_token_ms
    with transaction.atomic():
        call.save(
            update_fields=[
                *("status", "reply", "ended_at", "prompt_tokens", "completion_tokens", "finish_reason"),
                "first_token_ms",
            ]
        )
        record_usage(call)


def fail_call(call: ModelCall, error: str) -> None:
    """Save that a call has no reply. `error`: with secrets redacted."""
    call.status, call.error, call.ended_at = FAILED, strip_nul(error)[:MAX_ERROR_LENGTH], clock.now()
    with transaction.atomic():
        call.save(update_fields=["status", "error", "ended_at"])
        record_usage(call)


def discard_replies(attempt_id: str) -> None:
    """Delete the stored replies of an attempt that has reported. Its output has what is needed of them."""
    ModelCall.objects.filter(attempt_id=attempt_id, reply__isnull=False).update(reply=None)


def discard_unused_replies(limit: int) -> int:
    """Delete stored replies of attempts that ended without a report, a day after the reply. Returns their number."""
    old = ModelCall.objects.filter(reply__isnull=False, started_at__lt=clock.now() - DAY_MS).order_by("started_at")
    attempts = dict(old.values_list("id", "attempt_id")[:limit])
    open_attempts = set(Attempt.objects.open().filter(pk__in=attempts.values()).values_list("pk", flat=True))
    unused = [id for id, attempt_id in attempts.items() if attempt_id not in open_attempts]
    return ModelCall.objects.filter(pk__in=unused).update(reply=None)


def _lose(request_key: str, now: int) -> None:
    for call in ModelCall.objects.filter(request_key=request_key, status=STARTED).defer("reply"):
        call.status, call.ended_at = LOST, now
        call.save(update_fields=["status", "ended_at"])
        record_usage(call)
