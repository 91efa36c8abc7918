"""Commands that reopen ended runs (retry, rerun, restart), or change the path or the state of a run.

A message reopens the parent that waited for a reopened run.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...access import audit
from ...access.encryption import decrypt_masked
from ...access.grants import require_run_control
from ...core import commands
from ...core.commands.jump import require_running
from ...core.decide import Report, no_command
from ...core.decision_context import Command
from ...core.definition import Definition, Key
from ...core.errors import AlreadyResolved, Busy, Conflict, Invalid, NotFound, PayloadMissing, RequestRefused
from ...core.masking import (
    REDACTED,
    mask_encrypt,
    masked_names,
    masked_paths,
    redact_masked,
    redact_text,
    restore_masked,
    restored_paths,
)
from ...core.secret_places import Keys, path_text, receiver_from_data
from ...core.states import RUN
from ...core.step_types.sub_workflows import SubWorkflow
from ...db.database import transaction
from ...db.fields import dumps
from ...definitions import resolved_definitions
from ...definitions.store import load_definition
from ...payloads import commands as payload_storage
from ...payloads.commands import refuse_large
from ...settings import conf
from ...utils import clock
from ...utils.differences import MISSING, find_differences
from ..documents.workflows import find_run
from ..models import Attempt, Run, Task
from ..store import loading
from ..store.rows import parse_iteration_path
from . import run_limits
from .change import Audit, DecisionFailed, RunCommand, change_run


def enforce_output_limit(report: Report) -> Report:
    """Return the report, or a terminal failure if its output exceeds the size limit (execution §1.6)."""
    size, most = len(dumps(report.output) or ""), conf.task_payload_max_bytes
    if size <= most:
        return report
    reason = f"The output has {size} bytes; the limit is {most} bytes."
    return replace(report, outcome="FAILED_FOR_GOOD", output={}, reason=reason, merges=False)


def find_open_task(run_id: str, ref: str) -> Task | None:
    """Return the open task with this reference in the iteration that it names, otherwise the first in any iteration."""
    tasks = Task.objects.open().filter(run_id=run_id).order_by("seq")
    return next((task for task in tasks if str(task) == ref), None) or tasks.filter(ref=ref).first()


Asked = tuple[str, Command]
"""The id of the run to change, and the command for it."""
Find = Callable[[str, int | None], Definition | None]
BAD_ENDS = ("FAILED", "TIMED_OUT", "CANCELED")


def retry(run_id: str, by: str, reason: str = "", resume_children: bool = False) -> None:
    """Try the failed tasks of an ended run again; with `resume_children` those of the descendant that failed first.

    Raises:
        Conflict: when the run is open or completed.
    """
    target, command = retry_command(run_id, resume_children)
    change_run(RunCommand(target, command, by, reason, audit=Audit("retry")))


def retry_command(run_id: str, resume_children: bool = False) -> Asked:
    return (_deepest_failed_run(run_id) if resume_children else run_id), commands.Retry(resume_children)


def restart(run_id: str, by: str, reason: str = "", latest_definitions: bool = False) -> None:
    """Start an ended run from the beginning; with `latest_definitions` by the newest version of its definition.

    Raises:
        Conflict: when the run is open.
    """
    target, command = restart_command(run_id, latest_definitions, find=resolve_and_save)
    change_run(RunCommand(target, command, by, reason, audit=Audit("restart")))


def restart_command(
    run_id: str, latest: bool = False, version: int | None = None, *, find: Find = resolved_definitions.read_unsaved
) -> Asked:
    """Return the run to change and the command of a restart.

    The run follows its resolved definition; with `latest` the newest version; with `version` that version.

    Raises:
        NotFound: when there is no such run or definition.
    """
    if not latest and version is None:
        return run_id, run_limits.with_run_limit(commands.restart_run(None))
    name = _find_run(run_id).name
    definition = find(name, version)
    if definition is None:
        raise NotFound(f"No such workflow definition: {name}" + (f", version {version}" if version else ""))
    return run_id, run_limits.with_run_limit(commands.restart_run(definition))


def move_to_version_command(
    run_id: str, version: int | None = None, *, find: Find = resolved_definitions.read_unsaved
) -> Asked:
    """Return the run to change and the command that moves it to another version, by default the newest."""
    name = _find_run(run_id).name
    definition = find(name, version)
    if definition is None:
        raise NotFound(f"No such workflow definition: {name}" + (f", version {version}" if version else ""))
    return run_id, commands.upgrade_run(definition)


def resolve_and_save(name: str, version: int | None) -> Definition | None:
    """Resolve and save a definition for a run that will follow it. Returns None if there is none."""
    return resolved_definitions.resolve_by_name(name, version, clock.now())


def rerun(
    run_id: str,
    by: str,
    reason: str = "",
    *,
    attempt_id: str = "",
    task_input: dict[str, Any] | None = None,
    input: dict[str, Any] | None = None,
    correlation_id: str | None = None,
) -> None:
    """Continue an ended run from one of its tasks, or from a task of a descendant; by default from the start.

    `attempt_id`: any attempt of that task. Other values that are None stay unchanged.

    Raises:
        Conflict: when the run, or a run between it and the task, is open.
        Invalid: when the attempt does not belong to the run, or an input is too large.
    """
    target, command = rerun_command(run_id, attempt_id, task_input, input, correlation_id)
    facts = rerun_facts(run_id, target, attempt_id, task_input, input)
    change_run(RunCommand(target, command, by, reason, audit=Audit("rerun", facts)))


def rerun_command(
    run_id: str,
    attempt_id: str = "",
    task_input: dict[str, Any] | None = None,
    input: dict[str, Any] | None = None,
    correlation_id: str | None = None,
) -> Asked:
    """Return the run that the task belongs to, and the command of a rerun.

    Raises:
        Conflict: when the run, or a run between it and the task, is open.
        Invalid: when the attempt does not belong to the run, or an input is too large.
        Forbidden: when the task belongs to a descendant that the current actor may not control.
    """
    refuse_large(task_input, conf.task_payload_max_bytes)
    refuse_large(input, conf.workflow_payload_max_bytes)
    path = _runs_down_to(_find_run(run_id), attempt_id) if attempt_id else [run_id]
    for id in path[1:]:
        require_run_control(id)
    _refuse_open(path)
    task_input, restored = _restore_masked_input(task_input, attempt_id, payload_storage.load_stored_task_input)
    input = _restore_run_input(input, run_id)
    key, attempt = locate_attempt(attempt_id) if attempt_id else (None, None)
    if path[-1] == run_id:
        return run_id, commands.Rerun(key, attempt, task_input, input, correlation_id, restored=restored)
    asked = {"run": run_id, "input": input, "correlation_id": correlation_id}
    return path[-1], commands.Rerun(key, attempt, task_input, asked=asked, restored=restored)


MAX_CHANGES, MAX_CHANGE_LENGTH = 20, 500
"""Changed values of an input that an audit entry records, and the characters of each."""


def rerun_facts(run_id: str, target: str, attempt_id: str, task_input: Any, input: Any) -> dict[str, Any]:
    """Return what the audit log records of a rerun: the attempt that it removes, and the changes of the inputs.

    `target`: the run of the attempt, which has the entry. Who sees it may not see the input of the named run.
    """
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    if attempt_id:
        columns = ("status", "reason", "task__run", "task__ref", "task__iteration_path")
        found = Attempt.objects.select_related("task").only(*columns).get(pk=attempt_id)
        facts = {"task": str(found.task), "attempt": attempt_id, "status": found.status}
        facts["failure"] = redact_text(found.reason)[:MAX_CHANGE_LENGTH]
    if task_input is not None and attempt_id:
        add_task_input_changes(attempt_id, task_input, target, before, after)
    if input is not None and target == run_id:
        load = partial(payload_storage.load_stored_input, run_id)
        _add_input_changes("input", load, input, target, before, after)
    elif input is not None:
        facts["new input of"] = run_id
    return {**facts, "before": before, "after": after} if before or after else facts


def add_task_input_changes(
    attempt_id: str, given: Any, run_id: str, before: dict[str, Any], after: dict[str, Any]
) -> None:
    """Add the values that differ between the stored input of an attempt and the given one, by path."""
    load = partial(payload_storage.load_stored_task_input, attempt_id)
    _add_input_changes("task input", load, given, run_id, before, after)


def _add_input_changes(
    name: str, load_stored: Callable[[], Any], given: Any, run_id: str, before: dict[str, Any], after: dict[str, Any]
) -> None:
    """Add the values that differ between the stored and the given input, by path. Masked values become `***`."""
    try:
        stored = load_stored()
    except (PayloadMissing, Busy):
        before[name], after[name] = "(unreadable)", _cut_change(redact_masked(_seal_masked(given, given, run_id)))
        return
    new = decrypt_masked(restore_masked(given, stored))
    sealed, new = _seal_masked(decrypt_masked(stored), stored, run_id), _seal_masked(new, stored, run_id)
    changes = find_differences(sealed, new)
    for change in changes[:MAX_CHANGES]:
        path = f"{name}.{change.path}"[:MAX_CHANGE_LENGTH] if change.path else name
        old, value = (_cut_change(redact_masked(each)) for each in (change.before, change.after))
        if old is not MISSING:
            before[path] = old
        if value is not MISSING:
            after[path] = f"{value} (changed)" if old == value else value
    if len(changes) > MAX_CHANGES:
        after[f"{name}, more changes"] = len(changes) - MAX_CHANGES


def _seal_masked(value: Any, stored: Any, run_id: str) -> Any:
    """Return the value with the mark before the values to hide: masked by the run's definition, or stored encrypted."""
    names = masked_names(load_definition(_find_run(run_id).resolved_definition_id))
    stored_names = {key for keys in masked_paths(stored) for key in keys[-1:] if isinstance(key, str)}
    return mask_encrypt(value, names | stored_names, str)


