"""A run in memory: it uses the core only, simulates claims, and checks that no decision leaves anything to decide."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from conductor_app.core import commands
from conductor_app.core import decide as core_decide
from conductor_app.core.data_requests import (
    ActiveDomains,
    CachedTaskOutput,
    DataRequest,
    DefinitionByName,
    Environment,
    InlineDefinition,
    ScriptEvaluation,
    ScriptResult,
    TaskDefinitionByName,
)
from conductor_app.core.decide import Report, apply_command, decide, no_command
from conductor_app.core.decision_context import Command, conductor_status
from conductor_app.core.definition import Definition
from conductor_app.core.document.reading import read_definition
from conductor_app.core.effects import Effect, SendMessage, StartRun, TransitionAttempt, apply_effects
from conductor_app.core.snapshot import NEVER, Run, Task
from conductor_app.core.timers import next_timer


class RunInMemory:
    """A run and its simulated workers. Times are in seconds since its start."""

    def __init__(
        self,
        definition: Definition,
        input: dict[str, Any] | None = None,
        *,
        scripts: Mapping[str, Any] | None = None,
        known: Mapping[str, Any] | None = None,
        makes_first_decision: bool = True,
        **fields: Any,
    ) -> None:
        """Create the run and make its first decision.

        `scripts` has the results of scripts by source, `known` the workflow and task definitions by name.
        """
        self.now, self.scripts, self.known = 0, scripts or {}, known or {}
        self.effects: list[Effect] = []
        variables = dict(definition.document.get("variables") or {})
        self.snapshot = Run(
            "run", definition, "RUNNING", 0, input=input or {}, output={}, variables=variables, **fields
        )
        if makes_first_decision:
            self.apply(no_command)

    def apply(self, command: Command) -> tuple[Effect, ...]:
        """Apply a command with all its consequences."""
        decision = self._decide_with_data(command)
        self.effects += decision.effects
        self.snapshot = replace(decision.after, revision=self.snapshot.revision + 1)
        if decision.effects and self.snapshot.is_open and self.snapshot.wake_at <= self.now * 1000:
            # The decision has reached its limits; in a server, a sweep continues.
            return decision.effects + self.apply(no_command)
        repeated = decide(self.snapshot, self._answers, self.now * 1000)
        assert repeated.effects == () and not repeated.data_requests, (
            f"the decision left work to do: {repeated.effects or repeated.data_requests}"
        )
        return decision.effects

    def _decide_with_data(self, command: Command):
        self._answers: dict[DataRequest, Any] = {}
        while True:
            decision = apply_command(self.snapshot, command, self._answers, self.now * 1000)
            if not decision.data_requests:
                assert apply_effects(self.snapshot, decision.effects).tasks == decision.after.tasks
                return decision
            self._answers |= {data_request: self._answer(data_request) for data_request in decision.data_requests}

    def _answer(self, data_request: DataRequest) -> Any:
        match data_request:
            case ScriptEvaluation():
                return self._evaluate_script(data_request)
            case DefinitionByName():
                return self._find_known(data_request.name, Definition)
            case InlineDefinition():
                return read_definition(json.loads(data_request.document))
            case TaskDefinitionByName():
                return self._find_known(data_request.name, dict)
            case ActiveDomains():
                return self.known.get("domains", frozenset())
            case CachedTaskOutput():
                return self.known.get(data_request.name)
            case Environment():
                return {}
        raise AssertionError(f"the test provides no data for {data_request}")

    def _find_known(self, name: str, kind: type) -> Any:
        return found if isinstance(found := self.known.get(name), kind) else None

    def _evaluate_script(self, data_request: ScriptEvaluation) -> ScriptResult:
        assert data_request.source in self.scripts, f"the test provides no result for {data_request.source!r}"
        value = self.scripts[data_request.source]
        value = value(json.loads(data_request.inputs)) if callable(value) else value
        return value if isinstance(value, ScriptResult) else ScriptResult(value)

    def task(self, key: str) -> Task:
        """Return a task by its reference and iteration: `a`, `a__2`."""
        return next(task for task in self.snapshot.tasks.values() if str(task.key) == key)

    def claim(self, key: str) -> Task:
        """Claim the task's attempt."""
        task = self.task(key)
        now, lease = self.now * 1000, task.attempt.lease_ms
        ends_at = now + lease if lease else None
        facts = {"started_at": task.attempt.started_at or now, "lease_ends_at": ends_at, "callback_ms": 0}
        after = replace(task.attempt, status="LEASED", **facts)
        facts |= {"due_at": next_timer(task.step.policy, after), "poll_count": task.attempt.poll_count + 1}
        self.snapshot = apply_effects(self.snapshot, [TransitionAttempt(task.key, "claim", now, facts)])
        return self.task(key)

    def report(self, key: str, outcome: str, output: dict | None = None, reason: str = "", **fields: Any) -> None:
        """Report on the task's attempt."""
        self.apply(core_decide.apply_report(self.task(key).attempt.id, Report(outcome, output or {}, reason, **fields)))

    def completes(self, *keys: str, **output: Any) -> "RunInMemory":
        """Complete these tasks one after another."""
        for key in keys:
            self.report(key, "COMPLETED", output)
        return self

    def fails(self, key: str, reason: str = "no luck") -> "RunInMemory":
        """Fail the task."""
        self.report(key, "FAILED", reason=reason)
        return self

    def ends(self, key: str, outcome: str, **output: Any) -> "RunInMemory":
        """End the task's attempt with the outcome."""
        if outcome == "TIMED_OUT":
            self.snapshot = apply_effects(
                self.snapshot, [TransitionAttempt(self.task(key).key, "expire", self.now * 1000)]
            )
            self.apply(no_command)
        else:
            self.report(key, outcome, output, reason="" if outcome == "COMPLETED" else "no luck")
        return self

    def child_ended(self, key: str, status: str, reason: str = "", **output: Any) -> None:
        """End the child run of the task."""
        attempt = self.task(key).attempt
        child = {"id": attempt.child_id, "name": "child", "version": 1, "status": status}
        self.apply(core_decide.child_ended(attempt.id, {**child, "reason": reason, "output": output}))

    def later(self, seconds: int) -> "RunInMemory":
        """Advance the time by `seconds`; handle each timer at its moment."""
        until = self.now + seconds
        while (moment := self.next_moment()) <= until * 1000:
            self.now = max(self.now, -(-moment // 1000))
            if not self.apply(no_command):
                break
        self.now = until
        return self

    def next_moment(self) -> int:
        """Return the moment of the earliest timer, in milliseconds."""
        dues = [task.attempt.due_at for task in self.snapshot.open_tasks if task.attempt.is_open]
        return min([self.snapshot.wake_at, *dues], default=NEVER) if self.snapshot.is_open else NEVER

    def retry(self) -> "RunInMemory":
        """Retry the failed tasks, as an operator does."""
        self.apply(commands.Retry())
        return self

    @property
    def statuses(self) -> dict[str, str]:
        """Conductor's status of each task, in the order of creation."""
        tasks = sorted(self.snapshot.tasks.values(), key=lambda task: task.seq)
        return {str(task.key): conductor_status(task.attempt.status, task.status) for task in tasks}

    @property
    def status(self) -> str:
        return self.snapshot.status

    @property
    def waiting(self) -> list[str]:
        """Tasks that are pending or claimed by workers."""
        return [str(task.key) for task in self.snapshot.open_tasks if task.attempt.queue and task.attempt.is_open]

    @property
    def started(self) -> list[StartRun]:
        """Runs that this run has started."""
        return [effect for effect in self.effects if isinstance(effect, StartRun)]

    @property
    def sent_messages(self) -> list[SendMessage]:
        """Messages that this run has sent."""
        return [effect for effect in self.effects if isinstance(effect, SendMessage)]
