"""The journal of calls of models: reservations, replies, usage.

A call is committed before its request is sent, with its reservation in the transaction that checks the budgets, and its
reply before the attempt reports. So after the end of a process the journal has either a reply that a repeated attempt
uses instead of paying again, or a call whose outcome is unknown (LOST). The reservation of such a call stops counting
when its attempt is claimed again, and at the latest when the longest duration of a call has passed.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

from django.db import IntegrityError
from django.db.models import F, Q, QuerySet

from ...core.ai import RUN, period_bounds
from ...core.errors import Invalid
from ...core.primitives import JsonValue, derived_id
from ...core.snapshot import NEVER
from ...db.database import transaction
from ...db.fields import strip_nul
from ...runs.models import Attempt
from ...runs.store.due_rows import handle_each
from ...settings import conf
from ...tasks.store import ClaimedAttempt
from ...telemetry.metrics import CallMeasure, observe_call
from ...utils import clock
from ...utils.randomness import random_hex
from .. import store
from ..models import BudgetHold, IntegrationModel, ModelBudget, ModelCall, ModelUsage
from .integrations import ModelSettings, find_model

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
FAILED_STATUSES = ("FAILED", "LOST")
RELEASED_AT_ONCE = 20
"""The holds that the end of a call releases. Each end of a call releases as many more."""
REPLIED, FAILED, LOST = "REPLIED", "FAILED", "LOST"
MAX_ERROR_LENGTH = 2_000
TRIAL = "PROMPT_TRIAL"
"""The type of task of trials on pages."""
MAX_TOKENS = 2**53


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a call may use at most. `cost`: in millionths of the currency."""

    cost: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class FullBudget:
    """A budget without room for a call. `room_at`: when it may have room again, unless it is changed.

    `reserved`: what its open calls may use. None if the budget is spent, so that no call may begin. `lacks`: the
    limit that is too tight beside them: cost or tokens.
    """

    budget: ModelBudget
    spent: store.Spent
    room_at: int
    reserved: store.Spent | None = None
    lacks: str = ""

    def facts(self) -> dict[str, Any]:
        """Return what pages show of the budget while an attempt waits for it."""
        facts = {
            "scope": self.budget.scope,
            "name": self.budget.name,
            "period": self.budget.period,
            "by": self.budget.updated_by,
            "max_cost": self.budget.max_cost,
            "max_tokens": self.budget.max_tokens,
            "spent_cost": self.spent.cost,
            "spent_tokens": self.spent.tokens,
            "room_at": self.room_at if self.room_at < NEVER else None,
        }
        if self.reserved is not None:
            facts |= {
                "reserved_cost": self.reserved.cost,
                "reserved_tokens": self.reserved.tokens,
                "lacks": self.lacks,
            }
        return facts