def _cut_change(value: Any) -> Any:
    text = "" if value is MISSING else dumps(value) or ""
    return value if len(text) <= MAX_CHANGE_LENGTH else f"{text[:MAX_CHANGE_LENGTH]}…"


def _find_run(run_id: str) -> Run:
    run = Run.objects.defer_payloads().filter(pk=run_id).first()
    if run is None:
        raise NotFound(f"No such workflow found by id: {run_id}")
    return run


def _refuse_open(path: list[str]) -> None:
    """Refuse the rerun if a run on the path to the task is open."""
    for id, status in Run.objects.filter(pk__in=path, status__in=RUN.open).values_list("id", "status"):
        raise Conflict(f"Workflow {id} is {status}: only an ended workflow can be rerun.")


def _restore_masked_input(
    given: dict[str, Any] | None, id: str, load_stored: Callable[[str], Any]
) -> tuple[dict[str, Any] | None, list[Keys]]:
    """Return a new input in which each `***` of a masked value is replaced by the stored value, and their paths."""
    if given is None or not id or f'"{REDACTED}"' not in (dumps(given) or ""):
        return given, []
    restored = restore_masked(given, load_stored(id))
    return decrypt_masked(restored), restored_paths(given, restored)


def _restore_run_input(given: dict[str, Any] | None, run_id: str) -> dict[str, Any] | None:
    """Return a new input of a run in which each `***` of a masked value is replaced by the stored value."""
    input, restored = _restore_masked_input(given, run_id, payload_storage.load_stored_input)
    if not restored or input == decrypt_masked(payload_storage.load_stored_input(run_id)):
        return input
    definition = load_definition(_find_run(run_id).resolved_definition_id)
    if ref := receiver_from_data(definition.document.get("tasks")):
        raise Invalid(
            f"The receiver of step {ref} depends on data. The masked value at `{path_text(restored[0])}` stays only "
            "in an unchanged input. Send a value of your own for it, or leave the input as it was."
        )
    return input


