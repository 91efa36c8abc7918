"""Change a run: lock it, apply a command, decide what follows, write it, commit, and notify.

Every command on a run has this shape: a `RunCommand` goes through a `DecisionLoop` whose attempts are transactions.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction

from ... import clock, fault_points
from ...core import commands
from ...core.commands import FailUndecidableRun
from ...core.data_requests import DataRequest, WholeRun
from ...core.decide import Decision, RevisionInfo, no_command
from ...core.decision_context import Command, WithoutRules
from ...core.effects import Effect
from ...core.errors import AlreadyResolved, Busy, Conflict, NotFound, PayloadMissing, PayloadOverLimit, RevisionChanged
from ...core.snapshot import Run
from ...store import outbox_messages
from ...store import runs as store
from ...store.statement_batch import StatementBatch
from ...store.statements import is_in_transaction, supports_commit_in_batch
from ...telemetry.log_context import log_context
from ...transient_errors import is_database_error
from .. import audit
from ..stale_rows import MAX_STALE_ATTEMPTS
from . import group_commit
from .data_loading import LoadedData
from .decision import DecisionFailed, decide_from_rows, new_batch, save_decision
from .group_commit import GroupedChange
from .transaction_loop import TransactionLoop

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Audit:
    """What the audit log records of a command: an operator's action, and facts beside its reason."""

    action: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunCommand:
    """A command on one run.

    `attempts`: ids of the attempts that it is about; None loads the whole run.
    `consumes`: the message that causes it, deleted in the same transaction.
    `within_transaction`: writes other rows in the same transaction; it takes the time in epoch milliseconds.
    `payload_paths`: payloads that a client stored outside its request, by attempt id and part (`input`, `output`).
    `expected_revision`: the revision that the caller has seen.
    """

    run_id: str
    command: Command
    actor: str
    reason: str = ""
    attempts: Sequence[str] | None = None
    audit: Audit | None = None
    consumes: int | None = None
    within_transaction: Callable[[int], None] | None = None
    payload_paths: Mapping[tuple[str, str], str] | None = None
    expected_revision: int | None = None

    def as_grouped_change(self) -> GroupedChange | None:
        """Return the change that can share a transaction with others, or None if it needs its own."""
        is_plain = self.audit is None and self.consumes is None and self.within_transaction is None
        is_plain = is_plain and not self.payload_paths and self.expected_revision is None
        if not (is_plain and self.attempts and len(self.attempts) == 1 and supports_commit_in_batch()):
            return None
        change = GroupedChange(self.run_id, self.attempts[0], self.command, self.actor, self.reason)
        return change if change.has_valid_ids and not is_in_transaction() else None


def change_run(request: RunCommand) -> tuple[Effect, ...]:
    """Change one run in one transaction. Returns the effects.

    Raises:
        NotFound: when there is no such run, or no such attempt in it.
        Conflict: when the state of the run does not allow the command.
        RevisionChanged: when the run is not in the expected revision any more.
        Busy: when other processes keep changing the run.
    """
    action = request.audit.action if request.audit else "change"
    with log_context(action, run_id=request.run_id, attempt_id=request.attempts[0] if request.attempts else ""):
        return _change_or_fail(request)


def wake_run(run_id: str, actor: str = "engine") -> tuple[Effect, ...]:
    """Evaluate the rules of a run without a command. Returns the effects.

    Raises:
        NotFound: when there is no such run.
        Busy: when other processes keep changing the run.
    """
    return change_run(RunCommand(run_id, no_command, actor))


def _change_or_fail(request: RunCommand) -> tuple[Effect, ...]:
    """Change the run. Fail it if the engine cannot decide how it continues, or if a payload is too large or missing.

    Raises:
        DecisionFailed: when the command of an operator cannot be decided
        Conflict: when a payload is too large
        PayloadMissing: when a payload is missing
        AlreadyResolved: when the run has failed without the report of a worker, which cannot be stored.
    """
    change = request.as_grouped_change()
    if change is not None and (effects := group_commit.GROUPS.value.change(change)) is not None:
        return effects
    is_report = bool(request.attempts) and request.command is not no_command
    while True:
        loop = ChangeLoop(request)
        try:
            effects = loop.run()
        except Exception as error:
            # Only this frame raises it again: one that has it in a variable would be a reference cycle.
            if (simpler := _simpler_request(loop.request, error)) is None:
                raise
            request = simpler
            continue
        if is_report and isinstance(request.command, FailUndecidableRun) and request.command.report is None:
            raise AlreadyResolved(f"The report was not stored, because the workflow has failed: {request.reason}")
        return effects


