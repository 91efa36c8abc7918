"""Effects: the state changes that a decision requests. Stored effects are the history of a run."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .definition import Definition, Key, Step
from .errors import shorten_reason
from .primitives import fast_replace
from .snapshot import CONTROL_REMOVED, NEVER, STOP, UNKNOWN, Attempt, Run, StepState, Task
from .states import ATTEMPT, FAILED, FAILED_FOR_GOOD, RUN, SKIPPED, TASK


class SnapshotBuilder:
    """Mutable copy of a snapshot to which effects are applied."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.tasks = dict(run.tasks)
        self.touched, self.moved = set(run.touched), set(run.moved)
        self.changes: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        return self.changes.get(name, getattr(self.run, name))

    def put(self, task: Task, *, moves_control: bool) -> None:
        """Store the task in its new state.

        `moves_control`: True if its status, iteration or step state changed, so that control may pass from it. A change
        of the attempt alone moves no control: an open loop, for example, has already led to the first step of its
        iteration, and the task of that step need not be among those that were read.
        """
        self.tasks[task.key] = task
        self.touched.add(task.key)
        if moves_control:
            self.moved.add(task.key)

    def build(self) -> Run:
        touched, moved = frozenset(self.touched), frozenset(self.moved)
        return fast_replace(self.run, tasks=self.tasks, touched=touched, moved=moved, **self.changes)


@dataclass(frozen=True, slots=True)
class Effect:
    """One state change that a decision requests."""

    def apply(self, builder: SnapshotBuilder) -> None:
        """Apply the effect to the snapshot."""

    def to_history(self) -> dict[str, Any]:
        """Return the effect as a line of history: names and facts, never payloads."""
        return {"effect": type(self).__name__}


@dataclass(frozen=True, slots=True)
class CreateTask(Effect):
    """Create a task with its first attempt. A task that is entered again keeps its sequence number."""

    task: Task

    def apply(self, builder: SnapshotBuilder) -> None:
        if self.task.seq:
            builder.put(self.task, moves_control=True)
        else:
            seq = builder.get("next_seq")
            builder.put(
                fast_replace(self.task, seq=seq, attempt=fast_replace(self.task.attempt, seq=seq)), moves_control=True
            )
            builder.changes["next_seq"] = seq + 1
        if self.task.attempt.status in (FAILED, FAILED_FOR_GOOD):
            _record_failure(builder, self.task)

    def to_history(self) -> dict[str, Any]:
        line = {
            "effect": "CreateTask",
            "task": str(self.task.key),
            "type": self.task.step.type,
            "attempt": self.task.attempt.id,
            "status": self.task.attempt.status,
        }
        return line | ({"becomes": SKIPPED} if self.task.status == SKIPPED else {})


@dataclass(frozen=True, slots=True)
class OpenAttempt(Effect):
    """Open a new attempt of an active task. An attempt with a sequence number is reopened under its id.

    `step_state`: what the new attempt changes in the state of the task.
    """

    key: Key
    attempt: Attempt
    step_state: StepState = field(default_factory=dict)

    def apply(self, builder: SnapshotBuilder) -> None:
        task = builder.tasks[self.key]
        if self.step_state:
            task = fast_replace(task, step_state={**task.step_state, **self.step_state})
        if self.attempt.seq:
            builder.put(fast_replace(task, attempt=self.attempt), moves_control=False)
            return
        seq = builder.get("next_seq")
        builder.put(fast_replace(task, attempt=fast_replace(self.attempt, seq=seq)), moves_control=False)
        builder.changes["next_seq"] = seq + 1

    def to_history(self) -> dict[str, Any]:
        return {
            "effect": "OpenAttempt",
            "task": str(self.key),
            "number": self.attempt.number,
            "attempt": self.attempt.id,
            "visible_at": self.attempt.visible_at,
        }


