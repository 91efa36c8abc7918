"""Conversion between rows and values of the core."""

from collections.abc import Callable
from typing import Any

from ...core.definition import Key, Step
from ...core.document.reading import restore_step
from ...core.errors import MAX_ATTEMPT_REASON_LENGTH, shorten_reason
from ...core.events import publishes_start
from ...core.snapshot import Attempt, Run, Task
from ...db.fields import dumps, loads_decrypted, strip_nul
from ...payloads.store import PlacedPayload

ATTEMPT_COLUMNS = (
    "id", "number", "seq", "status", "scheduled_at", "queue", "domain", "priority", "visible_at", "pending_since",
    "started_at", "updated_at", "ended_at", "lease_ends_at", "due_at", "lease_ms", "timeout_ms", "delay_ms",
    "callback_ms", "total_ends_at", "ends_at", "poll_count", "worker", "reason", "previous_id", "child_id",
)  # fmt: skip
"""Columns of an attempt that are fields of its core value, in the order of those fields."""
ATTEMPT_INSERTED = (
    *ATTEMPT_COLUMNS, "run_id", "task_id", "name", "concurrent_limit", "rate_count", "rate_seconds", "publishes_start",
    "input", "output", "input_size", "output_size", "input_path", "output_path",
)  # fmt: skip
ATTEMPT_SHARE = ("fairness_key", "fairness_weight")
"""Further columns of attempts with a fairness key."""
ATTEMPT_REWRITTEN = tuple(column for column in ATTEMPT_INSERTED if column not in ("id", "run_id", "task_id"))
"""Columns that are written when an attempt is opened again under its id: all but those that identify it."""
ATTEMPT_UPDATED = (
    "status", "visible_at", "pending_since", "started_at", "updated_at", "ended_at", "lease_ends_at", "due_at",
    "ends_at", "total_ends_at", "callback_ms", "worker", "reason", "child_id",
)  # fmt: skip
TASK_COLUMNS = (
    "id", "ref", "iteration_path", "status", "seq", "created_at", "iteration", "step_state", "joined_by",
    "branch_head",
)  # fmt: skip
TASK_INSERTED = (*TASK_COLUMNS, "run_id", "name", "type", "attempt_id", "loop_ref", "is_permissive")
TASK_UPDATED = ("status", "attempt_id", "iteration", "step_state")
RUN_COLUMNS = (
    "id", "resolved_definition_id", "status", "created_at", "next_seq", "revision", "updated_at", "ended_at",
    "last_retried_at", "idle_ms", "failed_before_at", "wake_at", "correlation_id", "priority", "parent_id",
    "parent_attempt_id", "root_id", "depth", "starter_id", "reason", "failed_attempt_id", "failed_refs",
    "failed_names", "domains", "limit_key", "is_held", "watched_as", "watched_until", "inbox", "debug",
    "traceparent", "fairness",
)  # fmt: skip
RUN_UPDATED = (
    "status", "reason", "updated_at", "ended_at", "last_retried_at", "wake_at", "next_seq", "is_held", "inbox",
    "failed_attempt_id", "failed_refs", "failed_names",
)  # fmt: skip
RUN_RARELY_UPDATED: dict[str, Callable[[Run], Any]] = {
    "resolved_definition_id": lambda run: run.definition.hash,
    "version": lambda run: run.definition.version,
    "created_at": lambda run: run.created_at,
    "idle_ms": lambda run: run.idle_ms,
    "failed_before_at": lambda run: run.failed_before_at,
    "correlation_id": lambda run: strip_nul(run.correlation_id)[:512],
    "limit_key": lambda run: run.limit_key,
    "debug": lambda run: debug_text(run),
}
"""Columns of a run that are written only if they have changed, for example by a restart or a rerun."""


def fairness_text(run: Run) -> str | None:
    """Return the fairness key of a run and its weight as stored in their column."""
    return dumps(run.fairness._asdict()) if run.fairness.key else None


def debug_text(run: Run) -> str | None:
    """Return the breakpoints and stops of a run as stored in its column."""
    return dumps(dict(run.debug)) if run.debug else None


