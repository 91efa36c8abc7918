"""Operations that operators apply to runs, as values that can be planned or applied."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ... import conf
from ...core import commands
from ...core.errors import Conflict, Invalid
from ..definitions import resolved_definitions
from ..payloads.size_limits import refuse_large
from .change import Audit, RunCommand, change_run
from .debugging import rewind_command
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
    """An operation on a run. Values that are None or empty stay unchanged.

    `attempt_id`: an attempt of the task from which a rerun continues. `ref`: the step to skip or to jump to. `version`:
    the version of the definition to follow.
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


def _retry_command(run_id: str, operation: Operation, find: Find) -> Asked:
    return retry_command(run_id, operation.resume_children)


def _rerun_command(run_id: str, operation: Operation, find: Find) -> Asked:
    return rerun_command(run_id, operation.attempt_id, operation.task_input, operation.input)


def _restart_command(run_id: str, operation: Operation, find: Find) -> Asked:
    return restart_command(run_id, operation.latest, operation.version, find=find)


def _upgrade_command(run_id: str, operation: Operation, find: Find) -> Asked:
    return move_to_version_command(run_id, operation.version, find=find)


def _skip_command(run_id: str, operation: Operation, find: Find) -> Asked:
    return run_id, commands.skip_step(operation.ref, operation.task_input, operation.task_output)


def _rewind_command(run_id: str, operation: Operation, find: Find) -> Asked:
    return rewind_command(run_id, operation.attempt_id, operation.task_input)


def _jump_command(run_id: str, operation: Operation, find: Find) -> Asked:
    return run_id, commands.jump_to_step(operation.ref, operation.task_input)


OPERATIONS: dict[str, Callable[[str, Operation, Find], Asked]] = {
    "retry": _retry_command,
    "rerun": _rerun_command,
    "rewind": _rewind_command,
    "restart": _restart_command,
    "skip": _skip_command,
    "jump": _jump_command,
    "upgrade": _upgrade_command,
    "pause": lambda run_id, operation, find: (run_id, commands.pause_run),
    "resume": lambda run_id, operation, find: (run_id, commands.resume_run),
    "terminate": lambda run_id, operation, find: (
        run_id,
        commands.terminate_run(operation.reason, operation.with_failure),
    ),
}
FORWARD_OPERATIONS = ("skip", "jump", "upgrade")
"""Operations that require a running run and do not change its status."""


def operation_command(run_id: str, operation: Operation, find: Find = resolved_definitions.read_unsaved) -> Asked:
    """Return the id of the run to change, and the command for it.

    `find`: loads the resolved definition that the run would follow; the default does not save it.

    Raises:
        NotFound: when there is no such run or definition.
        Conflict: when the run's state does not allow the operation.
        Invalid: when the operation is unknown, or one of its values is invalid.
        PayloadTooLarge: when an input or an output is larger than the limit.
    """
    if operation.name not in OPERATIONS:
        raise Invalid(f"Unknown operation {operation.name[:64]!r}. Use one of: {', '.join(OPERATIONS)}.")
    refuse_large(operation.task_input, conf.task_payload_max_bytes)
    refuse_large(operation.task_output, conf.task_payload_max_bytes, "The output")
    refuse_large(operation.input, conf.workflow_payload_max_bytes)
    return OPERATIONS[operation.name](run_id, operation, find)


def apply_operation(
    run_id: str,
    operation: Operation,
    by: str,
    *,
    revision: int | None = None,
    within_transaction: Callable[[int], None] | None = None,
) -> None:
    """Apply an operation to a run. `within_transaction` writes in the same transaction.

    Raises:
        RevisionChanged: when the run is not in this revision any more.
        NotFound: when there is no such run or definition.
        Conflict: when the run's state does not allow the operation, or the decision after it fails.
        Invalid: when the operation is unknown, or one of its values is invalid.
    """
    target, command = operation_command(run_id, operation, resolve_and_save)
    try:
        change_run(
            RunCommand(
                target,
                command,
                by,
                operation.reason,
                audit=Audit(operation.name),
                within_transaction=within_transaction,
                expected_revision=revision,
            )
        )
    except DecisionFailed as fault:
        raise Conflict(
            f"The operation would leave run {target} in a state that the engine cannot continue from: {fault}"[:500]
        ) from fault
