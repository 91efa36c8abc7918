"""Provenance of a task's input: parameter, expression, source and value, with hints for missing values.

A source may have changed since the task was scheduled: a loop updates its output in each iteration. The values are
therefore those of the attempt's own input wherever it shows them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from django.db.models import Case, F, When
from django.utils.translation import gettext as _

from ...core.definition import Step
from ...core.document.reading import inputs_without_definitions
from ...core.expressions import MISSING, Provenance, needed_references, trace_expressions
from ...core.expressions.json_text import expression_texts_with_results
from ...core.primitives import JsonValue
from ...db.fields import DocumentField
from ...runs.models import Attempt, Run

LARGE_PAYLOAD_BYTES = 64_000
"""Payloads above this size are not read."""
MAX_ORIGINS = 200
RUN_PARTS = ("input", "output", "variables")
CHANGING_PARTS = ("output", "variables")


@dataclass(frozen=True, slots=True)
class InputOrigin:
    """One expression of one parameter.

    `task`: the task that it reads from; empty if it reads from the workflow. `value`: its value when the attempt was
    scheduled, or that of the whole parameter if the source has changed since.
    """

    parameter: str
    expression: str
    source: str
    task: str
    value: JsonValue
    is_found: bool
    hint: str = ""

    @property
    def is_suspicious(self) -> bool:
        """True if the expression has no value."""
        return not self.is_found or self.value is None


def input_origins(attempt: Attempt, step: Step | None) -> list[InputOrigin]:
    """Return the origins of an attempt's input. The attempt is loaded with its task and run.

    Empty if the resolved definition does not contain the step.
    """
    if step is None or not step.inputs:
        return []
    inputs = inputs_without_definitions({"type": step.type, "inputParameters": step.inputs})
    sources = _Sources(
        attempt.own_run, attempt, {reference[0] for reference in needed_references(inputs)} - {"workflow"}
    )
    resolved = {place: (text, value) for place, text, value in expression_texts_with_results(inputs, sources.own_input)}
    return [_build_origin(found, sources, resolved) for found in trace_expressions(inputs, sources)][:MAX_ORIGINS]


class _Sources:
    """Values that expressions can read: payloads of the run, and inputs and outputs of earlier tasks."""

    def __init__(self, run: Run, attempt: Attempt, refs: set[str]) -> None:
        self.run, self.attempt = run, attempt
        self.too_large: set[tuple[str, str]] = set()
        self.tasks = _newest_before(attempt, refs) if refs else {}

    def __call__(self, root: str, key: str) -> Any:
        if root == "workflow":
            if key in RUN_PARTS:
                return self._small_value(self.run, key, "workflow")
            facts = {"workflowId": self.run.pk, "correlationId": self.run.correlation_id, "version": self.run.version}
            return facts.get(key, MISSING)
        found = self.tasks.get(root)
        if found is None:
            return MISSING
        if key not in ("input", "output"):
            return {"status": found.task.status, "taskId": found.pk}.get(key, MISSING)
        return self._small_value(found, key, root)

    @property
    def own_input(self) -> Any:
        return self._small_value(self.attempt, "input", "")

    def is_unchanged(self, root: str, key: str) -> bool:
        """Return True if the source has had its value since before the attempt was scheduled."""
        if root == "workflow":
            return key not in CHANGING_PARTS
        source = self.tasks.get(root)
        return source is None or (source.ended_at is not None and source.ended_at <= self.attempt.scheduled_at)

    def _small_value(self, row: Any, key: str, root: str) -> Any:
        if getattr(row, f"{key}_size") > LARGE_PAYLOAD_BYTES:
            self.too_large.add((root, key))
            return MISSING
        small = f"small_{key}"
        return getattr(row, small) if hasattr(row, small) else getattr(row, key)


def _newest_before(attempt: Attempt, refs: Iterable[str]) -> dict[str, Attempt]:
    """Return the last attempt of the newest earlier task of each reference. Runs one query."""
    small = {
        f"small_{key}": Case(
            When(**{f"{key}_size__lte": LARGE_PAYLOAD_BYTES}, then=F(key)), output_field=DocumentField(null=True)
        )
        for key in ("input", "output")
    }
    found = Attempt.objects.defer_payloads().filter(
        run_id=attempt.run_id, task__ref__in=sorted(refs), task__seq__lt=attempt.task.seq, id=F("task__attempt_id")
    )
    newest: dict[str, Attempt] = {}
    for row in (
        found.select_related("task").defer("task__step_state").annotate(**small).order_by("-task__seq")[:MAX_ORIGINS]
    ):
        newest.setdefault(row.task.ref, row)
    return newest


def _build_origin(found: Provenance, sources: _Sources, resolved: Mapping[str, tuple[str, Any]]) -> InputOrigin:
    is_of_run = found.root == "workflow"
    source = sources.tasks.get(found.root)
    value, is_found, hint = found.value, found.found, ""
    text, own_value = resolved.get(found.parameter, ("", MISSING))
    if own_value is not MISSING and (text == found.expression or not sources.is_unchanged(found.root, found.key)):
        value, is_found = own_value, found.found or own_value is not None
        hint = _("it had no value when the task was scheduled") if value is None and found.value is not None else ""
    if not is_found or value is None:
        hint = hint or _missing_value_hint(found, sources)
    return InputOrigin(
        found.parameter,
        found.expression,
        f"workflow {found.key}" if is_of_run else f"{found.root} {found.key}".strip(),
        str(source.task) if source else "",
        value,
        is_found,
        hint,
    )


def _missing_value_hint(found: Provenance, sources: _Sources) -> str:
    """Return why an expression has no value, with the most similar name if there is one."""
    if (found.root, found.key) in sources.too_large:
        return _("the payload it reads is too large to inspect")
    document = sources(found.root, found.key)
    if document is MISSING:
        return _unknown_source_hint(found, sources)
    return _missing_member_hint(document, found)


def _unknown_source_hint(found: Provenance, sources: _Sources) -> str:
    if found.root == "workflow" or not found.root:
        return _("unknown source")
    close_names = get_close_matches(found.root, sources.tasks, 1)
    if close_names:
        facts = {"name": found.root, "other": close_names[0]}
        return _("no earlier task `%(name)s`; did you mean `%(other)s`?") % facts
    return _("no earlier task `%(name)s`") % {"name": found.root}


def _missing_member_hint(document: JsonValue, found: Provenance) -> str:
    """Return the first missing name of the path, with the most similar existing name."""
    names = found.expression.removeprefix("${").removesuffix("}").split(".")[2:]
    for name in names:
        if not isinstance(document, Mapping):
            return _("cannot read `%(name)s` of a value of type %(type)s") % {
                "name": name,
                "type": type(document).__name__,
            }
        if name not in document:
            return _missing_name_hint(name, document)
        document = document[name]
    return _("the value is null")


def _missing_name_hint(name: str, document: Mapping[str, Any]) -> str:
    close_names = get_close_matches(name, [str(key) for key in document], 1, 0.5)
    if close_names:
        return _("no member `%(name)s`; did you mean `%(other)s`?") % {"name": name, "other": close_names[0]}
    known = ", ".join(f"`{key}`" for key in list(document)[:6]) or _("none")
    return _("no member `%(name)s`; members: %(known)s") % {"name": name, "known": known}
