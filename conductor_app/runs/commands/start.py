"""Start a run: check the request, resolve its definition, and take the first steps in the creating transaction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ...access import audit
from ...access import quotas as quota_checks
from ...access.authentication import current_actor, current_user_id
from ...access.grants import require_debug, require_inline_definition, require_starts
from ...core.breakpoints import live_breakpoints, require_valid, with_breakpoints
from ...core.child_runs import set_first_timer
from ...core.commands.control import add_breakpoint
from ...core.decide import Decision, RevisionInfo, no_command
from ...core.definition import Definition
from ...core.document.reading import secrets_named_in
from ...core.effects import Effect
from ...core.errors import Busy, Conflict, InputInvalid, Invalid, PayloadOverLimit, RequestRefused, ValidationError
from ...core.fairness import share_of_start
from ...core.primitives import derived_id
from ...core.schemas import schema_question
from ...core.snapshot import NO_SHARE, Run, Share
from ...core.states import RUN, RUNNING
from ...core.trace_context import first_traceparent
from ...db.fields import dumps
from ...db.statements import execute_in_transaction, is_in_transaction
from ...definitions import resolved_definitions
from ...definitions.schemas import check_against_schema
from ...payloads import commands as payload_storage
from ...settings import conf
from ...telemetry.log_context import current_traceparent, log_context
from ...utils import clock, fault_points, randomness
from ..models import Run as RunRow
from ..store import loading
from ..store.writing import RunOrigin, StaleRow, StatementBatch
from . import control, run_limits
from .change import (
    GROUPS,
    DecisionFailed,
    TransactionLoop,
    decide_from_rows,
    may_share_transaction,
    new_batch,
    save_decision,
    wake_run,
)
from .debugging import BreakpointRequest, build_breakpoint
from .group_commit import GroupedChange
from .loaded_data import LoadedData

FARTHEST_MS = 366 * 86_400_000


@dataclass(frozen=True, slots=True)
class StartRequest:
    """Parameters of a client that starts a run. `document`: an inline definition instead of a name.

    `definition`: a definition that is resolved and stored, instead of both.
    `request_id`: id of the request; a repeated request returns the run of the first one. `input_path`: path of an input
    that was uploaded before. `starts_at`: time of the first step in milliseconds; the run is created now.
    `traceparent`: the trace of the caller, valid or None. `fairness`: the fairness key and its weight in place of the
    definition's.
    """

    name: str
    version: int | None = None
    input: dict[str, Any] = field(default_factory=dict)
    correlation_id: str = ""
    priority: int = 0
    domains: dict[str, str] = field(default_factory=dict)
    document: dict[str, Any] | None = None
    idempotency_key: str | None = None
    idempotency_strategy: str = "FAIL"
    started_by: str = ""
    event: str = ""
    request_id: str | None = None
    schedule: str = ""
    depth: int = 0
    input_path: str = ""
    labels: tuple[str, ...] = ()
    starts_at: int = 0
    breakpoints: tuple[BreakpointRequest, ...] = ()
    traceparent: str | None = None
    fairness: Share = NO_SHARE
    definition: Definition | None = None


def start_run(request: StartRequest, by: str, within_transaction: Callable[[str], None] | None = None) -> str:
    """Start a run, take its first steps, and return its id.

    `within_transaction`: writes in the transaction that creates the run. Its exceptions roll the start back.

    Raises:
        Forbidden: when the current actor may not start it.
        ValidationFailed: when the inline definition or the input violates a check or schema.
        Invalid: when another value is invalid, or a payload is too large.
        Conflict: when the idempotency key was used before, depending on its strategy.
        QuotaExceeded: when the current actor has started too many runs.
        Busy: when concurrent requests prevent the start.
    """
    now = clock.now()
    if request.starts_at > now + FARTHEST_MS:
        raise Invalid("`startAt` must be at most 366 days ahead.")
    request = replace(with_input(request), labels=tuple(control.clean_labels(request.labels)))
    require_start_request(request)
    seed, known = randomness.random_hex(), None
    if within_transaction is None and (known := _find_known_definition(request)) is not None:
        quota_checks.require_start()
        if (run_id := _start_in_group(request, by, *known, now, seed)) is not None:
            return run_id
    definition = request.definition or resolved_definitions.resolve_requested(
        request.name, request.version, request.document, now
    )
    if (earlier := _earlier(request, definition.name)) is not None:
        return earlier
    if known is None:
        quota_checks.require_start()
    if request.document is not None and (names := secrets_named_in(request.document)):
        within_transaction = partial(_record_inline_start, by, names, within_transaction)
    loop = _new_loop(request, definition, by, now, seed, within_transaction)
    with log_context("start", run_id=loop.new_run.id):
        return _start_or_find_earlier(loop, loop.as_grouped_change() if known is None else None)


def _find_known_definition(request: StartRequest) -> tuple[Definition, int] | None:
    """Return the definition of a start that needs no answer from the database before its transaction, or None."""
    has_key = request.idempotency_key or request.request_id
    is_given = request.document is not None or request.definition is not None
    if is_given or has_key or not may_share_transaction():
        return None
    return resolved_definitions.find_known(request.name, request.version)


def _start_in_group(
    request: StartRequest, by: str, definition: Definition, revision: int, now: int, seed: str
) -> str | None:
    """Start a run by a definition that this process has loaded. Its transaction checks that it is the current one.

    Returns None if it is not, or if the start needs a transaction of its own.
    """
    try:
        loop = _new_loop(request, definition, by, now, seed)
        if (change := loop.as_grouped_change()) is None:
            return None
        with log_context("start", run_id=loop.new_run.id):
            effects = GROUPS.value.change(replace(change, definitions_revision=revision))
    except RequestRefused:
        # The current definition may accept what this one refuses.
        return None
    return None if effects is None else loop.new_run.id


def _new_loop(
    request: StartRequest,
    definition: Definition,
    by: str,
    now: int,
    seed: str,
    within_transaction: Callable[[str], None] | None = None,
) -> "StartLoop":
    """Return the decision loop of a new run. Its id depends on the time and the seed."""
    run = new_run(request, definition, now, seed)
    # An input that a template was merged into is no longer the one that the client uploaded.
    is_as_given = request.input_path and run.input == request.input
    data = LoadedData({(run.id, "input"): request.input_path} if is_as_given else None)
    return StartLoop(run, request, by, within_transaction, data)


def _record_inline_start(
    by: str, secrets: Sequence[str], within_transaction: Callable[[str], None] | None, run_id: str
) -> None:
    """Record the start of a definition that was not saved: it sends secrets somewhere, as a saved one could."""
    audit.record("run", run_id, "start", by, facts={"inline definition": True, "secrets": secrets})
    if within_transaction is not None:
        within_transaction(run_id)


def _start_or_find_earlier(loop: "StartLoop", change: GroupedChange | None) -> str:
    """Start the run, in a group if `change` is given. Returns its id, or that of a concurrent request's run."""
    name = loop.new_run.definition.name
    try:
        if change is None or GROUPS.value.change(change) is None:
            loop.run()
    except StaleRow:
        if RunRow.objects.filter(pk=loop.new_run.id).exists():
            # The connection was lost after the commit.
            return loop.new_run.id
        if (earlier := _earlier(loop.request, name)) is None:
            raise Busy(workflow=name) from None
        return earlier
    except DecisionFailed as fault:
        raise Invalid(f"The engine cannot decide the first steps of this workflow: {fault}"[:500]) from fault
    except PayloadOverLimit as found:
        raise Invalid(str(found)) from found
    return loop.new_run.id


