"""What a decision may ask for. Each effect knows how it changes the snapshot; saved, it is a line of history."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .definition import Definition, Key, Step
from .frozen import fast_replace
from .snapshot import CONTROL_REMOVED, NEVER, UNKNOWN, Attempt, Run, Task
from .states import ATTEMPT, FAILED, FAILED_FOR_GOOD, RUN, SKIPPED, TASK


class SnapshotBuilder:
    """A snapshot while effects are being applied to it."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.tasks = dict(run.tasks)
        self.touched, self.moved = set(run.touched), set(run.moved)
        self.changes: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        return self.changes.get(name, getattr(self.run, name))

    def put(self, task: Task, *, moves_control: bool) -> None:
        """Keep the task as it is now. Control may pass from it if its status, its turn or its memo is new.

        What only its attempt goes through moves no control: an open loop that is near a change, for one, has led to
        the head of its turn already, and that head need not be among the tasks that were read.
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
    """One thing that a decision asks for."""

    def apply(self, builder: SnapshotBuilder) -> None:
        """Apply itself to the snapshot."""

    def to_history(self) -> dict[str, Any]:
        """Itself as a line of history: names and facts, never payloads."""
        return {"effect": type(self).__name__}


@dataclass(frozen=True, slots=True)
class CreateTask(Effect):
    """A task comes into being, with its first attempt; one that is entered again keeps its place in the order."""

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
            record_failure(builder, self.task)

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
    """Another try at a task that is active. An attempt with a place in the order is opened again under its id."""

    key: Key
    attempt: Attempt

    def apply(self, builder: SnapshotBuilder) -> None:
        if self.attempt.seq:
            builder.put(fast_replace(builder.tasks[self.key], attempt=self.attempt), moves_control=False)
            return
        seq = builder.get("next_seq")
        builder.put(
            fast_replace(builder.tasks[self.key], attempt=fast_replace(self.attempt, seq=seq)), moves_control=False
        )
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
    """The newest attempt of a task goes through an event of its life; `facts` are fields that change with it."""

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
            record_failure(builder, task)

    def to_history(self) -> dict[str, Any]:
        line = {"effect": "TransitionAttempt", "task": str(self.key), "event": self.event}
        return line | {name: self.facts[name] for name in ("reason", "worker", "visible_at") if self.facts.get(name)}


def record_failure(builder: SnapshotBuilder, task: Task) -> None:
    """Keep the references and names of failed attempts (execution §1.4)."""
    for name, value in (("failed_refs", str(task.key)), ("failed_names", task.step.name)):
        known = builder.get(name)
        if value not in known:
            builder.changes[name] = (*known, value)


@dataclass(frozen=True, slots=True)
class UpdateTask(Effect):
    """Facts of a task or of its newest attempt change without an event of its life."""

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
class RequeueAttempt(Effect):
    """What waits in a queue gets another place in it, or another queue."""

    key: Key
    facts: dict[str, Any]

    def apply(self, builder: SnapshotBuilder) -> None:
        task = builder.tasks[self.key]
        builder.put(fast_replace(task, attempt=fast_replace(task.attempt, **self.facts)), moves_control=False)

    def to_history(self) -> dict[str, Any]:
        shown = {name: self.facts[name] for name in ("priority", "queue") if name in self.facts}
        return {"effect": "RequeueAttempt", "task": str(self.key)} | shown


@dataclass(frozen=True, slots=True)
class ResolveTask(Effect):
    """A task reaches its end."""

    key: Key
    event: str

    def apply(self, builder: SnapshotBuilder) -> None:
        task = builder.tasks[self.key]
        builder.put(fast_replace(task, status=TASK.after(task.status, self.event)), moves_control=True)

    def to_history(self) -> dict[str, Any]:
        return {"effect": "ResolveTask", "task": str(self.key), "event": self.event}


@dataclass(frozen=True, slots=True)
class PruneIteration(Effect):
    """The tasks of one turn of a loop are no longer kept (keepLastN)."""

    loop: Key
    iteration: int

    def apply(self, builder: SnapshotBuilder) -> None:
        iteration_path = (*self.loop.iteration_path, self.iteration)
        gone = [
            key
            for key, task in builder.tasks.items()
            if self.loop.ref in task.step.loops and key.iteration_path[: len(iteration_path)] == iteration_path
        ]
        for key in gone:
            del builder.tasks[key]
            builder.touched.discard(key)
            builder.moved.discard(key)

    def to_history(self) -> dict[str, Any]:
        return {"effect": "PruneIteration", "loop": str(self.loop), "iteration": self.iteration}


@dataclass(frozen=True, slots=True)
class SwitchDefinition(Effect):
    """From now on the run follows another plan: its tasks stand for these steps of that one.

    A task without a step there leads nowhere any more, and no join or loop asks for it.
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
    """Tasks are taken back, with all their attempts: to the run they have never been."""

    keys: tuple[Key, ...]

    def apply(self, builder: SnapshotBuilder) -> None:
        for key in self.keys:
            del builder.tasks[key]
            builder.touched.discard(key)
            builder.moved.discard(key)

    def to_history(self) -> dict[str, Any]:
        line = {"effect": "DeleteTasks", "count": len(self.keys)}
        return line | {"tasks": [str(key) for key in self.keys[:MOST_KEYS]]}


