"""Commands that change the path of a run (skip, jump, upgrade) or its state (variables, reports, callbacks)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import transaction

from ... import clock, conf
from ...core import commands
from ...core.commands.step_lookup import require_running
from ...core.decide import no_command
from ...core.decision_context import Command
from ...core.definition import Definition
from ...core.errors import AlreadyResolved, Conflict, NotFound, RequestRefused
from ...core.reports import Report
from ...insight.runs.execution import find_run
from ...store import runs as store
from .. import audit
from ..definitions import resolved_definitions
from ..payloads.size_limits import refuse_large
from ..tasks.task_commands import enforce_output_limit, find_open_task
from .change import Audit, RunCommand, change_run
from .decision import DecisionFailed

Payload = Mapping[str, Any]


def skip_step(
    run_id: str, ref: str, by: str, reason: str = "", *, input: Payload | None = None, output: Payload | None = None
) -> None:
    """Skip a step that the run has not reached.

    Raises:
        NotFound: when there is no such run or step.
        Conflict: when the run or the step does not allow it.
    """
    _change_with_audit(run_id, commands.skip_step(ref, input, output), by, reason or f"Skip {ref}.", "skip")


def jump_to_step(run_id: str, ref: str, by: str, reason: str = "", *, input: Payload | None = None) -> None:
    """Continue a run at a later step, and skip the steps before it.

    Raises:
        NotFound: when there is no such run or step.
        Conflict: when the run's state does not allow it.
        Invalid: when the run cannot jump to the step.
    """
    _change_with_audit(run_id, commands.jump_to_step(ref, input), by, reason or f"Jump to {ref}.", "jump")


def set_variables(run_id: str, variables: Payload, by: str, reason: str = "") -> None:
    """Merge variables into those of an open run.

    Raises:
        NotFound: when there is no such run.
        Conflict: when the run has ended.
        Invalid: when the variables are too large.
    """
    _change_with_audit(run_id, commands.set_variables(variables), by, reason, "set variables")


def update_state(
    run_id: str,
    variables: Payload,
    report: Report | None,
    by: str,
    reason: str = "",
    *,
    ref: str = "",
    attempt_id: str = "",
) -> str:
    """Set variables and report on an open task in one transaction. `ref`, `attempt_id`: the task, by either.

    Returns the id of the attempt, or an empty string if `report` is None.

    Raises:
        NotFound: when there is no such run, or the task is not open.
        Conflict: when the run has ended.
    """
    if report is None:
        set_variables(run_id, variables, by, reason)
        return ""
    missing = NotFound(f"Found no running task {ref or attempt_id} of workflow {run_id} to update")
    if ref:
        find_run(run_id)
        if (found := find_open_task(run_id, ref)) is None:
            raise missing
        attempt_id = found.attempt_id
    command = commands.update_state(variables, attempt_id, enforce_output_limit(report))
    try:
        _change_with_audit(run_id, command, by, reason, "update state", near=[attempt_id])
    except AlreadyResolved:
        raise missing from None
    return attempt_id


def reset_callbacks(run_id: str, by: str, reason: str = "") -> None:
    """Skip the callback delays of the tasks that workers have released.

    Raises:
        NotFound: when there is no such run.
        Conflict: when the run has ended.
    """
    _change_with_audit(run_id, commands.reset_callbacks, by, reason, "reset callbacks")


def reevaluate_run(run_id: str, by: str, action: str = "decide") -> bool:
    """Evaluate the rules on a whole run, with an audit entry. Returns True if anything changed.

    Raises:
        NotFound: when there is no such run.
    """

    def note(now: int) -> None:
        audit.record("run", run_id, action, by, at=now)

    return bool(change_run(RunCommand(run_id, no_command, by, within_transaction=note)))


def _change_with_audit(
    run_id: str, command: Command, by: str, reason: str, action: str, near: Sequence[str] | None = None
) -> None:
    try:
        change_run(RunCommand(run_id, command, by, reason, audit=Audit(action), attempts=near))
    except DecisionFailed as fault:
        raise Conflict(
            f"The operation would leave workflow {run_id} in a state that the engine cannot continue from: {fault}"
        ) from fault


def upgrade_run(
    run_id: str,
    name: str,
    version: int | None,
    by: str,
    reason: str = "",
    *,
    outputs: Payload | None = None,
    input: Payload | None = None,
) -> None:
    """Move a running run to another version of its definition.

    Raises:
        NotFound: when there is no such run or version.
        Invalid: when a value is invalid.
        Conflict: when the run cannot be moved; with the reasons.
        PayloadTooLarge: when the input or an output is larger than the limit.
    """
    refuse_large(input, conf.workflow_payload_max_bytes)
    for ref, output in (outputs or {}).items():
        refuse_large(output, conf.task_payload_max_bytes, f"The output of {ref}")
    definition = _definition(name, version)
    reason = reason or f"Move to version {definition.version}."
    _change_with_audit(run_id, commands.upgrade_run(definition, outputs, input), by, reason, "upgrade")


def plan_upgrade(run_id: str, name: str, version: int | None) -> commands.UpgradePlan:
    """Return the plan of moving a run to another version of its definition. Nothing is saved.

    Raises:
        NotFound: when there is no such run or version.
        Invalid: when the run cannot follow the version.
    """
    return commands.plan_upgrade(
        store.load_run(run_id), _require_definition(resolved_definitions.read_unsaved(name, version), name, version)
    )


def upgrade_obstacles(run_ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return why each run cannot move to the newest version of its definition; an empty tuple for a run that can."""
    newest: dict[str, Definition | None] = {}
    found: dict[str, tuple[str, ...]] = {}
    for run_id in run_ids:
        try:
            run = store.load_run(run_id)
            name = run.definition.name
            if name not in newest:
                newest[name] = resolved_definitions.read_unsaved(name, None)
            require_running(run)
            found[run_id] = commands.plan_upgrade(run, _require_definition(newest[name], name, None)).problems
        except RequestRefused as refused:
            found[run_id] = (refused.message,)
    return found


def _definition(name: str, version: int | None) -> Definition:
    with transaction.atomic():
        return _require_definition(resolved_definitions.resolve_by_name(name, version, clock.now()), name, version)


def _require_definition(found: Definition | None, name: str, version: int | None) -> Definition:
    if found is None:
        raise NotFound(f"No such workflow found by name: {name}, version: {version or 'latest'}")
    return found
