"""Change a run: lock it, apply a command, decide what follows, write it, commit, and notify.

A command on a run is a `RunCommand` that goes through a decision loop whose attempts are transactions. The loop repeats
those that met conflicts, faults or large payloads. On PostgreSQL, a report or a start first tries to share a
transaction with others (`commit_group`). Each decision sees only its own run. The runs that it starts
begin in the same transaction if they can: no other transaction can see them before the commit, so none can change them,
and no further lock is needed.
"""

import logging
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from django.db import DataError, InternalError

from ... import notifications
from ...access import audit
from ...access.authentication import acting_as
from ...core import commands
from ...core.child_runs import new_child_run
from ...core.commands import FailUndecidableRun
from ...core.data_requests import (
    DataRequest,
    DefinitionByName,
    Environment,
    ScriptEvaluation,
    StoredPayloadContent,
    TaskDefinitionByName,
    WholeRun,
)
from ...core.decide import (
    EVENTS_OF_OUTCOMES,
    MAX_EFFECTS,
    Decision,
    DecisionLoop,
    RevisionInfo,
    apply_command,
    no_command,
)
from ...core.decision_context import Command, WithoutRules
from ...core.effects import CreateTask, Effect, StartRun, TransitionAttempt
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
from ...core.expressions.patterns import share_match_time
from ...core.snapshot import Run
from ...core.states import ATTEMPT, RUN
from ...db.database import transaction
from ...db.statements import execute_in_transaction, is_in_transaction, supports_commit_in_batch
from ...db.transient_errors import FaultTolerance, is_database_error, is_transient
from ...definitions.store import REQUIRE_REVISION
from ...payloads.commands import new_placement
from ...payloads.store import PayloadsTooLarge
from ...telemetry.log_context import log_context
from ...telemetry.metrics import ATTEMPTS_ENDED, RUNS_ENDED, RUNS_STARTED
from ...utils import clock, fault_points, process_state
from ...utils.process_state import Wiring
from ..store import loading, outbox, writing
from ..store.loading import is_checked
from ..store.writing import (
    MAX_STALE_ATTEMPTS,
    PendingNotifications,
    RunOrigin,
    StaleRow,
    StatementBatch,
    origin_of_start,
)
from .group_commit import ChooseFinalQuery, GroupCommit, GroupedChange, GroupedCommand, SavedChange
from .loaded_data import LoadedData, PayloadsNotLoaded
from .messages import deliver_sent

log = logging.getLogger(__name__)

MAX_CHILDREN = 20
"""Runs that begin in one transaction. The others begin by messages, so that no transaction takes long; also all after
those whose first decisions together have had as many effects as one decision may have."""
READ_HERE = (DefinitionByName, Environment, TaskDefinitionByName)
"""Data that a first decision may read. Other requests could fail the transaction of the parent."""
DECISION_LISTENERS: Wiring[tuple[Callable[[Run, Decision], None], ...]] = process_state.wiring(())
"""What is called with the run before each committed decision, and the decision."""
OUTCOMES = {event: outcome for outcome, event in EVENTS_OF_OUTCOMES.items()}


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
    `authorize`: raises Forbidden if the caller has no permission for the loaded run.
    `write_logs`: writes lines to the logs of its tasks in the same transaction, with the loaded run, the data that the
    decision has read, and the time.
    `final_query`: returns what the transaction of the decision executes at its end; it takes the loaded run, the
    effects and the time. Nothing is executed if the decision is saved in parts, or within the transaction of a caller.
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
    authorize: Callable[[Run], None] | None = None
    write_logs: Callable[[Run, Mapping[DataRequest, Any], int], None] | None = None
    final_query: ChooseFinalQuery | None = None

    def as_grouped_change(self) -> GroupedChange | None:
        """Return the change that can share a transaction with others, or None if it needs its own."""
        is_plain = self.audit is None and self.consumes is None and self.within_transaction is None
        is_plain = is_plain and not self.payload_paths and self.expected_revision is None and self.write_logs is None
        if not (is_plain and self.attempts and len(self.attempts) == 1 and may_share_transaction()):
            return None
        change = GroupedChange(
            self.run_id,
            self.attempts[0],
            self.command,
            self.actor,
            self.reason,
            self.authorize,
            self.final_query,
        )
        return change if change.has_valid_ids else None


class DecisionFailed(Exception):
    """The decision raised an unexpected exception: a bug, or a definition that validation should have rejected."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause
        super().__init__(f"{type(cause).__name__}: {cause}")


def on_decision(listener: Callable[[Run, Decision], None]) -> None:
    """Call a function with the run before each committed decision, and the decision."""
    DECISION_LISTENERS.value += (listener,)


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
        Busy: when other processes keep changing the run.
    """
    return change_run(RunCommand(run_id, no_command, actor))