class StartLoop(TransactionLoop):
    """The decision loop of a run that is created with its first steps."""

    def __init__(
        self,
        run: Run,
        request: StartRequest,
        actor: str,
        within_transaction: Callable[[str], None] | None,
        data: LoadedData,
    ) -> None:
        super().__init__(data)
        self.new_run, self.request, self.actor, self.within_transaction = run, request, actor, within_transaction

    def as_grouped_change(self) -> GroupedChange | None:
        """Return the start that can share a transaction with others, or None if it needs its own.

        The limit of concurrent runs is counted in the transaction, which must see the starts before it.
        """
        run, request = self.new_run, self.request
        is_plain = self.within_transaction is None and not request.labels and not self.data.named
        if not is_plain or run_limits.run_limit_of(run.definition)[1] > 0 or not may_share_transaction():
            return None
        return GroupedChange(run.id, "", no_command, self.actor, "", new_run=run, origin=self._origin())

    def run_transaction(self, saves_partially: bool) -> Decision:
        is_outermost = not is_in_transaction()
        return execute_in_transaction(lambda: self._decide_and_save(saves_partially, is_outermost))

    def _decide_and_save(self, saves_partially: bool, is_outermost: bool) -> Decision:
        # A first execution may have been undone.
        self.data.forget_transient()
        run, now = self.new_run, clock.now()
        # A run that starts later is counted by its limit when its time has come.
        run = run if run.begins_later(now) else _apply_run_limit(run)
        decision = decide_from_rows(run, no_command, self.data, now, saves_partially)
        if not decision.data_requests or decision.effects:
            fault_points.reach("before-commit")
            self._save(run, decision, now, new_batch(self.data, ends_transaction=is_outermost))
        return decision

    def _save(self, run: Run, decision: Decision, now: int, batch: StatementBatch) -> None:
        if self.within_transaction is not None:
            self.within_transaction(run.id)
        if self.request.labels:
            control.save_labels(run.id, self.request.labels)
        starts = self.new_child_starts(batch, now)
        save_decision(run, decision, RevisionInfo(now, self.actor), starts, self._origin())

    def _origin(self) -> RunOrigin:
        request = self.request
        return RunOrigin(
            request.started_by or self.actor,
            event=request.event,
            schedule=request.schedule,
            idempotency_key=request.idempotency_key,
            request_id=request.request_id,
        )

    def on_stale(self) -> None:
        # Another process has started a run with the same key, or for the same request.
        raise StaleRow

    def continue_after_partial_save(self) -> bool:
        # The run exists: its remaining first steps follow from its rows.
        wake_run(self.new_run.id, self.actor)
        return False

    def on_exhausted(self) -> tuple[Effect, ...]:
        raise Busy(workflow=self.new_run.definition.name)


