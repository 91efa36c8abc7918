"""Run, Task and Attempt as frozen values: what a decision is made from. Payloads are asked for, not carried."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .definition import Definition, Key, Step
from .states import (
    ACTIVE,
    ATTEMPT,
    CANCELED,
    COMPLETED,
    COMPLETED_WITH_ERRORS,
    EXPIRED,
    FAILED,
    FAILED_FOR_GOOD,
    RUN,
    SKIPPED,
    TIMED_OUT,
)
from .step_state import StepState


class Unknown:
    """A payload that was not read."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Any = Unknown()
NEVER = 9_007_199_254_740_991
"""The moment that does not come: the largest integer that every client's JSON reader keeps."""


@dataclass(frozen=True)
class Attempt:
    """One try at a task. Moments are epoch milliseconds, None where the moment has not come."""

    id: str
    number: int
    seq: int
    status: str
    scheduled_at: int
    queue: str = ""
    domain: str = ""
    priority: int = 0
    visible_at: int = 0
    pending_since: int = 0
    started_at: int | None = None
    updated_at: int | None = None
    ended_at: int | None = None
    lease_ends_at: int | None = None
    due_at: int = NEVER
    lease_ms: int = 0
    timeout_ms: int = 0
    delay_ms: int = 0
    callback_ms: int = 0
    total_ends_at: int = NEVER
    ends_at: int = NEVER  # a WAIT's own moment
    poll_count: int = 0
    worker: str = ""
    reason: str = ""
    previous_id: str = ""
    child_id: str = ""
    input: Any = UNKNOWN
    output: Any = UNKNOWN
    cause: str = ""  # why it was opened, where that is not plain from the attempt before

    @property
    def is_open(self) -> bool:
        return self.status in ATTEMPT.open

    @property
    def ended_badly(self) -> bool:
        return self.status in BAD_ENDS


BAD_ENDS = frozenset((FAILED, FAILED_FOR_GOOD, EXPIRED, CANCELED))


@dataclass(frozen=True)
class Task:
    """One thing to be done: a step reached, in one turn of each loop around it."""

    id: str
    key: Key
    step: Step
    status: str
    seq: int
    created_at: int
    attempt: Attempt
    iteration: int = 0
    step_state: StepState = field(default_factory=dict)
    joined_by: str = ""
    branch_head: Key | None = None  # of a step that a dynamic fork made: the head of its branch
    branch_steps: Mapping[str, Step] = field(default_factory=dict)  # the steps of that branch, or of that fork

    @property
    def is_open(self) -> bool:
        return self.status == ACTIVE

    @property
    def succeeded(self) -> bool:
        return self.status in GOOD_ENDS

    @property
    def lets_control_pass(self) -> bool:
        """Whether what follows may begin: it succeeded, was skipped, or is permissive (execution §1.3)."""
        return self.succeeded or (not self.is_open and self.step.permissive and not self.step.optional)

    @property
    def failed_fatally(self) -> bool:
        return self.status in (FAILED, TIMED_OUT, CANCELED) and not self.lets_control_pass

    @property
    def resolved_name(self) -> str:
        """The name of the task, which a DYNAMIC step resolves when control enters it."""
        return str(self.step_state.get("name", self.step.name))

    @property
    def resolved_type(self) -> str:
        """The type of the task, which a DYNAMIC step resolves when control enters it."""
        return str(self.step_state.get("type", self.step.type))

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The secrets whose values its worker is given."""
        return tuple(self.step_state.get("secrets", ()))

    @property
    def is_control_removed(self) -> bool:
        """Return True if control does not leave the task, because an operator has taken it elsewhere."""
        return bool(self.step_state.get(CONTROL_REMOVED))

    @property
    def former_workers(self) -> tuple[str, ...]:
        """The workers that have held an earlier lease of the newest attempt, which was opened again since."""
        return tuple(self.step_state.get(FORMER_WORKERS, {}).get(self.attempt.id, ()))

    @property
    def all_workers(self) -> tuple[str, ...]:
        """The former workers, and the one that holds or held the present lease."""
        attempt = self.attempt
        holder = (attempt.worker,) if attempt.poll_count and attempt.worker else ()
        return tuple(dict.fromkeys((*self.former_workers, *holder)))

    @property
    def tries(self) -> int:
        """How many attempts came before the newest one since the task was entered last: a rerun counts anew."""
        return self.attempt.number - self.step_state.get(FIRST_NUMBER, 0)

    @property
    def loop(self) -> Key | None:
        """The key of the innermost loop around it."""
        return Key(self.step.loops[-1], self.key.iteration_path[:-1]) if self.step.loops else None


CONTROL_REMOVED = "is_left"
FORMER_WORKERS = "former_workers"
"""Where a task's memo keeps them, by the id of the attempt."""
FIRST_NUMBER = "first_number"
"""Where a task's memo keeps the number of the attempt under which it was entered again."""
GOOD_ENDS = frozenset((COMPLETED, COMPLETED_WITH_ERRORS, SKIPPED))


