"""One decision inside a transaction: evaluate it with data from rows, and save it.

The runs that it starts begin in the same transaction if they can: no other transaction can see them before the commit,
so none can change them, and no further lock is needed. Each decision sees only its own run.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from django.db import transaction

from ... import notifications
from ...access.current_actor import acting_as
from ...core.child_run import new_child_run
from ...core.data_requests import (
    DataRequest,
    DefinitionByName,
    Environment,
    ScriptEvaluation,
    StoredPayloadContent,
    TaskDefinitionByName,
    WholeRun,
)
from ...core.decide import Decision, RevisionInfo, apply_command, no_command
from ...core.decision_context import Command
from ...core.effects import Effect, StartRun
from ...core.errors import PayloadOverLimit, RequestRefused
from ...core.snapshot import Run
from ...store import run_writer
from ...store.child_runs_and_messages import RunOrigin, origin_of_start
from ...store.payload_placement import PayloadsTooLarge
from ...store.run_writer import PendingNotifications
from ...store.statement_batch import StatementBatch
from ...transient_errors import is_transient
from ..delivery import deliver_sent
from ..payloads.payload_storage import new_placement
from .counting import count_decision
from .data_loading import LoadedData, PayloadsNotLoaded
from .run_tree_limits import is_checked

log = logging.getLogger(__name__)

MAX_CHILDREN = 20
"""Runs that begin in one transaction. The others begin by messages, so that no transaction takes long."""
READ_HERE = (DefinitionByName, Environment, TaskDefinitionByName)
"""Data that a first decision may read. Other requests could fail the transaction of the parent."""


class DecisionFailed(Exception):
    """The decision raised an unexpected exception: a bug, or a definition that validation should have rejected."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause
        super().__init__(f"{type(cause).__name__}: {cause}")


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


class ChildStarts:
    """The runs that begin together with a decision. `writes`: the statements of that decision.

    `is_enabled`: False if all of them must begin by messages.
    """

    def __init__(self, writes: StatementBatch, now: int, *, is_enabled: bool) -> None:
        self.writes, self.now, self.is_enabled = writes, now, is_enabled
        self.begun: list[BegunRun] = []

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
            decision, writes = self.begin_in(decision), StatementBatch(self.writes.placement)
            revision, origin = RevisionInfo(self.now, "engine"), origin_of_start(effect, parent)
            pending = run_writer.add_changes(writes, child, decision, revision, origin)
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


def save_decision(
    before: Run, decision: Decision, revision: RevisionInfo, starts: ChildStarts, origin: RunOrigin | None = None
) -> None:
    """Save a decision together with the statements in `starts.writes`. Notifications and messages follow the commit.

    `origin`: the run is new, and its row is inserted.

    Raises:
        StaleRow: when another process changed the run.
        PayloadsTooLarge: when payloads must be stored in blob storage first.
    """
    notify = _add_statements(before, decision, revision, starts, origin)
    run_writer.send(starts.writes)
    transaction.on_commit(notify)


def add_decision(
    before: Run, decision: Decision, revision: RevisionInfo, writes: StatementBatch
) -> Callable[[], None] | None:
    """Add the statements of a decision to those of others.

    Returns a function that sends notifications and messages, to be called after the commit; None if the decision needs
    its own transaction.
    """
    own = new_batch(LoadedData(), ends_transaction=False)
    try:
        notify = _add_statements(before, decision, revision, ChildStarts(own, revision.at, is_enabled=True))
        if own.copies:
            return None
        writes.append_with_payloads(own)
    except (PayloadsTooLarge, PayloadOverLimit):
        return None
    return notify


def _add_statements(
    before: Run, decision: Decision, revision: RevisionInfo, starts: ChildStarts, origin: RunOrigin | None = None
) -> Callable[[], None]:
    """Add the statements of a decision and of the runs that it begins. Returns what to call after the commit."""
    decision = starts.begin_in(decision)
    pending = [run_writer.add_changes(starts.writes, before, decision, revision, origin), *starts.add_statements()]
    # Topics are only needed while a client waits for the run; the mark was read with the run.
    topics = [notifications.broadcast_topic(before.watched_as)] if before.watched_until > revision.at else []
    decisions = [(before, decision), *((child.run, child.decision) for child in starts.begun)]
    return partial(_notify, decisions, topics, pending)


def _notify(
    decisions: Iterable[tuple[Run, Decision]], topics: Iterable[str], pending: Iterable[PendingNotifications]
) -> None:
    """Count committed decisions, announce their queues, and deliver their messages."""
    for before, decision in decisions:
        count_decision(before, decision)
    notifications.announce([*(queue for each in pending for queue in each.queues), *topics])
    if messages := [message for each in pending for message in each.messages]:
        deliver_sent(messages)
