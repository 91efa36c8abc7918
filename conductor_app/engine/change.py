"""change(): lock one run, hear the command, let the core decide, write it down. The shape of every command."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from django.db import transaction

from .. import clock
from ..core.commands import FailUndecidableRun
from ..core.data_requests import WholeRun
from ..core.decide import Command, Decision, no_command
from ..core.decision_context import DecisionContext
from ..core.effects import Effect
from ..core.errors import AlreadyResolved, Busy, Conflict, PayloadMissing, RevisionChanged
from ..core.snapshot import Run
from ..models import AuditEntry, Message
from ..store import runs as store
from ..store.payload_placement import PayloadOverLimit, PayloadsTooLarge
from ..store.statement_batch import StaleRow
from ..telemetry.log_context import log_context
from .data_loading import LoadedData
from .decision import DecisionFailed, decide_from_rows, new_batch, save_decision

TRIES = 5
"""How often a change is decided anew because others moved its rows in between, before it answers Busy."""
ROUNDS = 500
"""How often a decision may ask: a loop asks for its condition in each turn."""
ROUNDS_IN_ONE = 8
"""How often it may ask and be decided from its start; after that, what is decided is saved between two scripts."""


def change(
    run_id: str,
    command: Command,
    by: str,
    reason: str = "",
    *,
    near: Sequence[str] | None = None,
    message: int | None = None,
    action: str = "",
    facts: Mapping[str, Any] | None = None,
    also: Callable[[int], None] | None = None,
    named: Mapping[tuple[str, str], str] | None = None,
    revision: int | None = None,
) -> tuple[Effect, ...]:
    """Change one run in one transaction; returns the effects. Raises NotFound, Conflict and Busy.

    `near`: the attempts that it is about (None: the whole run is read). `message`: the message that is heard, deleted
    in the same transaction. `action`: names an operator's act, for the audit, and `facts` what there is to say of it.
    `also`: what else is written with it. `named`: payloads that a client keeps elsewhere, by their attempt and part.
    `revision`: the one that the run was seen in; raises Moved where it is another by now.
    """
    if revision is not None:
        command = require_revision(command, revision)
    with log_context(action or "change", run_id=run_id, attempt_id=near[0] if near else ""):
        noted = partial(_audit_entry, run_id, by, reason, action, dict(facts or {})) if action else None
        return _change(run_id, command, by, reason, near, message, noted, also, LoadedData(named))


def require_revision(command: Command, revision: int) -> Command:
    """The command, heard only by the run as it was seen."""

    def asked(run: Run, ctx: DecisionContext, now: int) -> Iterable[Effect]:
        if run.revision != revision:
            raise RevisionChanged(f"Run {run.id} has moved on since it was looked at: look at it again.")
        return command(run, ctx, now)

    return asked


def _change(run_id, command, by, reason, near, message, noted, also, answers: LoadedData) -> tuple[Effect, ...]:
    tries, saved = 0, ()
    for round_number in range(ROUNDS):
        try:
            in_slices = round_number >= ROUNDS_IN_ONE
            decision = _try_once(run_id, command, by, reason, near, message, noted, also, answers, in_slices)
        except StaleRow:
            tries += 1
            answers.forget_passing()
            if tries >= TRIES:
                raise Busy(run=run_id) from None
            continue
        except PayloadsTooLarge as found:
            # Kept by now, they are found by their digests: the next round writes where they are.
            answers.forget_passing()
            answers.keep(found.texts)
            continue
        except DecisionFailed as fault:
            if noted or fault.is_final:
                raise
            return _fail_run(run_id, f"The engine could not decide how this workflow goes on: {fault}"[:500])
        except PayloadOverLimit as found:
            if noted or isinstance(command, FailUndecidableRun):
                raise Conflict(f"Workflow {run_id} cannot go on like that: {found}") from found
            return _end_run_after_payload_error(run_id, command, by, str(found), message, also, answers.named)
        if not decision.questions:
            return (*saved, *decision.effects)
        if decision.effects:
            # A slice was saved: what is left follows from the rows.
            saved = (*saved, *decision.effects)
            command, near, message, noted, also = no_command, None, None, None, None
        if WholeRun() in decision.questions:
            near = None
        answers.forget_passing()
        try:
            answers.learn_from_scripts(decision.questions)
        except PayloadMissing as lost:
            if noted or isinstance(command, FailUndecidableRun):
                raise
            return _end_run_after_payload_error(run_id, command, by, lost.message, message, also, answers.named)
    if saved:
        # The run is to be woken at once, and goes on then.
        return saved
    raise Busy(run=run_id)


def _end_run_after_payload_error(run_id, command, by, reason, message, also, named) -> tuple[Effect, ...]:
    """End a run for which what follows is too much, or lost. What a worker has said is kept, unless it is that."""
    last = FailUndecidableRun(reason, with_failure=True, heard=command)
    try:
        return change(run_id, last, by, reason, message=message, also=also, named=named)
    except AlreadyResolved:
        raise
    except (Conflict, PayloadMissing):
        return _fail_run(run_id, reason, with_failure=True)


def _fail_run(run_id: str, reason: str, with_failure: bool = False) -> tuple[Effect, ...]:
    """End a run that cannot go on, with a reason: it would otherwise be tried for ever (execution §11 row 11)."""
    return change(run_id, FailUndecidableRun(reason, with_failure), "engine", reason)


def _try_once(run_id, command, by, reason, near, message, noted, also, answers, in_slices) -> Decision:
    """One transaction. Questions that rows answer are answered inside it; what is left is handed back."""
    with transaction.atomic():
        now = clock.now()
        before = store.load_for_update(run_id, near)
        decision = decide_from_rows(before, command, answers, now, in_slices)
        if decision.questions and not decision.effects:
            return decision
        if message is not None and not Message.objects.filter(pk=message).delete()[0]:
            return Decision((), before)
        if also is not None:
            also(now)
        if decision.effects:
            save_decision(before, decision, now, by, reason, new_batch(answers))
        elif decision.after.wake_at != before.wake_at:
            store.set_timer(run_id, decision.after.wake_at)
        if noted is not None:
            noted(now)
        return decision


def _audit_entry(run_id: str, by: str, reason: str, action: str, facts: dict[str, Any], now: int) -> None:
    AuditEntry.objects.create(
        at=now, actor=by, action=action, object_type="run", object_id=run_id, reason=reason, facts=facts
    )


def wake(run_id: str, by: str = "engine") -> tuple[Effect, ...]:
    """Let the core look at the whole run."""
    return change(run_id, no_command, by)
