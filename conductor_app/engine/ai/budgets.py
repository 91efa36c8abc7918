"""Hold tasks whose budget is spent, and release them when it has room again."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef

from ... import clock
from ...core import commands, reports
from ...core.budget_periods import period_bounds
from ...core.errors import AlreadyResolved, Conflict, NotFound
from ...core.reports import Report
from ...core.snapshot import NEVER
from ...models import Attempt, BudgetHold, ModelBudget, ModelCall
from ...models.budgets import PlannedCall, Spent, budgets_for, is_counted, limits_of, spent_by_run, spent_of
from ...models.claimed_attempts import ClaimedAttempt
from ..runs.change import Audit, RunCommand, change_run
from ..sweep_items import handle_each

HELD_BY = "budget"
LONGEST_HOLD_MS = 365 * 86_400_000
"""The time after which an attempt is checked again whose budget has no next period."""


@dataclass(frozen=True, slots=True)
class SpentBudget:
    """A budget without room, and what is spent of it."""

    budget: ModelBudget
    spent: Spent
    room_at: int

    def facts(self) -> dict[str, Any]:
        """Return what pages show of the budget while an attempt waits for it."""
        return {
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


def hold_if_spent(attempt: ClaimedAttempt, integration: str, model: str) -> bool:
    """Put a claimed attempt back into its queue if a budget of its call is spent. Returns True if it was put back.

    The attempt is invisible to claims until the budget has room again. Nothing may be called or reported then. An
    attempt whose reply is stored already is not held, because it pays nothing. Without budgets this is one query.
    """
    call = PlannedCall(attempt.run_id, attempt.run.name, integration, model)
    found = find_spent_budget(call, clock.now())
    if found is None or _has_reply(attempt.task_id) or _uses_permission(attempt.id):
        return False
    _hold(attempt, found)
    return True


def find_spent_budget(call: PlannedCall, now: int) -> SpentBudget | None:
    """Return the spent budget of a call that has room last, or None if all have room."""
    spent = []
    of_run: Spent | None = None
    for budget in budgets_for(call):
        if is_counted(budget):
            used = spent_of(budget, now)
        else:
            used = of_run = spent_by_run(call.run_id) if of_run is None else of_run
        if used.exhausts(budget):
            spent.append(SpentBudget(budget, used, period_bounds(budget.period, now)[1]))
    return max(spent, key=lambda each: each.room_at, default=None)


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


def release_holds(limit: int) -> int:
    """Release the attempts whose budget may have room again. Returns how many were released.

    A worker that claims one checks the budget again.
    """
    due = BudgetHold.objects.filter(until__lte=clock.now()).order_by("until")
    return handle_each(list(due.values_list("pk", "run_id")[:limit]), _release)


def prune_holds() -> int:
    """Delete the holds of attempts that have ended or were deleted. Returns the number of rows."""
    is_open = Exists(Attempt.objects.filter(pk=OuterRef("pk"), status__in=("PENDING", "LEASED")))
    return BudgetHold.objects.filter(~is_open).delete()[0]


def _release(found: tuple[str, str]) -> None:
    attempt_id, run_id = found
    command = commands.requeue_attempt(attempt_id, {"visible_at": clock.now()})

    def remove(_now: int) -> None:
        BudgetHold.objects.filter(pk=attempt_id).delete()

    try:
        change_run(RunCommand(run_id, command, HELD_BY, attempts=[attempt_id], within_transaction=remove))
    except (AlreadyResolved, Conflict, NotFound):
        # The attempt has ended, or a worker has it: it does not wait any more.
        BudgetHold.objects.filter(pk=attempt_id).delete()


def _hold(attempt: ClaimedAttempt, found: SpentBudget) -> None:
    """Return the attempt to its queue until the budget has room, with the hold in the same transaction."""
    wait_ms = min(found.room_at - clock.now(), LONGEST_HOLD_MS)
    report = Report(
        "IN_PROGRESS",
        callback_seconds=-(-wait_ms // 1000),
        worker=attempt.worker,
        merges=True,
        is_kept=False,
        lease=attempt.scheduled_at,
    )

    def save(now: int) -> None:
        # A change of the budget after it was read does not see this hold, so the attempt is checked again.
        budget = ModelBudget.objects.select_for_update().filter(pk=found.budget.pk).first()
        is_unchanged = budget is not None and limits_of(budget) == limits_of(found.budget)
        until = now + wait_ms if found.room_at == NEVER else found.room_at
        BudgetHold.objects.update_or_create(
            pk=attempt.id,
            defaults={
                "run_id": attempt.run_id,
                "budget": budget,
                "facts": found.facts(),
                "held_at": now,
                "until": until if is_unchanged else now,
                "allowed_by": "",
            },
        )

    command = reports.apply_report(attempt.id, report)
    try:
        change_run(RunCommand(attempt.run_id, command, HELD_BY, attempts=[attempt.id], within_transaction=save))
    except AlreadyResolved:
        return


def _has_reply(task_id: str) -> bool:
    """Return True if the reply of a paid call of the task is stored and not reported yet."""
    return ModelCall.objects.filter(task_id=task_id, status="REPLIED", reply__isnull=False).exists()


def _uses_permission(attempt_id: str) -> bool:
    """Use the permission of an operator for one call of the attempt. Returns False if there is none."""
    return bool(BudgetHold.objects.filter(pk=attempt_id).exclude(allowed_by="").delete()[0])
