"""Form of one step: its general members, those of its type, its inputs, its policy and the form of a human task."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.definition import DEFAULT_TYPE, Flow, as_steps, structure_of_step, type_of
from ...core.errors import Invalid
from ...core.human_tasks import ANSWER_SCHEMA_KEY
from ...core.primitives import JsonValue
from ...core.schemas import CHOICE, LONG, TEXT, WHOLE, YES_NO, SchemaField, format_typed, format_value
from ...core.step_edits import StepEdit, find_step, rename_step, replace_step
from ...core.step_types import STEP_TYPES
from ...core.step_types.base import (
    ITEM_FAILURE_LABELS,
    LONG_TYPED,
    NAMES,
    ROWS,
    SCRIPT_LABELS,
    STATUS_LABELS,
    TASKS,
    TYPED,
    Simple,
    StepMember,
    loop_condition,
)
from ...core.step_types.loops import DoWhile
from ...core.step_types.sub_workflows import SubWorkflow
from ...core.step_types.try_catch import TryCatch
from ...core.step_types.waiting import Human
from ...core.step_types.worker_tasks import Dynamic, HttpStep
from ...human_tasks.pages.form_templates import DesignedField, design_schema, designed_fields, submitted_fields
from ...utils.formatting import LazyText
from ...web.forms import FormRow, RenderedField, parse_rows, parse_typed, rows_of, submitted_rows
from ..policies import type_label
from .step_catalog import members_of
from .step_rows import (
    AssigneeRow,
    HandlerRow,
    apply_handlers,
    assign,
    rows_of_assignees,
    rows_of_handlers,
    submitted_assignees,
    submitted_handlers,
)
from .task_form import CHOICE_DEFAULTS, RETRY_LOGICS, TIMEOUT_POLICIES, TaskForm

NEW_TASK = Simple.sample[0]["name"]
INPUTS, CASES, BRANCHES, TIMES, REF = "input", "case", "step.branches", "step.times", "step.taskReferenceName"
MAX_BRANCHES = 200
MAIN_SETTINGS = 4
"""Number of settings of a workflow that are not folded."""
RETRIED = (Simple.type, Dynamic.type, SubWorkflow.type)
"""Types whose attempts are retried, besides those of built-in workers."""
POLICY = {
    name: TaskForm.base_fields[name]
    for name in (
        "retryCount",
        "retryLogic",
        "retryDelaySeconds",
        "timeoutSeconds",
        "responseTimeoutSeconds",
        "timeoutPolicy",
    )
}
POLICY_CHOICES = {"retryLogic": RETRY_LOGICS, "timeoutPolicy": TIMEOUT_POLICIES}
CHOICE_LABELS = {
    **dict(RETRY_LOGICS),
    **dict(TIMEOUT_POLICIES),
    **{
        name: gettext_lazy(label)
        for labels in (SCRIPT_LABELS, STATUS_LABELS, ITEM_FAILURE_LABELS)
        for name, label in labels.items()
    },
}


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A member that is an object, and its rows of names and values."""

    member: StepMember
    rows: list[FormRow]

    @property
    def label(self) -> str:
        return _(self.member.label)