MOST_KEYS = 50
"""Tasks that a line of history names."""


@dataclass(frozen=True, slots=True)
class SetVariables(Effect):
    """The run's variables change."""

    variables: dict[str, Any]

    def apply(self, builder: SnapshotBuilder) -> None:
        builder.changes["variables"] = self.variables

    def to_history(self) -> dict[str, Any]:
        return {"effect": "SetVariables", "names": sorted(map(str, self.variables))}


@dataclass(frozen=True, slots=True)
class ConsumeMessages(Effect):
    """The messages up to this number leave the run's inbox."""

    up_to: int
    left: int

    def apply(self, builder: SnapshotBuilder) -> None:
        builder.changes |= {"inbox": self.left, "inbox_taken": self.up_to}

    def to_history(self) -> dict[str, Any]:
        return {"effect": "ConsumeMessages", "left": self.left}


@dataclass(frozen=True, slots=True)
class TransitionRun(Effect):
    """The run goes through an event of its life; `facts` are fields that change with it."""

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
    """Facts of the run change without an event of its life."""

    facts: dict[str, Any]

    def apply(self, builder: SnapshotBuilder) -> None:
        builder.changes |= self.facts

    def to_history(self) -> dict[str, Any]:
        return {"effect": "UpdateRun", "fields": sorted(self.facts)}


@dataclass(frozen=True, slots=True)
class StartRun(Effect):
    """Another run is created in this transaction; it begins by a message of its own.

    `parent_attempt_id` is set where this run waits for it; `about` where it is this run's failure workflow.
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
    releases_key_of: str = ""  # the run that gives up the key for this one

    def to_history(self) -> dict[str, Any]:
        return {
            "effect": "StartRun",
            "run": self.id,
            "definition": self.definition.name,
            "version": self.definition.version,
        }


@dataclass(frozen=True, slots=True)
class AttachChild(Effect):
    """A run that is there already becomes the child that an attempt waits for."""

    run_id: str
    attempt_id: str

    def to_history(self) -> dict[str, Any]:
        return {"effect": "AttachChild", "run": self.run_id}


@dataclass(frozen=True, slots=True)
class AwaitWebhook(Effect):
    """An attempt waits for a webhook's payload that holds, at these paths, the values of this digest."""

    attempt_id: str
    paths: tuple[str, ...]
    digest: str

    def to_history(self) -> dict[str, Any]:
        return {"effect": "AwaitWebhook", "attempt": self.attempt_id}


@dataclass(frozen=True, slots=True)
class SendMessage(Effect):
    """A message to another run, kept until it is delivered."""

    to: str
    subject: str
    facts: dict[str, Any] = field(default_factory=dict)

    def to_history(self) -> dict[str, Any]:
        return {"effect": "SendMessage", "to": self.to, "subject": self.subject}


@dataclass(frozen=True, slots=True)
class PublishEvent(Effect):
    """An event is told: kept with the run's own change, and delivered after it at least once."""

    sink: str
    id: str
    payload: dict[str, Any] = field(default_factory=dict)
    about: str = ""  # what it tells of, where the server's settings say where that goes

    def to_history(self) -> dict[str, Any]:
        return {"effect": "PublishEvent", "sink": self.sink, "message": self.id}


def apply_effects(run: Run, effects: Iterable[Effect]) -> Run:
    """The snapshot after the effects."""
    builder = SnapshotBuilder(run)
    for effect in effects:
        effect.apply(builder)
    return builder.build()


FORMER_NAMES = {
    "MoveAttempt": "TransitionAttempt",
    "MoveRun": "TransitionRun",
    "Requeue": "RequeueAttempt",
    "ForgetTasks": "PruneIteration",
    "TakeBack": "DeleteTasks",
    "FollowPlan": "SwitchDefinition",
    "TakeMessages": "ConsumeMessages",
    "Await": "AttachChild",
    "Send": "SendMessage",
    "Publish": "PublishEvent",
}
"""Names of effects in history that was written before version 0.2, with their present names."""


def effect_name(line: Mapping[str, Any]) -> str:
    """Return the present name of the effect that a line of history records."""
    name = str(line.get("effect"))
    return FORMER_NAMES.get(name, name)