def estimate_call(settings: ModelSettings, prompt_tokens: int, completion_tokens: int) -> Estimate:
    """Return what a call may use, with the prices of its model. A model without prices costs nothing."""
    thousandfold = prompt_tokens * (settings.input_price or 0) + completion_tokens * (settings.output_price or 0)
    return Estimate(-(-thousandfold // 1000), prompt_tokens + completion_tokens)


def lock_budgets(call: store.BudgetedCall) -> list[ModelBudget]:
    """Return the budgets that apply to a call, locked until the end of the transaction.

    They are locked in one order, so that parallel calls cannot deadlock.
    """
    return list(store.budgets_for(call).order_by("pk").select_for_update())


def find_full_budget(call: store.BudgetedCall, estimate: Estimate, now: int) -> FullBudget | None:
    """Return the budget without room for a call that the call has to wait for longest; None if all have room.

    A budget has room while it is not spent, and what is spent, what open calls have reserved and the estimate are
    within its limits together. If no other call is open, the estimate need not fit, so that a call whose estimate
    exceeds the limit can begin. The budgets are locked until the end of the transaction.
    """
    budgets = lock_budgets(call)
    if not budgets:
        return None
    reserved = store.reserved_of(budgets, call.line, now)
    full = [each for budget in budgets if (each := _check(budget, call, estimate, reserved[budget.pk], now))]
    return max(full, key=lambda each: (each.reserved is None, each.room_at), default=None)


def release_waiting_calls(budgets: Collection[ModelBudget], root_id: str) -> None:
    """Let the attempts be checked again that wait for the end of a call. `budgets`: those of the call, locked.

    `root_id`: the top of the tree of its run. A budget of runs has room again for this tree only.
    """
    if not budgets:
        return
    now = clock.now()
    waiting = BudgetHold.objects.filter(budget__in=budgets, waits_for_calls=True, allowed_by="", until__gt=now)
    waiting = waiting.filter(~Q(budget__scope=RUN) | Q(root_id=root_id)).order_by("held_at", "pk")
    # A hold that another transaction has locked is being released.
    oldest = waiting.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True)
    if found := list(oldest[:RELEASED_AT_ONCE]):
        BudgetHold.objects.filter(pk__in=found).update(until=now)


def _check(
    budget: ModelBudget, call: store.BudgetedCall, estimate: Estimate, reserved: store.Reserved, now: int
) -> FullBudget | None:
    if store.is_counted(budget):
        spent = store.spent_of(budget, now)
    else:
        spent = store.spent_below(call.line.limited_run(budget), call.line.root_id)
    if spent.exhausts(budget):
        return FullBudget(budget, spent, period_bounds(budget.period, now)[1])
    amounts = (
        ("cost", budget.max_cost, spent.cost, reserved.cost, estimate.cost),
        ("tokens", budget.max_tokens, spent.tokens, reserved.tokens, estimate.tokens),
    )
    for name, limit, used, held, more in amounts:
        if limit is not None and held and more and used + held + more > limit:
            return FullBudget(budget, spent, reserved.until, store.Spent(reserved.cost, reserved.tokens), name)
    return None


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


def call_key(attempt: ClaimedAttempt, content: JsonValue) -> CallKey:
    """Return the keys of a request: the same if the attempt is repeated after the end of a process.

    A retry is another attempt, and an attempt that an operator reopens has another scheduled time, so both have another
    key of the request. `content`: the request as a JSON value, without secrets.
    """
    of_content = _digest([attempt.run_id, str(attempt.task), content])
    return CallKey(_digest([attempt.id, attempt.scheduled_at, of_content]), of_content)


def _digest(value: JsonValue) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode("utf-8", "surrogatepass")).hexdigest()


def has_lost_call(attempt: ClaimedAttempt, key: CallKey) -> bool:
    """Return True if this request was sent, its outcome is unknown, and no reply to it is stored.

    A call that an earlier attempt left open counts. A lost one does not: a person has retried the task since then.
    """
    calls = ModelCall.objects.filter(run_id=attempt.run_id, content_key=key.content)
    is_own = Q(request_key=key.request)
    if calls.filter(is_own | Q(reply__isnull=False), status=REPLIED).exists():
        return False
    return calls.filter(Q(status=store.STARTED) | (is_own & Q(status=LOST))).exists()


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
    return ModelCall.objects.filter(status=store.STARTED, **fields).defer("reply")


def lose_abandoned_calls(limit: int) -> int:
    """Record as lost the calls that no process can have open any more. Returns their number.

    Their attempts are not claimed again: trials on a page, and tasks of terminated runs.
    """
    before = clock.now() - 2 * store.longest_call_ms()
    open_calls = ModelCall.objects.filter(status=store.STARTED, started_at__lt=before).order_by("started_at")
    return handle_each(list(open_calls.values_list("pk", flat=True)[:limit]), _lose_abandoned)


def _lose_abandoned(call_id: str) -> None:
    with transaction.atomic():
        for call in ModelCall.objects.select_for_update().filter(pk=call_id, status=store.STARTED).defer("reply"):
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
    attempt: ClaimedAttempt, planned: store.BudgetedCall, key: CallKey, estimate: Estimate, prompt: str = ""
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


def insert_trial(planned: store.BudgetedCall, estimate: Estimate, prompt: str = "") -> ModelCall:
    """Insert the call of a trial on a page, which belongs to no run."""
    return _insert(planned, estimate, request_key=random_hex(), version=0, task_type=TRIAL, prompt=prompt[:255])


