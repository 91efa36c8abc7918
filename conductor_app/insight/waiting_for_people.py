"""Tasks that wait for a person: what each asks, whom, until when; and what an answer is expected to say."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet

from ..core.definition import Step
from ..core.human_task import (
    Assignee,
    CurrentAssignment,
    HumanQuestion,
    answer_schema,
    current_assignment,
    delegated_assignment,
    parse_assignees,
    parse_question,
)
from ..models import Attempt, AuditEntry, HumanTask, Task
from ..models.fields import dumps
from .form_templates import template_of
from .parsed_definitions import parsed_definition

OPEN_FOR_PEOPLE = Task.objects.filter(type="HUMAN", status="ACTIVE")
MOST = 500
"""So many are looked at, those that have waited longest."""
LARGEST_READ = 32 * 1024
"""Of an input that is larger, the question is not read for a list."""
SAID_OF_TASKS = ("comment_task", "take_task", "put_task_back", "hand_task_on", "skip_assignment")


def waiting_attempts() -> QuerySet[Attempt]:
    """The open attempts of tasks that wait for a person, those first that have waited longest."""
    payloads = [f"run__{name}" for name in ("input", "output", "variables")]
    found = Attempt.objects.open().filter(pk__in=OPEN_FOR_PEOPLE.values("attempt_id"))
    return (
        found.defer_payloads()
        .select_related("task", "run")
        .defer("task__step_state", *payloads)
        .order_by("scheduled_at", "id")
    )


@dataclass(frozen=True, slots=True)
class HumanTaskView:
    """One task that waits for a person."""

    attempt: Attempt
    asked: HumanQuestion
    standing: CurrentAssignment
    taken_by: str = ""
    taken_at: int | None = None
    is_taker_external: bool = False
    line: tuple[Assignee, ...] = ()

    @property
    def title(self) -> str:
        return self.asked.title or str(self.attempt.task)

    def is_overdue(self, now: int) -> bool:
        return self.standing.due_at is not None and now >= self.standing.due_at

    def is_of(self, name: str) -> bool:
        """Whether it is this person's: taken, or asked of nobody else."""
        if self.taken_by:
            return self.taken_by == name and not self.is_taker_external
        to = self.standing.assignee
        return to is not None and not (to.is_group or to.is_external) and to.who == name

    def is_anothers(self, name: str) -> bool:
        """Whether another has taken it: who wants to answer has to take it over."""
        return bool(self.taken_by) and (self.is_taker_external or self.taken_by != name)

    def is_of_groups(self, names: Collection[str]) -> bool:
        to = self.standing.assignee
        return to is not None and to.is_group and not to.is_external and to.who in names


@dataclass(frozen=True, slots=True)
class HumanTaskInbox:
    """What waits, those first whose time is over or soon will be; `is_cut`: there is more than was looked at."""

    asks: list[HumanTaskView] = field(default_factory=list)
    is_cut: bool = False


def human_task_inbox(now: int) -> HumanTaskInbox:
    """What waits for people, in four queries."""
    found = list(waiting_attempts()[: MOST + 1])
    attempts = found[:MOST]
    inputs, held = _load_inputs(attempts), HumanTask.objects.in_bulk([attempt.task_id for attempt in attempts])
    asks = [human_task_view(each, inputs.get(each.pk, {}), held.get(each.task_id), now) for each in attempts]
    asks.sort(key=lambda ask: (ask.standing.due_at is None, ask.standing.due_at or ask.attempt.scheduled_at))
    return HumanTaskInbox(asks, len(found) > MOST)


def human_task_view(attempt: Attempt, input: Mapping, held: HumanTask | None, now: int) -> HumanTaskView:
    """What one attempt asks."""
    asked = parse_question(input)
    stands = current_assignment(asked, attempt.scheduled_at, now)
    if held is None:
        return HumanTaskView(attempt, asked, stands, line=asked.assignees)
    line = asked.assignees
    if held.is_reassigned:
        first = Assignee(held.assignee, held.is_group, is_external=held.is_external)
        rest = parse_assignees(held.followers or ())
        stands, line = delegated_assignment(first, held.due_at, rest, now), (first, *rest)
    return HumanTaskView(attempt, asked, stands, held.taken_by, held.taken_at, held.is_taker_external, line)


def count_overdue(now: int) -> int:
    """How many have waited for longer than they were given."""
    return sum(ask.is_overdue(now) for ask in human_task_inbox(now).asks)


def task_comments(attempt: Attempt) -> list[AuditEntry]:
    """What people have said of the task and done with it, the oldest first."""
    rows = AuditEntry.objects.filter(object_type="run", object_id=attempt.run_id, action__in=SAID_OF_TASKS)
    return [row for row in rows.order_by("at", "id")[:MOST] if row.facts.get("task") == str(attempt.task)]


def _load_inputs(attempts: Collection[Attempt]) -> dict[str, Mapping]:
    small = [each.pk for each in attempts if each.input_size <= LARGEST_READ]
    rows = Attempt.objects.filter(pk__in=small).values_list("pk", "input")
    return {pk: input for pk, input in rows if isinstance(input, Mapping)}


def expected_output_names(plan_id: str, ref: str) -> list[str]:
    """The names in a task's output that later steps read: what whoever answers will want to say."""
    definition = parsed_definition(plan_id)
    if definition is None:
        return []
    written = str(dumps(definition.document))
    names = re.findall(rf"\$\{{{re.escape(ref)}\.output\.([A-Za-z_][A-Za-z0-9_]*)", written)
    return list(dict.fromkeys(names))


def step_of(attempt: Attempt) -> Step | None:
    """The step that the attempt is of, where the written plan of its run shows it."""
    definition = parsed_definition(attempt.run.plan_id)
    return definition.step(attempt.task.ref) if definition else None


def output_schema(attempt: Attempt, input: Mapping) -> Mapping[str, Any]:
    """The JSON schema of what is to be said: the question's own, else that of the template which it names, else that
    of the task's definition, else empty."""
    if own := answer_schema(input):
        return own
    if (template := template_of(input)) and isinstance(template.document.get("jsonSchema"), Mapping):
        return template.document["jsonSchema"]
    step = step_of(attempt)
    schema = ((step.document.get("taskDefinition") or {}).get("outputSchema") or {}) if step else {}
    data = schema.get("data") if schema.get("type") in (None, "JSON") else None
    return data if isinstance(data, Mapping) else {}
