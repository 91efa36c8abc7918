"""Preview of a command: it is decided like the command itself, but without locks, and nothing is saved."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ... import clock
from ...core import commands, reports
from ...core.child_run import new_child_run
from ...core.data_requests import DataRequest, DefinitionByName, InlineDefinition
from ...core.decide import Decision, no_command
from ...core.decision_context import Command
from ...core.decision_loop import DecisionLoop
from ...core.definition import Definition
from ...core.effects import Effect, SendMessage, StartRun
from ...core.errors import Busy, Conflict, Invalid, NotFound, PayloadOverLimit
from ...core.frozen import fast_replace
from ...core.snapshot import UNKNOWN, Run
from ...models import Attempt
from ...store import runs as store
from ..definitions import resolved_definitions
from ..payloads import payload_storage
from .data_loading import LoadedData
from .decision import DecisionFailed, decide_from_rows

MAX_MESSAGES = 200
"""The maximum number of messages between runs that a preview follows."""


@dataclass(frozen=True, slots=True)
class RunPreview:
    """One run before and after a command, with the effects."""

    before: Run
    after: Run
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class Preview:
    """Result that a command would have on a run, and on the runs that receive messages from it; the run itself first.

    `revision`: the current revision of the run. `is_cut`: there are more messages than the preview follows.
    """

    run_id: str
    revision: int
    runs: dict[str, RunPreview]
    is_cut: bool = False


def preview(run_id: str, command: Command) -> Preview:
    """Return the result that a command would have now.

    Raises:
        NotFound, Conflict, Invalid: as the command itself.
        Busy: when no helper process can run a script, or the decision takes too many passes.
    """
    run = store.load_run(run_id)
    ahead = PreviewWorld(clock.now())
    ahead.decide(run, command)
    is_cut = ahead.follow()
    return Preview(run_id, run.revision, ahead.runs, is_cut)


class PreviewData(LoadedData):
    """Loaded data for a preview: resolved definitions are read without being saved."""

    def definition_by_name(self, question: DefinitionByName, now: int) -> Definition | None:
        return resolved_definitions.read_unsaved(question.name, question.version)

    def inline_definition(self, question: InlineDefinition, now: int) -> Definition | str:
        return resolved_definitions.resolve_inline(question.document, question.allowed_secrets)


class PreviewLoop(DecisionLoop):
    """The decision loop of a command that is not saved."""

    def __init__(self, run: Run, command: Command, now: int) -> None:
        super().__init__()
        self.before, self.command, self.now = run, command, now
        self.data = PreviewData()
        self.decision = Decision((), run)

    def decide(self) -> Decision:
        """Return the complete decision.

        Raises:
            Invalid: when the engine cannot decide.
            Busy: when the decision takes too many passes.
        """
        self.run()
        return self.decision

    def attempt(self, saves_partially: bool) -> Decision:
        try:
            self.decision = decide_from_rows(self.before, self.command, self.data, self.now)
        except (DecisionFailed, PayloadOverLimit) as fault:
            raise Invalid(f"The engine cannot decide the next steps of this workflow: {fault}"[:500]) from fault
        return self.decision

    def load(self, requests: Iterable[DataRequest]) -> None:
        self.data.evaluate_scripts(requests)

    def on_exhausted(self) -> tuple[Effect, ...]:
        raise Busy(run=self.before.id)


class PreviewWorld:
    """Runs in memory with the effects of a command, and the messages between them."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.runs: dict[str, RunPreview] = {}
        self._messages: deque[tuple[str, str, dict[str, Any]]] = deque()

    def decide(self, run: Run, command: Command) -> None:
        """Apply a command to a run in memory, and enqueue the messages that it sends."""
        decision = PreviewLoop(run, command, self.now).decide()
        first = self.runs.get(run.id, RunPreview(run, run))
        after = fast_replace(decision.after, touched=frozenset(), moved=frozenset())
        if decision.effects:
            after = fast_replace(after, revision=run.revision + 1)
        self.runs[run.id] = RunPreview(first.before, after, (*first.effects, *decision.effects))
        for effect in decision.effects:
            self._note(effect, after)

    def follow(self) -> bool:
        """Handle the enqueued messages one after another. Returns True if there are more than MAX_MESSAGES."""
        for _ in range(MAX_MESSAGES):
            if not self._messages:
                return False
            to, subject, facts = self._messages.popleft()
            try:
                if handle := PREVIEW_HANDLERS.get(subject):
                    handle(self, to, facts)
            except (NotFound, Conflict):
                # The receiver has ended or was deleted: the message has no effect.
                continue
        return bool(self._messages)

    def run(self, run_id: str) -> Run:
        """Return a run with the effects so far."""
        return self.runs[run_id].after if run_id in self.runs else store.load_run(run_id)

    def _note(self, effect: Effect, by: Run) -> None:
        if isinstance(effect, StartRun):
            child = new_child_run(effect, by, self.now)
            self.runs[child.id] = RunPreview(child, child)
            self._messages.append((child.id, "begin", {}))
        elif isinstance(effect, SendMessage):
            self._messages.append((effect.to, effect.subject, effect.facts))

    def is_waiting(self, run_id: str, attempt_id: str, child_id: str) -> bool:
        """Return True if the attempt would be open and wait for this child."""
        if run_id in self.runs:
            task = self.runs[run_id].after.task_of_attempt(attempt_id)
            return task is not None and task.attempt.is_open and task.attempt.child_id == child_id
        return Attempt.objects.open().filter(pk=attempt_id, child_id=child_id).exists()