def _insert(planned: store.BudgetedCall, estimate: Estimate, *, request_key: str, **fields: Any) -> ModelCall:
    now = clock.now()
    return ModelCall.objects.create(
        id=derived_id(now, request_key, random_hex()),
        request_key=request_key,
        caller=planned.caller[:320],
        integration=planned.integration[:255],
        model=planned.model[:255],
        status=store.STARTED,
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
    line = store.load_run_line(call.run_id) if call.run_id else store.RunLine()
    budgets = lock_budgets(store.BudgetedCall(line, call.definition, call.caller, call.integration, call.model))
    record_usage(call, budgets)
    release_waiting_calls(budgets, call.root_id)


def record_usage(call: ModelCall, budgets: Iterable[ModelBudget]) -> None:
    """Add an ended call to the usage of its hour, and to what is spent of its budgets. Sets the cost of the call.

    Call it once per call, in the transaction that saves its reply or its failure. `budgets`: those that apply to the
    call, locked.
    """
    ended_at = clock.now() if call.ended_at is None else call.ended_at
    duration_ms = max(ended_at - call.started_at, 0)
    failures = int(call.status in FAILED_STATUSES)
    call.cost = cost_of(call)
    if call.cost:
        ModelCall.objects.filter(pk=call.pk).update(cost=call.cost)
    store.add_usage(
        (ended_at - ended_at % HOUR_MS, call.integration, call.model, call.definition, call.caller),
        (1, failures, call.prompt_tokens, call.completion_tokens, call.cost, duration_ms),
    )
    _add_to_budgets(call, budgets, ended_at)
    measure = CallMeasure(
        call.integration,
        call.model,
        call.prompt_tokens,
        call.completion_tokens,
        call.cost,
        duration_ms,
        is_failure=bool(failures),
    )
    transaction.on_commit(partial(observe_call, measure))


def cost_of(call: ModelCall) -> int:
    """Return the cost of a call in millionths of the currency, rounded up; 0 if its model has no price."""
    prices = (
        IntegrationModel.objects.filter(integration=call.integration, name=call.model)
        .values_list("input_price", "output_price")
        .first()
    )
    if prices is None:
        return 0
    thousandfold = call.prompt_tokens * (prices[0] or 0) + call.completion_tokens * (prices[1] or 0)
    return -(-thousandfold // 1000)


def _add_to_budgets(call: ModelCall, budgets: Iterable[ModelBudget], ended_at: int) -> None:
    """Add a call to the budgets that count it. A budget whose period has ended starts again at zero."""
    tokens = call.prompt_tokens + call.completion_tokens
    if not tokens and not call.cost:
        return
    for budget in filter(store.is_counted, budgets):
        begin, _end = period_bounds(budget.period, ended_at)
        if budget.period_start < begin:
            budget.period_start, budget.spent_cost, budget.spent_tokens = begin, 0, 0
        if budget.period_start == begin:
            budget.spent_cost += call.cost
            budget.spent_tokens += tokens
            budget.save(update_fields=["period_start", "spent_cost", "spent_tokens"])


def add_tokens(integration: str, model: str, tokens: int, by: str) -> None:
    """Add tokens to the usage of a model in this hour.

    Raises:
        Invalid: when the number is negative or too large.
    """
    if not 0 <= tokens <= MAX_TOKENS:
        raise Invalid(f"The number of tokens must be between 0 and {MAX_TOKENS}.")
    find_model(integration, model)
    hour = clock.now() // HOUR_MS * HOUR_MS
    key = {"hour": hour, "integration": integration, "model": model, "definition": "", "caller": by[:320]}
    with transaction.atomic():
        if ModelUsage.objects.filter(**key).update(prompt_tokens=F("prompt_tokens") + tokens):
            return
        try:
            with transaction.atomic():
                ModelUsage.objects.create(**key, prompt_tokens=tokens)
        except IntegrityError:
            # A concurrent request created the row.
            ModelUsage.objects.filter(**key).update(prompt_tokens=F("prompt_tokens") + tokens)


def prune_usage(limit: int) -> int:
    """Delete calls and hourly usage whose retention is over. Returns the number of rows."""
    now = clock.now()
    deleted = 0
    if conf.ai_call_days > 0:
        deleted += store.delete_calls(now - conf.ai_call_days * DAY_MS, limit)
    if conf.ai_usage_days > 0:
        deleted += store.delete_usage(now - conf.ai_usage_days * DAY_MS, limit)
    return deleted
