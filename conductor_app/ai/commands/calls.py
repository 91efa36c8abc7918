"""The journal of calls of models: a repeated attempt uses the stored reply instead of paying again.

A call is committed before its request is sent, and its reply before the attempt reports. So after the end of a process
the journal has either a reply that can be used, or a call whose outcome is unknown (LOST).
"""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Q, QuerySet

from ... import clock
from ...core.ids import derived_id
from ...models import Attempt, ModelCall
from ...models.budgets import STARTED, BudgetedCall, RunLine, longest_call_ms
from ...models.claimed_attempts import ClaimedAttempt
from ...randomness import random_hex
from ...store.rows import strip_nul
from ...store.run_tree import load_run_line
from ..sweep_items import handle_each
from .reservations import Estimate, lock_budgets, release_waiting_calls
from .usage import record_usage

REPLIED, FAILED, LOST = "REPLIED", "FAILED", "LOST"
MAX_ERROR_LENGTH = 2_000
DAY_MS = 24 * 3_600_000
TRIAL = "PROMPT_TRIAL"
"""The type of task of trials on pages."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a reply says about its use. `first_token_ms`: the time until the first token of a streamed reply."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish_reason: str = ""
    first_token_ms: int | None = None


class CallKey(NamedTuple):
    """The keys of a request. `request`: of this attempt. `content`: of all attempts of the task with this request."""

    request: str
    content: str


def call_key(attempt: ClaimedAttempt, content: Any) -> CallKey:
    """Return the keys of a request: the same if the attempt is repeated after the end of a process.

    A retry is another attempt, and an attempt that an operator reopens has another scheduled time, so both have another
    key of the request. `content`: the request as a JSON value, without secrets.
    """
    of_content = _digest([attempt.run_id, str(attempt.task), content])
    return CallKey(_digest([attempt.id, attempt.scheduled_at, of_content]), of_content)


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode("utf-8", "surrogatepass")).hexdigest()


def has_lost_call(attempt: ClaimedAttempt, key: CallKey) -> bool:
    """Return True if this request was sent, its outcome is unknown, and no reply to it is stored.

    A call that an earlier attempt left open counts. A lost one does not: a person has retried the task since then.
    """
    calls = ModelCall.objects.filter(run_id=attempt.run_id, content_key=key.content)
    is_own = Q(request_key=key.request)
    if calls.filter(is_own | Q(reply__isnull=False), status=REPLIED).exists():
        return False
    return calls.filter(Q(status=STARTED) | (is_own & Q(status=LOST))).exists()


def lose_calls_of_task(attempt: ClaimedAttempt, key: CallKey) -> None:
    """Record the open calls of this task with this request as lost, because no attempt waits for them."""
    with transaction.atomic():
        for call in _open_calls(run_id=attempt.run_id, content_key=key.content):
            _lose(call)


def lose_open_calls(key: CallKey) -> None:
    """Record that the process which made the open calls with this key has ended before their replies."""
    with transaction.atomic():
        for call in _open_calls(request_key=key.request):
            _lose(call)


def _open_calls(**fields: Any) -> QuerySet[ModelCall]:
    return ModelCall.objects.filter(status=STARTED, **fields).defer("reply")


def lose_abandoned_calls(limit: int) -> int:
    """Record as lost the calls that no process can have open any more. Returns their number.

    Their attempts are not claimed again: trials on a page, and tasks of terminated runs.
    """
    before = clock.now() - 2 * longest_call_ms()
    open_calls = ModelCall.objects.filter(status=STARTED, started_at__lt=before).order_by("started_at")
    return handle_each(list(open_calls.values_list("pk", flat=True)[:limit]), _lose_abandoned)


def _lose_abandoned(call_id: str) -> None:
    with transaction.atomic():
        for call in ModelCall.objects.select_for_update().filter(pk=call_id, status=STARTED).defer("reply"):
            _lose(call)


def _lose(call: ModelCall) -> None:
    call.status, call.ended_at = LOST, clock.now()
    call.save(update_fields=["status", "ended_at"])
    _settle(call)


def use_stored_reply(attempt: ClaimedAttempt, key: CallKey) -> ModelCall | None:
    """Return the call whose stored reply answers the request, or None.

    The reply may be that of an earlier attempt of the task, which timed out or whose report was lost: a worker discards
    the replies of a task whose result it reports.
    """
    replied = ModelCall.objects.filter(
        task_id=attempt.task_id, content_key=key.content, status=REPLIED, reply__isnull=False
    )
    call = replied.order_by("-ended_at").first()
    if call is not None:
        call.reused_at = clock.now()
        call.save(update_fields=["reused_at"])
    return call


def insert_call(
    attempt: ClaimedAttempt, planned: BudgetedCall, key: CallKey, estimate: Estimate, prompt: str = ""
) -> ModelCall:
    """Insert the call of an attempt, with its reservation. The caller has checked the budgets in this transaction."""
    return _insert(
        planned,
        estimate,
        request_key=key.request,
        content_key=key.content,
        run_id=attempt.run_id,
        root_id=planned.line.root_id or attempt.run_id,
        task_id=attempt.task_id,
        attempt_id=attempt.id,
        reference=str(attempt.task)[:255],
        task_type=attempt.task.type[:64],
        definition=planned.definition[:255],
        version=attempt.run.version,
        prompt=prompt[:255],
    )


def insert_trial(planned: BudgetedCall, estimate: Estimate, prompt: str = "") -> ModelCall:
    """Insert the call of a trial on a page, which belongs to no run."""
    return _insert(planned, estimate, request_key=random_hex(), version=0, task_type=TRIAL, prompt=prompt[:255])


def _insert(planned: BudgetedCall, estimate: Estimate, *, request_key: str, **fields: Any) -> ModelCall:
    now = clock.now()
    return ModelCall.objects.create(
        id=derived_id(now, request_key, random_hex()),
        request_key=request_key,
        caller=planned.caller[:320],
        integration=planned.integration[:255],
        model=planned.model[:255],
        status=STARTED,
        reserved_cost=estimate.cost,
        reserved_tokens=estimate.tokens,
        started_at=now,
        **fields,
    )


def save_reply(call: ModelCall, reply: dict[str, Any] | None, usage: Usage) -> None:
    """Save the reply to a call, with its tokens and cost.

    `reply`: as the worker needs it, with secrets redacted; None if no other claim will need it.
    """
    call.status, call.reply, call.ended_at = REPLIED, reply, clock.now()
    call.prompt_tokens, call.completion_tokens = usage.prompt_tokens, usage.completion_tokens
    call.finish_reason, call.first_token_ms = usage.finish_reason[:32], usage.first_token_ms
    _end_call(
        call,
        *("status", "reply", "ended_at", "prompt_tokens", "completion_tokens", "finish_reason", "first_token_ms"),
    )


def fail_call(call: ModelCall, error: str) -> None:
    """Save that a call has no reply. `error`: with secrets redacted."""
    call.status, call.error, call.ended_at = FAILED, strip_nul(error)[:MAX_ERROR_LENGTH], clock.now()
    _end_call(call, "status", "error", "ended_at")


def _end_call(call: ModelCall, *fields: str) -> None:
    """Save the end of a call and count it, once: the caller repeats this if it does not know of the commit."""
    with transaction.atomic():
        rows = ModelCall.objects.filter(pk=call.pk).exclude(status=call.status)
        if rows.update(**{name: getattr(call, name) for name in fields}):
            _settle(call)


def discard_replies(task_id: str) -> None:
    """Delete the stored replies of a task that has reported its result. Its output has what is needed of them."""
    ModelCall.objects.filter(task_id=task_id, reply__isnull=False).update(reply=None)


def discard_unused_replies(limit: int) -> int:
    """Delete stored replies of attempts that ended without a report, a day after the reply. Returns their number."""
    old = ModelCall.objects.filter(reply__isnull=False, started_at__lt=clock.now() - DAY_MS).order_by("started_at")
    attempts = dict(old.values_list("id", "attempt_id")[:limit])
    open_attempts = set(Attempt.objects.open().filter(pk__in=attempts.values()).values_list("pk", flat=True))
    unused = [id for id, attempt_id in attempts.items() if attempt_id not in open_attempts]
    return ModelCall.objects.filter(pk__in=unused).update(reply=None)


def _settle(call: ModelCall) -> None:
    """Count an ended call, and let the attempts continue that wait for the end of its reservation."""
    line = load_run_line(call.run_id) if call.run_id else RunLine()
    budgets = lock_budgets(BudgetedCall(line, call.definition, call.caller, call.integration, call.model))
    record_usage(call, budgets)
    release_waiting_calls(budgets, call.root_id)
