"""Commands on budgets, and on the tasks that wait because a budget has no room for their calls.

Each change of a budget is audited, and releases the tasks that wait for it.
"""

from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import Exists, OuterRef
from django.db.models.signals import post_delete, post_save

from ...access import audit
from ...core import commands, decide
from ...core.ai import ALL, DAY, MODEL, MONTH, PERIODS, RUN, SCOPES, WEEK, period_bounds
from ...core.decide import Report
from ...core.errors import AlreadyResolved, Conflict, Invalid, NotFound
from ...core.snapshot import NEVER
from ...db.database import transaction
from ...db.fields import strip_nul
from ...runs.commands.change import Audit, RunCommand, change_run
from ...runs.models import Attempt
from ...runs.store.due_rows import handle_each
from ...tasks.store import ClaimedAttempt
from ...utils import clock
from ..models import BudgetHold, IntegrationModel, ModelBudget, ModelCall
from ..store import OF_INTEGRATION, BudgetedCall, is_counted, load_run_line, spent_before
from .calls import CallKey, Estimate, FullBudget, find_full_budget, insert_call, lose_open_calls, use_stored_reply
from .integrations import ModelSettings

HELD_BY = "budget"
LONGEST_HOLD_MS = 365 * 86_400_000
"""The time after which an attempt is checked again whose budget has no next period."""
MAX_NAME_LENGTH = 320
MAX_LIMIT = 10**15
PERIOD_OF_FREQUENCY = {"daily": DAY, "weekly": WEEK, "monthly": MONTH}
"""Periods by Conductor's names (`frequency` of a model of an integration)."""


class CallHeld(Exception):
    """The attempt was put back into its queue, because a budget has no room for its call."""


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """What an operator sets of a budget. `max_cost`: in millionths of the currency. None: no limit."""

    scope: str
    name: str
    period: str
    max_cost: int | None = None
    max_tokens: int | None = None


def save_budget(limits: BudgetLimits, by: str, reason: str = "") -> ModelBudget:
    """Create or replace the budget of this scope, name and period. Tasks that wait for it are checked again.

    Raises:
        Invalid: when the scope, the name, the period or a limit is invalid.
    """
    limits = _normalize(limits)
    with transaction.atomic():
        budget = _save(limits, by)
        audit.record("budget", budget.pk, "save", by, reason=reason, facts=asdict(limits))
    return budget


def delete_budget(budget_id: int, by: str, reason: str = "") -> None:
    """Delete a budget and release the tasks that wait for it.

    Raises:
        NotFound: when there is no such budget.
        Invalid: when the integration of the model sets it.
    """
    with transaction.atomic():
        budget = ModelBudget.objects.select_for_update().filter(pk=budget_id).first()
        if budget is None:
            raise NotFound(f"There is no budget {budget_id}.")
        if budget.origin == OF_INTEGRATION:
            raise Invalid("The integration sets this budget. Remove the token limit of the model there.")
        facts = {field: getattr(budget, field) for field in BudgetLimits.__dataclass_fields__}
        audit.record("budget", budget.pk, "delete", by, reason=reason, facts=facts)
        _end_holds(budget)
        budget.delete()


def _save(limits: BudgetLimits, by: str, origin: str = "") -> ModelBudget:
    now = clock.now()
    facts = {"max_cost": limits.max_cost, "max_tokens": limits.max_tokens, "updated_at": now, "updated_by": by[:255]}
    budget, is_new = ModelBudget.objects.update_or_create(
        scope=limits.scope, name=limits.name, period=limits.period, origin=origin, defaults=facts
    )
    if is_new and is_counted(budget):
        spent = spent_before(budget, now)
        budget.period_start, _end = period_bounds(budget.period, now)
        budget.spent_cost, budget.spent_tokens = spent.cost, spent.tokens
        budget.save(update_fields=["period_start", "spent_cost", "spent_tokens"])
    _end_holds(budget)
    return budget