@dataclass(frozen=True, slots=True)
class TransitionAttempt(Effect):
    """Apply an event of the state table to the newest attempt of a task, together with the fields in `facts`."""

    key: Key
    event: str
    at: int
    facts: dict[str, Any] = field(default_factory=dict)

    def apply(self, builder: SnapshotBuilder) -> None:
        task = builder.tasks[self.key]
        status = ATTEMPT.after(task.attempt.status, self.event)
        end = self.at if status in ATTEMPT.final else None
        due = NEVER if status in ATTEMPT.final else task.attempt.due_at
        fields = {"status": status, "ended_at": end, "due_at": due, **self.facts}
        if end is None:
            fields.setdefault("updated_at", self.at)
        builder.put(fast_replace(task, attempt=fast_replace(task.attempt, **fields)), moves_control=False)
        if status in (FAILED, FAILED_FOR_GOOD):
            _record_failure(builder, task)

    def to_history(self) -> dict[str, Any]:
        line = {"effect": "TransitionAttempt", "task": str(self.key), "event": self.event}
        line |= {name: self.facts[name] for name in ("worker", "visible_at") if self.facts.get(name)}
        return line | ({"reason": shorten_reason(reason)} if (reason := self.facts.get("reason")) else {})


def _record_failure(builder: SnapshotBuilder, task: Task) -> None:
    """Record the references and names of tasks with failed attempts (execution §1.4)."""
    for name, value in (("failed_refs", str(task.key)), ("failed_names", task.step.name)):
        known = builder.get(name)
        if value not in known:
            builder.changes[name] = (*known, value)


@dataclass(frozen=True, slots=True)
class UpdateTask(Effect):
    """Change fields of a task or of its newest attempt, not its status."""

    key: Key
    facts: dict[str, Any] = field(default_factory=dict)
    attempt_facts: dict[str, Any] = field(default_factory=dict)

    def apply(self, builder: SnapshotBuilder) -> None:
        task = builder.tasks[self.key]
        attempt = fast_replace(task.attempt, **self.attempt_facts) if self.attempt_facts else task.attempt
        builder.put(fast_replace(task, attempt=attempt, **self.facts), moves_control=bool(self.facts))

    def to_history(self) -> dict[str, Any]:
        return {"effect": "UpdateTask", "task": str(self.key)} | {
            name: value for name, value in self.facts.items() if name == "iteration"
        }


@dataclass(frozen=True, slots=True)
class StopTask(Effect):
    """Stop a task at a breakpoint. `stop`: its facts, as the run stores them."""

    key: Key
    stop: dict[str, Any]

    def apply(self, builder: SnapshotBuilder) -> None:
        task, debug = builder.tasks[self.key], builder.get("debug")
        stood = {"attempt": task.attempt.id, "status": task.attempt.status, "is_released": False}
        builder.put(fast_replace(task, step_state={**task.step_state, STOP: stood}), moves_control=False)
        kept = [each for each in debug.get("breakpoints", ()) if not each["is_temporary"]]
        stops = {**debug.get("stops", {}), task.attempt.id: self.stop}
        builder.changes["debug"] = {**debug, "breakpoints": kept, "stops": stops}

    def to_history(self) -> dict[str, Any]:
        return {"effect": "StopTask", "task": str(self.key), "place": self.stop["place"]}


@dataclass(frozen=True, slots=True)
class ReleaseTask(Effect):
    """End the stop of a task, with new facts of its attempt and of its step state."""

    key: Key
    attempt_facts: dict[str, Any] = field(default_factory=dict)
    step_state: dict[str, Any] = field(default_factory=dict)

    def apply(self, builder: SnapshotBuilder) -> None:
        task = builder.tasks[self.key]
        step_state = {**task.step_state, **self.step_state, STOP: {**task.step_state[STOP], "is_released": True}}
        attempt = fast_replace(task.attempt, **self.attempt_facts) if self.attempt_facts else task.attempt
        builder.put(fast_replace(task, attempt=attempt, step_state=step_state), moves_control=False)
        _remove_stops(builder, {task.attempt.id})

    def to_history(self) -> dict[str, Any]:
        changed = sorted({"input", "output"} & {*self.attempt_facts, *self.step_state})
        return {"effect": "ReleaseTask", "task": str(self.key)} | ({"changed": changed} if changed else {})


@dataclass(frozen=True, slots=True)
class RemoveStops(Effect):
    """Remove stops that a change from outside has ended."""

    attempt_ids: frozenset[str]

    def apply(self, builder: SnapshotBuilder) -> None:
        _remove_stops(builder, self.attempt_ids)


