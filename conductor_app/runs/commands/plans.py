"""Operations on runs as values, and their plans: decided without locks, not saved, and described task by task."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ...access.visibility import may_see_run
from ...core import commands, decide
from ...core.child_runs import new_child_run
from ...core.data_requests import DataRequest, DefinitionByName, InlineDefinition
from ...core.decide import Decision, DecisionLoop, no_command
from ...core.decision_context import Command
from ...core.definition import Definition
from ...core.effects import Effect, SendMessage, StartRun
from ...core.errors import Busy, Conflict, Invalid, NotFound, PayloadOverLimit
from ...core.primitives import fast_replace
from ...core.snapshot import UNKNOWN, Run
from ...core.task_impact import AGAIN, IMPACTS, TaskImpact, task_impacts
from ...definitions import resolved_definitions
from ...payloads import commands as payload_storage
from ...payloads.commands import refuse_large
from ...settings import conf
from ...utils import clock
from ..models import Attempt
from ..store import loading
from .change import Audit, DecisionFailed, RunCommand, change_run, decide_from_rows
from .debugging import rewind_command
from .loaded_data import LoadedData
from .repair import (
    Asked,
    Find,
    move_to_version_command,
    rerun_command,
    rerun_facts,
    resolve_and_save,
    restart_command,
    retry_command,
)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on a run. Values that are None or empty stay unchanged.

    `attempt_id`: an attempt of the task from which a rerun continues. `ref`: the step to skip or to jump to. `version`:
    the version of the definition to follow.
    """

    name: str
    attempt_id: str = ""
    ref: str = ""
    task_input: dict[str, Any] | None = None
    task_output: dict[str, Any] | None = None
    input: dict[str, Any] | None = None
    version: int | None = None
    latest: bool = False
    resume_children: bool = False
    with_failure: bool = False
    reason: str = ""


def _retry_command(run_id: str, operation: Operation, find: Find) -> Asked:
    return retry_command(run_id, operation.resume_children)


def _rerun_command(run_id: str, operation: Operation, find: Find) -> Asked:
    return rerun_command(run_id, operation.attempt_id, operation.task_input, operation.input)


def _restart_command(run_id: str, operation: Operation, find: Find) -> Asked:
    return restart_command(run_id, operation.latest, operation.version, find=find)


def _upgrade_command(run_id: str, operation: Operation, find: Find) -> Asked:
    return move_to_version_command(run_id, operation.version, find=find)


def _skip_command(run_id: str, operation: Operation, find: Find) -> Asked:
    return run_id, commands.skip_step(operation.ref, operation.task_input, operation.task_output)


def _rewind_command(run_id: str, operation: Operation, find: Find) -> Asked:
    return rewind_command(run_id, operation.attempt_id, operation.task_input)


def _jump_command(run_id: str, operation: Operation, find: Find) -> Asked:
    return run_id, commands.jump_to_step(operation.ref, operation.task_input)


OPERATIONS: dict[str, Callable[[str, Operation, Find], Asked]] = {
    "retry": _retry_command,
    "rerun": _rerun_command,
    "rewind": _rewind_command,
    "restart": _restart_command,
    "skip": _skip_command,
    "jump": _jump_command,
    "upgrade": _upgrade_command,
    "pause": lambda run_id, operation, find: (run_id, commands.pause_run),
    "resume": lambda run_id, operation, find: (run_id, commands.resume_run),
    "terminate": lambda run_id, operation, find: (
        run_id,
        commands.terminate_run(operation.reason, operation.with_failure),
    ),
}
FORWARD_OPERATIONS = ("skip", "jump", "upgrade")
"""Operations that require a running run and do not change its status."""


def operation_command(run_id: str, operation: Operation, find: Find = resolved_definitions.read_unsaved) -> Asked:
    """Return the id of the run to change, and the command for it.

    `find`: loads the resolved definition that the run would follow; the default does not save it.

    Raises:
        Conflict: when the run's state does not allow the operation.
        Invalid: when the operation is unknown, or one of its values is invalid.
        PayloadTooLarge: when an input or an output is larger than the limit.
    """
    if operation.name not in OPERATIONS:
        raise Invalid(f"Unknown operation {operation.name[:64]!r}. Use one of: {', '.join(OPERATIONS)}.")
    refuse_large(operation.task_input, conf.task_payload_max_bytes)
    refuse_large(operation.task_output, conf.task_payload_max_bytes, "The output")
    refuse_large(operation.input, conf.workflow_payload_max_bytes)
    return OPERATIONS[operation.name](run_id, operation, find)


