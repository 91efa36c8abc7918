"""What people do with tasks: they answer in a worker's place; they take, hand on and discuss what waits for them."""

import json
from collections.abc import Iterator
from typing import Any

from django.db import transaction

from .. import clock
from ..core import reports
from ..core.contracts import question, sentence
from ..core.definition import Schema
from ..core.errors import Complaint, Conflict, Invalid, NotFound, OutputRefused
from ..core.people import schema_of
from ..core.reports import Report
from ..insight.people import step_of
from ..models import Attempt, AuditEntry, PersonsTask, Task
from ..store.rows import clean
from .change import change
from .judging import fault_of, judge
from .tasks import within_limit

OUTCOMES = {"COMPLETED": "complete_task", "FAILED": "fail_task"}
"""What can be said of a task, and how the audit calls it."""
LONGEST_COMMENT = 2_000


def conclude(run_id: str, attempt_id: str, outcome: str, by: str, output: dict[str, Any], reason: str = "") -> None:
    """Say what came of an open task. Raises NotFound, Invalid, AlreadyResolved where it is over, Conflict where
    somebody else has taken it, OutputRefused where it would fail for good by what is said."""
    if outcome not in OUTCOMES:
        raise Invalid("A task is completed or failed by hand, nothing else.")
    taken = PersonsTask.objects.filter(task__attempt_id=attempt_id).exclude(taken_by__in=("", by)).first()
    if taken is not None:
        raise Conflict(f"It is taken by {taken.taken_by}: take it over first.")
    if outcome == "COMPLETED":
        _refuse_misfit(attempt_id, output)
    said = within_limit(Report(outcome, output=output, reason=reason if outcome == "FAILED" else ""))
    change(run_id, reports.hear(attempt_id, said), by, reason, near=[attempt_id], action=OUTCOMES[outcome])


def _refuse_misfit(attempt_id: str, output: dict[str, Any]) -> None:
    """Tell a person what a schema would refuse, while it can still be put right."""
    rows = Attempt.objects.of_runs().select_related("task", "run").only("task__ref", "task__type", "run__plan_id")
    attempt = rows.filter(pk=attempt_id).first()
    for schema in _schemas(attempt) if attempt else ():
        if found := judge(question(schema, output)):
            complaints = [Complaint(f"output{place}", message) for place, message in found]
            raise OutputRefused(sentence(found, schema, "output"), complaints)


def _schemas(attempt: Attempt) -> Iterator[Schema]:
    """What the output is held to: by the definition of the task, and by the question that a person is asked."""
    step = step_of(attempt)
    if step and step.policy.output_schema and step.policy.output_schema.text:
        yield step.policy.output_schema
    own = schema_of(attempt.input) if attempt.task.type == "HUMAN" and isinstance(attempt.input, dict) else {}
    if own and not fault_of(dict(own)):
        yield Schema("of the question", json.dumps(own, sort_keys=True))


def take(task_id: str, by: str, reason: str = "") -> None:
    """It is this person's from now on, whoever had it."""
    with transaction.atomic():
        task, held = _held(task_id)
        before, held.taken_by, held.taken_at = held.taken_by, by[:255], clock.now()
        held.save()
        _note(task, by, "take_task", reason, {"before": before} if before else {})


def put_back(task_id: str, by: str, reason: str = "") -> None:
    """Nobody has it any more; it waits as before. Raises Conflict where nobody had."""
    with transaction.atomic():
        task, held = _held(task_id)
        if not held.taken_by:
            raise Conflict("Nobody has taken it.")
        before, held.taken_by, held.taken_at = held.taken_by, "", None
        held.save()
        _note(task, by, "put_task_back", reason, {"before": before})


def hand_on(task_id: str, to: str, by: str, reason: str = "", *, is_group: bool = False, due_at: int | None = None):
    """Ask somebody else, or a group, until a moment; nobody has taken it then. Raises NotFound, Invalid."""
    to, now = clean(to.strip())[:255], clock.now()
    if not to:
        raise Invalid("It is not said who is asked now.")
    if due_at is not None and due_at <= now:
        raise Invalid("The moment until which an answer is asked for lies in the past.")
    with transaction.atomic():
        task, held = _held(task_id)
        held.assignee, held.is_group, held.is_reassigned, held.due_at = to, is_group, True, due_at
        held.taken_by, held.taken_at = "", None
        held.save()
        _note(task, by, "hand_task_on", reason, {"to": to, "is_group": is_group, "due_at": due_at})


def comment(task_id: str, text: str, by: str) -> None:
    """Say something about it, for those who come later. Raises NotFound, Invalid where nothing is said."""
    text = clean(text.strip())[:LONGEST_COMMENT]
    if not text:
        raise Invalid("A comment has words.")
    with transaction.atomic():
        task, _ = _held(task_id)
        _note(task, by, "comment_task", text, {})


def _held(task_id: str) -> tuple[Task, PersonsTask]:
    """The open task for people and what is agreed on it; the task's row is locked meanwhile."""
    rows = Task.objects.select_for_update().filter(pk=task_id, type="HUMAN", status="ACTIVE")
    task = rows.defer("memo").first()
    if task is None:
        raise NotFound("This task does not wait for a person, or not any more.")
    return task, PersonsTask.objects.filter(pk=task_id).first() or PersonsTask(pk=task_id)


def _note(task: Task, by: str, action: str, reason: str, facts: dict[str, Any]) -> None:
    AuditEntry.objects.create(
        at=clock.now(),
        actor=by,
        action=action,
        object_type="run",
        object_id=task.run_id,
        reason=reason,
        facts={"task": str(task), **facts},
    )
