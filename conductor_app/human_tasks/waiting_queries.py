"""Open human tasks: question, assignee and due time of each, and the expected output."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Case, F, QuerySet, When

from ...core.definition import Step
from ...core.human_task import (
    Assignee,
    CurrentAssignment,
    HumanQuestion,
    answer_schema,
    current_assignment,
    delegated_assignment,
    parse_assignees,
    parse_question,
)
from ...core.step_types.human import Human
from ...models import Attempt, AuditEntry, HumanTask, Task
from ...models.fields import DocumentField, dumps
from ..definitions.form_templates import template_of
from ..definitions.parsed_definitions import parsed_definition

OPEN_HUMAN_TASKS = Task.objects.filter(type=Human.type, status="ACTIVE")
LIMIT = 500
"""Open human tasks that are read, oldest first."""
MAX_READ_SIZE = 32 * 1024
"""Size of an input in bytes above which lists do not read the question."""
COMMENT_ACTIONS = ("comment_task", "claim_task", "release_task", "reassign_task", "skip_assignment")


def waiting_attempts() -> QuerySet[Attempt]:
    """Return the open attempts of human tasks, oldest first."""
    payloads = [f"run__{name}" for name in ("input", "output", "variables")]
    found = Attempt.objects.open().filter(pk__in=OPEN_HUMAN_TASKS.values("attempt_id"))
    return (
        found.defer_payloads()
        .select_related("task", "run")
        .defer("task__step_state", *payloads)
        .order_by("scheduled_at", "id")
    )


@dataclass(frozen=True, slots=True)
class HumanTaskView:
    """One open human task."""

    attempt: Attempt
    question: HumanQuestion
    assignment: CurrentAssignment
    claimed_by: str = ""
    claimed_at: int | None = None
    is_claimer_external: bool = False
    assignees: tuple[Assignee, ...] = ()

    @property
    def title(self) -> str:
        return self.question.title or str(self.attempt.task)

    def is_overdue(self, now: int) -> bool:
        return self.assignment.due_at is not None and now >= self.assignment.due_at

    def is_for_user(self, name: str) -> bool:
        """Return True if this user has claimed the task, or is its assignee while it is unclaimed."""
        if self.claimed_by:
            return self.claimed_by == name and not self.is_claimer_external
        to = self.assignment.assignee
        return to is not None and not (to.is_group or to.is_external) and to.who == name

    def is_claimed_by_other(self, name: str) -> bool:
        """Return True if another user has claimed the task, so that this user must take it over to answer."""
        return bool(self.claimed_by) and (self.is_claimer_external or self.claimed_by != name)

    def is_for_groups(self, names: Collection[str]) -> bool:
        to = self.assignment.assignee
        return to is not None and to.is_group and not to.is_external and to.who in names


@dataclass(frozen=True, slots=True)
class HumanTaskInbox:
    """Open human tasks by due time. `is_cut`: True if there are more tasks than were read."""

    task_views: list[HumanTaskView] = field(default_factory=list)
    is_cut: bool = False


def human_task_inbox(now: int) -> HumanTaskInbox:
    """Return the open human tasks. Runs one query."""
    small_input = Case(When(input_size__lte=MAX_READ_SIZE, then=F("input")), output_field=DocumentField(null=True))
    rows = waiting_attempts().select_related("task__persons").annotate(small_input=small_input)
    found = list(rows[: LIMIT + 1])
    task_views = [_listed_view(each, now) for each in found[:LIMIT]]
    task_views.sort(
        key=lambda task_view: (
            task_view.assignment.due_at is None,
            task_view.assignment.due_at or task_view.attempt.scheduled_at,
        )
    )
    return HumanTaskInbox(task_views, len(found) > LIMIT)


def _listed_view(attempt: Any, now: int) -> HumanTaskView:
    input = attempt.small_input if isinstance(attempt.small_input, Mapping) else {}
    return human_task_view(attempt, input, getattr(attempt.task, "persons", None), now)


def human_task_view(attempt: Attempt, input: Mapping, saved: HumanTask | None, now: int) -> HumanTaskView:
    """Return the view of one attempt at a HUMAN task."""
    question = parse_question(input)
    assignment = current_assignment(question, attempt.scheduled_at, now)
    if saved is None:
        return HumanTaskView(attempt, question, assignment, assignees=question.assignees)
    assignees = question.assignees
    if saved.is_reassigned:
        first = Assignee(saved.assignee, saved.is_group, is_external=saved.is_external)
        rest = parse_assignees(saved.followers or ())
        assignment, assignees = delegated_assignment(first, saved.due_at, rest, now), (first, *rest)
    return HumanTaskView(
        attempt, question, assignment, saved.claimed_by, saved.claimed_at, saved.is_claimer_external, assignees
    )


def count_overdue(now: int) -> int:
    """Return the number of overdue human tasks."""
    return sum(task_view.is_overdue(now) for task_view in human_task_inbox(now).task_views)


def task_comments(attempt: Attempt) -> list[AuditEntry]:
    """Return the comments on a task and the changes of its assignment, oldest first."""
    rows = AuditEntry.objects.filter(object_type="run", object_id=attempt.run_id, action__in=COMMENT_ACTIONS)
    return [row for row in rows.order_by("at", "id")[:LIMIT] if row.facts.get("task") == str(attempt.task)]


def expected_output_names(resolved_definition_id: str, ref: str) -> list[str]:
    """Return the output members of a task that later steps read, which an answer should therefore contain."""
    definition = parsed_definition(resolved_definition_id)
    if definition is None:
        return []
    written = str(dumps(definition.document))
    names = re.findall(rf"\$\{{{re.escape(ref)}\.output\.([A-Za-z_][A-Za-z0-9_]*)", written)
    return list(dict.fromkeys(names))


def step_of(attempt: Attempt) -> Step | None:
    """Return the step of an attempt, or None if the resolved definition does not contain it."""
    definition = parsed_definition(attempt.run.resolved_definition_id)
    return definition.step(attempt.task.ref) if definition else None


def output_schema(attempt: Attempt, input: Mapping) -> Mapping[str, Any]:
    """Return the JSON schema of the output, or an empty mapping.

    It comes from the question, from the form template that it names, or from the task definition, in this order.
    """
    if own := answer_schema(input):
        return own
    if (template := template_of(input)) and isinstance(template.document.get("jsonSchema"), Mapping):
        return template.document["jsonSchema"]
    step = step_of(attempt)
    schema = ((step.document.get("taskDefinition") or {}).get("outputSchema") or {}) if step else {}
    data = schema.get("data") if schema.get("type") in (None, "JSON") else None
    return data if isinstance(data, Mapping) else {}