def _handle_begin(ahead: PreviewWorld, to: str, facts: dict[str, Any]) -> None:
    ahead.decide(ahead.run(to), no_command)


def _handle_terminate(ahead: PreviewWorld, to: str, facts: dict[str, Any]) -> None:
    child = ahead.run(to)
    if not ahead.is_waiting(child.parent_id, child.parent_attempt_id, child.id):
        ahead.decide(child, commands.terminate_if_open(facts.get("reason", "")))


def _handle_child_reopened(ahead: PreviewWorld, to: str, facts: dict[str, Any]) -> None:
    repair = commands.ResumeParent(facts["attempt"], facts["child"], facts["how"], facts.get("asked") or {})
    ahead.decide(ahead.run(to), repair)


def _handle_resume_child(ahead: PreviewWorld, to: str, facts: dict[str, Any]) -> None:
    parent, attempt = facts["parent"], facts["attempt"]
    try:
        child = ahead.run(to)
    except NotFound:
        ahead.decide(ahead.run(parent), reports.child_lost(attempt, to))
        return
    if child.is_open or not ahead.is_waiting(parent, attempt, to):
        return
    try:
        ahead.decide(child, commands.Retry(resumes=True, is_asked=True))
    except Conflict:
        _handle_child_ended(ahead, parent, {"child": to, "attempt": attempt})


def _handle_child_ended(ahead: PreviewWorld, to: str, facts: dict[str, Any]) -> None:
    child = ahead.run(facts["child"])
    if child.is_open:
        return
    output = child.output
    if output is UNKNOWN:
        output = payload_storage.load_unmasked_output(child.id)
    result = {"id": child.id, "name": child.definition.name, "version": child.definition.version}
    result |= {"status": child.status, "reason": child.reason, "output": output}
    ahead.decide(ahead.run(to), reports.child_ended(facts["attempt"], result))


PREVIEW_HANDLERS: dict[str, Callable[[PreviewWorld, str, dict[str, Any]], None]] = {
    "begin": _handle_begin,
    "terminate": _handle_terminate,
    "child_reopened": _handle_child_reopened,
    commands.RESUME: _handle_resume_child,
    "child_ended": _handle_child_ended,
}
"""Handlers of messages in a preview. Rate limits, and messages to other systems, are ignored."""