def locate_attempt(attempt_id: str) -> tuple[Key, commands.EarlierAttempt]:
    """Return the key of the task that an attempt belongs to, and the attempt.

    Raises:
        Invalid: when the task was deleted.
    """
    columns = ("task__ref", "task__iteration_path", "number", "seq", "previous_id", "worker", "poll_count")
    row = Attempt.objects.filter(pk=attempt_id).values_list(*columns).first()
    if row is None:
        raise Invalid(f"Task {attempt_id} was deleted. Reload the workflow.")
    ref, iteration_path, number, seq, previous_id, worker, polls = row
    return Key(ref, parse_iteration_path(iteration_path)), commands.EarlierAttempt(
        attempt_id, number, seq, previous_id, worker if polls else ""
    )


def _runs_down_to(root: Run, attempt_id: str) -> list[str]:
    """Return the runs on the path from this one to the one that the attempt belongs to."""
    attempt = Attempt.objects.of_runs().filter(pk=attempt_id).values("run_id").first()
    below = list(_awaited_ancestors(attempt["run_id"], root.pk)) if attempt else []
    if not below or below[-1] != root.pk:
        raise Invalid(f"Task {attempt_id} not found in workflow {root.pk} or its sub workflows")
    return below[::-1]


def _awaited_ancestors(run_id: str, until: str) -> Iterator[str]:
    """Yield the run and its ancestors, as long as each is the current child of its parent's task."""
    while True:
        run = Run.objects.filter(pk=run_id).values("parent_id", "parent_attempt_id").first()
        if run is None:
            return
        yield run_id
        if run_id == until or not run["parent_id"] or not _is_awaited(run_id, run["parent_attempt_id"]):
            return
        run_id = run["parent_id"]