def _simpler_request(request: RunCommand, error: Exception) -> RunCommand | None:
    """Return the request that replaces one which the engine cannot decide or save, or None if there is none.

    A command that ends or pauses the run is replaced by one that evaluates less, so that it succeeds for every run. Any
    other command fails the run, unless an operator has sent it. The worker's report is stored, unless it is the cause.
    """
    command, reason = request.command, request.reason
    if (simpler := commands.simpler_command(command)) is not None:
        if _is_answer(error, command):
            return None
        log.warning("command_simplified", extra={"cause": f"{type(error).__name__}: {error}"[:500]})
        if isinstance(simpler, FailUndecidableRun) and simpler.report is None:
            # What belongs to the report is not stored either.
            request = replace(request, within_transaction=None, payload_paths=None)
        return replace(request, command=simpler, attempts=None)
    if isinstance(error, PayloadOverLimit) and request.audit is not None:
        raise Conflict(f"Workflow {request.run_id} cannot continue: {error}") from error
    if request.audit is not None or isinstance(command, WithoutRules):
        return None
    match error:
        case DecisionFailed():
            reason = f"The engine could not decide the next steps of this workflow: {error}"[:500]
        case PayloadOverLimit() | PayloadMissing():
            reason = str(error)
        case _:
            return None
    last_resort = FailUndecidableRun(reason, with_failure=not isinstance(error, DecisionFailed), report=command)
    return replace(request, command=last_resort, reason=reason, attempts=None)


def _is_answer(error: Exception, command: Command) -> bool:
    """Return True if an error says that the run does not allow the command, or that the database does not respond."""
    if isinstance(error, NotFound | AlreadyResolved | RevisionChanged) or is_database_error(error):
        return True
    return isinstance(error, Conflict) and not isinstance(command, FailUndecidableRun)


class ChangeLoop(TransactionLoop):
    """The decision loop of one command on a run that exists."""

    def __init__(self, request: RunCommand) -> None:
        super().__init__(LoadedData(request.payload_paths))
        self.request = request
        self.stale_attempts = 0

    def run_transaction(self, saves_partially: bool) -> Decision:
        request, is_outermost = self.request, not is_in_transaction()
        with transaction.atomic():
            now = clock.now()
            before = store.load_for_update(request.run_id, request.attempts)
            _require_revision(before, request.expected_revision)
            decision = decide_from_rows(before, request.command, self.data, now, saves_partially)
            if decision.data_requests and not decision.effects:
                return decision
            batch = new_batch(self.data, ends_transaction=is_outermost)
            if not self._consume_message(decision, batch):
                # Another process has delivered the message.
                return Decision((), before)
            if request.within_transaction is not None:
                request.within_transaction(now)
            fault_points.reach("before-commit")
            self._save(before, decision, now, batch)
            return decision

    def _consume_message(self, decision: Decision, batch: StatementBatch) -> bool:
        """Delete the message that causes the command. Return False if another process has handled it.

        At the first attempt it is deleted together with the writes of the decision.
        """
        id = self.request.consumes
        if id is not None and decision.effects and not self.stale_attempts:
            outbox_messages.consume_with(batch, id)
            return True
        return id is None or outbox_messages.consume(id)

    def _save(self, before: Run, decision: Decision, now: int, batch: StatementBatch) -> None:
        request = self.request
        if request.audit is not None:
            facts = request.audit.facts
            audit.record(
                "run", request.run_id, request.audit.action, request.actor, reason=request.reason, facts=facts, at=now
            )
        if decision.effects:
            revision, starts = RevisionInfo(now, request.actor, request.reason), self.new_child_starts(batch, now)
            save_decision(before, decision, revision, starts)
        elif decision.after.wake_at != before.wake_at:
            store.set_timer(request.run_id, decision.after.wake_at)

    def load(self, requests: Iterable[DataRequest]) -> None:
        if WholeRun() in requests:
            self.request = replace(self.request, attempts=None)
        super().load(requests)

    def on_stale(self) -> None:
        self.stale_attempts += 1
        self.data.forget_transient()
        if self.stale_attempts >= MAX_STALE_ATTEMPTS:
            raise Busy(run=self.request.run_id) from None

    def continue_after_partial_save(self) -> bool:
        # The command is done: the remaining work follows from the rows.
        self.request = RunCommand(self.request.run_id, no_command, self.request.actor, self.request.reason)
        return True

    def on_exhausted(self) -> tuple[Effect, ...]:
        if self.effects:
            # The run has a timer that is due, so the next sweep continues.
            return self.effects
        raise Busy(run=self.request.run_id)


def _require_revision(run: Run, revision: int | None) -> None:
    if revision is not None and run.revision != revision:
        raise RevisionChanged(f"Run {run.id} has changed since it was read. Read it again.")
