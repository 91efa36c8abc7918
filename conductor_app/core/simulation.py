"""Execution of a run and its children in memory, with mocked tasks. Nothing is saved.

Time is simulated: it advances to the next event that happens by itself. A task without a mock that only a worker
could end stops the simulation.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from . import commands, decide
from .child_runs import new_child_run
from .data_requests import DataRequest
from .decide import Decision, DecisionLoop, Report, apply_command, no_command
from .decision_context import Command
from .definition import StepSpot, structure_of_step, walk
from .effects import Effect, SendMessage, SnapshotBuilder, StartRun, TransitionAttempt, apply_effects, task_key_of
from .errors import AlreadyResolved, Invalid, PayloadOverLimit
from .primitives import JsonValue, fast_replace
from .snapshot import NEVER, Attempt, Run, Task
from .states import LEASED, PENDING
from .step_types import step_type_of
from .timers import next_timer


@dataclass(frozen=True, slots=True)
class TaskMock:
    """Outcome of one attempt, its time in the queue and its execution time."""

    outcome: str = "COMPLETED"
    output: dict[str, Any] = field(default_factory=dict)
    queue_ms: int = 0
    work_ms: int = 0


@dataclass(frozen=True, slots=True)
class SimulationScript:
    """Mocks of a run: by reference, one for each attempt in order; and the scripts of its children.

    `branches`: by the reference of a dynamic fork, the mocks of each of its tasks that has no mock of its own.
    """

    mocks: Mapping[str, Sequence[TaskMock]] = field(default_factory=dict)
    children: Mapping[str, "SimulationScript"] = field(default_factory=dict)
    branches: Mapping[str, Sequence[TaskMock]] = field(default_factory=dict)


class SimulationCue(NamedTuple):
    """Times at which an open attempt is claimed and reported on, and its mock."""

    claimed_at: int
    reported_at: int
    mock: TaskMock


@dataclass(slots=True)
class SimulatedRun:
    """One simulated run, with all of its attempts and the cues of the open ones."""

    run: Run
    script: SimulationScript
    attempts: dict[str, tuple[Attempt, Task]] = field(default_factory=dict)
    cues: dict[str, SimulationCue] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    passed: set[tuple[str, int]] = field(default_factory=set)  # expired timers that had no effect

    def cue(self, task: Task) -> TaskMock | None:
        """Return the next mock of the task's key, its reference or its dynamic fork; None if there is none left."""
        for name in (str(task.key), task.key.ref):
            if (mock := self._next_mock(name, self.script.mocks.get(name, ()))) is not None:
                return mock
        mocks = (
            self.script.branches.get(self._dynamic_fork_of(task), ())
            if self.script.branches and task.branch_head
            else ()
        )
        return self._next_mock(f"branch {task.key}", mocks)

    def _next_mock(self, name: str, mocks: Sequence[TaskMock]) -> TaskMock | None:
        used = self.used.get(name, 0)
        if used >= len(mocks):
            return None
        self.used[name] = used + 1
        return mocks[used]

    def _dynamic_fork_of(self, task: Task) -> str:
        """Return the reference of the dynamic fork that created a task."""
        forks = (
            each for each in self.run.tasks.values() if each.branch_head is None and task.key.ref in each.branch_steps
        )
        return next((fork.key.ref for fork in forks), "")


def next_times(part: SimulatedRun, now: int) -> Iterable[int]:
    """Yield the times of events that happen by themselves: cues, and timers of the engine."""
    if part.run.wake_at <= now:
        # A long decision stopped halfway, or the run's timer has expired.
        yield part.run.wake_at
    for task in part.run.open_tasks:
        attempt = task.attempt
        if attempt.id in part.cues:
            cue = part.cues[attempt.id]
            yield cue.claimed_at if attempt.status == PENDING else cue.reported_at
        elif not attempt.queue and (attempt.status == PENDING or attempt.ends_at != NEVER):
            yield from _attempt_due_times(part, attempt)