class MemberForm:
    """Fields for members of a JSON object, with the texts and the errors of a submitted form."""

    def __init__(self, holder: Mapping[str, Any], submitted: Mapping[str, str] | None) -> None:
        self.holder, self.submitted = holder, submitted
        self.errors: dict[str, list[str]] = {}

    def field(
        self, name: str, key: str, label: str | LazyText | None, kind: str = TEXT, **options: Any
    ) -> RenderedField:
        """Return a field. `options`: `value`, and those of a SchemaField."""
        value = options.pop("value", "")
        text = value if self.submitted is None else self.submitted.get(name, "")
        if kind == CHOICE and value not in ("", *options["choices"]):
            options["choices"] = (*options["choices"], value)
        schema_field = SchemaField(name, key, kind, str(label), **options)
        return RenderedField(schema_field, text, self.errors.get(name, []), [], CHOICE_LABELS)

    def member_field(self, member: StepMember, **options: Any) -> RenderedField:
        limits = {"list": member.options} if member.options else {}
        kind = {TYPED: TEXT, LONG_TYPED: LONG, NAMES: TEXT}.get(member.kind, member.kind)
        value = _format_member(_find(self.holder, self.keys(member)), member.kind)
        return self.field(
            f"step.{member.place}",
            member.keys[-1],
            _(member.label),
            kind,
            **{"value": value, "help": _(member.help), "choices": member.choices, "limits": limits, **options},
        )

    def keys(self, member: StepMember) -> tuple[str, ...]:
        return member.keys

    def read_member(self, document: dict[str, Any], member: StepMember) -> dict[str, Any]:
        """Return the document with the submitted value of a member. An empty field removes it."""
        name = f"step.{member.place}"
        text = (self.submitted or {}).get(name)
        before = _format_member(_find(document, self.keys(member)), member.kind)
        if text is None or _normalize(text) == _normalize(before):
            return document
        try:
            value = _parse_member(text, member.kind)
        except Invalid as refused:
            self.errors[name] = [refused.message]
            return document
        return _put(document, self.keys(member), value)