def _is_awaited(run_id: str, attempt_id: str) -> bool:
    """Return True if this is the newest attempt of its task, and the run is its child."""
    newest = Task.objects.filter(attempt_id=attempt_id, attempts__pk=attempt_id, attempts__child_id=run_id)
    return newest.exists()


def _deepest_failed_run(run_id: str) -> str:
    """Return the descendant that failed first, through the first failed task of each run (execution §7.3).

    A failed task comes before canceled ones, which another failure canceled.
    """
    while True:
        bad = Task.objects.filter(run_id=run_id, status__in=BAD_ENDS).values("type", "attempt_id", "status")
        failed = min(bad.order_by("seq"), key=lambda task: task["status"] == "CANCELED", default=None)
        if failed is None or failed["type"] != SubWorkflow.type:
            return run_id
        child = Attempt.objects.filter(pk=failed["attempt_id"]).values_list("child_id", flat=True).get()
        if not Run.objects.filter(pk=child, status__in=("FAILED", "TIMED_OUT", "TERMINATED")).exists():
            return run_id
        run_id = child


Payload = Mapping[str, Any]


def skip_step(
    run_id: str, ref: str, by: str, reason: str = "", *, input: Payload | None = None, output: Payload | None = None
) -> None:
    """Skip a step that the run has not reached.

    Raises:
        Conflict: when the run or the step does not allow it.
    """
    _change_with_audit(run_id, commands.skip_step(ref, input, output), by, reason or f"Skip {ref}.", "skip")


def jump_to_step(run_id: str, ref: str, by: str, reason: str = "", *, input: Payload | None = None) -> None:
    """Continue a run at a later step, and skip the steps before it.

    Raises:
        Conflict: when the run's state does not allow it.
        Invalid: when the run cannot jump to the step.
    """
    _change_with_audit(run_id, commands.jump_to_step(ref, input), by, reason or f"Jump to {ref}.", "jump")


def set_variables(run_id: str, variables: Payload, by: str, reason: str = "") -> None:
    """Merge variables into those of an open run.

    Raises:
        Conflict: when the run has ended.
        Invalid: when the variables are too large.
    """
    _change_with_audit(run_id, commands.set_variables(variables), by, reason, "set variables")