def _remove_stops(builder: SnapshotBuilder, attempt_ids: Collection[str]) -> None:
    """Remove the stops of these attempts from the document of the run."""
    debug = builder.get("debug")
    stops = {id: stop for id, stop in debug.get("stops", {}).items() if id not in attempt_ids}
    builder.changes["debug"] = {name: value for name, value in {**debug, "stops": stops}.items() if value}


@dataclass(frozen=True, slots=True)
class RequeueAttempt(Effect):
    """Change the priority or the queue of a pending attempt."""

    key: Key
    facts: dict[str, Any]

    def apply(self, builder: SnapshotBuilder) -> None:
        task = builder.tasks[self.key]
        builder.put(fast_replace(task, attempt=fast_replace(task.attempt, **self.facts)), moves_control=False)

    def to_history(self) -> dict[str, Any]:
        changed = {name: self.facts[name] for name in ("priority", "queue") if name in self.facts}
        return {"effect": "RequeueAttempt", "task": str(self.key)} | changed


@dataclass(frozen=True, slots=True)
class ResolveTask(Effect):
    """Resolve a task: bring it to its final status."""

    key: Key
    event: str

    def apply(self, builder: SnapshotBuilder) -> None:
        task = builder.tasks[self.key]
        builder.put(fast_replace(task, status=TASK.after(task.status, self.event)), moves_control=True)

    def to_history(self) -> dict[str, Any]:
        return {"effect": "ResolveTask", "task": str(self.key), "event": self.event}


@dataclass(frozen=True, slots=True)
class PruneIteration(Effect):
    """Delete the tasks of one iteration of a loop (keepLastN)."""

    loop: Key
    iteration: int

    def apply(self, builder: SnapshotBuilder) -> None:
        iteration_path = (*self.loop.iteration_path, self.iteration)
        pruned = [
            key
            for key, task in builder.tasks.items()
            if self.loop.ref in task.step.loops and key.iteration_path[: len(iteration_path)] == iteration_path
        ]
        for key in pruned:
            del builder.tasks[key]
            builder.touched.discard(key)
            builder.moved.discard(key)

    def to_history(self) -> dict[str, Any]:
        return {"effect": "PruneIteration", "loop": str(self.loop), "iteration": self.iteration}


@dataclass(frozen=True, slots=True)
class SwitchDefinition(Effect):
    """Continue the run with another definition: each task is bound to the given step of it.

    A task without a step there leads nowhere, and joins and loops ignore it.
    """

    definition: Definition
    steps: Mapping[Key, Step]

    def apply(self, builder: SnapshotBuilder) -> None:
        builder.changes["definition"] = self.definition
        for key, step in self.steps.items():
            task = builder.tasks[key]
            bound = self._rebind_task(task, step)
            builder.tasks[key] = bound
            if (bound.joined_by, bound.step_state, step.permissive) != (
                task.joined_by,
                task.step_state,
                task.step.permissive,
            ):
                builder.touched.add(key)

    def _rebind_task(self, task: Task, step: Step) -> Task:
        if task.key.ref not in self.definition.steps:
            return fast_replace(task, step=step, joined_by="", step_state={**task.step_state, CONTROL_REMOVED: True})
        return fast_replace(task, step=step, joined_by=step.joined_by[0] if step.joined_by else "")

    def to_history(self) -> dict[str, Any]:
        return {"effect": "SwitchDefinition", "definition": self.definition.name, "version": self.definition.version}


@dataclass(frozen=True, slots=True)
class DeleteTasks(Effect):
    """Delete tasks with all their attempts, as if the run had never reached them."""

    keys: tuple[Key, ...]

    def apply(self, builder: SnapshotBuilder) -> None:
        for key in self.keys:
            del builder.tasks[key]
            builder.touched.discard(key)
            builder.moved.discard(key)

    def to_history(self) -> dict[str, Any]:
        line = {"effect": "DeleteTasks", "count": len(self.keys)}
        return line | {"tasks": [str(key) for key in self.keys[:MAX_KEYS]]}


MAX_KEYS = 50
"""Maximum number of tasks or variables that a line of history names."""
MAX_NAME_LENGTH = 200


@dataclass(frozen=True, slots=True)
class SetVariables(Effect):
    variables: dict[str, Any]

    def apply(self, builder: SnapshotBuilder) -> None:
        builder.changes["variables"] = self.variables

    def to_history(self) -> dict[str, Any]:
        names = sorted(map(str, self.variables))
        return {"effect": "SetVariables", "names": [name[:MAX_NAME_LENGTH] for name in names[:MAX_KEYS]]}


