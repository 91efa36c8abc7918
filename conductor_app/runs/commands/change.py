"""Change a run: lock it, apply a command, decide what follows, write it, commit, and notify.

Every command on a run has this shape: a `RunCommand` goes through a `DecisionLoop` whose attempts are transactions.

A decision loop whose attempts are transactions. It repeats those that met conflicts, faults or large payloads.

Group commit: under load, reports of one process on several runs share a transaction.

Each decision sees only its own run. A run that another transaction has locked, a decision that needs more data, and
every member of a group whose transaction fails are changed in transactions of their own, as without a group.
"""

import logging
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any

from django.db import DataError, InternalError, transaction

from ...access import audit
from ...core import commands
from ...core.commands import FailUndecidableRun
from ...core.data_requests import DataRequest, WholeRun
from ...core.decide import Decision, DecisionLoop, RevisionInfo, no_command
from ...core.decision_context import Command, WithoutRules
from ...core.effects import Effect
from ...core.errors import (
    AlreadyResolved,
    Busy,
    Conflict,
    NotFound,
    PayloadMissing,
    PayloadOverLimit,
    RequestRefused,
    RevisionChanged,
)
from ...core.primitives import ID_PATTERN
from ...core.snapshot import Run
from ...db.statements import is_in_transaction, supports_commit_in_batch
from ...db.transient_errors import FaultTolerance, is_database_error, is_transient
from ...payloads.store import PayloadsTooLarge
from ...telemetry.log_context import log_context
from ...utils import clock, fault_points, process_state
from ..store import due as outbox_messages
from ..store import loading as store
from ..store.batch import MAX_STALE_ATTEMPTS, StaleRow, StatementBatch
from .decision import ChildStarts, DecisionFailed, LoadedData, add_decision, decide_from_rows, new_batch, save_decision


class TransactionLoop(DecisionLoop):
    """The loop of a change or a start. `data`: the data loaded for its decision."""

    def __init__(self, data: LoadedData) -> None:
        super().__init__()
        self.data = data
        self.child_starts: ChildStarts | None = None
        self.begins_children = True
        self.faults = FaultTolerance()
        self.has_failed_once = False

    def new_child_starts(self, writes: StatementBatch, now: int) -> ChildStarts:
        """Return the runs that begin together with the decision of this attempt."""
        self.child_starts = ChildStarts(writes, now, is_enabled=self.begins_children)
        return self.child_starts

    @abstractmethod
    def run_transaction(self, saves_partially: bool) -> Decision:
        """Decide and save in one transaction.

        Raises:
            StaleRow: when another process changed a row.
            PayloadsTooLarge: when payloads must be stored in blob storage first.
        """

    @abstractmethod
    def on_stale(self) -> None:
        """Prepare the next attempt after another process changed a row, or raise."""

    def attempt(self, saves_partially: bool) -> Decision | None:
        self.child_starts = None
        try:
            return self.run_transaction(saves_partially)
        except (StaleRow, DataError, InternalError) as error:
            if self.child_starts and self.child_starts.begun:
                # A child may be the cause. Repeat without them: they begin in transactions of their own.
                self.begins_children = False
                self.data.forget_transient()
            elif isinstance(error, StaleRow):
                self.on_stale()
            elif not self._can_repeat_after(error):
                raise
        except PayloadsTooLarge as found:
            # Stored now, they are found by their digests: the next attempt writes their paths.
            self.data.forget_transient()
            self.faults.repeat(partial(self.data.keep, found.texts))
        except DecisionFailed:
            # Only an exception that it raises again, from data that was read again, says something about the run.
            if self.has_failed_once:
                raise
            self.has_failed_once = True
            self.data.clear()
        except Exception as error:
            if not self._can_repeat_after(error):
                raise
        return None

    def _can_repeat_after(self, error: Exception) -> bool:
        """Prepare the next attempt after a transient error. Return False if there must be none."""
        if not self.faults.wait_after(error):
            return False
        self.data.forget_transient()
        return True

    def load(self, requests: Iterable[DataRequest]) -> None:
        self.data.forget_transient()
        self.faults.repeat(lambda: self.data.evaluate_scripts(requests))


MAX_GROUP = 16
"""The maximum number of changes in one transaction."""
MAX_ACTIVE_GROUPS = 2
"""The number of groups at the same time: one decides while the database executes the statements of another."""
MAX_WAIT_SECONDS = 0.05
"""The time after which a change does not wait for a group any more. A group takes a few milliseconds."""


@dataclass(frozen=True, slots=True)
class GroupedChange:
    """A change that can share its transaction: a command about one attempt, by an actor, and nothing else."""

    run_id: str
    attempt_id: str
    command: Command
    actor: str
    reason: str

    @property
    def has_valid_ids(self) -> bool:
        """True if the database accepts the ids. A text that it cannot store would fail the whole group."""
        return bool(ID_PATTERN.fullmatch(self.run_id) and ID_PATTERN.fullmatch(self.attempt_id))