def _change_or_fail(request: RunCommand) -> tuple[Effect, ...]:
    """Change the run. Fail it if the engine cannot decide how it continues, or if a payload is too large or missing."""
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
            request = replace(request, within_transaction=None, payload_paths=None, authorize=None, write_logs=None)
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


class TransactionLoop(DecisionLoop):
    """The loop of a change or a start. `data`: the data loaded for its decision."""

    def __init__(self, data: LoadedData) -> None:
        super().__init__()
        self.data = data
        self.child_starts: ChildStarts | None = None
        self.begins_children = True
        self.faults = FaultTolerance()
        self.has_failed_once = False

    def new_child_starts(self, writes: StatementBatch, now: int) -> "ChildStarts":
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
            with share_match_time():
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


class ChangeLoop(TransactionLoop):
    """The decision loop of one command on a run that exists."""

    def __init__(self, request: RunCommand) -> None:
        super().__init__(LoadedData(request.payload_paths))
        self.request = request
        self.stale_attempts = 0

    def run_transaction(self, saves_partially: bool) -> Decision:
        is_outermost = not is_in_transaction()
        return execute_in_transaction(lambda: self._decide_and_save(saves_partially, is_outermost))

    def _decide_and_save(self, saves_partially: bool, is_outermost: bool) -> Decision:
        # A first execution may have been undone.
        self.data.forget_transient()
        request = self.request
        now = clock.now()
        before = loading.load_for_update(request.run_id, request.attempts)
        _require_revision(before, request.expected_revision)
        if request.authorize is not None:
            request.authorize(before)
        decision = decide_from_rows(before, request.command, self.data, now, saves_partially)
        if decision.data_requests and not decision.effects:
            return decision
        batch = new_batch(self.data, ends_transaction=is_outermost)
        if not self._consume_message(decision, batch):
            # Another process has delivered the message.
            return Decision((), before)
        if request.within_transaction is not None:
            request.within_transaction(now)
        if request.write_logs is not None:
            request.write_logs(before, self.data, now)
        if request.final_query is not None:
            query = request.final_query(before, decision.effects, now)
            if query is not None and is_outermost and not decision.data_requests:
                batch.final_queries.append(query)
        fault_points.reach("before-commit")
        self._save(before, decision, now, batch)
        return decision

    def _consume_message(self, decision: Decision, batch: StatementBatch) -> bool:
        """Delete the message that causes the command. Return False if another process has handled it.

        At the first attempt it is deleted together with the writes of the decision.
        """
        id = self.request.consumes
        if id is not None and decision.effects and not self.stale_attempts:
            outbox.consume_with(batch, id)
            return True
        return id is None or outbox.consume(id)

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
            loading.set_timer(request.run_id, decision.after.wake_at)

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


def decide_from_rows(
    before: Run, command: Command, data: LoadedData, now: int, saves_partially: bool = False
) -> Decision:
    """Return the decision for a command. Its remaining data requests are those that no row can answer.

    Raises:
        DecisionFailed: when the core raised an unexpected exception, which is no transient error.
    """
    while True:
        decision = _call_core(before, command, data, now, saves_partially)
        here = {request for request in decision.data_requests if not isinstance(request, ScriptEvaluation | WholeRun)}
        if not here or len(here) < len(decision.data_requests):
            return decision
        try:
            data.load_from_rows(before, here, now)
        except PayloadsNotLoaded as missing:
            return Decision((), before, frozenset(map(StoredPayloadContent, missing.paths)))


def _call_core(before: Run, command: Command, data: LoadedData, now: int, saves_partially: bool) -> Decision:
    try:
        return apply_command(before, command, data, now, saves_partially)
    except (RequestRefused, PayloadOverLimit):
        raise
    except Exception as fault:
        if is_transient(fault):
            raise
        log.exception("run_undecidable", extra={"run_id": before.id})
        raise DecisionFailed(fault) from fault


def new_batch(data: LoadedData, *, ends_transaction: bool) -> StatementBatch:
    """Return an empty statement batch that writes the paths of payloads that are in blob storage already.

    `ends_transaction`: nothing is written after it.
    """
    return StatementBatch(new_placement(data.stored_paths, data.named), ends_transaction=ends_transaction)


def save_decision(
    before: Run,
    decision: Decision,
    revision: RevisionInfo,
    starts: "ChildStarts",
    origin: RunOrigin | None = None,
) -> None:
    """Save a decision together with the statements in `starts.writes`. Notifications and messages follow the commit.

    `origin`: the run is new, and its row is inserted.

    Raises:
        StaleRow: when another process changed the run.
        PayloadsTooLarge: when payloads must be stored in blob storage first.
    """
    notify = _add_statements(before, decision, revision, starts, origin)
    writing.send(starts.writes)
    transaction.on_commit(notify)