def apply_operation(
    run_id: str,
    operation: Operation,
    by: str,
    *,
    revision: int | None = None,
    within_transaction: Callable[[int], None] | None = None,
) -> None:
    """Apply an operation to a run. `within_transaction` writes in the same transaction.

    Raises:
        RevisionChanged: when the run is not in this revision any more.
        Conflict: when the run's state does not allow the operation, or the decision after it fails.
        Invalid: when the operation is unknown, or one of its values is invalid.
    """
    target, command = operation_command(run_id, operation, resolve_and_save)
    facts: dict[str, Any] = {}
    if operation.name in ("rerun", "rewind"):
        facts = rerun_facts(run_id, target, operation.attempt_id, operation.task_input, operation.input)
    try:
        change_run(
            RunCommand(
                target,
                command,
                by,
                operation.reason,
                audit=Audit(operation.name, facts),
                within_transaction=within_transaction,
                expected_revision=revision,
            )
        )
    except DecisionFailed as fault:
        raise Conflict(
            f"The operation would leave run {target} in a state that the engine cannot continue from: {fault}"[:500]
        ) from fault


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
    run = loading.load_run(run_id)
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
            if isinstance(effect, StartRun):
                child = new_child_run(effect, after, self.now)
                self.runs[child.id] = RunPreview(child, child)
                self._messages.append((child.id, "begin", {}))
            elif isinstance(effect, SendMessage):
                self._messages.append((effect.to, effect.subject, effect.facts))

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
        return self.runs[run_id].after if run_id in self.runs else loading.load_run(run_id)

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
        ahead.decide(ahead.run(parent), decide.child_lost(attempt, to))
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
    ahead.decide(ahead.run(to), decide.child_ended(facts["attempt"], result))


PREVIEW_HANDLERS: dict[str, Callable[[PreviewWorld, str, dict[str, Any]], None]] = {
    "begin": _handle_begin,
    "terminate": _handle_terminate,
    "child_reopened": _handle_child_reopened,
    commands.RESUME: _handle_resume_child,
    "child_ended": _handle_child_ended,
}
"""Handlers of messages in a preview. Rate limits, and messages to other systems, are ignored."""


MAX_REPLACED = 50
"""The maximum number of replaced child runs that a plan reads."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """The part of a plan for one run. `is_replaced`: a new run repeats its work, and it stays unchanged."""

    run_id: str
    definition: str
    version: int
    status: str
    then: str
    impacts: tuple[TaskImpact, ...]
    is_new: bool = False
    is_replaced: bool = False


@dataclass(frozen=True)
class OperationPlan:
    """Result that an operation would have.

    `target`: the run that the operation changes. `revision`: the revision of `target`; the confirmation sends it back.
    `is_cut`: the plan is incomplete, because too many runs are affected.
    """

    run_id: str
    target: str
    revision: int
    operation: Operation
    runs: tuple[PlannedRun, ...]
    is_cut: bool = False
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def external(self) -> list[tuple[PlannedRun, TaskImpact]]:
        """Tasks whose external effects the operation would repeat, with their runs."""
        return [(run, impact) for run in self.runs for impact in run.impacts if impact.repeats_effects]


def plan_operation(run_id: str, operation: Operation) -> OperationPlan:
    """Return the plan of an operation, with those of the affected runs that the actor may see.

    Raises:
        NotFound, Conflict, Invalid: as `apply_operation`.
    """
    target, command = operation_command(run_id, operation)
    seen = preview(target, command)
    affected = [(foreseen, _plan_run(foreseen)) for foreseen in _in_order(seen)]
    replaced, is_cut = _superseded_children(child for pair in affected for child in _replaced_children_of(*pair))
    runs = [run for _, run in affected if may_see_run(run.definition, run.run_id)]
    replaced = [run for run in replaced if may_see_run(run.definition, run.run_id)]
    counted = Counter(impact.name for run in runs for impact in run.impacts)
    counts = {name: counted[name] for name in IMPACTS if counted[name]}
    return OperationPlan(run_id, target, seen.revision, operation, (*runs, *replaced), seen.is_cut or is_cut, counts)


def _in_order(seen: Preview) -> Iterator[RunPreview]:
    """Yield the target first, then the other runs that the operation would change."""
    for foreseen in seen.runs.values():
        if foreseen.effects or foreseen.before.id == seen.run_id:
            yield foreseen


def _plan_run(foreseen: RunPreview) -> PlannedRun:
    before, after = foreseen.before, foreseen.after
    impacts = tuple(task_impacts(before, foreseen.effects, after))
    is_new = not before.has_begun and before.revision == 0
    name, version = after.definition.name, after.definition.version
    return PlannedRun(before.id, name, version, before.status, after.status, impacts, is_new)


def _replaced_children_of(foreseen: RunPreview, planned: PlannedRun) -> Iterator[str]:
    """Yield the child runs that new child runs replace."""
    for impact in planned.impacts:
        task = foreseen.after.tasks.get(impact.key)
        if impact.name == AGAIN and impact.child_id and (task is None or task.attempt.child_id != impact.child_id):
            yield impact.child_id


def _superseded_children(children: Iterable[str]) -> tuple[list[PlannedRun], bool]:
    """Return the plans of replaced child runs and their descendants, and True if there are more."""
    left = deque(children)
    found: list[PlannedRun] = []
    while left and len(found) < MAX_REPLACED:
        try:
            child = loading.load_run(left.popleft())
        except NotFound:
            continue
        impacts = tuple(
            replace(impact, name=AGAIN, is_later=True) for impact in task_impacts(child, (), child) if impact.has_begun
        )
        left.extend(impact.child_id for impact in impacts if impact.child_id)
        name, version = child.definition.name, child.definition.version
        found.append(PlannedRun(child.id, name, version, child.status, child.status, impacts, is_replaced=True))
    return found, bool(left)