def require_start_request(request: StartRequest) -> None:
    """Check that the current actor may start the workflow, or may save and use what an inline definition names.

    Raises:
        Forbidden: when it may not; the message names the permission.
    """
    if request.breakpoints:
        require_debug()
    if request.document is None:
        require_starts([request.name])
    else:
        require_inline_definition(request.document)


def with_input(request: StartRequest) -> StartRequest:
    """Return the request with its input loaded.

    Raises:
        Invalid: when the input is missing or too large.
        Busy: when the storage cannot be reached.
    """
    most = conf.workflow_payload_max_bytes
    if request.input_path:
        return replace(request, input=payload_storage.load_client_payload(request.input_path, most))
    if (size := len(dumps(request.input) or "")) > most:
        raise Invalid(f"The input has {size} bytes; the limit is {most} bytes.")
    return request


def _earlier(request: StartRequest, name: str) -> str | None:
    """Return the run that the same request or idempotency key has started before (api §3.9)."""
    if request.request_id and (same := RunRow.objects.filter(name=name, request_id=request.request_id).first()):
        return same.id
    if not request.idempotency_key:
        return None
    earlier = RunRow.objects.filter(name=name, idempotency_key=request.idempotency_key).first()
    if earlier is None:
        return None
    if request.idempotency_strategy == "RETURN_EXISTING":
        return earlier.id
    if request.idempotency_strategy == "FAIL_ON_RUNNING" and earlier.status in RUN.final:
        loading.clear_idempotency_key(earlier.pk)
        return None
    raise Conflict(f"The idempotency key '{request.idempotency_key}' of {name} was used before, for run {earlier.id}.")


def new_run(request: StartRequest, definition: Definition, now: int, seed: str) -> Run:
    """Return the requested run before its first decision.

    Raises:
        InputInvalid: when the input violates the schema of the definition.
    """
    template = definition.document.get("inputTemplate") or {}
    id, input = derived_id(now, seed), {**template, **request.input}
    run = Run(
        id=id,
        definition=definition,
        status=RUNNING,
        created_at=max(now, request.starts_at),
        input=input,
        output={},
        variables=dict(definition.document.get("variables") or {}),
        correlation_id=request.correlation_id,
        priority=request.priority,
        domains=request.domains,
        depth=request.depth,
        debug=_first_breakpoints(request, definition, now),
        starter_id=current_user_id(),
        traceparent=request.traceparent or _own_trace(id),
        fairness=share_of_start(definition, input, id, request.correlation_id, requested=request.fairness),
    )
    _check_input(run)
    return set_first_timer(run, now)


def _own_trace(run_id: str) -> str | None:
    """Return the context of a run without a caller's trace: the current span, or its own; None if none is exported."""
    return (current_traceparent() or first_traceparent(run_id)) if conf.traces_endpoint else None


def _first_breakpoints(request: StartRequest, definition: Definition, now: int) -> dict[str, Any]:
    """Return the breakpoints of the definition and of the request."""
    if not (request.breakpoints or definition.breakpoints):
        return {}
    found = live_breakpoints(definition.breakpoints, now)
    actor = current_actor()
    for wanted in request.breakpoints:
        each = build_breakpoint(wanted, actor.name if actor else "")
        require_valid(each, definition)
        found = add_breakpoint(iter(found), each, now)
    return with_breakpoints({}, found)


def _check_input(run: Run) -> None:
    """Refuse an input that violates the definition's schema."""
    if (schema := run.definition.input_schema) is None:
        return
    if not schema.text:
        raise InputInvalid([ValidationError("input", f"cannot be checked: there is no schema {schema.name}")])
    if found := check_against_schema(schema_question(schema, run.input)):
        raise InputInvalid([ValidationError(f"input{place}", message) for place, message in found])


def _apply_run_limit(run: Run) -> Run:
    """Return the run with its limit key, held if the limit of its definition is reached."""
    key = run_limits.limit_key_of(run, run.definition, run.input)
    return replace(run, limit_key=key, is_held=run_limits.is_limit_reached(run.definition, key)) if key else run


def start_by_hand(request: StartRequest, by: str, reason: str = "") -> tuple[str, bool]:
    """Start a run. Returns its id, and False if its idempotency key belongs to an existing run."""
    created: list[str] = []

    def note(run_id: str) -> None:
        audit.record("run", run_id, "start", by, reason=reason)
        created.append(run_id)

    run_id = start_run(request, by, within_transaction=note)
    return run_id, run_id in created