class StepForm(MemberForm):
    """Form of the step at a path of a document.

    Raises:
        NotFound: when the document has no such step.
    """

    def __init__(self, document: dict[str, Any], path: str, submitted: Mapping[str, str] | None = None) -> None:
        sequence, index = find_step(document, path)
        super().__init__(sequence.steps[index], submitted)
        self.document, self.path, self.step = document, path, sequence.steps[index]
        self.type, self.flow = type_of(self.step), structure_of_step(self.step).flow

    @property
    def ref(self) -> str:
        return str(self.step.get("taskReferenceName") or "")

    @property
    def type_label(self) -> str:
        return type_label(self.type)

    @property
    def is_human(self) -> bool:
        return self.type == Human.type

    @cached_property
    def members(self) -> tuple[StepMember, ...]:
        """Return the members of the type that fields edit."""
        shown = (member for member in members_of(self.type) if member.place not in self.row_groups)
        return tuple(replace(member, kind=LONG_TYPED) if member.kind == ROWS else member for member in shown)

    @cached_property
    def row_groups(self) -> dict[str, RowGroup]:
        """Return the members of the type that rows edit, by their places. An expression is edited in a field."""
        groups = {}
        for member in members_of(self.type):
            value = _find(self.step, self.keys(member))
            if member.kind == ROWS and (value is None or isinstance(value, Mapping)):
                prefix = f"rows.{member.place}"
                texts = self.submitted
                rows = rows_of(value or {}, prefix) if texts is None else submitted_rows(texts, prefix)
                groups[member.place] = RowGroup(member, rows)
        return groups

    @cached_property
    def general_members(self) -> tuple[StepMember, ...]:
        suggestions = TASKS if self.type == DEFAULT_TYPE or self.type not in STEP_TYPES else ""
        label = _("Task") if suggestions else _("Name")
        help = _("Workers ask for tasks of this name.") if suggestions else ""
        return StepMember("name", label, help=help, options=suggestions), StepMember("description", _("Description"))

    @cached_property
    def option_members(self) -> tuple[StepMember, ...]:
        return (
            StepMember("optional", _("Optional"), YES_NO, _("The run continues if the step fails.")),
            StepMember("permissive", _("Permissive"), YES_NO, _("Other branches continue if the step fails.")),
            StepMember("startDelay", _("Start delay (s)"), WHOLE),
            *(_fairness_members() if self.has_policy else ()),
        )

    def keys(self, member: StepMember) -> tuple[str, ...]:
        inputs = self.inputs
        if (
            self.type == HttpStep.type
            and member.keys[0] == "inputParameters"
            and isinstance(inputs.get("http_request"), dict)
        ):
            return ("inputParameters", "http_request", *member.keys[1:])
        return member.keys

    @property
    def inputs(self) -> Mapping[str, Any]:
        found = self.step.get("inputParameters")
        return found if isinstance(found, Mapping) else {}

    # Rendering

    @property
    def general_fields(self) -> list[RenderedField]:
        return [
            self.field(
                REF,
                "taskReferenceName",
                _("Reference"),
                value=self.ref,
                is_required=True,
                help=_("Unique. Other steps read its output by this name."),
            ),
            *map(self.member_field, self.general_members),
        ]

    @property
    def type_fields(self) -> list[RenderedField]:
        fields = list(map(self.member_field, self.members))
        if self.flow is Flow.FORK:
            count = str(len(as_steps(self.step.get("forkTasks"))))
            limits = {"min": 1, "max": MAX_BRANCHES}
            fields.append(self.field(BRANCHES, "forkTasks", _("Branches"), WHOLE, value=count, limits=limits))
        if self.type == DoWhile.type:
            help_text = _("Sets the condition. Empty: the condition below decides.")
            limits = {"min": 1}
            fields.insert(
                0, self.field(TIMES, "times", _("Iterations"), WHOLE, value=self.times, help=help_text, limits=limits)
            )
        return fields

    @property
    def option_fields(self) -> list[RenderedField]:
        return list(map(self.member_field, self.option_members))

    @property
    def has_options(self) -> bool:
        return any(self.step.get(member.place) for member in self.option_members)

    @cached_property
    def input_rows(self) -> list[FormRow]:
        if self.submitted is not None:
            return submitted_rows(self.submitted, INPUTS)
        return rows_of({name: value for name, value in self.inputs.items() if name not in self._covered}, INPUTS)

    @cached_property
    def case_rows(self) -> list[FormRow]:
        """Return the names of the cases, if the step has cases."""
        if self.flow is not Flow.CHOICE:
            return []
        if self.submitted is not None:
            return submitted_rows(self.submitted, CASES)
        return rows_of(dict.fromkeys(self._cases, ""), CASES)

    @cached_property
    def designed(self) -> list[DesignedField]:
        """Return the fields of the form of a human task."""
        if not self.is_human:
            return []
        return designed_fields(self.inputs) if self.submitted is None else submitted_fields(self.submitted)

    @cached_property
    def assignee_rows(self) -> list[AssigneeRow]:
        """Return the assignees of a human task."""
        if not self.is_human:
            return []
        return rows_of_assignees(self.inputs) if self.submitted is None else submitted_assignees(self.submitted)

    @cached_property
    def handler_rows(self) -> list[HandlerRow]:
        """Return the handlers of a TRY_CATCH step."""
        if self.type != TryCatch.type:
            return []
        return rows_of_handlers(self.step) if self.submitted is None else submitted_handlers(self.submitted)

    @property
    def has_policy(self) -> bool:
        return self.type in RETRIED or self.type not in STEP_TYPES or structure_of_step(self.step).is_built_in

    def policy_fields(self, registered: Mapping[str, Any]) -> list[RenderedField]:
        """Return the fields of the step's own policy. `registered`: the task definition that applies otherwise."""
        own = self.own_policy
        return [self._policy_field(name, own, registered) for name in POLICY] if self.has_policy else []

    @property
    def own_policy(self) -> Mapping[str, Any]:
        own = self.step.get("taskDefinition")
        count = {"retryCount": self.step["retryCount"]} if self.step.get("retryCount") is not None else {}
        return {**(own if isinstance(own, Mapping) else {}), **count}

    def _policy_field(self, name: str, own: Mapping[str, Any], registered: Mapping[str, Any]) -> RenderedField:
        choices = tuple(key for key, _label in POLICY_CHOICES.get(name, ()))
        kind = CHOICE if choices else WHOLE
        value, inherited = own.get(name), registered.get(name, CHOICE_DEFAULTS.get(name))
        inherited = CHOICE_LABELS.get(str(inherited), inherited)
        limits = {"min": 0} | ({"placeholder": str(inherited)} if inherited is not None else {})
        text = "" if value is None else format_value(value)
        help_text = "" if kind == CHOICE else str(POLICY[name].help_text)
        return self.field(
            f"policy.{name}", name, POLICY[name].label, kind, value=text, choices=choices, limits=limits, help=help_text
        )

    @property
    def times(self) -> str:
        """Return the number of iterations, if the condition only counts them."""
        found = re.search(r"< (\d+)\)", condition := str(self.step.get("loopCondition") or ""))
        return found[1] if found and condition == loop_condition(self.ref, int(found[1])) else ""

    @property
    def _cases(self) -> Mapping[str, Any]:
        cases = self.step.get("decisionCases")
        return cases if isinstance(cases, Mapping) else {}

    @property
    def _covered(self) -> set[str]:
        """Return the inputs that other fields edit."""
        keys = (self.keys(member) for member in members_of(self.type))
        covered = {names[1] for names in keys if names[0] == "inputParameters"}
        return covered | ({ANSWER_SCHEMA_KEY} if self.is_human else set())

    # Reading

    def apply(self, registered: Mapping[str, Any]) -> StepEdit | None:
        """Return the document with the submitted values; None if the form has errors."""
        step = dict(self.step)
        for member in (*self.general_members, *self.members, *self.option_members):
            step = self.read_member(step, member)
        for group in self.row_groups.values():
            step = self._read_row_group(step, group)
        step = self._read_inputs(step)
        step = self._read_cases(self._read_branches(self._read_times(step)))
        if self.handler_rows and ((cases := apply_handlers(step, self.handler_rows)) or "catchCases" in step):
            step = {**step, "catchCases": cases}
        step = self._read_policy(step, registered)
        edit = self._rename(replace_step(self.document, self.path, step))
        return None if self.has_errors else edit

    @property
    def has_errors(self) -> bool:
        rows: list[FormRow | DesignedField | AssigneeRow | HandlerRow] = [*self.input_rows, *self.case_rows]
        rows += [row for group in self.row_groups.values() for row in group.rows]
        rows += [*self.designed, *self.assignee_rows, *self.handler_rows]
        return bool(self.errors) or any(row.errors for row in rows)

    def _rename(self, edit: StepEdit) -> StepEdit:
        ref = (self.submitted or {}).get(REF, self.ref).strip()
        if ref == self.ref:
            return self._follow_name(edit)
        try:
            renamed = rename_step(edit.document, self.path, ref)
        except Invalid as refused:
            self.errors[REF] = [refused.message]
            return edit
        return renamed

    def _follow_name(self, edit: StepEdit) -> StepEdit:
        """Name a new worker task by the task that is chosen for it, unless another step has that name."""
        sequence, index = find_step(edit.document, self.path)
        name = sequence.steps[index].get("name")
        if self.step.get("name") != NEW_TASK or not self.ref.startswith(NEW_TASK) or name == NEW_TASK:
            return edit
        try:
            return rename_step(edit.document, self.path, name)
        except Invalid:
            return edit

    def _read_row_group(self, step: dict[str, Any], group: RowGroup) -> dict[str, Any]:
        values, keys = parse_rows(group.rows), self.keys(group.member)
        if not group.rows or values == (_find(step, keys) or {}):
            return step
        return _put(step, keys, values or None)

    def _read_inputs(self, step: dict[str, Any]) -> dict[str, Any]:
        rows = parse_rows(self.input_rows)
        before = step.get("inputParameters", {})
        if not isinstance(before, Mapping):
            return step
        kept = {name: rows.get(name, value) for name, value in before.items() if name in self._covered or name in rows}
        changed: dict[str, Any] = {**kept, **{name: value for name, value in rows.items() if name not in kept}}
        if self.assignee_rows:
            changed = assign(changed, self.assignee_rows)
        if self.designed:
            changed = design_schema(changed, self.designed)
        return {**step, "inputParameters": changed} if changed or "inputParameters" in step else step

    def _read_cases(self, step: dict[str, Any]) -> dict[str, Any]:
        if not self.case_rows:
            return step
        cases: dict[str, Any] = {}
        for row in self.case_rows:
            steps = self._cases.get(row.was, []) if row.was else []
            if row.name in cases:
                row.errors.append(_("This name is used twice."))
            elif row.name:
                cases[row.name] = steps
            elif steps:
                row.errors.append(_("Delete the steps of the case %(case)s first.") % {"case": row.was})
        return {**step, "decisionCases": cases} if cases or self._cases else step

    def _read_branches(self, step: dict[str, Any]) -> dict[str, Any]:
        text = (self.submitted or {}).get(BRANCHES, "").strip()
        if self.flow is not Flow.FORK or not text:
            return step
        branches = list(as_steps(step.get("forkTasks")))
        if not text.isdecimal() or not 1 <= int(text[:9]) <= MAX_BRANCHES:
            self.errors[BRANCHES] = [_("Enter a number from 1 to %(most)s.") % {"most": MAX_BRANCHES}]
            return step
        while len(branches) > int(text) and (empty := [n for n, branch in enumerate(branches) if not branch]):
            del branches[empty[-1]]
        if len(branches) > int(text):
            self.errors[BRANCHES] = [_("Delete the steps of a branch first.")]
        return {**step, "forkTasks": [*branches, *([] for _missing in range(int(text) - len(branches)))]}

    def _read_times(self, step: dict[str, Any]) -> dict[str, Any]:
        text = (self.submitted or {}).get(TIMES, "").strip()
        if self.type != DoWhile.type or text in ("", self.times):
            return step
        if not text.isdecimal() or not 0 < int(text[:9]) < 1_000_000:
            self.errors[TIMES] = [_("Enter a whole number.")]
            return step
        return {**step, "loopCondition": loop_condition(self.ref, int(text))}

    def _read_policy(self, step: dict[str, Any], registered: Mapping[str, Any]) -> dict[str, Any]:
        if not self.submitted or not any(f"policy.{name}" in self.submitted for name in POLICY):
            return step
        before = self.own_policy
        texts = {name: _format_member(before.get(name), WHOLE) for name in POLICY}
        if all(_normalize(self.submitted.get(f"policy.{name}", "")) == text for name, text in texts.items()):
            return step
        values = dict(self._policy_values())
        others = {name: value for name, value in before.items() if name not in POLICY}
        without = {name: value for name, value in step.items() if name not in ("taskDefinition", "retryCount")}
        if not values and not set(others) - {"name"}:
            return without
        # A policy of the step replaces the task definition, so it begins with the members of that one.
        inherited = {name: registered[name] for name in POLICY if name in registered} if not before else {}
        return {**without, "taskDefinition": {"name": step.get("name", ""), **others, **inherited, **values}}

    def _policy_values(self) -> Iterator[tuple[str, Any]]:
        for name in POLICY:
            text = (self.submitted or {}).get(f"policy.{name}", "").strip()
            if not text:
                continue
            try:
                yield name, text if name in POLICY_CHOICES else _parse_member(text, WHOLE)
            except Invalid as refused:
                self.errors[f"policy.{name}"] = [refused.message]