def add_decision(
    before: Run,
    decision: Decision,
    revision: RevisionInfo,
    writes: StatementBatch,
    origin: RunOrigin | None = None,
) -> Callable[[], None] | None:
    """Add the statements of a decision to those of others. `origin`: the run is new, and its row is inserted.

    Returns a function that sends notifications and messages, to be called after the commit; None if the decision needs
    its own transaction.
    """
    own = new_batch(LoadedData(), ends_transaction=False)
    own.claimed = writes.claimed
    try:
        notify = _add_statements(before, decision, revision, ChildStarts(own, revision.at, is_enabled=True), origin)
        if own.copies:
            return None
        writes.append_with_payloads(own)
    except (PayloadsTooLarge, PayloadOverLimit):
        return None
    return notify


def _add_statements(
    before: Run,
    decision: Decision,
    revision: RevisionInfo,
    starts: "ChildStarts",
    origin: RunOrigin | None,
) -> Callable[[], None]:
    """Add the statements of a decision and of the runs that it begins. Returns what to call after the commit."""
    decision = starts.begin_in(decision)
    pending = [writing.add_changes(starts.writes, before, decision, revision, origin), *starts.add_statements()]
    # Topics are only needed while a client waits for the run; the mark was read with the run.
    topics = _topics_of_change(before, decision) if before.watched_until > revision.at else []
    decisions = [(before, decision), *((child.run, child.decision) for child in starts.begun)]
    return partial(_notify, decisions, topics, pending, starts.writes.claimed)


def _topics_of_change(before: Run, decision: Decision) -> list[str]:
    """Return the topics of a watched run and of the attempts that the decision changes."""
    changes = [each for each in decision.effects if isinstance(each, TransitionAttempt) and each.event != "renew"]
    attempts = [before.tasks[each.key].attempt.id for each in changes if each.key in before.tasks]
    return [notifications.broadcast_topic(name) for name in (before.watched_as, *attempts)]


def _notify(
    decisions: Iterable[tuple[Run, Decision]],
    topics: Iterable[str],
    pending: Iterable[PendingNotifications],
    claimed: Collection[str],
) -> None:
    """Count committed decisions, announce their queues, and deliver their messages.

    `claimed`: the attempts that the same transaction has claimed. Announced, they would wake a poll for nothing.
    """
    for before, decision in decisions:
        _count_decision(before, decision)
        for listener in DECISION_LISTENERS.value:
            listener(before, decision)
    queues = [queue for each in pending for id, queue in each.queues if id not in claimed]
    notifications.announce([*queues, *topics])
    if messages := [message for each in pending for message in each.messages]:
        deliver_sent(messages)


def _count_decision(before: Run, decision: Decision) -> None:
    """Count the run that the decision started or ended, and the attempts that it ended."""
    if before.revision == 0:
        RUNS_STARTED.count(before.definition.name)
    if before.status in RUN.open and decision.after.status in RUN.final:
        RUNS_ENDED.count(before.definition.name, decision.after.status)
    for effect in decision.effects:
        if isinstance(effect, TransitionAttempt) and effect.event in OUTCOMES:
            ATTEMPTS_ENDED.count(_type_of(effect, before, decision.after), OUTCOMES[effect.event])
        elif isinstance(effect, CreateTask) and (status := effect.task.attempt.status) in ATTEMPT.final:
            ATTEMPTS_ENDED.count(effect.task.step.type, status)


def _type_of(effect: TransitionAttempt, before: Run, after: Run) -> str:
    # The decision that ends an iteration may also delete its tasks: they are only in the snapshot before it.
    task = after.tasks.get(effect.key) or before.tasks.get(effect.key)
    return task.step.type if task else ""


