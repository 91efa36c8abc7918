"""Snapshot and effects → rows: what changed is written in few statements, whatever its number (ARCHITECTURE §12)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..core.effects import Draft, Effect, ForgetTasks, Send, StartRun
from ..core.moments import run_ends_at
from ..core.snapshot import UNKNOWN, Attempt, Run, Task
from ..core.states import RUNNING
from ..models import Attempt as AttemptRow
from ..models import HistoryEntry, Message
from ..models import Run as RunRow
from ..models import Task as TaskRow
from ..models.fields import dumps
from . import rows
from .statements import insert, placeholders, update
from .statements import run as execute


class Stale(Exception):
    """Somebody else moved a row between the reading and the writing: decide again."""


@dataclass(frozen=True, slots=True)
class Told:
    """What others should hear after the commit: queues with something new, and messages to deliver."""

    queues: frozenset[str]
    messages: tuple[int, ...]


def save(before: Run, effects: Iterable[Effect], after: Run, now: int, by: str, reason: str) -> Told:
    """Write down what the effects made of the snapshot; raises Stale where a row was not as seen."""
    effects = list(effects)
    attempts = _attempts_touched(before, effects)
    _write_attempts(before, attempts, after)
    _write_tasks(before, after)
    _forget(before, effects)
    _write_run(before, after, now, effects)
    messages = _send(effects, after, now)
    _remember(before, effects, now, by, reason)
    return Told(_queues(before, attempts, after), messages)


def create(
    run: Run, now: int, by: str, *, started_by: str = "", event: str = "", idempotency_key: str | None = None
) -> None:
    """Write a run that has not begun."""
    insert(RunRow, RUN_INSERTED, [_inserted_run(run, started_by or by, event, idempotency_key)])


RUN_INSERTED = (
    "id",
    "name",
    "version",
    "plan_id",
    "status",
    "reason",
    "correlation_id",
    "priority",
    "created_at",
    "updated_at",
    "last_retried_at",
    "wake_at",
    "revision",
    "next_seq",
    "has_skips",
    "parent_id",
    "parent_attempt_id",
    "failed_attempt_id",
    "failed_refs",
    "failed_names",
    "domains",
    "limit_key",
    "is_held",
    "started_by",
    "event",
    "idempotency_key",
    "input",
    "output",
    "variables",
    "input_size",
    "output_size",
    "variables_size",
)


def _inserted_run(run: Run, started_by: str, event: str, idempotency_key: str | None) -> list[Any]:
    input, variables = rows.payload(run.input), rows.payload(run.variables)
    return [
        run.id,
        run.definition.name,
        run.definition.version,
        run.definition.hash,
        run.status,
        "",
        rows.clean(run.correlation_id)[:512],
        run.priority,
        run.created_at,
        run.created_at,
        0,
        run.wake_at,
        0,
        1,
        False,
        run.parent_id,
        run.parent_attempt_id,
        "",
        "[]",
        "[]",
        dumps(dict(run.domains)),
        run.limit_key,
        run.is_held,
        rows.clean(started_by)[:255],
        rows.clean(event)[:255],
        idempotency_key,
        input,
        "{}",
        variables,
        len(input),
        2,
        len(variables),
    ]


def _attempts_touched(before: Run, effects: list[Effect]) -> dict[str, tuple[Attempt, Task]]:
    """The last state of every attempt that an effect touched; a task's earlier attempts are not in the snapshot."""
    draft, touched = Draft(before), {}
    for effect in effects:
        effect.change(draft)
        key = getattr(effect, "key", None) or (effect.task.key if hasattr(effect, "task") else None)
        if key is not None and key in draft.tasks:
            task = draft.tasks[key]
            touched[task.attempt.id] = (task.attempt, task)
    return touched


def _write_attempts(before: Run, touched: Mapping[str, tuple[Attempt, Task]], after: Run) -> None:
    seen = {task.attempt.id: task.attempt for task in before.tasks.values()}
    kept = {id: pair for id, pair in touched.items() if pair[1].key in after.tasks}
    changed = [(attempt, seen[id]) for id, (attempt, _) in kept.items() if id in seen and attempt != seen[id]]
    with_output = [pair for pair in changed if pair[0].output is not UNKNOWN and pair[0].output is not pair[1].output]
    plain = [pair for pair in changed if pair not in with_output]
    _update_attempts(plain, rows.ATTEMPT_UPDATED, rows.updated_attempt)
    _update_attempts(with_output, (*rows.ATTEMPT_UPDATED, "output", "output_size"), _with_output)
    _update_inputs([pair for pair in changed if pair[0].input is not UNKNOWN and pair[0].input is not pair[1].input])
    new = [rows.inserted_attempt(attempt, task, after) for id, (attempt, task) in kept.items() if id not in seen]
    if new:
        insert(AttemptRow, rows.ATTEMPT_INSERTED, new)


def _update_attempts(pairs: list[tuple[Attempt, Attempt]], columns: tuple[str, ...], values: Any) -> None:
    if pairs and update(AttemptRow, columns, [(old.id, old.status, values(new)) for new, old in pairs]) != len(pairs):
        raise Stale


def _with_output(attempt: Attempt) -> list[Any]:
    output = rows.payload(attempt.output)
    return [*rows.updated_attempt(attempt), output, len(output)]