@dataclass(frozen=True, slots=True)
class SavedChange:
    """The outcome of a change whose statements are part of the group's transaction."""

    effects: tuple[Effect, ...]
    notify: Callable[[], None]


class GroupedCommand:
    """A change in a group, with the thread that waits for it.

    `leads`: its thread executes the next group. `saved` or `refusal` is its outcome; without either, the thread changes
    the run in a transaction of its own.
    """

    def __init__(self, change: GroupedChange) -> None:
        self.change = change
        self.leads = False
        self.saved: SavedChange | None = None
        self.refusal: RequestRefused | None = None
        # Decisions authorize and log in the context of the request.
        self._context: Context = copy_context()
        self._wakes = Lock()
        self._wakes.acquire()

    def wait(self, seconds: float = -1) -> bool:
        """Wait until the thread is woken. Returns False after this time."""
        return self._wakes.acquire(timeout=seconds)

    def wake(self) -> None:
        self._wakes.release()

    def forget_outcome(self) -> None:
        self.saved = self.refusal = None

    def decide(self, before: Run, now: int, writes: StatementBatch) -> None:
        """Decide, and add the statements of the decision unless it needs more data."""
        self._context.run(self._decide, before, now, writes)

    def _decide(self, before: Run, now: int, writes: StatementBatch) -> None:
        change = self.change
        try:
            decision = decide_from_rows(before, change.command, LoadedData(), now)
        except RequestRefused as refusal:
            # What is refused only at the moment may succeed in the transaction of its own, which is repeated.
            self.refusal = None if is_transient(refusal) else refusal
            return
        except PayloadOverLimit:
            # The transaction of its own fails the run.
            return
        if decision.data_requests or not decision.effects:
            return
        notify = add_decision(before, decision, RevisionInfo(now, change.actor, change.reason), writes)
        if notify is not None:
            self.saved = SavedChange(decision.effects, notify)


class GroupCommit:
    """The groups of this process, one after another. The thread of a member executes the group."""

    def __init__(self, commit: Callable[[Sequence[GroupedCommand]], None]) -> None:
        self._commit = commit
        self._lock = Lock()
        self._waiting: deque[GroupedCommand] = deque()
        self._active_count = 0

    def change(self, change: GroupedChange) -> tuple[Effect, ...] | None:
        """Make a change, in a group if other changes are waiting. Returns None if it needs its own transaction.

        A change never waits if no group is active.

        Raises:
            RequestRefused: when the command is refused.
        """
        member = GroupedCommand(change)
        if not self._join(member):
            return None
        if member.leads:
            self._lead(member)
        if member.refusal is not None:
            raise member.refusal
        saved = member.saved
        if saved is None:
            return None
        saved.notify()
        return saved.effects

    def _join(self, member: GroupedCommand) -> bool:
        """Wait until the member leads or its group has ended. Returns False if that takes too long."""
        with self._lock:
            if self._active_count < MAX_ACTIVE_GROUPS:
                self._active_count += 1
                member.leads = True
                return True
            self._waiting.append(member)
        if member.wait(MAX_WAIT_SECONDS):
            return True
        with self._lock:
            if member in self._waiting:
                self._waiting.remove(member)
                return False
        return member.wait()

    def _lead(self, leader: GroupedCommand) -> None:
        members = [leader, *self._take_waiting(leader)]
        try:
            self._commit(members)
        except Exception:
            for member in members:
                member.forget_outcome()
        finally:
            with self._lock:
                successor = self._waiting.popleft() if self._waiting else None
                self._active_count -= successor is None
            if successor is not None:
                successor.leads = True
                successor.wake()
            for member in members[1:]:
                member.wake()

    def _take_waiting(self, leader: GroupedCommand) -> list[GroupedCommand]:
        """Remove and return waiting members, at most one for each run."""
        runs, taken, left = {leader.change.run_id}, [], deque[GroupedCommand]()
        with self._lock:
            for member in self._waiting:
                if len(runs) < MAX_GROUP and member.change.run_id not in runs:
                    runs.add(member.change.run_id)
                    taken.append(member)
                else:
                    left.append(member)
            self._waiting = left
        return taken


def commit_group(members: Sequence[GroupedCommand]) -> None:
    """Lock the available runs of a group, decide about each, and write all decisions, in two round trips."""
    with transaction.atomic():
        now, writes = clock.now(), StatementBatch(ends_transaction=True)
        snapshots = store.lock_available({member.change.run_id: member.change.attempt_id for member in members})
        for member in members:
            if (before := snapshots.get(member.change.run_id)) is not None:
                member.decide(before, now, writes)
        if writes.statements:
            fault_points.reach("before-commit")
            writes.send()


GROUPS = process_state.slot(lambda: GroupCommit(commit_group))


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
    if change is not None and (effects := GROUPS.value.change(change)) is not None:
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