class SettingsForm(MemberForm):
    """Form of the workflow itself: its name, its inputs, its outputs and its time limit."""

    path = ""

    def __init__(
        self, document: dict[str, Any], submitted: Mapping[str, str] | None = None, *, is_named: bool = False
    ) -> None:
        """Create the form. `is_named`: the definition exists, so its name cannot be changed."""
        super().__init__(document, submitted)
        self.document, self.is_named = document, is_named

    @cached_property
    def members(self) -> tuple[StepMember, ...]:
        return (
            StepMember("name", _("Name")),
            StepMember("description", _("Description")),
            StepMember("ownerEmail", _("Owner")),
            StepMember("inputParameters", _("Inputs"), NAMES, _("Names, comma-separated")),
            StepMember("timeoutSeconds", _("Timeout (s)"), WHOLE, _("0 = unlimited")),
            StepMember("timeoutPolicy", _("Timeout policy"), CHOICE, choices=("TIME_OUT_WF", "ALERT_ONLY")),
            StepMember("failureWorkflow", _("Failure workflow"), options="workflows"),
            *_fairness_members(),
        )

    @property
    def fields(self) -> list[RenderedField]:
        name, *others = self.members[:MAIN_SETTINGS]
        limits = {"readonly": True} if self.is_named else {}
        return [self.member_field(name, is_required=True, limits=limits), *map(self.member_field, others)]

    @property
    def option_fields(self) -> list[RenderedField]:
        return list(map(self.member_field, self.members[MAIN_SETTINGS:]))

    @property
    def has_options(self) -> bool:
        """Return True if a folded setting has a value, apart from the policy of a time limit."""
        places = (member.place for member in self.members[MAIN_SETTINGS:])
        return any(self.document.get(place) for place in places if place != "timeoutPolicy")

    @cached_property
    def output_rows(self) -> list[FormRow]:
        if self.submitted is not None:
            return submitted_rows(self.submitted, "output")
        outputs = self.document.get("outputParameters")
        return rows_of(outputs if isinstance(outputs, Mapping) else {}, "output")

    @property
    def has_errors(self) -> bool:
        return bool(self.errors) or any(row.errors for row in self.output_rows)

    def apply(self, registered: Mapping[str, Any]) -> StepEdit | None:
        """Return the document with the submitted values; None if the form has errors."""
        document = dict(self.document)
        for member in self.members:
            if not (self.is_named and member.place == "name"):
                document = self.read_member(document, member)
        outputs = parse_rows(self.output_rows)
        if not isinstance(document.get("outputParameters", {}), Mapping):
            return None if self.has_errors else StepEdit(document)
        if outputs or "outputParameters" in document:
            document["outputParameters"] = outputs
        return None if self.has_errors else StepEdit(document)


