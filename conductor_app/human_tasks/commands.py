"""Commands of people on human tasks: resolve, save an output, claim, release, reassign and comment.

The pages and the Human Tasks API call these functions, with the same authorization.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..access import audit
from ..access.authentication import Actor, Target, current_user_id, is_allowed
from ..core import decide
from ..core import human_tasks as human_task
from ..core.decide import Report
from ..core.decision_context import Command, DecisionContext
from ..core.definition import Schema
from ..core.effects import Effect, UpdateTask
from ..core.errors import AlreadyResolved, Conflict, Invalid, NotFound, OutputInvalid, PayloadTooLarge, ValidationError
from ..core.human_tasks import MINUTE_MS, Assignee, format_assignees
from ..core.primitives import fast_replace as replace_values
from ..core.schemas import schema_question, violation_sentence
from ..core.snapshot import NEVER, Run
from ..core.step_types.waiting import Human
from ..core.timers import next_timer
from ..db.database import transaction
from ..db.fields import dumps, strip_nul
from ..definitions.schemas import check_against_schema, schema_error
from ..payloads import commands as payload_storage
from ..runs.commands.change import Audit, RunCommand, change_run
from ..runs.commands.repair import enforce_output_limit, find_open_task
from ..runs.models import Attempt, Task
from ..settings import conf
from ..utils import clock
from .form_templates import template_of
from .models import HumanTask
from .waiting_queries import COMPLETION_RIGHTS, VIEW_RIGHTS, HumanTaskView, human_task_view, step_of


def can_view_human_task(actor: Actor, target: Target) -> bool:
    return is_allowed(actor, (*VIEW_RIGHTS, *COMPLETION_RIGHTS), target)


def can_complete_human_task(actor: Actor, target: Target) -> bool:
    """Return True if the actor may claim, reassign and complete this task."""
    return is_allowed(actor, COMPLETION_RIGHTS, target)


OUTCOMES = {"COMPLETED": "complete_task", "FAILED": "fail_task"}
"""The audit action of each outcome that a person can give."""
MAX_COMMENT_LENGTH = 2_000
MAX_ASSIGNMENTS = 100


def resolve_task(
    run_id: str,
    attempt_id: str,
    outcome: str,
    by: str,
    output: dict[str, Any],
    reason: str = "",
    *,
    merges: bool = False,
    for_external: bool = False,
    decision: str = "",
) -> None:
    """Complete or fail an open task.

    `merges`: merge the output into the saved one. `for_external`: the caller also acts for the external user who
    claimed the task. `decision`: the button that completes it, for the audit log.

    Raises:
        Invalid: when the outcome is unknown.
        AlreadyResolved: when the task is not open any more.
        Conflict: when another user has claimed the task.
        OutputInvalid: when the output violates a schema.
        PayloadTooLarge: when the output is larger than the limit.
    """
    if outcome not in OUTCOMES:
        raise Invalid(f"Unknown outcome {outcome!r}. Use one of: {', '.join(OUTCOMES)}.")
    _require_own_task(attempt_id, by, for_external)
    if outcome == "COMPLETED":
        _require_valid_output(attempt_id, output, merges)
    report = enforce_output_limit(
        Report(outcome, output=output, reason=reason if outcome == "FAILED" else "", merges=merges)
    )
    change_run(
        RunCommand(
            run_id,
            decide.apply_report(attempt_id, report),
            by,
            reason,
            audit=Audit(OUTCOMES[outcome], {"after": {"decision": decision}} if decision else {}),
            attempts=[attempt_id],
        )
    )


def save_output(run_id: str, attempt_id: str, output: dict[str, Any], by: str, *, for_external: bool = False) -> None:
    """Merge an output into the saved one of a task, which stays open. Its schema is checked when the task is completed.

    Raises:
        AlreadyResolved: when the task is not open any more.
        Conflict: when another user has claimed the task.
        PayloadTooLarge: when the output is larger than the limit.
    """
    _require_own_task(attempt_id, by, for_external)
    _refuse_large({**load_output(Attempt.objects.filter(pk=attempt_id).first()), **output})
    report = Report("IN_PROGRESS", output=output, merges=True)
    change_run(
        RunCommand(
            run_id, decide.apply_report(attempt_id, report), by, audit=Audit("save_task_output"), attempts=[attempt_id]
        )
    )


def _require_own_task(attempt_id: str, by: str, for_external: bool) -> None:
    taken = HumanTask.objects.filter(task__attempt_id=attempt_id).exclude(claimed_by="").first()
    if taken is None or (taken.is_claimer_external and for_external):
        return
    if taken.is_claimer_external or not _is_claimed_by(taken, by):
        raise Conflict(f"The task is claimed by {taken.claimed_by}. Claim it first.")


def _is_claimed_by(held: HumanTask, who: str) -> bool:
    """Return True if this user has claimed the task. Several applications may share a name, but no id."""
    user_id = current_user_id()
    return held.claimed_by == who and held.claimer_id in (None, user_id or held.claimer_id)


def load_output(attempt: Attempt | None) -> Mapping[str, Any]:
    """Return the saved output of an attempt, from its row or from blob storage.

    Raises:
        Busy: when the storage cannot be reached.
    """
    if attempt is None:
        return {}
    output = payload_storage.load_payload(attempt.output_path) if attempt.output_path else attempt.output
    return output if isinstance(output, Mapping) else {}


def _refuse_large(output: Mapping[str, Any]) -> None:
    size, most = len(dumps(output) or ""), conf.task_payload_max_bytes
    if size > most:
        raise PayloadTooLarge(f"The output has {size} bytes; the limit is {most} bytes.")


def load_input(attempt: Attempt) -> Mapping[str, Any]:
    """Return the input of an attempt, from its row or from blob storage.

    Raises:
        Busy: when the storage cannot be reached.
    """
    input = payload_storage.load_payload(attempt.input_path) if attempt.input_path else attempt.input
    return input if isinstance(input, Mapping) else {}


def _require_valid_output(attempt_id: str, output: dict[str, Any], merges: bool) -> None:
    """Refuse an output that violates a schema, so that the person can correct it before the task is resolved."""
    rows = (
        Attempt.objects.of_runs()
        .select_related("task", "run")
        .only("task__ref", "task__type", "run__resolved_definition_id")
    )
    attempt = rows.filter(pk=attempt_id).first()
    if merges:
        output = {**load_output(attempt), **output}
    _refuse_large(output)
    for schema in _output_schemas(attempt) if attempt else ():
        if found := check_against_schema(schema_question(schema, output)):
            validation_errors = [ValidationError(f"output{place}", message) for place, message in found]
            raise OutputInvalid(violation_sentence(found, schema, "output"), validation_errors)


def _output_schemas(attempt: Attempt) -> Iterator[Schema]:
    """Yield the schemas for the output: of the task definition, and of the HUMAN step or its form template."""
    step = step_of(attempt)
    if step and step.policy.output_schema and step.policy.output_schema.text:
        yield step.policy.output_schema
    if attempt.task.type != Human.type:
        return
    input = load_input(attempt)
    own, template = human_task.answer_schema(input), None
    if not own and (template := template_of(input)):
        own = template.document.get("jsonSchema") or {}
    if own and not schema_error(dict(own)):
        yield Schema(str(template) if template else "of the question", json.dumps(own, sort_keys=True))


def claim_task(
    task_id: str,
    by: str,
    reason: str = "",
    *,
    external_user: str = "",
    groups: Collection[str] = (),
    overrides: bool = True,
) -> None:
    """Claim a HUMAN task for the caller, or for the external user on whose behalf the caller acts.

    `overrides`: claim it even if another user has claimed it or is the assignee. Otherwise the task must be unclaimed,
    and unassigned or assigned to the user or one of the user's `groups`.

    Raises:
        NotFound: when the task is not an open HUMAN task.
        Conflict: when another user has claimed it or is the assignee, and `overrides` is False.
    """
    who, is_external = strip_nul(external_user.strip() or by)[:255], bool(external_user.strip())
    # Read before the lock, because the input may be in blob storage.
    attempt = None if overrides else _attempt_of(_find_open_task(task_id))
    input = load_input(attempt) if attempt else {}
    with transaction.atomic():
        task, held = _lock_human_task(task_id)
        if attempt:
            view = human_task_view(attempt, input, held, clock.now())
            _require_claimable(view, who, is_external, groups, is_own=_is_claimed_by(held, who))
        before, held.claimed_by, held.claimed_at = held.claimed_by, who, clock.now()
        held.is_claimer_external, held.claimer_id = is_external, current_user_id() or None
        _save_claim(held, by)
        facts = {"before": before} if before else {}
        _record_change(task, by, "claim_task", reason, facts | ({"external_user": who} if is_external else {}))


def _require_claimable(
    ask: HumanTaskView, who: str, is_external: bool, groups: Collection[str], *, is_own: bool
) -> None:
    if ask.claimed_by:
        if is_own and ask.is_claimer_external == is_external:
            return
        raise Conflict(f"The task is already claimed by {ask.claimed_by}.")
    to = ask.assignment.assignee
    if to is None:
        return
    if to.is_external != is_external:
        fits = False
    elif to.is_group:
        # The server does not know the members of external groups; the calling application checks them.
        fits = is_external or to.who in groups
    else:
        fits = to.who == who
    if not fits:
        raise Conflict(f"The task is assigned to {'the group ' if to.is_group else ''}{to.who}, not to {who}.")


def _attempt_of(task: Task) -> Attempt:
    return Attempt.objects.select_related("task", "run").get(pk=task.attempt_id)


def _save_claim(held: HumanTask, by: str) -> None:
    held.changed_at, held.changed_by = clock.now(), by[:255]
    held.save()


def release_task(task_id: str, by: str, reason: str = "") -> None:
    """Release a claimed HUMAN task.

    Raises:
        NotFound: when the task is not an open HUMAN task.
        Conflict: when the task is not claimed.
    """
    with transaction.atomic():
        task, held = _lock_human_task(task_id)
        if not held.claimed_by:
            raise Conflict("The task is not claimed.")
        before, held.claimed_by, held.claimed_at = held.claimed_by, "", None
        held.is_claimer_external, held.claimer_id = False, None
        _save_claim(held, by)
        _record_change(task, by, "release_task", reason, {"before": before})


def delegate_task(
    task_id: str, to: str, by: str, reason: str = "", *, is_group: bool = False, due_at: int | None = None
) -> None:
    """Assign a HUMAN task to another user or a group, until `due_at` (milliseconds), and remove its claim.

    Raises:
        NotFound: when the task is not an open HUMAN task.
        Invalid: when the assignee is empty, or `due_at` is in the past.
    """
    to, now = strip_nul(to.strip())[:255], clock.now()
    if not to:
        raise Invalid("Enter the user or group to assign the task to.")
    if due_at is not None and due_at <= now:
        raise Invalid("The due time is in the past.")
    facts = {"to": to, "is_group": is_group, "due_at": due_at}
    _write_assignment(task_id, Assignee(to, is_group), due_at, (), by, "reassign_task", reason, facts)


def reassign_task(task_id: str, assignees: Sequence[Assignee], by: str) -> None:
    """Replace the assignments of a HUMAN task, which take effect one after another, and remove its claim.

    Raises:
        NotFound: when the task is not an open HUMAN task.
        Invalid: when there are no assignments, or too many.
    """
    if not assignees:
        raise Invalid("Enter at least one assignment, each with an assignee: {userType, user}.")
    if len(assignees) > MAX_ASSIGNMENTS:
        raise Invalid(f"A task can have at most {MAX_ASSIGNMENTS} assignments (got {len(assignees)}).")
    first, *rest = assignees
    facts = {"to": first.who, "is_group": first.is_group, "assignments": format_assignees(assignees)}
    _write_assignment(task_id, first, None, rest, by, "reassign_task", "", facts)


def skip_assignment(task_id: str, by: str, reason: str = "") -> None:
    """Continue with the next assignment of a HUMAN task, and remove its claim.

    After the last assignment the task is unassigned, or times out if its assignments terminate it.

    Raises:
        NotFound: when the task is not an open HUMAN task.
        Conflict: when the task is unassigned.
    """
    task = _find_open_task(task_id)
    attempt, held = _attempt_of(task), HumanTask.objects.filter(pk=task_id).first()
    ask = human_task_view(attempt, load_input(attempt), held, clock.now())
    if ask.assignment.assignee is None:
        raise Conflict("The task is unassigned: there is no assignment to skip.")
    left = ask.assignees[ask.assignment.escalated + 1 :]
    facts = {"from": ask.assignment.assignee.who}
    if left:
        facts |= {"to": left[0].who}
    first, rest = (left[0], left[1:]) if left else (Assignee(""), ())
    _write_assignment(task_id, first, None, rest, by, "skip_assignment", reason, facts)


def _write_assignment(
    task_id: str,
    first: Assignee,
    due_at: int | None,
    rest: Sequence[Assignee],
    by: str,
    action: str,
    reason: str,
    facts: dict[str, Any],
) -> None:
    """Save new assignments, and move the timeout of a task that terminates with its assignments.

    `due_at`: end of the first assignment; None: computed from its minutes.

    Raises:
        NotFound: when the task no longer waits.
    """
    task = _find_open_task(task_id)
    attempt = _attempt_of(task)

    def write(now: int) -> None:
        task, held = _lock_human_task(task_id)
        held.assignee, held.is_group, held.is_external = first.who, first.is_group, first.is_external
        held.is_reassigned, held.followers = True, format_assignees(rest) or None
        held.due_at = now + first.minutes * MINUTE_MS if due_at is None and first.minutes else due_at
        held.claimed_by, held.claimed_at, held.is_claimer_external, held.claimer_id = "", None, False, None
        _save_claim(held, by)
        _record_change(task, by, action, reason, facts)

    if not human_task.parse_question(load_input(attempt)).terminates:
        with transaction.atomic():
            write(clock.now())
        return
    now = clock.now()
    assignees = [replace(first, minutes=(due_at - now) // MINUTE_MS if due_at else first.minutes), *rest]
    end = human_task.last_assignment_ends_at(assignees, now) if first.who else now
    try:
        change_run(
            RunCommand(
                task.run_id or "",
                _move_end_command(attempt.pk, NEVER if end is None else end),
                by,
                attempts=[attempt.pk],
                within_transaction=write,
            )
        )
    except AlreadyResolved:
        raise NotFound(NOT_WAITING) from None


def _move_end_command(attempt_id: str, end: int) -> Command:
    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        task = decide.require_open_task(run, attempt_id)
        after = replace_values(task.attempt, ends_at=end)
        due_at = now if end <= now else next_timer(task.step.policy, after, now)
        yield UpdateTask(task.key, attempt_facts={"ends_at": end, "due_at": due_at})

    return command


def add_comment(task_id: str, text: str, by: str) -> None:
    """Add a comment to a HUMAN task.

    Raises:
        NotFound: when the task is not an open HUMAN task.
        Invalid: when the comment is empty.
    """
    text = strip_nul(text.strip())[:MAX_COMMENT_LENGTH]
    if not text:
        raise Invalid("The comment is empty.")
    with transaction.atomic():
        task, _ = _lock_human_task(task_id)
        _record_change(task, by, "comment_task", text, {})


def find_open_task_by_ref(run_id: str, ref: str) -> Task:
    """Return the open HUMAN task with this reference in a run, in the iteration that it names or in any."""
    task = find_open_task(run_id, ref)
    if task is None or task.type != Human.type:
        raise NotFound(f"Found no open human task {ref} of workflow {run_id}")
    return task


NOT_WAITING = "The task is not an open HUMAN task."


def _lock_human_task(task_id: str) -> tuple[Task, HumanTask]:
    """Lock an open HUMAN task. Returns it with its claim and assignment."""
    task = _find_open_task(task_id, lambda rows: rows.select_for_update())
    return task, HumanTask.objects.filter(pk=task_id).first() or HumanTask(pk=task_id)


def _find_open_task(task_id: str, read: Callable[[Any], Any] = lambda rows: rows) -> Task:
    rows = read(Task.objects.filter(pk=task_id, type=Human.type, status="ACTIVE"))
    task = rows.defer("step_state").first()
    if task is None:
        raise NotFound(NOT_WAITING)
    return task


def _record_change(task: Task, by: str, action: str, reason: str, facts: dict[str, Any]) -> None:
    audit.record("run", task.run_id or "", action, by, reason=reason, facts={"task": str(task), **facts})