def _normalize(limits: BudgetLimits) -> BudgetLimits:
    name = strip_nul(limits.name).strip()
    if limits.scope not in SCOPES:
        raise Invalid(f"The scope of a budget must be one of: {', '.join(SCOPES)}.")
    if limits.period not in PERIODS:
        raise Invalid(f"The period of a budget must be one of: {', '.join(PERIODS)}.")
    if (limits.scope == RUN) != (limits.period == RUN):
        raise Invalid("A budget of runs has the period RUN, and only such a budget.")
    if limits.scope == ALL and name:
        raise Invalid("A budget of all calls has no name.")
    if limits.scope not in (ALL, RUN) and not name:
        raise Invalid(f"A budget of the scope {limits.scope} needs a name.")
    if limits.scope == MODEL and not all(name.partition(":")):
        raise Invalid("The name of a model in a budget is `integration:model`, such as `openai:gpt-5-mini`.")
    if len(name) > MAX_NAME_LENGTH:
        raise Invalid(f"The name of a budget must have at most {MAX_NAME_LENGTH} characters.")
    if limits.max_cost is None and limits.max_tokens is None:
        raise Invalid("A budget needs a limit of cost or of tokens.")
    for field, value in (("maxCost", limits.max_cost), ("maxTokens", limits.max_tokens)):
        if value is not None and not 0 <= value <= MAX_LIMIT:
            raise Invalid(f"`{field}` must be from 0 to {MAX_LIMIT}.")
    return BudgetLimits(limits.scope, name, limits.period, limits.max_cost, limits.max_tokens)


def _end_holds(budget: ModelBudget) -> None:
    """Let the sweep end the holds of attempts that wait for a budget."""
    BudgetHold.objects.filter(budget=budget, allowed_by="").update(until=clock.now())


def connect_model_limits() -> None:
    """Keep the budgets that integrations set in step with the token limits of their models."""
    post_save.connect(_on_model_saved, sender=IntegrationModel, dispatch_uid="budget of a model")
    post_delete.connect(_on_model_deleted, sender=IntegrationModel, dispatch_uid="budget of a deleted model")


def _on_model_saved(sender: type, instance: IntegrationModel, **_: object) -> None:
    period = PERIOD_OF_FREQUENCY.get(instance.frequency.lower(), DAY)
    limit = instance.max_tokens
    others = _budgets_of_model(instance)
    if limit is not None and limit >= 0:
        _save(BudgetLimits(MODEL, str(instance), period, max_tokens=limit), instance.updated_by, OF_INTEGRATION)
        others = others.exclude(period=period)
    for budget in others:
        _end_holds(budget)
        budget.delete()


def _on_model_deleted(sender: type, instance: IntegrationModel, **_: object) -> None:
    for budget in _budgets_of_model(instance):
        _end_holds(budget)
        budget.delete()


def _budgets_of_model(model: IntegrationModel) -> Any:
    return ModelBudget.objects.filter(scope=MODEL, name=str(model), origin=OF_INTEGRATION)


def begin_call(
    attempt: ClaimedAttempt, settings: ModelSettings, key: CallKey, estimate: Estimate, prompt: str = ""
) -> ModelCall:
    """Return the call to send, committed with its reservation, or the call whose stored reply answers the request.

    A stored reply is used in spite of a spent budget, because it pays nothing. `prompt`: the name of the prompt, if the
    request uses one.

    Raises:
        CallHeld: when a budget has no room. Nothing may be called or reported then.
    """
    with transaction.atomic():
        replied = use_stored_reply(attempt, key)
        if replied is not None:
            return replied
        lose_open_calls(key)
        line = load_run_line(attempt.run_id)
        planned = BudgetedCall(line, attempt.run.name, line.caller, settings.integration, settings.model)
        full = find_full_budget(planned, estimate, clock.now())
        if full is None or _uses_permission(attempt.id):
            return insert_call(attempt, planned, key, estimate, prompt)
    _hold(attempt, planned, estimate, full)
    raise CallHeld


