"""Open human tasks: question, assignee, due time, expected output, and decision.

A decision is a field with two values on which the way of the run depends, shown as two buttons.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Case, F, QuerySet, When
from django.utils.translation import gettext as _

from ..access.authentication import current_actor
from ..access.models import AuditEntry
from ..access.permissions import EXECUTE, READ, TASK_DEF, UPDATE, WORKFLOW, WORKFLOW_DEF, Right
from ..access.visibility import allowed_to
from ..core.definition import Flow, Step, structure_of_step, walk
from ..core.expressions.templates import Expression, parse_template
from ..core.human_tasks import (
    Assignee,
    CurrentAssignment,
    HumanQuestion,
    answer_schema,
    current_assignment,
    delegated_assignment,
    parse_assignees,
    parse_question,
)
from ..core.primitives import JsonValue
from ..core.schemas import CHOICE, YES_NO, build_form
from ..core.step_types.waiting import Human
from ..db.fields import DocumentField, dumps
from ..definitions.store import parsed_definition
from ..runs.models import Attempt, Task
from .form_templates import template_of
from .models import HumanTask

BOOLEANS = {"true": True, "false": False}
APPROVES = re.compile(r"approv|accept|confirm|allow|agree|grant|\bok\b", re.IGNORECASE)
REJECTS = re.compile(r"reject|den(y|ied)|refus|declin|\bno\b|\bnot\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HumanDecision:
    """The deciding field and its two values. `is_approval`: the first value approves and the second one rejects."""

    field: str
    label: str
    values: tuple[Any, Any]
    is_approval: bool


def human_decision(document: Mapping[str, Any], ref: str, schema: Mapping[str, Any]) -> HumanDecision | None:
    """Return the decision of the HUMAN task `ref` of a workflow, if one field of its output decides.

    That is the field that a SWITCH reads, otherwise the only field of the form. `schema`: that of the output, or empty.
    """
    cases_by_field = dict(_cases_by_field(document, ref))
    fields = {each.key: each for each in build_form(schema)}
    if len(cases_by_field) == 1:
        name, cases = next(iter(cases_by_field.items()))
    elif len(fields) == 1 and not cases_by_field:
        name, cases = next(iter(fields)), []
    else:
        return None
    if fields:
        values = _two_values(fields[name].kind, fields[name].choices) if name in fields else None
    else:
        values = _values_of_cases(cases)
    if values is None:
        return None
    label = fields[name].label if name in fields else name
    return HumanDecision(name, label, values, _is_approval(name, label, values))


def guessed_schema(decision: HumanDecision, expected: list[str]) -> dict[str, Any]:
    """Return the schema of an answer that has none: the decision, and the other members that later steps read."""
    part: dict[str, Any] = {"type": "boolean"} if decision.values == (True, False) else {"enum": [*decision.values]}
    return {"type": "object", "properties": {decision.field: part, **{n: {} for n in expected if n != decision.field}}}


def _cases_by_field(document: Mapping[str, Any], ref: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the members of the output that select cases, with the names of the cases."""
    for spot in walk(document.get("tasks")):
        step = spot.step
        if structure_of_step(step).flow is Flow.CHOICE and (name := _selecting_member(step, ref)):
            cases = step.get("decisionCases")
            yield name, [str(case) for case in cases] if isinstance(cases, Mapping) else []


def _selecting_member(step: Mapping[str, Any], ref: str) -> str:
    """Return the member of the task's output that selects the case of a step, or ""."""
    language = step.get("evaluatorType") or "value-param"
    script = step.get("expression") if language == "value-param" else step.get("caseValueParam")
    given = step.get("inputParameters")
    inputs = given if isinstance(given, Mapping) else {}
    if isinstance(script, str) and script in inputs:
        return _read_member(inputs[script], ref)
    # A script selects the case: it can only depend on the members that the inputs read.
    read = {name for value in inputs.values() if (name := _read_member(value, ref))}
    return next(iter(read)) if len(read) == 1 else ""


def _read_member(value: JsonValue, ref: str) -> str:
    """Return NAME if the value is the expression `${ref.output.NAME}`."""
    parts = parse_template(value).parts if isinstance(value, str) and "${" in value else ()
    if len(parts) != 1 or not isinstance(parts[0], Expression):
        return ""
    found = re.fullmatch(rf"\$\{{{re.escape(ref)}\.output\.([\w-]+)\}}", parts[0].source)
    return found[1] if found else ""


def _two_values(kind: str, choices: tuple[Any, ...]) -> tuple[Any, Any] | None:
    if kind == YES_NO:
        return True, False
    if kind == CHOICE and len(choices) == 2:
        first, second = choices
        return (second, first) if REJECTS.search(str(first)) and not REJECTS.search(str(second)) else (first, second)
    return None


def _values_of_cases(cases: list[str]) -> tuple[Any, Any] | None:
    if cases and set(cases) <= BOOLEANS.keys():
        return True, False
    return _two_values(CHOICE, tuple(cases))


def _is_approval(name: str, label: str, values: tuple[Any, Any]) -> bool:
    if values == (True, False):
        text = f"{name} {label}".replace("_", " ")
        return bool(APPROVES.search(text)) and not REJECTS.search(text)
    yes, no = map(str, values)
    return bool(APPROVES.search(yes)) and bool(REJECTS.search(no))


