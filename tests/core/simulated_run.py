"""Life: a run in memory. It asks only the core, claims as the store would, and checks the law at every decision."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from conductor_app.core import commands, reports
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
from conductor_app.core.decide import apply_command, decide, no_command
from conductor_app.core.decision_context import Command, conductor_status
from conductor_app.core.definition import Definition
from conductor_app.core.document import read_definition
from conductor_app.core.effects import Effect, SendMessage, StartRun, TransitionAttempt, apply_effects
from conductor_app.core.reports import Report
from conductor_app.core.snapshot import NEVER, Run, Task
from conductor_app.core.timers import next_timer

ITERATION_LIMIT = re.compile(r"\$\.(\w+)\.iteration < (\d+)")


class RunInMemory:
    """One run, from its start on; time is in seconds since then."""

    def __init__(
        self,
        definition: Definition,
        input: dict[str, Any] | None = None,
        *,
        scripts: Mapping[str, Any] | None = None,
        known: Mapping[str, Any] | None = None,
        begins: bool = True,
        **fields: Any,
    ) -> None:
        """`scripts`: what sources come to; `known`: definitions and policies by name."""
        self.now, self.scripts, self.known = 0, scripts or {}, known or {}
        self.effects: list[Effect] = []
        variables = dict(definition.document.get("variables") or {})
        self.run = Run("run", definition, "RUNNING", 0, input=input or {}, output={}, variables=variables, **fields)
        if begins:
            self.do(no_command)

    def do(self, command: Command) -> tuple[Effect, ...]:
        """Hear a command, with all that follows from it."""
        decision = self._answered(command)
        self.effects += decision.effects
        self.run = replace(decision.after, revision=self.run.revision + 1)
        again = decide(self.run, self._answers, self.now * 1000)
        assert again.effects == () and not again.data_requests, (
            f"the law is broken: {again.effects or again.data_requests}"
        )
        return decision.effects

    def _answered(self, command: Command):
        self._answers: dict[DataRequest, Any] = {}
        while True:
            decision = apply_command(self.run, command, self._answers, self.now * 1000)
            if not decision.data_requests:
                assert apply_effects(self.run, decision.effects).tasks == decision.after.tasks
                return decision
            self._answers |= {question: self._answer(question) for question in decision.data_requests}

    def _answer(self, question: DataRequest) -> Any:
        match question:
            case ScriptEvaluation():
                return self._script(question)
            case DefinitionByName():
                return self._known(question.name, Definition)
            case InlineDefinition():
                return read_definition(json.loads(question.document))
            case TaskDefinitionByName():
                return self._known(question.name, dict)
            case ActiveDomains():
                return self.known.get("domains", frozenset())
            case CachedTaskOutput():
                return self.known.get(question.name)
            case Environment():
                return {}
        raise AssertionError(f"nobody can answer {question}")

    def _known(self, name: str, kind: type) -> Any:
        return found if isinstance(found := self.known.get(name), kind) else None

    def _script(self, question: ScriptEvaluation) -> ScriptResult:
        if question.source in self.scripts:
            value = self.scripts[question.source]
            value = value(json.loads(question.inputs)) if callable(value) else value
            return value if isinstance(value, ScriptResult) else ScriptResult(value)
        found = ITERATION_LIMIT.fullmatch(question.source)
        assert found, f"no answer is given for the script {question.source!r}"
        return ScriptResult(json.loads(question.inputs)[found[1]]["iteration"] < int(found[2]))

    def task(self, key: str) -> Task:
        """The task of this reference, with its turn: `a`, `a__2`."""
        return next(task for task in self.run.tasks.values() if str(task.key) == key)

    def claim(self, key: str) -> Task:
        """A worker takes it."""
        task = self.task(key)
        now, lease = self.now * 1000, task.attempt.lease_ms
        ends_at = now + lease if lease else None
        facts = {"started_at": task.attempt.started_at or now, "lease_ends_at": ends_at, "callback_ms": 0}
        after = replace(task.attempt, status="LEASED", **facts)
        facts |= {"due_at": next_timer(task.step.policy, after), "poll_count": task.attempt.poll_count + 1}
        self.run = apply_effects(self.run, [TransitionAttempt(task.key, "claim", now, facts)])
        return self.task(key)

    def report(self, key: str, outcome: str, output: dict | None = None, reason: str = "", **said: Any) -> None:
        """Somebody reports on it."""
        self.do(reports.apply_report(self.task(key).attempt.id, Report(outcome, output or {}, reason, **said)))

    def completes(self, *keys: str, **output: Any) -> "RunInMemory":
        """Workers complete these, one after another."""
        for key in keys:
            self.report(key, "COMPLETED", output)
        return self

    def fails(self, key: str, reason: str = "no luck") -> "RunInMemory":
        """A worker fails."""
        self.report(key, "FAILED", reason=reason)
        return self

    def ends(self, key: str, outcome: str, **output: Any) -> "RunInMemory":
        """It ends in one of the ways in which an attempt may end."""
        if outcome == "TIMED_OUT":
            self.run = apply_effects(self.run, [TransitionAttempt(self.task(key).key, "expire", self.now * 1000)])
            self.do(no_command)
        else:
            self.report(key, outcome, output, reason="" if outcome == "COMPLETED" else "no luck")
        return self

    def child_ended(self, key: str, status: str, reason: str = "", **output: Any) -> None:
        """The child that it waits for has ended."""
        attempt = self.task(key).attempt
        child = {"id": attempt.child_id, "name": "child", "version": 1, "status": status}
        self.do(reports.child_ended(attempt.id, {**child, "reason": reason, "output": output}))

    def later(self, seconds: int) -> "RunInMemory":
        """Time passes; what becomes due happens at its moment."""
        until = self.now + seconds
        while (moment := self.next_moment()) <= until * 1000:
            self.now = max(self.now, -(-moment // 1000))
            if not self.do(no_command):
                break
        self.now = until
        return self

    def next_moment(self) -> int:
        """The earliest moment at which anything is due."""
        dues = [task.attempt.due_at for task in self.run.open_tasks if task.attempt.is_open]
        return min([self.run.wake_at, *dues], default=NEVER) if self.run.is_open else NEVER

    def retry(self) -> "RunInMemory":
        """The operator tries again."""
        self.do(commands.Retry())
        return self

    @property
    def statuses(self) -> dict[str, str]:
        """The status of each task, as clients see it, in the order of creation."""
        tasks = sorted(self.run.tasks.values(), key=lambda task: task.seq)
        return {str(task.key): conductor_status(task.attempt.status, task.status) for task in tasks}

    @property
    def status(self) -> str:
        """The run's status."""
        return self.run.status

    @property
    def waiting(self) -> list[str]:
        """What waits in queues or is out with workers."""
        return [str(task.key) for task in self.run.open_tasks if task.attempt.queue and task.attempt.is_open]

    @property
    def started(self) -> list[StartRun]:
        """The runs that it has started."""
        return [effect for effect in self.effects if isinstance(effect, StartRun)]

    @property
    def sent(self) -> list[SendMessage]:
        """What it has said to others."""
        return [effect for effect in self.effects if isinstance(effect, SendMessage)]