def allow_once(attempt_id: str, by: str, reason: str = "") -> None:
    """Let a held attempt make its call although the budget is spent.

    Raises:
        NotFound: when the attempt does not wait for a budget.
        Conflict: when the attempt is not pending in a queue any more.
    """
    hold = BudgetHold.objects.filter(pk=attempt_id[:64], allowed_by="").first()
    if hold is None:
        raise NotFound(f"Task {attempt_id[:64]} does not wait for a budget.")

    def allow(_now: int) -> None:
        BudgetHold.objects.filter(pk=hold.pk).update(allowed_by=by[:255] or "operator", until=NEVER)

    command = commands.requeue_attempt(hold.pk, {"visible_at": clock.now()})
    try:
        change_run(
            RunCommand(
                hold.run_id,
                command,
                by,
                reason,
                attempts=[hold.pk],
                audit=Audit("allow model call", {"budget": hold.facts}),
                within_transaction=allow,
            )
        )
    except AlreadyResolved:
        raise Conflict(f"Task {hold.pk} has ended: it does not wait for a budget any more.") from None


def end_budget_holds(limit: int) -> int:
    """End the holds of the attempts whose budget may have room again. Returns how many were ended.

    A worker that claims one checks the budget again.
    """
    due = BudgetHold.objects.filter(until__lte=clock.now()).order_by("until")
    return handle_each(list(due.values_list("pk", "run_id")[:limit]), _end_hold)


def prune_holds() -> int:
    """Delete the holds of attempts that have ended or were deleted. Returns the number of rows."""
    is_open = Exists(Attempt.objects.filter(pk=OuterRef("pk"), status__in=("PENDING", "LEASED")))
    return BudgetHold.objects.filter(~is_open).delete()[0]


def _end_hold(found: tuple[str, str]) -> None:
    attempt_id, run_id = found
    command = commands.requeue_attempt(attempt_id, {"visible_at": clock.now()})

    def remove(_now: int) -> None:
        BudgetHold.objects.filter(pk=attempt_id).delete()

    try:
        change_run(RunCommand(run_id, command, HELD_BY, attempts=[attempt_id], within_transaction=remove))
    except (AlreadyResolved, Conflict, NotFound):
        # The attempt has ended, or a worker has it: it does not wait any more.
        BudgetHold.objects.filter(pk=attempt_id).delete()


def _hold(attempt: ClaimedAttempt, call: BudgetedCall, estimate: Estimate, found: FullBudget) -> None:
    """Return the attempt to its queue until the budget has room, with the hold in the same transaction."""
    wait_ms = max(min(found.room_at - clock.now(), LONGEST_HOLD_MS), 0)
    report = Report(
        "IN_PROGRESS",
        callback_seconds=-(-wait_ms // 1000),
        worker=attempt.worker,
        merges=True,
        is_kept=False,
        lease=attempt.scheduled_at,
    )

    def save(now: int) -> None:
        # What changed after the budget was read, such as its limit or the end of a call, did not release this hold.
        full = find_full_budget(call, estimate, now)
        is_unchanged = full is not None and full.facts() == found.facts()
        until = now + wait_ms if found.room_at == NEVER else found.room_at
        BudgetHold.objects.update_or_create(
            pk=attempt.id,
            defaults={
                "run_id": attempt.run_id,
                "root_id": call.line.root_id,
                "budget": ModelBudget.objects.filter(pk=found.budget.pk).first(),
                "waits_for_calls": found.reserved is not None,
                "facts": found.facts(),
                "held_at": now,
                "until": until if is_unchanged else now,
                "allowed_by": "",
            },
        )

    command = decide.apply_report(attempt.id, report)
    try:
        change_run(RunCommand(attempt.run_id, command, HELD_BY, attempts=[attempt.id], within_transaction=save))
    except AlreadyResolved:
        return


def _uses_permission(attempt_id: str) -> bool:
    """Use the permission of an operator for one call of the attempt. Returns False if there is none."""
    return bool(BudgetHold.objects.filter(pk=attempt_id).exclude(allowed_by="").delete()[0])
