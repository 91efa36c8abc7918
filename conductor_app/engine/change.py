"""change(): lock one run, hear the command, let the core decide, write it down. The shape of every command."""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from django.db import transaction

from .. import clock, wakeups
from ..core.commands import abandon
from ..core.decide import Command, Decision, command_then_decide, nothing
from ..core.effects import Effect
from ..core.errors import Busy, Refused
from ..core.questions import Script, Whole
from ..core.snapshot import Run
from ..models import AuditEntry, Message
from ..store import runs as store
from ..store import writers
from ..store.writes import Stale
from .answers import Answers

log = logging.getLogger(__name__)

TRIES = 5
"""How often a change is decided anew because others moved its rows in between, before it answers Busy."""
ROUNDS = 500
"""How often a decision may ask: a loop asks for its condition in each turn."""


def change(
    run_id: str,
    command: Command,
    by: str,
    reason: str = "",
    *,
    near: Sequence[str] | None = None,
    message: int | None = None,
    action: str = "",
    also: Callable[[int], None] | None = None,
) -> tuple[Effect, ...]:
    """Change one run in one transaction; returns the effects. Raises NotFound, Conflict and Busy.

    `near`: the attempts that it is about (None: the whole run is read). `message`: the message that is heard, deleted
    in the same transaction. `action`: names an operator's act, for the audit. `also`: what else is written with it.
    """
    answers = Answers()
    tries = 0
    for _round in range(ROUNDS):
        try:
            decision = _once(run_id, command, by, reason, near, message, action, also, answers)
        except Stale:
            tries += 1
            answers.forget_passing()
            if tries >= TRIES:
                raise Busy(run=run_id) from None
            continue
        except Undecidable as fault:
            if action or fault.is_final:
                raise
            return _give_up(run_id, fault)
        if not decision.questions:
            return decision.effects
        if Whole() in decision.questions:
            near = None
        answers.forget_passing()
        answers.learn_from_scripts(decision.questions)
    raise Busy(run=run_id)


class Undecidable(Exception):
    """The core broke down over a run: a fault of ours, or a document that passes every check and makes no sense."""

    def __init__(self, cause: Exception, is_final: bool) -> None:
        self.cause, self.is_final = cause, is_final
        super().__init__(f"{type(cause).__name__}: {cause}")


def _give_up(run_id: str, fault: Undecidable) -> tuple[Effect, ...]:
    """End a run that cannot be decided, with a reason: it would otherwise be tried for ever (execution §11 row 11)."""
    reason = f"The engine could not decide how this workflow goes on: {fault}"[:500]
    return change(run_id, abandon(reason), "engine", reason)


def _once(run_id, command, by, reason, near, message, action, also, answers) -> Decision:
    """One transaction. Questions that rows answer are answered inside it; what is left is handed back."""
    with transaction.atomic():
        now = clock.now()
        before = store.lock(run_id, near)
        decision = _decided(before, command, answers, now)
        if decision.questions:
            return decision
        if message is not None and not Message.objects.filter(pk=message).delete()[0]:
            return Decision((), before)
        if also is not None:
            also(now)
        if decision.effects:
            _write(before, decision, now, by, reason)
        elif decision.after.wake_at != before.wake_at:
            store.set_timer(run_id, decision.after.wake_at)
        if action:
            AuditEntry.objects.create(
                at=now, actor=by, action=action, object_type="run", object_id=run_id, reason=reason
            )
        return decision


def _decided(before: Run, command: Command, answers: Answers, now: int) -> Decision:
    while True:
        decision = _asked_core(before, command, answers, now)
        here = {question for question in decision.questions if not isinstance(question, Script | Whole)}
        if not here or len(here) < len(decision.questions):
            return decision
        answers.learn_from_rows(before, here, now)


def _asked_core(before: Run, command: Command, answers: Answers, now: int) -> Decision:
    try:
        return command_then_decide(before, command, answers, now)
    except Refused:
        raise
    except Exception as fault:
        log.exception("run_undecidable", extra={"run_id": before.id})
        raise Undecidable(fault, is_final=getattr(command, "is_abandoning", False)) from fault


def _write(before: Run, decision: Decision, now: int, by: str, reason: str) -> None:
    told = writers.save(before, decision.effects, decision.after, now, by, reason)
    if told.queues:
        transaction.on_commit(partial(wakeups.announce, told.queues))
    if told.messages:
        from .messages import deliver_soon

        transaction.on_commit(partial(deliver_soon, told.messages))


def wake(run_id: str, by: str = "engine") -> tuple[Effect, ...]:
    """Let the core look at the whole run."""
    return change(run_id, nothing, by)