VIEW_RIGHTS: tuple[Right, ...] = ((READ, WORKFLOW_DEF), (READ, WORKFLOW), (EXECUTE, TASK_DEF))
COMPLETION_RIGHTS: tuple[Right, ...] = (
    (EXECUTE, TASK_DEF),
    (EXECUTE, WORKFLOW_DEF),
    (UPDATE, WORKFLOW),
    (EXECUTE, WORKFLOW),
)
"""The rights to claim, release, reassign, skip, save and complete a task: those to report on it by its reference."""
FIELD_BY_TARGET_TYPE = {WORKFLOW_DEF: "run__name", WORKFLOW: "run_id", TASK_DEF: "task__name"}


def visible_human_tasks(attempts: QuerySet[Attempt]) -> QuerySet[Attempt]:
    """Return the attempts at HUMAN tasks that the current actor may see."""
    if (actor := current_actor()) is None:
        return attempts
    return allowed_to(
        actor, attempts, {right: FIELD_BY_TARGET_TYPE[right[1]] for right in (*VIEW_RIGHTS, *COMPLETION_RIGHTS)}
    )


OPEN_HUMAN_TASKS = Task.objects.filter(type=Human.type, status="ACTIVE")
LIMIT = 500
"""Open human tasks that are read, oldest first."""
MAX_READ_SIZE = 32 * 1024
"""Size of an input in bytes above which lists do not read the question."""
COMMENT_ACTIONS = ("comment_task", "claim_task", "release_task", "reassign_task", "skip_assignment")


def waiting_attempts() -> QuerySet[Attempt]:
    """Return the open attempts of human tasks that the current actor may see, oldest first."""
    payloads = [f"run__{name}" for name in ("input", "output", "variables")]
    found = Attempt.objects.open().filter(pk__in=OPEN_HUMAN_TASKS.values("attempt_id")).defer_payloads()
    return (
        visible_human_tasks(found)
        .select_related("task", "run")
        .defer("task__step_state", *payloads)
        .order_by("scheduled_at", "id")
    )


@dataclass(frozen=True, slots=True)
class HumanTaskView:
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
    rows = _with_persons(waiting_attempts())
    found = list(rows[: LIMIT + 1])
    task_views = [_listed_view(each, now) for each in found[:LIMIT]]
    task_views.sort(
        key=lambda task_view: (
            task_view.assignment.due_at is None,
            task_view.assignment.due_at or task_view.attempt.scheduled_at,
        )
    )
    return HumanTaskInbox(task_views, len(found) > LIMIT)


def _with_persons(attempts: QuerySet[Attempt]) -> QuerySet[Attempt]:
    """Load attempts with the assignments of their tasks and with their small inputs."""
    small_input = When(input_size__lte=MAX_READ_SIZE, then=F("input"))
    small = {"small_input": Case(small_input, output_field=DocumentField(null=True))}
    return attempts.select_related("task__persons").annotate(**small)


def _listed_view(attempt: Any, now: int) -> HumanTaskView:
    input = attempt.small_input if isinstance(attempt.small_input, Mapping) else {}
    return human_task_view(attempt, input, getattr(attempt.task, "persons", None), now)


def human_task_view(attempt: Attempt, input: Mapping, saved: HumanTask | None, now: int) -> HumanTaskView:
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


def assignee_text(task_view: HumanTaskView) -> str:
    to = task_view.assignment.assignee
    if task_view.claimed_by:
        return _("claimed by %(who)s") % {"who": task_view.claimed_by}
    if to is None:
        return _("anyone")
    return _("group %(who)s") % {"who": to.who} if to.is_group else to.who


def persons_waited_for(attempts: Sequence[Attempt], now: int) -> dict[str, str]:
    """Return for whom open human tasks wait, by attempt id. Runs one query."""
    rows = Attempt.objects.filter(pk__in=[each.pk for each in attempts]).defer_payloads()
    found = _with_persons(rows.select_related("task").defer("input", "output", "task__step_state"))
    views = [_listed_view(each, now) for each in found]
    return {
        view.attempt.pk: assignee_text(view) if view.claimed_by else _("for %(who)s") % {"who": assignee_text(view)}
        for view in views
    }


def task_comments(attempt: Attempt) -> list[AuditEntry]:
    """Return the comments on a task and the changes of its assignment, oldest first."""
    rows = AuditEntry.objects.filter(object_type="run", object_id=attempt.run_id, action__in=COMMENT_ACTIONS)
    return [row for row in rows.order_by("at", "id")[:LIMIT] if row.facts.get("task") == str(attempt.task)]


def resolving_entry(attempt: Attempt) -> AuditEntry | None:
    """Return the entry of the person who completed or failed a task, or None if it ended otherwise."""
    rows = AuditEntry.objects.filter(object_type="run", object_id=attempt.run_id, at=attempt.ended_at)
    return rows.filter(action__in=("complete_task", "fail_task")).first()


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
    definition = parsed_definition(attempt.own_run.resolved_definition_id)
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