def _attempt_due_times(part: SimulatedRun, attempt: Attempt) -> Iterable[int]:
    if attempt.is_open and attempt.due_at != NEVER and (attempt.id, attempt.due_at) not in part.passed:
        yield attempt.due_at


GIVES, FAILS, FAILS_FOR_GOOD, TIMES_OUT, STAYS = "gives", "fails", "fails_for_good", "times_out", "stays"
SIMULATED_TYPES = "played"
KINDS_OF_OUTCOMES = {
    GIVES: "completes with",
    FAILS: "fails, then completes with",
    FAILS_FOR_GOOD: "fails without retry",
    TIMES_OUT: "times out",
    STAYS: "stays open",
    SIMULATED_TYPES: "is simulated as well",
}
INSIDE = ">"
"""Separator between the reference of a sub-workflow's step and the reference of a step inside it."""
ENOUGH = 300
"""Number of attempts of one step that get an outcome. A loop uses one per iteration."""


class SimulatedOutcome(NamedTuple):
    """Outcome of one step: how it ends, how often it fails before, and its output."""

    how: str = GIVES
    times: int = 1
    output: JsonValue = None


def steps_needing_outcome(document: Mapping[str, Any]) -> Iterator[StepSpot]:
    """Yield the steps whose outcome the user must set. A dynamic fork stands for its branches."""
    for spot in walk(document.get("tasks")):
        if spot.ref and structure_of_step(spot.step).needs_simulated_result(spot.step):
            yield spot


def build_script(outcomes: Mapping[str, SimulatedOutcome]) -> SimulationScript:
    """Return the script with these outcomes for every iteration of the steps. `sub>ref` is a step of a sub-workflow."""
    own = {ref: outcome for ref, outcome in outcomes.items() if INSIDE not in ref}
    mocks = {ref: found for ref, outcome in own.items() if (found := tuple(_task_mocks(outcome)))}
    children = {
        ref: build_script(_outcomes_inside(outcomes, ref))
        for ref, outcome in own.items()
        if outcome.how == SIMULATED_TYPES
    }
    # The outcome of a dynamic fork applies to each task that it creates.
    return SimulationScript(mocks, children, branches=mocks)


def _outcomes_inside(outcomes: Mapping[str, SimulatedOutcome], ref: str) -> dict[str, SimulatedOutcome]:
    """Return the outcomes for the steps of a sub-workflow, by their references in it."""
    begin = f"{ref}{INSIDE}"
    return {name.removeprefix(begin): outcome for name, outcome in outcomes.items() if name.startswith(begin)}


def _task_mocks(outcome: SimulatedOutcome) -> Iterator[TaskMock]:
    output = outcome.output if isinstance(outcome.output, dict) else {}
    if outcome.how == FAILS:
        yield from [TaskMock("FAILED", {}, work_ms=1000)] * min(max(outcome.times, 0), ENOUGH)
    if outcome.how in (GIVES, FAILS):
        yield from [TaskMock("COMPLETED", output, work_ms=1000)] * ENOUGH
    elif outcome.how == FAILS_FOR_GOOD:
        yield from [TaskMock("FAILED_FOR_GOOD", {}, work_ms=1000)] * ENOUGH
    elif outcome.how == TIMES_OUT:
        yield from [TaskMock("TIMED_OUT", {}, work_ms=1000)] * ENOUGH


MAX_EFFECTS = 20_000
"""Maximum number of effects of one simulation, which bounds its duration."""