def format_iteration_path(iteration_path: tuple[int, ...]) -> str:
    return ".".join(map(str, iteration_path))


def parse_iteration_path(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("."))) if text else ()


def format_branch_head(key: Key | None) -> str:
    """Return the head of a dynamic branch as stored in its column."""
    return f"{key.ref}@{format_iteration_path(key.iteration_path)}" if key else ""


def parse_branch_head(text: str) -> Key | None:
    if not text:
        return None
    ref, _, iteration_path = text.rpartition("@")
    return Key(ref, parse_iteration_path(iteration_path))


def parse_attempt(row: tuple[Any, ...]) -> Attempt:
    """Return an attempt from its columns. Its payloads are not loaded."""
    return Attempt(*row)


def parse_task(row: tuple[Any, ...], step: Step, attempt: Attempt, branch_steps: dict[str, Step]) -> Task:
    id, ref, iteration_path, status, seq, created_at, iteration, step_state, joined_by, branch_head = row
    state = loads_decrypted(step_state)
    return Task(
        id=id,
        key=Key(ref, parse_iteration_path(iteration_path)),
        step=restore_step(step, state),
        status=status,
        seq=seq,
        created_at=created_at,
        attempt=attempt,
        iteration=iteration,
        step_state=state,
        joined_by=joined_by,
        branch_head=parse_branch_head(branch_head),
        branch_steps=branch_steps,
    )


def task_insert_values(task: Task, run: Run, step_state: str) -> list[Any]:
    return [
        task.id,
        task.key.ref,
        format_iteration_path(task.key.iteration_path),
        task.status,
        task.seq,
        task.created_at,
        task.iteration,
        step_state,
        task.joined_by,
        format_branch_head(task.branch_head),
        run.id,
        task.step.name,
        task.step.type,
        task.attempt.id,
        task.step.loops[-1] if task.step.loops else "",
        task.step.permissive and not task.step.optional,
    ]


def task_update_values(task: Task, step_state: str) -> list[Any]:
    return [task.status, task.attempt.id, task.iteration, step_state]


def has_task_changed(task: Task, before: Task) -> bool:
    return (task.status, task.attempt.id, task.iteration, dict(task.step_state)) != (
        before.status,
        before.attempt.id,
        before.iteration,
        dict(before.step_state),
    )


def step_columns(task: Task) -> list[Any]:
    """Return the columns that an upgrade of the definition may change: joined_by, loop_ref, is_permissive."""
    loop_ref = task.step.loops[-1] if task.step.loops else ""
    return [task.joined_by, loop_ref, task.step.permissive and not task.step.optional]


def attempt_insert_values(
    attempt: Attempt, task: Task, run: Run, input: PlacedPayload, output: PlacedPayload
) -> list[Any]:
    policy = task.step.policy
    values = [getattr(attempt, column) for column in ATTEMPT_COLUMNS[:-4]]
    return [
        *values,
        strip_nul(attempt.worker),
        shorten_reason(strip_nul(attempt.reason), MAX_ATTEMPT_REASON_LENGTH),
        attempt.previous_id,
        attempt.child_id,
        run.id,
        task.id,
        task.step.name,
        policy.concurrent_limit,
        policy.rate_count,
        policy.rate_seconds,
        publishes_start(task.step, run),
        input.text,
        output.text,
        input.size,
        output.size,
        input.path,
        output.path,
    ]


def attempt_update_values(attempt: Attempt) -> list[Any]:
    values = {column: getattr(attempt, column) for column in ATTEMPT_UPDATED}
    reason = shorten_reason(strip_nul(attempt.reason), MAX_ATTEMPT_REASON_LENGTH)
    return list((values | {"worker": strip_nul(attempt.worker), "reason": reason}).values())


def run_update_values(run: Run) -> list[Any]:
    return [
        run.status,
        strip_nul(run.reason),
        run.updated_at,
        run.ended_at,
        run.last_retried_at,
        run.wake_at,
        run.next_seq,
        run.is_held,
        run.inbox,
        run.failed_attempt_id,
        dumps(list(run.failed_refs)),
        dumps(list(run.failed_names)),
    ]
