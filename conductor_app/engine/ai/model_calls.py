"""The journal of calls of models: one row per paid call."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from ... import clock, randomness
from ...models import ModelCall, Run
from ...models.claimed_attempts import ClaimedAttempt
from .integration_settings import ModelSettings
from .usage import record_usage


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of a call."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


def begin_call(attempt: ClaimedAttempt, settings: ModelSettings, request_key: str, prompt: str = "") -> ModelCall:
    """Return a new call, or the stored one with a reply of the same request."""
    stored = ModelCall.objects.filter(request_key=request_key, status="REPLIED", reply__isnull=False).first()
    if stored is not None:
        return stored
    return ModelCall.objects.create(
        id=randomness.random_hex(),
        request_key=request_key,
        run_id=attempt.run_id,
        task_id=attempt.task_id,
        attempt_id=attempt.id,
        reference=attempt.task.ref,
        task_type=attempt.task.type,
        definition=attempt.run.name,
        version=attempt.run.version,
        caller=Run.objects.values_list("started_by", flat=True).get(pk=attempt.run_id),
        integration=settings.integration,
        model=settings.model,
        prompt=prompt,
        status="STARTED",
        started_at=clock.now(),
    )


def save_reply(call: ModelCall, reply: dict[str, Any], usage: Usage) -> None:
    """Save the reply of a call and what it used."""
    with transaction.atomic():
        call.status, call.reply, call.ended_at = "REPLIED", reply, clock.now()
        call.prompt_tokens, call.completion_tokens = usage.prompt_tokens, usage.completion_tokens
        call.save()
        record_usage(call)


def fail_call(call: ModelCall, error: str) -> None:
    """Save the failure of a call."""
    with transaction.atomic():
        call.status, call.error, call.ended_at = "FAILED", error, clock.now()
        call.save()
        record_usage(call)
