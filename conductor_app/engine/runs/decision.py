"""One decision inside a transaction: evaluate it with data from rows, and save it."""

import logging
from collections.abc import Callable
from functools import partial

from django.db import transaction

from ... import notifications
from ...core.commands import FailUndecidableRun
from ...core.data_requests import ScriptEvaluation, StoredPayloadContent, WholeRun
from ...core.decide import Decision, RevisionInfo, apply_command
from ...core.decision_context import Command
from ...core.errors import RequestRefused
from ...core.snapshot import Run
from ...store import run_writer
from ...store.payload_placement import PayloadOverLimit, PayloadsTooLarge
from ...store.run_writer import PendingNotifications
from ...store.statement_batch import StatementBatch
from ..delivery import deliver_after_commit
from ..payloads.payload_storage import new_placement
from .counting import count_decision
from .data_loading import LoadedData, PayloadsNotLoaded

log = logging.getLogger(__name__)


class DecisionFailed(Exception):
    """The decision raised an unexpected exception: a bug, or a definition that validation should have rejected."""

    def __init__(self, cause: Exception, is_final: bool) -> None:
        self.cause, self.is_final = cause, is_final
        super().__init__(f"{type(cause).__name__}: {cause}")


def decide_from_rows(
    before: Run, command: Command, data: LoadedData, now: int, saves_partially: bool = False
) -> Decision:
    """Return the decision for a command. Its remaining data requests are those that no row can answer.

    Raises:
        DecisionFailed: when the core raised an unexpected exception.
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
    except RequestRefused:
        raise
    except Exception as fault:
        log.exception("run_undecidable", extra={"run_id": before.id})
        raise DecisionFailed(fault, is_final=isinstance(command, FailUndecidableRun)) from fault


def new_batch(data: LoadedData, *, ends_transaction: bool) -> StatementBatch:
    """Return an empty statement batch that writes the paths of payloads that are in blob storage already.

    `ends_transaction`: nothing is written after it.
    """
    return StatementBatch(new_placement(data.stored_paths, data.named), ends_transaction=ends_transaction)


def save_decision(before: Run, decision: Decision, revision: RevisionInfo, writes: StatementBatch) -> None:
    """Save a decision together with the statements in `writes`. Notifications and messages are sent after the commit.

    Raises:
        StaleRow: when another process changed the run.
        PayloadsTooLarge: when payloads must be stored in blob storage first.
    """
    pending = run_writer.save_run(writes, before, decision, revision)
    transaction.on_commit(partial(_notify, before, decision, revision.at, pending))


def add_decision(
    before: Run, decision: Decision, revision: RevisionInfo, writes: StatementBatch
) -> Callable[[], None] | None:
    """Add the statements of a decision to those of others.

    Returns a function that sends notifications and messages, to be called after the commit; None if the decision needs
    its own transaction.
    """
    own = new_batch(LoadedData(), ends_transaction=False)
    try:
        pending = run_writer.add_run(own, before, decision, revision)
        if own.copies:
            return None
        writes.add_all(own)
    except (PayloadsTooLarge, PayloadOverLimit):
        return None
    return partial(_notify, before, decision, revision.at, pending)


def _notify(before: Run, decision: Decision, now: int, pending: PendingNotifications) -> None:
    """Count a committed decision, announce its queues, and deliver its messages."""
    count_decision(before, decision)
    # Topics are only needed while a client waits for the run; the mark was read with the run.
    topics = [notifications.broadcast_topic(before.watched_as)] if before.watched_until > now else []
    notifications.announce([*pending.queues, *topics])
    if pending.messages:
        deliver_after_commit(pending.messages)
