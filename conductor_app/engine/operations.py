"""What operators ask of runs, as values: planned without effect, or carried out; one run at a time or many."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..core import commands
from ..core.errors import Conflict, Invalid
from . import resolved_definitions
from .change import Audit, RunCommand, change_run
from .decision import DecisionFailed
from .retry_rerun_restart import (
    Asked,
    Find,
    move_to_version_command,
    rerun_command,
    resolve_and_save,
    restart_command,
    retry_command,
)


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that is asked of a run. What is None or empty is left as it is.

    `attempt_id`: the task that a rerun begins with. `ref`: the step that is skipped, or
    jumped to. `version`: the one to follow.
    """

    name: str
    attempt_id: str = ""
    ref: str = ""
    task_input: dict[str, Any] | None = None
    task_output: dict[str, Any] | None = None
    input: dict[str, Any] | None = None
    version: int | None = None
    latest: bool = False
    resume_children: bool = False
    with_failure: bool = False
    reason: str = ""


def _retry_command(run_id: str, asked: Operation, find: Find) -> Asked:
    return retry_command(run_id, asked.resume_children)


def _rerun_command(run_id: str, asked: Operation, find: Find) -> Asked:
    return rerun_command(run_id, asked.attempt_id, asked.task_input, asked.input)


def _restart_command(run_id: str, asked: Operation, find: Find) -> Asked:
    return restart_command(run_id, asked.latest, asked.version, find=find)


def _upgrade_command(run_id: str, asked: Operation, find: Find) -> Asked:
    return move_to_version_command(run_id, asked.version, find=find)


def _skip_command(run_id: str, asked: Operation, find: Find) -> Asked:
    return run_id, commands.skip_step(asked.ref, asked.task_input, asked.task_output)


def _jump_command(run_id: str, asked: Operation, find: Find) -> Asked:
    return run_id, commands.jump_to_step(asked.ref, asked.task_input)


OPERATIONS: dict[str, Callable[[str, Operation, Find], Asked]] = {
    "retry": _retry_command,
    "rerun": _rerun_command,
    "restart": _restart_command,
    "skip": _skip_command,
    "jump": _jump_command,
    "upgrade": _upgrade_command,
    "pause": lambda run_id, asked, find: (run_id, commands.pause_run),
    "resume": lambda run_id, asked, find: (run_id, commands.resume_run),
    "terminate": lambda run_id, asked, find: (run_id, commands.terminate_run(asked.reason, asked.with_failure)),
}


def operation_command(run_id: str, operation: Operation, find: Find = resolved_definitions.read_unsaved) -> Asked:
    """The run that hears it, and the command. Raises NotFound, Conflict, Invalid.

    `find`: how a definition is found that the run would follow; what is only planned keeps none.
    """
    if operation.name not in OPERATIONS:
        raise Invalid(f"There is no operation {operation.name[:64]}.")
    return OPERATIONS[operation.name](run_id, operation, find)


def apply_operation(
    run_id: str,
    operation: Operation,
    by: str,
    *,
    revision: int | None = None,
    also: Callable[[int], None] | None = None,
) -> None:
    """Do it, in one transaction with `also`. Raises Moved where the run is no longer in the revision that was seen."""
    target, command = operation_command(run_id, operation, resolve_and_save)
    try:
        change_run(
            RunCommand(
                target,
                command,
                by,
                operation.reason,
                audit=Audit(operation.name),
                within_transaction=also,
                expected_revision=revision,
            )
        )
    except DecisionFailed as fault:
        raise Conflict(f"The engine cannot decide how run {target} would go on after that: {fault}"[:500]) from fault