def _update_inputs(pairs: list[tuple[Attempt, Attempt]]) -> None:
    """A further attempt of a step that the engine does itself gets its input when it begins."""
    for new, _old in pairs:
        input = rows.payload(new.input)
        execute("UPDATE conductor_attempt SET input = %s, input_size = %s WHERE id = %s", [input, len(input), new.id])


def _write_tasks(before: Run, after: Run) -> None:
    # New attempts exist before a task points to them, and before the tasks themselves: nothing checks in between.
    new = [task for key, task in after.tasks.items() if key in after.touched and key not in before.tasks]
    if new:
        insert(TaskRow, rows.TASK_INSERTED, [rows.inserted_task(task, after) for task in new])
    old = [
        (task, before.tasks[key])
        for key, task in after.tasks.items()
        if key in before.tasks and _differs(task, before.tasks[key])
    ]
    changed = [(seen.id, seen.status, rows.updated_task(task)) for task, seen in old]
    if changed and update(TaskRow, rows.TASK_UPDATED, changed) != len(changed):
        raise Stale


def _differs(task: Task, seen: Task) -> bool:
    return rows.updated_task(task) != rows.updated_task(seen)


def _forget(before: Run, effects: list[Effect]) -> None:
    for effect in effects:
        if isinstance(effect, ForgetTasks):
            turn = rows.turn_text((*effect.loop.turn, effect.iteration))
            inside = (
                sorted(before.definition.steps[effect.loop.ref].inside)
                if effect.loop.ref in before.definition.steps
                else []
            )
            condition = f"run_id = %s AND (turn = %s OR turn LIKE %s) AND (loop_ref = %s{_or_in(inside)})"
            params = [before.id, turn, f"{turn}.%", effect.loop.ref, *inside]
            execute(
                f"DELETE FROM conductor_attempt WHERE task_id IN (SELECT id FROM conductor_task WHERE {condition})",
                params,
            )
            execute(f"DELETE FROM conductor_task WHERE {condition}", params)


def _or_in(refs: list[str]) -> str:
    return f" OR loop_ref IN ({placeholders(refs)})" if refs else ""


def _write_run(before: Run, after: Run, now: int, effects: list[Effect]) -> None:
    columns, values = list(rows.RUN_UPDATED), rows.updated_run(after)
    values[columns.index("updated_at")] = now
    for part in ("output", "variables"):
        value = getattr(after, part)
        if value is not UNKNOWN and value is not getattr(before, part):
            text = rows.payload(value)
            columns += [part, f"{part}_size"]
            values += [text, len(text)]
    sets = ", ".join(f"{column} = %s" for column in columns)
    if not execute(
        f"UPDATE conductor_run SET {sets}, revision = revision + 1 WHERE id = %s AND revision = %s",
        [*values, before.id, before.revision],
    ):
        raise Stale


def _send(effects: list[Effect], run: Run, now: int) -> tuple[int, ...]:
    messages = []
    for effect in effects:
        if isinstance(effect, StartRun):
            create(begun(effect, run, now), now, "engine")
            messages.append(
                Message(
                    to=effect.id,
                    subject="begin",
                    sent_at=now,
                    due_at=now,
                    facts={"about": run.id} if effect.is_about_failure else {},
                )
            )
        elif isinstance(effect, Send):
            messages.append(Message(to=effect.to, subject=effect.subject, facts=effect.facts, sent_at=now, due_at=now))
    if not messages:
        return ()
    return tuple(message.pk for message in Message.objects.bulk_create(messages, batch_size=500))


def begun(effect: StartRun, parent: Run, now: int) -> Run:
    """The run that an effect starts, before its first decision."""
    run = Run(
        id=effect.id,
        definition=effect.definition,
        status=RUNNING,
        created_at=now,
        input=effect.input,
        correlation_id=effect.correlation_id,
        priority=effect.priority,
        domains=effect.domains,
        parent_id=parent.id if effect.parent_attempt_id else "",
        parent_attempt_id=effect.parent_attempt_id,
        variables=dict(effect.definition.document.get("variables") or {}),
    )
    return with_timer(run)


def with_timer(run: Run) -> Run:
    """The run, to be woken when its own time is over."""
    return replace(run, wake_at=run_ends_at(run))


def _remember(before: Run, effects: list[Effect], now: int, by: str, reason: str) -> None:
    lines = [effect.line() for effect in effects]
    shown = (
        lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], {"effect": "…", "more": len(lines) - MOST_LINES}]
    )
    insert(
        HistoryEntry,
        ("run_id", "revision", "at", "by", "reason", "effects"),
        [[before.id, before.revision + 1, now, rows.clean(by)[:255], rows.clean(reason), dumps(shown)]],
    )


MOST_LINES = 200
"""Lines of one decision that history keeps; a fan-out of thousands is summed up."""


def _queues(before: Run, touched: Mapping[str, tuple[Attempt, Task]], after: Run) -> frozenset[str]:
    """The queues in which something became available, or in which a limit may have been freed."""
    seen = {task.attempt.id: task.attempt for task in before.tasks.values()}
    queues = set()
    for id, (attempt, task) in touched.items():
        is_freed = id in seen and seen[id].is_open and not attempt.is_open and task.step.policy.concurrent_limit
        if attempt.queue and (attempt.status == "PENDING" or is_freed):
            queues.add(attempt.queue)
    return frozenset(queues)
