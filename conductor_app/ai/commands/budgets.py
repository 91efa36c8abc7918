"""Hold tasks whose budgets have no room for their calls, and release them when they have room again."""

from django.db import transaction
from django.db.models import Exists, OuterRef

from ... import clock
from ...core import commands, reports
from ...core.errors import AlreadyResolved, Conflict, NotFound
from ...core.reports import Report
from ...core.snapshot import NEVER
from ...models import Attempt, BudgetHold, ModelBudget, ModelCall
from ...models.budgets import BudgetedCall
from ...models.claimed_attempts import ClaimedAttempt
from ...store.run_tree import load_run_line
from ..runs.change import Audit, RunCommand, change_run
from ..sweep_items import handle_each
from .integration_settings import ModelSettings
from .model_calls import CallKey, insert_call, lose_open_calls, use_stored_reply
from .reservations import Estimate, FullBudget, find_full_budget

HELD_BY = "budget"
LONGEST_HOLD_MS = 365 * 86_400_000
"""The time after which an attempt is checked again whose budget has no next period."""


class CallHeld(Exception):
    """The attempt was put back into its queue, because a budget has no room for its call."""


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

    command = reports.apply_report(attempt.id, report)
    try:
        change_run(RunCommand(attempt.run_id, command, HELD_BY, attempts=[attempt.id], within_transaction=save))
    except AlreadyResolved:
        return


def _uses_permission(attempt_id: str) -> bool:
    """Use the permission of an operator for one call of the attempt. Returns False if there is none."""
    return bool(BudgetHold.objects.filter(pk=attempt_id).exclude(allowed_by="").delete()[0])