class ChildStarts:
    """The runs that begin together with a decision. `writes`: the statements of that decision.

    `is_enabled`: False if all of them must begin by messages.
    """

    def __init__(self, writes: StatementBatch, now: int, *, is_enabled: bool) -> None:
        self.writes, self.now, self.is_enabled = writes, now, is_enabled
        self.begun: list[BegunRun] = []
        self._effects = 0

    def begin_in(self, decision: Decision) -> Decision:
        """Return the decision with its starts marked whose runs begin here."""
        if not self.is_enabled or not any(isinstance(effect, StartRun) for effect in decision.effects):
            return decision
        # First decisions are authorized by the definitions, not by the caller of this request.
        with acting_as(None):
            return replace(decision, effects=tuple(self._begin_each(decision.effects, decision.after)))

    def add_statements(self) -> list[PendingNotifications]:
        """Append the statements of the first decisions to those of the decision. Return their notifications."""
        for each in self.begun:
            self.writes.append(each.writes)
        return [each.pending for each in self.begun]

    def _begin_each(self, effects: Iterable[Effect], parent: Run) -> Iterator[Effect]:
        for effect in effects:
            if isinstance(effect, StartRun) and self._can_begin(effect, parent) and self._begin(effect, parent):
                yield replace(effect, has_begun=True)
            else:
                yield effect

    def _can_begin(self, effect: StartRun, parent: Run) -> bool:
        return (
            bool(effect.parent_attempt_id)
            and parent.is_open
            and len(self.begun) < MAX_CHILDREN
            and self._effects < MAX_EFFECTS
            and not effect.releases_key_of
            and not effect.definition.document.get("rateLimitConfig")
            and not is_checked(effect.id, parent.depth + 1)
        )

    def _begin(self, effect: StartRun, parent: Run) -> bool:
        """Add the first decision of a run. Return False if the run must begin by a message."""
        child, count = new_child_run(effect, parent, self.now), len(self.begun)
        try:
            decision = decide_from_rows(child, no_command, FirstDecisionData(), self.now)
            if decision.data_requests:
                return False
            self._effects += len(decision.effects)
            decision, writes = self.begin_in(decision), StatementBatch(self.writes.placement)
            revision, origin = RevisionInfo(self.now, "engine"), origin_of_start(effect, parent)
            pending = writing.add_changes(writes, child, decision, revision, origin)
        except Exception as error:
            if is_transient(error) and not isinstance(error, RequestRefused):
                # The transaction may have failed: all of it is repeated.
                raise
            # The message repeats the decision in a transaction of its own, which handles the error.
            log.info("child_begins_by_message", extra={"run_id": child.id, "why": type(error).__name__})
            del self.begun[count:]
            return False
        self.begun.append(BegunRun(child, decision, writes, pending))
        return True


@dataclass(frozen=True, slots=True)
class BegunRun:
    """A run that begins, its first decision, and the statements and notifications that belong to it."""

    run: Run
    decision: Decision
    writes: StatementBatch
    pending: PendingNotifications


class FirstDecisionData(LoadedData):
    """Data for the first decision of a run in the transaction of its parent."""

    def load_from_rows(self, run: Run, requests: Iterable[DataRequest], now: int) -> None:
        requests = list(requests)
        if not all(isinstance(request, READ_HERE) for request in requests):
            raise NotReadHere
        super().load_from_rows(run, requests, now)


class NotReadHere(Exception):
    """The first decision needs data that the transaction of the parent does not read."""


def may_share_transaction() -> bool:
    """Return True if changes of this thread may be part of a group: on PostgreSQL, outside of transactions."""
    return supports_commit_in_batch() and not is_in_transaction()


def commit_group(members: Sequence[GroupedCommand]) -> None:
    """Lock the available runs of a group, decide about each and about new runs, and write all decisions.

    This takes two round trips, or one if all runs are new.
    """
    with transaction.atomic():
        now, writes = clock.now(), StatementBatch(ends_transaction=True)
        changes = [member.change for member in members]
        attempts = {each.run_id: each.attempt_id for each in changes if each.new_run is None}
        runs = {each.run_id: each.new_run for each in changes if each.new_run is not None}
        runs |= loading.lock_available(attempts) if attempts else {}
        # Transactions that insert the same keys in the same order cannot wait for each other.
        for member in sorted(members, key=lambda member: member.change.unique_key):
            if (before := runs.get(member.change.run_id)) is not None:
                member.context.run(_decide_in_group, member, before, now, writes)
        if writes.statements:
            for revision in {each.definitions_revision for each in changes} - {None}:
                writes.run(REQUIRE_REVISION, [revision])
            fault_points.reach("before-commit")
            writes.send()


def _decide_in_group(member: GroupedCommand, before: Run, now: int, writes: StatementBatch) -> None:
    """Decide, and add the statements of the decision unless it needs more data."""
    change = member.change
    try:
        if change.authorize is not None:
            change.authorize(before)
        decision = decide_from_rows(before, change.command, LoadedData(), now)
    except RequestRefused as refusal:
        # What is refused only at the moment may succeed in the transaction of its own, which is repeated.
        member.refusal = None if is_transient(refusal) else refusal
        return
    except (PayloadOverLimit, DecisionFailed):
        # The transaction of its own fails the run.
        return
    if decision.data_requests or not decision.effects:
        return
    revision = RevisionInfo(now, change.actor, change.reason)
    notify = add_decision(before, decision, revision, writes, change.origin)
    if notify is not None:
        member.saved = SavedChange(decision.effects, notify)
        if change.final_query is not None and (query := change.final_query(before, decision.effects, now)) is not None:
            writes.final_queries.append(query)


GROUPS = process_state.slot(lambda: GroupCommit(commit_group))