def update_state(
    run_id: str,
    variables: Payload,
    report: Report | None,
    by: str,
    reason: str = "",
    *,
    ref: str = "",
    attempt_id: str = "",
) -> str:
    """Set variables and report on an open task in one transaction. `ref`, `attempt_id`: the task, by either.

    Returns the id of the attempt, or an empty string if `report` is None.

    Raises:
        NotFound: when there is no such run, or the task is not open.
        Conflict: when the run has ended.
    """
    if report is None:
        set_variables(run_id, variables, by, reason)
        return ""
    missing = NotFound(f"Found no running task {ref or attempt_id} of workflow {run_id} to update")
    if ref:
        find_run(run_id)
        if (found := find_open_task(run_id, ref)) is None:
            raise missing
        attempt_id = found.attempt_id
    command = commands.update_state(variables, attempt_id, enforce_output_limit(report))
    try:
        _change_with_audit(run_id, command, by, reason, "update state", near=[attempt_id])
    except AlreadyResolved:
        raise missing from None
    return attempt_id


def reset_callbacks(run_id: str, by: str, reason: str = "") -> None:
    """Skip the callback delays of the tasks that workers have released.

    Raises:
        Conflict: when the run has ended.
    """
    _change_with_audit(run_id, commands.reset_callbacks, by, reason, "reset callbacks")


def reevaluate_run(run_id: str, by: str, action: str = "decide") -> bool:
    """Evaluate the rules on a whole run, with an audit entry. Returns True if anything changed."""

    def note(now: int) -> None:
        audit.record("run", run_id, action, by, at=now)

    return bool(change_run(RunCommand(run_id, no_command, by, within_transaction=note)))


def _change_with_audit(
    run_id: str, command: Command, by: str, reason: str, action: str, near: Sequence[str] | None = None
) -> None:
    try:
        change_run(RunCommand(run_id, command, by, reason, audit=Audit(action), attempts=near))
    except DecisionFailed as fault:
        raise Conflict(
            f"The operation would leave workflow {run_id} in a state that the engine cannot continue from: {fault}"
        ) from fault


def upgrade_run(
    run_id: str,
    name: str,
    version: int | None,
    by: str,
    reason: str = "",
    *,
    outputs: Payload | None = None,
    input: Payload | None = None,
) -> None:
    """Move a running run to another version of its definition.

    Raises:
        Conflict: when the run cannot be moved; with the reasons.
        PayloadTooLarge: when the input or an output is larger than the limit.
    """
    refuse_large(input, conf.workflow_payload_max_bytes)
    for ref, output in (outputs or {}).items():
        refuse_large(output, conf.task_payload_max_bytes, f"The output of {ref}")
    definition = _definition(name, version)
    reason = reason or f"Move to version {definition.version}."
    _change_with_audit(run_id, commands.upgrade_run(definition, outputs, input), by, reason, "upgrade")


def plan_upgrade(run_id: str, name: str, version: int | None) -> commands.UpgradePlan:
    """Return the plan of moving a run to another version of its definition. Nothing is saved.

    Raises:
        Invalid: when the run cannot follow the version.
    """
    return commands.plan_upgrade(
        loading.load_run(run_id), _require_definition(resolved_definitions.read_unsaved(name, version), name, version)
    )


def upgrade_obstacles(run_ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return why each run cannot move to the newest version of its definition; an empty tuple for a run that can."""
    newest: dict[str, Definition | None] = {}
    found: dict[str, tuple[str, ...]] = {}
    for run_id in run_ids:
        try:
            run = loading.load_run(run_id)
            name = run.definition.name
            if name not in newest:
                newest[name] = resolved_definitions.read_unsaved(name, None)
            require_running(run)
            found[run_id] = commands.plan_upgrade(run, _require_definition(newest[name], name, None)).problems
        except RequestRefused as refused:
            found[run_id] = (refused.message,)
    return found


def _definition(name: str, version: int | None) -> Definition:
    with transaction.atomic():
        return _require_definition(resolved_definitions.resolve_by_name(name, version, clock.now()), name, version)


def _require_definition(found: Definition | None, name: str, version: int | None) -> Definition:
    if found is None:
        raise NotFound(f"No such workflow found by name: {name}, version: {version or 'latest'}")
    return found
