"""The debugger: breakpoints of runs and definitions, and commands on stopped runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...access import audit
from ...core import commands
from ...core.breakpoints import BEFORE, Breakpoint, breakpoints_of, require_valid
from ...core.commands.control import add_breakpoint
from ...core.errors import Conflict, Invalid, NotFound
from ...db.database import transaction
from ...definitions.models import WorkflowDefinition
from ...definitions.resolved_definitions import read_unsaved
from ...definitions.store import bump_definitions_revision
from ...payloads.commands import refuse_large
from ...settings import conf
from ...utils import clock, randomness
from ..models import Attempt
from .change import Audit, DecisionFailed, RunCommand, change_run
from .repair import Asked, add_task_input_changes, locate_attempt

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class BreakpointRequest:
    """A breakpoint that a person or a client sets. `minutes`: its age limit and that of a stop, 0 for the maximum."""

    ref: str
    place: str = BEFORE
    condition: str = ""
    minutes: int = 0


@dataclass(frozen=True, slots=True)
class ContinueRequest:
    """How a stopped task continues. `ref`: the step to run to. Payloads that are None stay unchanged."""

    attempt_id: str
    action: str = "continue"
    ref: str = ""
    input: dict[str, Any] | None = None
    output: dict[str, Any] | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)

    @property
    def changed(self) -> list[str]:
        """Return the names of the payloads that the request changes."""
        given = {"input": self.input is not None, "output": self.output is not None, "variables": bool(self.variables)}
        return [name for name, is_given in given.items() if is_given]


def build_breakpoint(request: BreakpointRequest, by: str) -> Breakpoint:
    """Return the breakpoint of a request, with its id and its end.

    Raises:
        Invalid: when it would last longer than the server allows.
    """
    most = conf.breakpoint_minutes
    if not 0 <= request.minutes <= most:
        raise Invalid(f"A breakpoint can last 1 to {most} minutes (BREAKPOINT_MINUTES); got {request.minutes}.")
    lasts_ms = (request.minutes or most) * MINUTE_MS
    return Breakpoint(
        id=randomness.random_hex()[:16],
        ref=request.ref,
        place=request.place,
        until=clock.now() + lasts_ms,
        lasts_ms=lasts_ms,
        condition=request.condition.strip(),
        by=by,
    )


def next_step_breakpoint(by: str) -> Breakpoint:
    """Return the temporary breakpoint before the next step."""
    lasts_ms = conf.breakpoint_minutes * MINUTE_MS
    return Breakpoint(
        id=randomness.random_hex()[:16],
        ref="",
        place=BEFORE,
        until=clock.now() + lasts_ms,
        lasts_ms=lasts_ms,
        by=by,
        is_temporary=True,
    )


def set_breakpoint(run_id: str, request: BreakpointRequest, by: str, reason: str = "") -> str:
    """Set a breakpoint on a run in progress. Returns its id.

    Raises:
        Conflict: when the run has ended.
        Invalid: when the step, the place, the condition or the duration is invalid.
    """
    found = build_breakpoint(request, by)
    facts = {"step": found.ref, "place": found.place, "condition": found.condition}
    command = commands.set_breakpoint(found)
    change_run(RunCommand(run_id, command, by, reason, audit=Audit("set breakpoint", _present(facts))))
    return found.id


def remove_breakpoint(run_id: str, breakpoint_id: str, by: str, reason: str = "") -> None:
    command = commands.remove_breakpoint(breakpoint_id)
    change_run(RunCommand(run_id, command, by, reason, audit=Audit("remove breakpoint")))


def continue_run(run_id: str, request: ContinueRequest, by: str, reason: str = "") -> None:
    """Let a stopped task continue, with changed payloads if the request has any.

    Raises:
        Conflict: when the task is not stopped any more, or the run is paused.
    """
    refuse_large(request.input, conf.task_payload_max_bytes)
    refuse_large(request.output, conf.task_payload_max_bytes)
    refuse_large(request.variables, conf.workflow_payload_max_bytes, "The variables")
    command = commands.ContinueFromStop(
        request.attempt_id,
        request.action,
        next_step_breakpoint(by),
        ref=request.ref,
        input=request.input,
        output=request.output,
        variables=request.variables,
    )
    changed = ", ".join(request.changed)
    facts: dict[str, Any] = {"action": request.action, "step": request.ref, "changed": changed}
    if request.input is not None and Attempt.objects.filter(pk=request.attempt_id, run_id=run_id).exists():
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        add_task_input_changes(request.attempt_id, request.input, run_id, before, after)
        facts |= {"before": before, "after": after}
    try:
        change_run(RunCommand(run_id, command, by, reason, audit=Audit("continue from breakpoint", _present(facts))))
    except DecisionFailed as fault:
        raise Conflict(f"Run {run_id} cannot continue from here: {fault}"[:500]) from fault


def rewind_command(run_id: str, attempt_id: str, task_input: dict[str, Any] | None = None) -> Asked:
    """Return the run, and the command that returns it to a task and stops before its step.

    Raises:
        Invalid: when the attempt is missing or belongs to another run, or the input is too large.
    """
    refuse_large(task_input, conf.task_payload_max_bytes)
    if not Attempt.objects.filter(pk=attempt_id, run_id=run_id).exists():
        raise Invalid(f"Run {run_id} has no task {attempt_id[:64]!r}. Name the task to rewind to.")
    key, attempt = locate_attempt(attempt_id)
    return run_id, commands.Rewind(commands.Rerun(key, attempt, task_input), next_step_breakpoint(""))


def set_definition_breakpoint(name: str, version: int, request: BreakpointRequest, by: str, reason: str = "") -> str:
    """Set a breakpoint for the runs of a definition that start from now on. Returns its id.

    Raises:
        NotFound: when there is no such definition.
        Invalid: when the step, the place, the condition or the duration is invalid.
    """
    found = build_breakpoint(request, by)
    with transaction.atomic():
        row = _lock_definition(name, version)
        definition = read_unsaved(name, version)
        if definition is None:
            raise NotFound(f"No such workflow found by name: {name}, version {version}")
        require_valid(found, definition)
        kept = add_breakpoint(breakpoints_of({"breakpoints": row.breakpoints}), found, clock.now())
        facts = {"version": version, "step": found.ref, "place": found.place, "condition": found.condition}
        _save_breakpoints(row, kept, by, Audit("set breakpoint", _present(facts)), reason)
    return found.id


def remove_definition_breakpoint(name: str, version: int, breakpoint_id: str, by: str) -> None:
    """Remove a breakpoint from a definition. Runs that have started keep it."""
    with transaction.atomic():
        row = _lock_definition(name, version)
        known = list(breakpoints_of({"breakpoints": row.breakpoints}))
        kept = [each for each in known if each.id != breakpoint_id]
        if len(kept) == len(known):
            raise NotFound(f"Workflow {name}, version {version} has no breakpoint {breakpoint_id}.")
        _save_breakpoints(row, kept, by, Audit("remove breakpoint", {"version": version}), "")


def _lock_definition(name: str, version: int) -> WorkflowDefinition:
    """Return the row of a definition, locked until the transaction ends."""
    rows = WorkflowDefinition.objects.select_for_update().filter(name=name)
    # A larger number would overflow the column.
    row = rows.filter(version=version).first() if version < 2**31 else None
    if row is None:
        raise NotFound(f"No such workflow found by name: {name}, version {version}")
    return row


def _save_breakpoints(row: WorkflowDefinition, kept: list[Breakpoint], by: str, action: Audit, reason: str) -> None:
    row.breakpoints = [each.to_document() for each in kept] or None
    row.save(update_fields=["breakpoints"])
    # Every process reads this number before it starts a run.
    bump_definitions_revision()
    object_id = f"{row.name}:{row.version}"
    audit.record("workflow_definition", object_id, action.action, by, reason=reason, facts=action.facts)


def _present(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value}