@dataclass(frozen=True, slots=True)
class ConsumeMessages(Effect):
    """Remove the messages up to this number from the inbox of the run."""

    up_to: int
    left: int

    def apply(self, builder: SnapshotBuilder) -> None:
        builder.changes |= {"inbox": self.left, "inbox_taken": self.up_to}

    def to_history(self) -> dict[str, Any]:
        return {"effect": "ConsumeMessages", "left": self.left}


@dataclass(frozen=True, slots=True)
class TransitionRun(Effect):
    """Apply an event of the state table to the run, together with the fields in `facts`."""

    event: str
    at: int
    facts: dict[str, Any] = field(default_factory=dict)

    def apply(self, builder: SnapshotBuilder) -> None:
        status = RUN.after(builder.get("status"), self.event)
        builder.changes |= {"status": status, "updated_at": self.at, **self.facts}
        if status in RUN.final:
            builder.changes |= {"ended_at": self.at, "wake_at": NEVER, "inbox": 0}

    def to_history(self) -> dict[str, Any]:
        line = {"effect": "TransitionRun", "event": self.event}
        return line | ({"reason": self.facts["reason"]} if self.facts.get("reason") else {})


@dataclass(frozen=True, slots=True)
class UpdateRun(Effect):
    """Change fields of the run, not its status."""

    facts: dict[str, Any]

    def apply(self, builder: SnapshotBuilder) -> None:
        builder.changes |= self.facts

    def to_history(self) -> dict[str, Any]:
        return {"effect": "UpdateRun", "fields": sorted(self.facts)}


@dataclass(frozen=True, slots=True)
class StartRun(Effect):
    """Create another run in the same transaction. A message makes it begin, unless it `has_begun`.

    `parent_attempt_id` is set if an attempt of this run waits for it.
    """

    id: str
    definition: Definition
    input: Any = UNKNOWN
    correlation_id: str = ""
    priority: int = 0
    domains: dict[str, str] = field(default_factory=dict)
    parent_attempt_id: str = ""
    is_failure_workflow: bool = False
    idempotency_key: str = ""
    releases_key_of: str = ""  # the run that loses the key to this one
    has_begun: bool = False  # its first decision is saved in the same transaction

    def to_history(self) -> dict[str, Any]:
        return {
            "effect": "StartRun",
            "run": self.id,
            "definition": self.definition.name,
            "version": self.definition.version,
        }


@dataclass(frozen=True, slots=True)
class AttachChild(Effect):
    """Make an existing run the child that an attempt waits for."""

    run_id: str
    attempt_id: str

    def to_history(self) -> dict[str, Any]:
        return {"effect": "AttachChild", "run": self.run_id}


@dataclass(frozen=True, slots=True)
class AwaitWebhook(Effect):
    """Wait with an attempt for a webhook event whose payload has the values of this digest at these paths."""

    attempt_id: str
    paths: tuple[str, ...]
    digest: str

    def to_history(self) -> dict[str, Any]:
        return {"effect": "AwaitWebhook", "attempt": self.attempt_id}


@dataclass(frozen=True, slots=True)
class SendMessage(Effect):
    """Store a message to another run until it is delivered."""

    to: str
    subject: str
    facts: dict[str, Any] = field(default_factory=dict)

    def to_history(self) -> dict[str, Any]:
        return {"effect": "SendMessage", "to": self.to, "subject": self.subject}


@dataclass(frozen=True, slots=True)
class PublishEvent(Effect):
    """Publish an event. It is stored with the change of the run and delivered after it at least once."""

    sink: str
    id: str
    payload: dict[str, Any] = field(default_factory=dict)
    about: str = ""  # the subject of the event, if the server's settings determine its destination

    def to_history(self) -> dict[str, Any]:
        return {"effect": "PublishEvent", "sink": self.sink, "message": self.id}


def task_key_of(effect: Effect) -> Key | None:
    return effect.task.key if isinstance(effect, CreateTask) else getattr(effect, "key", None)


def apply_effects(run: Run, effects: Iterable[Effect]) -> Run:
    builder = SnapshotBuilder(run)
    for effect in effects:
        effect.apply(builder)
    return builder.build()