def _fairness_members() -> tuple[StepMember, ...]:
    return (
        StepMember("fairnessKey", _("Fairness key"), help=_("Workers get the tasks of different keys in turns.")),
        StepMember(
            "fairnessWeight", _("Fairness weight"), TYPED, _("Turns of the key in relation to others, usually 1")
        ),
    )


def _normalize(text: str) -> str:
    """Return a text as a browser submits it from a field that starts with it."""
    return text.replace("\r\n", "\n").strip()


def _find(value: JsonValue, keys: tuple[str, ...]) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _put(document: dict[str, Any], keys: tuple[str, ...], value: JsonValue) -> dict[str, Any]:
    """Return the document with a value at the keys; None removes the member. An equal value changes nothing."""
    key, rest = keys[0], keys[1:]
    inner = document.get(key)
    if rest:
        members = dict(inner) if isinstance(inner, Mapping) else {}
        changed = _put(members, rest, value)
        value = changed if changed or isinstance(inner, Mapping) else None
    if value is None or (value == [] and not inner):
        return {name: each for name, each in document.items() if name != key or _is_unset(each)}
    return {**document, key: value}


def _is_unset(value: JsonValue) -> bool:
    """Return True for values that an empty field stands for."""
    return value in (None, "", False) or value == []


def _format_member(value: JsonValue, kind: str) -> str:
    if value is None or value == "":
        return ""
    if kind == NAMES:
        return ", ".join(map(str, value)) if isinstance(value, list) else ""
    if kind == YES_NO:
        return "true" if value is True else ""
    if kind in (TYPED, LONG_TYPED):
        return format_typed(value)
    return format_value(value)


def _parse_member(text: str, kind: str) -> Any:
    """Return the value of a text; None if it is empty."""
    if kind == NAMES:
        return [name.strip() for name in text.split(",") if name.strip()]
    written = text.strip()
    if not written:
        return None
    if kind == WHOLE:
        if not written.isdecimal() or len(written) > 9:
            raise Invalid(_("Enter a whole number."))
        return int(written)
    if kind == YES_NO:
        return True if written == "true" else None
    plain = text.replace("\r\n", "\n")
    return parse_typed(plain) if kind in (TYPED, LONG_TYPED) else plain if kind == LONG else written