class Simulation:
    """A run and the children that it waits for.

    `answer`: loads requested data. `is_over`: returns True at the deadline.
    """

    def __init__(
        self,
        now: int,
        answer: Callable[[Iterable[DataRequest]], Mapping[DataRequest, Any]],
        is_over: Callable[[], bool],
    ) -> None:
        self.now, self._answer, self._is_over = now, answer, is_over
        self.parts: dict[str, SimulatedRun] = {}
        self._answers: dict[DataRequest, Any] = {}
        self._later: deque[Callable[[], None]] = deque()
        self._effects = 0

    def play(self, run: Run, script: SimulationScript) -> SimulatedRun:
        """Simulate the run until nothing happens by itself any more.

        Raises:
            Invalid: when the simulation takes too long.
        """
        self._start_run(run, script)
        self._deliver_pending()
        while (moment := self._next_moment()) is not None:
            self.now = max(self.now, moment)
            for one in list(self.parts.values()):
                self._process_due(one)
            self._deliver_pending()
        return self.parts[run.id]

    def _start_run(self, run: Run, script: SimulationScript) -> None:
        self.parts[run.id] = SimulatedRun(run, script)
        self._apply_command(self.parts[run.id], no_command)

    def _apply_command(self, part: SimulatedRun, command: Command) -> bool:
        """Apply a command as the engine would. Returns whether it had any effect."""
        return bool(SimulationLoop(self, part, command).run())

    def save_decision(self, part: SimulatedRun, decision: Decision) -> None:
        """Apply the effects to the run, and schedule the reports of its attempts and its messages."""
        self._effects += len(decision.effects)
        self._refuse_endless()
        before, builder = part.run, SnapshotBuilder(part.run)
        for effect in decision.effects:
            effect.apply(builder)
            self._record_attempt(part, effect, builder)
        none: frozenset[Any] = frozenset()
        part.run = fast_replace(decision.after, revision=before.revision + 1, touched=none, moved=none)
        self._schedule_cues(part)
        for effect in decision.effects:
            if isinstance(effect, SendMessage):
                self._later.append(partial(self._deliver, effect))
            elif isinstance(effect, StartRun) and effect.parent_attempt_id not in {"", *part.cues}:
                child, script = new_child_run(effect, before, self.now), self._script_of_child(part, effect)
                self._later.append(partial(self._start_run, child, script))

    def decide(self, run: Run, command: Command, saves_partially: bool) -> Decision:
        """Decide with the data loaded so far.

        Raises:
            Invalid: when expressions compose a value that exceeds the maximum size of a payload.
        """
        try:
            return apply_command(run, command, self._answers, self.now, saves_partially)
        except PayloadOverLimit as found:
            raise Invalid(str(found)) from found

    def load_data(self, requests: Iterable[DataRequest]) -> None:
        """Load the data that a decision requests.

        Raises:
            Invalid: when the simulation takes too long.
        """
        self._refuse_endless()
        self._answers |= self._answer(requests)

    def _refuse_endless(self) -> None:
        if self._effects > MAX_EFFECTS or self._is_over():
            raise Invalid(
                "The test was stopped because it takes too long. Reduce the number of iterations of its loops."
            )

    @staticmethod
    def _record_attempt(part: SimulatedRun, effect: Effect, builder: SnapshotBuilder) -> None:
        key = task_key_of(effect)
        if key is not None and key in builder.tasks:
            task = builder.tasks[key]
            part.attempts[task.attempt.id] = (task.attempt, task)

    @staticmethod
    def _script_of_child(part: SimulatedRun, effect: StartRun) -> SimulationScript:
        _, task = part.attempts[effect.parent_attempt_id]
        children = part.script.children
        return children.get(str(task.key)) or children.get(task.key.ref) or SimulationScript()

    def _schedule_cues(self, part: SimulatedRun) -> None:
        """Schedule the claim and the report of each open attempt with a mock."""
        for task in part.run.open_tasks:
            attempt = task.attempt
            is_ready = attempt.status == LEASED or (attempt.status == PENDING and attempt.queue)
            if not is_ready or attempt.id in part.cues or step_type_of(task.step.type).waits_for_tasks:
                continue
            if (mock := part.cue(task)) is not None:
                claimed_at = max(attempt.visible_at, self.now) + mock.queue_ms
                part.cues[attempt.id] = SimulationCue(claimed_at, claimed_at + mock.work_ms, mock)

    def _next_moment(self) -> int | None:
        """Return the time of the next event; None if nothing happens by itself."""
        open_parts = [part for part in self.parts.values() if part.run.is_open]
        moments = [moment for part in open_parts for moment in next_times(part, self.now)]
        if not moments:
            return None
        return min([*moments, *(moment for part in open_parts for moment in _timer_times(part))])

    def _process_due(self, part: SimulatedRun) -> None:
        """Handle the due timers, claims and reports of one run."""
        if (
            part.run.is_open
            and min(_timer_times(part), default=NEVER) <= self.now
            and not self._apply_command(part, no_command)
        ):
            attempts = [task.attempt for task in part.run.open_tasks]
            part.passed |= {(attempt.id, attempt.due_at) for attempt in attempts if attempt.due_at <= self.now}
            part.run = fast_replace(part.run, wake_at=NEVER)
        for task in list(part.run.open_tasks):
            cue = part.cues.get(task.attempt.id)
            if cue is None:
                continue
            if cue.claimed_at <= self.now and task.attempt.status == PENDING:
                self._claim(part, task)
            if cue.reported_at <= self.now:
                del part.cues[task.attempt.id]
                self._apply_mock(part, task.attempt.id, cue.mock)

    def _claim(self, part: SimulatedRun, task: Task) -> None:
        attempt = task.attempt
        facts: dict[str, Any] = {
            "started_at": attempt.started_at or self.now,
            "lease_ends_at": self.now + attempt.lease_ms if attempt.lease_ms else None,
            "callback_ms": 0,
            "poll_count": attempt.poll_count + 1,
        }
        due_at = next_timer(task.step.policy, fast_replace(attempt, status=LEASED, **facts), self.now)
        part.run = apply_effects(
            part.run, [TransitionAttempt(task.key, "claim", self.now, {**facts, "due_at": due_at})]
        )
        part.attempts[attempt.id] = (part.run.tasks[task.key].attempt, task)

    def _apply_mock(self, part: SimulatedRun, attempt_id: str, mock: TaskMock) -> None:
        with suppress(AlreadyResolved):
            self._apply_command(part, decide.apply_report(attempt_id, Report(mock.outcome, mock.output)))

    def _deliver_pending(self) -> None:
        """Start the pending children and deliver the pending messages."""
        while self._later:
            self._later.popleft()()

    def _deliver(self, message: SendMessage) -> None:
        part = self.parts.get(message.to)
        if part is not None and (command := self._command(message)) is not None:
            with suppress(AlreadyResolved):
                self._apply_command(part, command)

    def _command(self, message: SendMessage) -> Command | None:
        if message.subject == "terminate":
            return commands.terminate_run(message.facts.get("reason", ""))
        if message.subject != "child_ended":
            return None
        run = self.parts[message.facts["child"]].run
        name, version = run.definition.name, run.definition.version
        facts = {"id": run.id, "name": name, "version": version, "status": run.status, "reason": run.reason}
        return decide.child_ended(message.facts["attempt"], {**facts, "output": run.output})


def _timer_times(part: SimulatedRun) -> Iterable[int]:
    """Yield the times at which timers of the run or of its open attempts expire."""
    if part.run.wake_at != NEVER:
        yield part.run.wake_at
    for task in part.run.open_tasks:
        yield from _attempt_due_times(part, task.attempt)


class SimulationLoop(DecisionLoop):
    """Decision loop of one command on a simulated run. The simulation limits its length."""

    max_rounds = sys.maxsize

    def __init__(self, simulation: Simulation, part: SimulatedRun, command: Command) -> None:
        super().__init__()
        self.simulation, self.part, self.command = simulation, part, command

    def attempt(self, saves_partially: bool) -> Decision:
        decision = self.simulation.decide(self.part.run, self.command, saves_partially)
        if decision.effects or not decision.data_requests:
            self.simulation.save_decision(self.part, decision)
            self.command = no_command
        return decision

    def load(self, requests: Iterable[DataRequest]) -> None:
        self.simulation.load_data(requests)

    def on_exhausted(self) -> tuple[Effect, ...]:
        return self.effects
