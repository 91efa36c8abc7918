"""One decision inside a transaction: evaluate it with data from rows, and save it.

The runs that it starts begin in the same transaction if they can: no other transaction can see them before the commit,
so none can change them, and no further lock is needed. Each decision sees only its own run.

Limits of a tree of runs: no run begins while the tree is terminated, and the number of open runs is bounded.

Update the metrics of runs and attempts after a decision is committed.

Data for the requests of a decision: rows are read in its transaction, scripts run between two transactions.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.db import transaction

from ... import notifications
from ...access.authentication import acting_as
from ...access.grants import readable_variables, starter_refusal
from ...access.secrets import decrypt_masked, load_secrets
from ...core.child_runs import new_child_run
from ...core.data_requests import (
    DataRequest,
    DefinitionByName,
    Environment,
    InlineDefinition,
    ListItem,
    SchemaCheck,
    ScriptEvaluation,
    ScriptResult,
    SecretValues,
    StoredPayloadContent,
    TaskDefinitionByName,
    TaskOutcome,
    UsePermission,
    WholeRun,
)
from ...core.decide import Decision, RevisionInfo, apply_command, no_command
from ...core.decision_context import Command
from ...core.definition import Definition
from ...core.effects import CreateTask, Effect, StartRun, TransitionAttempt
from ...core.errors import Busy, PayloadOverLimit, RequestRefused
from ...core.reports import EVENTS
from ...core.snapshot import Run as CountingRun
from ...core.snapshot import Run as DataLoadingRun
from ...core.snapshot import Run as DecisionRun
from ...core.states import ATTEMPT, RUN
from ...db.transient_errors import is_transient
from ...definitions import resolved_definitions
from ...definitions.schemas import check_against_schema
from ...payloads import commands as payload_storage
from ...payloads.commands import new_placement
from ...payloads.store import PayloadsTooLarge, digest_value
from ...scripts.pool import EvaluationResult, ScriptsUnavailable, evaluate
from ...settings import conf
from ...tasks import throughput
from ...telemetry.metrics import ATTEMPTS_ENDED, RUNS_ENDED, RUNS_STARTED
from ..models import Run
from ..store import data as from_rows
from ..store import loading as run_tree
from ..store import writing as run_writer
from ..store.batch import StatementBatch
from ..store.data import ExternalPayload, MaskedPayload, item_lists
from ..store.writing import PendingNotifications, RunOrigin, origin_of_start
from .messages import deliver_sent

SAMPLE = 16
"""One of 16 runs counts the open runs of its tree, which takes about a millisecond for 10,000 runs."""


CHECKED_DEPTH = 3
"""The depth from which a beginning run looks at the runs above it. Shallower trees are terminated in time."""


def is_checked(run_id: str, depth: int) -> bool:
    """Return True if a run at this depth looks at its tree before it begins."""
    return depth >= CHECKED_DEPTH or _counts_descendants(run_id)


def _counts_descendants(run_id: str) -> bool:
    return bool(conf.max_open_descendants) and int(run_id[-2:], 16) % SAMPLE == 0


def reason_not_to_begin(run_id: str) -> str:
    """Return why a run must not begin, or an empty text.

    A run that starts itself without end grows as fast as its termination follows it from level to level. Therefore a
    beginning run checks whether a run above it is being terminated.
    """
    row = Run.objects.filter(pk=run_id).values_list("parent_id", "root_id", "depth").first()
    if row is None or not row[0]:
        return ""
    parent_id, root_id, depth = row
    if depth >= CHECKED_DEPTH and run_tree.is_being_terminated(parent_id):
        return "A workflow above this one was terminated."
    limit = conf.max_open_descendants
    if _counts_descendants(run_id) and run_tree.has_open_descendants(root_id, limit):
        return f"Workflow {root_id} has more than {limit} open sub-workflows, the maximum (MAX_OPEN_DESCENDANTS)."
    return ""


OUTCOMES = {event: outcome for outcome, event in EVENTS.items()}


def count_decision(before: CountingRun, decision: Decision) -> None:
    """Count the run that the decision started or ended, and the attempts that it ended."""
    if before.revision == 0:
        RUNS_STARTED.count(before.definition.name)
    if before.status in RUN.open and decision.after.status in RUN.final:
        RUNS_ENDED.count(before.definition.name, decision.after.status)
    throughput.record_decision(before, decision)
    for effect in decision.effects:
        if isinstance(effect, TransitionAttempt) and effect.event in OUTCOMES:
            ATTEMPTS_ENDED.count(_type_of(effect, before, decision.after), OUTCOMES[effect.event])
        elif isinstance(effect, CreateTask) and (status := effect.task.attempt.status) in ATTEMPT.final:
            ATTEMPTS_ENDED.count(effect.task.step.type, status)


def _type_of(effect: TransitionAttempt, before: CountingRun, after: CountingRun) -> str:
    # The decision that ends an iteration may also delete its tasks: they are only in the snapshot before it.
    task = after.tasks.get(effect.key) or before.tasks.get(effect.key)
    return task.step.type if task else ""


class PayloadsNotLoaded(Exception):
    """Data requests need payloads in blob storage that were not loaded yet."""

    def __init__(self, paths: set[str]) -> None:
        self.paths = paths
        super().__init__(", ".join(sorted(paths)))


class LoadedData(dict[DataRequest, Any]):
    """Data that was loaded for a decision, by request.

    `contents`: payloads from blob storage, by path. `kept`: paths in blob storage, by digest of the payload. `named`:
    paths that a client sent, by the part and the digest of their payload.
    """

    def __init__(self, named: Mapping[tuple[str, str], str] | None = None) -> None:
        super().__init__()
        self.contents: dict[str, Any] = {}
        self.stored_paths: dict[str, str] = {}
        self.named = named or {}

    def forget_transient(self) -> None:
        """Discard the data that a concurrent change of the run can invalidate."""
        for request in [request for request in self if not request.is_lasting]:
            del self[request]

    def load_from_rows(self, run: DataLoadingRun, requests: Iterable[DataRequest], now: int) -> None:
        """Load the data that the database holds.

        Raises:
            PayloadsNotLoaded: when payloads must be read from blob storage first.
        """
        requests = list(requests)
        found = from_rows.load_requested(run, requests, now)
        if missing := {each.path for each in _external_payload_paths(found.values()) if each.path not in self.contents}:
            raise PayloadsNotLoaded(missing)
        self |= {request: self._substitute(request, value) for request, value in found.items()}
        for request in requests:
            if isinstance(request, DefinitionByName):
                self[request] = self.definition_by_name(request, now)
            elif isinstance(request, InlineDefinition):
                self[request] = self.inline_definition(request, now)
            elif isinstance(request, UsePermission):
                self[request] = starter_refusal(run.starter_id, request.target_type, request.name)
            elif isinstance(request, Environment) and request.readable_by:
                self[request] = readable_variables(request.readable_by, self[request])
            elif isinstance(request, SecretValues):
                self[request] = load_secrets(request.names)
            elif isinstance(request, SchemaCheck):
                self[request] = check_against_schema(request)
            elif isinstance(request, TaskDefinitionByName):
                self[request] = resolved_definitions.task_document(request.name)

    def _substitute(self, request: DataRequest, value: Any) -> Any:
        if isinstance(request, ListItem) and isinstance(value, ExternalPayload | MaskedPayload):
            item_lists.value.put(request.attempt_id, self._load_external(value)["items"])
            return item_lists.value.item(request.attempt_id, request.index)
        return self._load_external(value)

    def _load_external(self, value: Any) -> Any:
        """Return the answer with its payloads from blob storage filled in and its masked payloads decrypted."""
        match value:
            case ExternalPayload():
                return self.contents[value.path]
            case MaskedPayload():
                return decrypt_masked(value.value)
            case TaskOutcome(output=ExternalPayload() | MaskedPayload()):
                return replace(value, output=self._load_external(value.output))
            case [TaskOutcome(), *_]:
                return [self._load_external(outcome) for outcome in value]
            case (seq, (ExternalPayload() | MaskedPayload()) as output):
                return (seq, self._load_external(output))
        return value

    def definition_by_name(self, request: DefinitionByName, now: int) -> Definition | None:
        """Return the resolved definition for a name and version."""
        return resolved_definitions.resolve_by_name(request.name, request.version, now)

    def inline_definition(self, request: InlineDefinition, now: int) -> Definition | str:
        """Return the resolved definition for an inline document, or the error message for it."""
        return resolved_definitions.resolve_inline(request.document, request.allowed_secrets, now)

    def evaluate_scripts(self, requests: Iterable[DataRequest]) -> None:
        """Run the requested scripts and read the requested payloads. Called without locks, because both can be slow."""
        for request in requests:
            if isinstance(request, ScriptEvaluation):
                self[request] = run_script(request)
            elif isinstance(request, StoredPayloadContent):
                value = self.contents[request.path] = payload_storage.load_unmasked_payload(request.path)
                # If another task receives this payload as its input, it is not stored twice.
                self.stored_paths[digest_value(value)] = request.path

    def keep(self, texts: Mapping[str, str]) -> None:
        """Store payloads that are too large for rows in blob storage."""
        for name, text in texts.items():
            self.stored_paths[name] = payload_storage.store_payload("engine", text)


def _external_payload_paths(values: Iterable[Any]) -> Iterator[ExternalPayload]:
    for value in values:
        match value:
            case ExternalPayload():
                yield value
            case TaskOutcome(output=ExternalPayload() as output) | (_, ExternalPayload() as output):
                yield output
            case [TaskOutcome(), *_]:
                yield from _external_payload_paths(value)


def run_script(request: ScriptEvaluation) -> ScriptResult:
    """Run a script in a helper process and return its result.

    Raises:
        Busy: when no helper process is available.
    """
    try:
        result = _evaluate_script(request)
    except ScriptsUnavailable as busy:
        raise Busy(str(busy)) from busy
    return ScriptResult(result.value, result.error or "", result.timed_out)


def _evaluate_script(request: ScriptEvaluation) -> EvaluationResult:
    return evaluate(
        request.language,
        request.source,
        json.loads(request.inputs),
        key=request.definition,
    )


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
    before: DecisionRun, command: Command, data: LoadedData, now: int, saves_partially: bool = False
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


def _call_core(before: DecisionRun, command: Command, data: LoadedData, now: int, saves_partially: bool) -> Decision:
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

    run: DecisionRun
    decision: Decision
    writes: StatementBatch
    pending: PendingNotifications


class FirstDecisionData(LoadedData):
    """Data for the first decision of a run in the transaction of its parent."""

    def load_from_rows(self, run: DecisionRun, requests: Iterable[DataRequest], now: int) -> None:
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

    def _begin_each(self, effects: Iterable[Effect], parent: DecisionRun) -> Iterator[Effect]:
        for effect in effects:
            if isinstance(effect, StartRun) and self._can_begin(effect, parent) and self._begin(effect, parent):
                yield replace(effect, has_begun=True)
            else:
                yield effect

    def _can_begin(self, effect: StartRun, parent: DecisionRun) -> bool:
        return (
            bool(effect.parent_attempt_id)
            and parent.is_open
            and len(self.begun) < MAX_CHILDREN
            and not effect.releases_key_of
            and not effect.definition.document.get("rateLimitConfig")
            and not is_checked(effect.id, parent.depth + 1)
        )

    def _begin(self, effect: StartRun, parent: DecisionRun) -> bool:
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
    before: DecisionRun,
    decision: Decision,
    revision: RevisionInfo,
    starts: ChildStarts,
    origin: RunOrigin | None = None,
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
    before: DecisionRun, decision: Decision, revision: RevisionInfo, writes: StatementBatch
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
    before: DecisionRun,
    decision: Decision,
    revision: RevisionInfo,
    starts: ChildStarts,
    origin: RunOrigin | None = None,
) -> Callable[[], None]:
    """Add the statements of a decision and of the runs that it begins. Returns what to call after the commit."""
    decision = starts.begin_in(decision)
    pending = [run_writer.add_changes(starts.writes, before, decision, revision, origin), *starts.add_statements()]
    # Topics are only needed while a client waits for the run; the mark was read with the run.
    topics = [notifications.broadcast_topic(before.watched_as)] if before.watched_until > revision.at else []
    decisions = [(before, decision), *((child.run, child.decision) for child in starts.begun)]
    return partial(_notify, decisions, topics, pending)


def _notify(
    decisions: Iterable[tuple[DecisionRun, Decision]], topics: Iterable[str], pending: Iterable[PendingNotifications]
) -> None:
    """Count committed decisions, announce their queues, and deliver their messages."""
    for before, decision in decisions:
        count_decision(before, decision)
    notifications.announce([*(queue for each in pending for queue in each.queues), *topics])
    if messages := [message for each in pending for message in each.messages]:
        deliver_sent(messages)
