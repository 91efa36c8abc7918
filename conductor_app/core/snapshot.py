"""Snapshot of a run: Run, Task and Attempt as frozen values. Payloads are loaded on request."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypedDict

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
    PENDING,
    RUN,
    SKIPPED,
    TIMED_OUT,
)


class TaskState(TypedDict, total=False):
    """State that tasks of every type may have."""

    name: str
    """The name of the task that the input of a DYNAMIC step named."""
    input: dict[str, Any]
    """The inputs that an operator set for the rerun of this task."""
    given: dict[str, Any]
    """The inputs that an operator set when control jumped to this task."""
    secrets: list[str]
    """Names of the secrets that the author of the step named in its inputs."""
    stop: dict[str, Any]
    first_number: int
    """The number of the first attempt since a rerun entered the task; earlier attempts do not count as tries."""
    former_workers: dict[str, list[str]]
    """Workers that held earlier leases, by attempt id."""
    is_left: bool
    """True if control does not leave the task again, because an operator moved it to another step."""
    fairness: tuple[str, float]
    """The fairness key and the weight that the step gives."""
    cached_as: str
    """The digest under which the output is cached."""
    document: dict[str, Any]
    loops: list[str]
    """Of the first task of a dynamic branch: the document of the branch, and the loops around it."""


StepState = Mapping[str, Any]
"""State of a task whose type the reader does not know."""


class Unknown:
    """Marker of a payload that was not loaded."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Any = Unknown()
NEVER = 9_007_199_254_740_991
"""Time of an event that never happens: the largest integer that JavaScript represents exactly."""


@dataclass(frozen=True)
class Attempt:
    """One try at a task. Times are epoch milliseconds, None for events that have not happened."""

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
    ends_at: int = NEVER  # of a WAIT, of an assignment of a HUMAN, or the deadline of a standalone task
    poll_count: int = 0
    worker: str = ""
    reason: str = ""
    previous_id: str = ""
    child_id: str = ""
    input: Any = UNKNOWN
    output: Any = UNKNOWN
    cause: str = ""  # why this attempt was created, when the previous attempt does not explain it

    @property
    def is_open(self) -> bool:
        return self.status in ATTEMPT.open

    @property
    def ended_badly(self) -> bool:
        return self.status in BAD_ENDS


BAD_ENDS = frozenset((FAILED, FAILED_FOR_GOOD, EXPIRED, CANCELED))


@dataclass(frozen=True)
class Task:
    """A step reached in a run, once per iteration of the loops around it."""

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
    branch_head: Key | None = None  # the head of the branch, if a dynamic fork created the task
    branch_steps: Mapping[str, Step] = field(default_factory=dict)  # of that branch, or of this fork

    @property
    def is_open(self) -> bool:
        return self.status == ACTIVE

    @property
    def succeeded(self) -> bool:
        return self.status in GOOD_ENDS

    @property
    def lets_control_pass(self) -> bool:
        """Return True if the next step may start: it succeeded, was skipped, or is permissive (execution §1.3)."""
        return self.succeeded or (not self.is_open and self.step.permissive and not self.step.optional)

    @property
    def failed_fatally(self) -> bool:
        return self.status in (FAILED, TIMED_OUT, CANCELED) and not self.lets_control_pass

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Return the names of the secrets whose values the worker receives."""
        return tuple(self.step_state.get("secrets", ()))

    @property
    def is_control_removed(self) -> bool:
        """Return True if control does not leave the task, because an operator moved it to another step."""
        return bool(self.step_state.get(CONTROL_REMOVED))

    @property
    def has_stopped(self) -> bool:
        """Return True if the task stands, or has stood, at a breakpoint with its attempt in the present status."""
        stop = self.step_state.get(STOP)
        return stop is not None and (stop["attempt"], stop["status"]) == (self.attempt.id, self.attempt.status)

    @property
    def is_stopped(self) -> bool:
        """Return True if the task stands at a breakpoint. A change of its attempt from outside ends the stop."""
        return self.has_stopped and self.is_open and not self.step_state[STOP]["is_released"]

    @property
    def waits_to_begin(self) -> bool:
        """Return True if the task was created at a breakpoint before it and its step has not begun yet."""
        return self.has_stopped and self.attempt.status == PENDING

    @property
    def former_workers(self) -> tuple[str, ...]:
        """Return the workers that held an earlier lease of the newest attempt, which was reopened since."""
        return tuple(self.step_state.get(FORMER_WORKERS, {}).get(self.attempt.id, ()))

    @property
    def all_workers(self) -> tuple[str, ...]:
        """Return the former workers and the one that holds or held the current lease."""
        attempt = self.attempt
        holder = (attempt.worker,) if attempt.poll_count and attempt.worker else ()
        return tuple(dict.fromkeys((*self.former_workers, *holder)))

    @property
    def tries(self) -> int:
        """Return the number of attempts before the newest one since the task was last entered; a rerun starts at 0."""
        return self.attempt.number - self.step_state.get(FIRST_NUMBER, 0)

    @property
    def loop(self) -> Key | None:
        """Return the key of the innermost loop around the task, or None."""
        return Key(self.step.loops[-1], self.key.iteration_path[:-1]) if self.step.loops else None


CONTROL_REMOVED = "is_left"
FORMER_WORKERS = "former_workers"
"""Key in a task's step state for former workers, by attempt id."""
STOP = "stop"
"""Key in a task's step state for its last stop at a breakpoint: the attempt and its status then, and `is_released`."""
RUNTIME_METADATA = "runtime_metadata"
"""Key in a task's step state for the secrets and variables that its worker receives beside the input."""
FIRST_NUMBER = "first_number"
"""Key in a task's step state for the number of the first attempt since the task was last entered."""
GOOD_ENDS = frozenset((COMPLETED, COMPLETED_WITH_ERRORS, SKIPPED))