@dataclass(frozen=True)
class Identity:
    """What clients know a task by: it keeps this when control enters its step again (execution §7.4).

    `workers`: those that have held a lease of the attempt before; their late reports are refused. `ends_at`: the
    moment until which a WAIT waits, in epoch milliseconds: its timer continues, as in the original.
    """

    task_id: str
    task_seq: int
    attempt_id: str
    attempt_seq: int
    number: int
    previous_id: str = ""
    workers: tuple[str, ...] = ()
    ends_at: int = NEVER


@dataclass(frozen=True)
class Run:
    """One life of a definition, as far as it was read: either the whole of it, or the neighbourhood of a change."""

    id: str
    definition: Definition
    status: str
    created_at: int
    tasks: Mapping[Key, Task] = field(default_factory=dict)
    is_whole: bool = True
    touched: frozenset[Key] = frozenset()  # by this decision, in any way
    moved: frozenset[Key] = frozenset()  # those of them that control may pass from
    next_seq: int = 1
    revision: int = 0
    updated_at: int = 0
    ended_at: int | None = None
    last_retried_at: int = 0
    wake_at: int = NEVER
    correlation_id: str = ""
    priority: int = 0
    parent_id: str = ""
    parent_attempt_id: str = ""
    reason: str = ""
    failed_attempt_id: str = ""
    failed_refs: tuple[str, ...] = ()
    failed_names: tuple[str, ...] = ()
    domains: Mapping[str, str] = field(default_factory=dict)
    limit_key: str = ""
    is_held: bool = False
    inbox: int = 0  # messages that clients have sent and no step has taken
    inbox_taken: int = 0  # the last of them that this decision has taken, by its number
    watched_as: str = ""  # under this name somebody waits for news of it,
    watched_until: int = 0  # until then; its children inherit both
    identities: Mapping[Key, Identity] = field(default_factory=dict)  # of tasks that are being entered again
    input: Any = UNKNOWN
    output: Any = UNKNOWN
    variables: Any = UNKNOWN

    @property
    def is_open(self) -> bool:
        return self.status in RUN.open

    @property
    def has_begun(self) -> bool:
        return self.next_seq > 1

    def begins_later(self, now: int) -> bool:
        """Whether it was asked for ahead of its start, which is when it counts as created."""
        return not self.has_begun and now < self.created_at

    @property
    def open_tasks(self) -> list[Task]:
        return [task for task in self.tasks.values() if task.is_open]

    @property
    def sources(self) -> list[Task]:
        """The tasks that control may still pass from: all that are known, or else those that this decision moved.

        What follows a task that was open cannot have been entered yet, so nothing beyond them need be read.
        """
        if self.is_whole:
            return list(self.tasks.values())
        return [self.tasks[key] for key in self.moved if key in self.tasks]

    def tasks_of_type(self, type: str) -> list[Task]:
        """The open tasks of this type."""
        return [task for task in self.tasks.values() if task.is_open and task.step.type == type]

    def has_changes_for(self, task: Task, keys: Iterable[Key]) -> bool:
        """Whether a task may find that what it waits for has changed; where all is known it looks for itself."""
        return self.is_whole or task.key in self.touched or any(key in self.touched for key in keys)

    def task_of_attempt(self, attempt_id: str) -> Task | None:
        """The task whose newest attempt this is."""
        return next((task for task in self.tasks.values() if task.attempt.id == attempt_id), None)

    def step(self, ref: str, source: Task | None = None) -> Step | None:
        """The step with this reference: of the definition, or of the dynamic branch that `source` belongs to."""
        return self.definition.steps.get(ref) or (source.branch_steps.get(ref) if source else None)