@dataclass(frozen=True)
class Identity:
    """The ids of a task for clients, kept when control enters its step again (execution §7.4).

    `workers`: those that held a lease of the previous attempt; their late reports are refused.
    """

    task_id: str
    task_seq: int
    attempt_id: str
    attempt_seq: int
    number: int
    previous_id: str = ""
    workers: tuple[str, ...] = ()


class Share(NamedTuple):
    """A fairness key, empty for none, and its weight."""

    key: str = ""
    weight: float = 1.0


NO_SHARE = Share()


@dataclass(frozen=True)
class Run:
    """One execution of a definition, with all of its tasks (`is_whole`) or only those that a change needs."""

    id: str
    definition: Definition
    status: str
    created_at: int
    tasks: Mapping[Key, Task] = field(default_factory=dict)
    is_whole: bool = True
    touched: frozenset[Key] = frozenset()  # changed by this decision
    moved: frozenset[Key] = frozenset()  # those of them that control may pass from
    next_seq: int = 1
    revision: int = 0
    updated_at: int = 0
    ended_at: int | None = None
    last_retried_at: int = 0
    idle_ms: int = 0  # time between an end and the retry or rerun that opened the run again
    failed_before_at: int | None = None  # when it last failed before it was opened again
    wake_at: int = NEVER
    correlation_id: str = ""
    priority: int = 0
    parent_id: str = ""
    parent_attempt_id: str = ""
    root_id: str = ""  # the run above it that no run waits for; empty for such a run itself
    starter_id: int | str = 0  # the user whose permissions the run has; 0 or "": no limit, without authentication
    depth: int = 0  # number of runs above it, through sub-workflows and failure workflows
    reason: str = ""
    failed_attempt_id: str = ""
    failed_refs: tuple[str, ...] = ()
    failed_names: tuple[str, ...] = ()
    domains: Mapping[str, str] = field(default_factory=dict)
    limit_key: str = ""
    is_held: bool = False
    inbox: int = 0  # number of messages that clients sent and no step has consumed
    inbox_taken: int = 0  # number of the last message consumed by this decision
    watched_as: str = ""  # a client waits for changes of the run under this name,
    watched_until: int = 0  # until this time; its children inherit both
    debug: Mapping[str, Any] = field(default_factory=dict)  # breakpoints and stops, see breakpoints.py
    traceparent: str | None = None  # the trace in which the run was started
    fairness: Share = NO_SHARE  # of the tasks whose steps give none
    identities: Mapping[Key, Identity] = field(default_factory=dict)  # of tasks that are entered again
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
        """Return True if its start is scheduled for later. `created_at` is then the time of the start."""
        return not self.has_begun and now < self.created_at

    @property
    def open_tasks(self) -> list[Task]:
        return [task for task in self.tasks.values() if task.is_open]

    @property
    def sources(self) -> list[Task]:
        """Return the tasks that control may pass from: all if the run is whole, otherwise those moved by this decision.

        The steps after an open task cannot have been entered yet, so no task beyond them needs to be read.
        """
        if self.is_whole:
            return list(self.tasks.values())
        return [self.tasks[key] for key in self.moved if key in self.tasks]

    def tasks_of_type(self, type: str) -> list[Task]:
        return [task for task in self.tasks.values() if task.is_open and task.step.type == type]

    def has_changes_for(self, task: Task, keys: Iterable[Key]) -> bool:
        """Return True if a task that waits for `keys` must check them again; always if the run is whole."""
        return self.is_whole or task.key in self.touched or any(key in self.touched for key in keys)

    def task_of_attempt(self, attempt_id: str) -> Task | None:
        return next((task for task in self.tasks.values() if task.attempt.id == attempt_id), None)

    def step(self, ref: str, source: Task | None = None) -> Step | None:
        """Return the step with this reference, in the definition or in the dynamic branch of `source`, or None."""
        return self.definition.steps.get(ref) or (source.branch_steps.get(ref) if source else None)


class TaskIndex:
    def __init__(self, run: Run) -> None:
        self.run = run
        self._newest: dict[int, dict[tuple[str, tuple[int, ...]], Task]] = {}

    def newest(self, ref: str, within: tuple[int, ...] = ()) -> Task | None:
        """Return the most recently created task of this reference in the iterations `within`, or None."""
        depth = len(within)
        if depth not in self._newest:
            self._newest[depth] = {(task.key.ref, task.key.iteration_path[:depth]): task for task in self._by_age}
        return self._newest[depth].get((ref, within))

    @cached_property
    def _by_age(self) -> list[Task]:
        return sorted(filter(self._may_be_newest, self.run.tasks.values()), key=lambda task: task.seq)

    def _may_be_newest(self, task: Task) -> bool:
        """Return True if a task may be the newest of its reference.

        Skipped tasks of earlier iterations are read as well.
        """
        return self.run.is_whole or task.status != SKIPPED or task.key in self.run.touched

    @cached_property
    def by_loop(self) -> dict[Key, list[Task]]:
        found: dict[Key, list[Task]] = {}
        for task in self.run.tasks.values():
            if task.step.loops:
                found.setdefault(Key(task.step.loops[-1], task.key.iteration_path[:-1]), []).append(task)
        return found
