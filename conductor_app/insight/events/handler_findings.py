"""Lint findings on event handlers, and the last verdict of each handler."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _

from ...core.document.checks.event_handler import EVENT_HANDLER
from ...core.document.lint import (
    ERROR,
    HINT,
    NO_RESULT,
    UNREADABLE,
    WARNING,
    LintFinding,
    lint_document,
    reads_as_javascript,
    returns_nothing,
)
from ...core.errors import ValidationError
from ...core.expressions import EVALUATORS
from ...models import EventHandler, HandlerEvaluation, Webhook, WorkflowDefinition
from .event_sources import WEBHOOK, missing_setting, provider_of

GRAVITY = {ERROR: 0, WARNING: 1, HINT: 2}


def lint_handler(read: Mapping[str, Any], validation_errors: Iterable[ValidationError]) -> list[LintFinding]:
    """Return all findings on a handler, most severe first. `read`: the handler with converted fields."""
    refused = [LintFinding(ERROR, "refused", each.path, each.message) for each in validation_errors]
    unknown = lint_document(read, EVENT_HANDLER)
    findings = [*refused, *unknown, *_event_findings(read), *_action_findings(read)]
    return sorted(findings, key=lambda each: GRAVITY[each.severity])


def _event_findings(read: Mapping[str, Any]) -> Iterator[LintFinding]:
    event, language = str(read.get("event") or ""), read.get("evaluatorType")
    if setting := missing_setting(event):
        message = _("No events arrive from `%(provider)s`: %(setting)s is not set.")
        facts = {"provider": provider_of(event), "setting": setting}
        yield LintFinding(WARNING, "no source", "event", message % facts)
    name = event.partition(":")[2]
    if provider_of(event) == WEBHOOK and name and not Webhook.objects.filter(name=name).exists():
        yield LintFinding(WARNING, "no source", "event", _("Webhook `%(name)s` does not exist.") % {"name": name})
    if language and language not in EVALUATORS:
        message = _("Unknown evaluator `%(language)s`. The condition is evaluated as JavaScript.")
        yield LintFinding(WARNING, "no language", "evaluatorType", message % {"language": language})
    if language == "python":
        yield from _python_findings(str(read.get("condition") or ""))
    if not read.get("active"):
        yield LintFinding(HINT, "inactive", "active", _("The handler is disabled and receives no events."))


def _python_findings(condition: str) -> Iterator[LintFinding]:
    if reads_as_javascript(condition):
        message = _("In Python, the fields of the payload are variables: write `name` instead of `$.name`.")
        yield LintFinding(WARNING, UNREADABLE, "condition", message)
    if returns_nothing(condition):
        message = _("The condition has no `return`, so it is never true. In Python, its value is the returned value.")
        yield LintFinding(WARNING, NO_RESULT, "condition", message)


def _action_findings(read: Mapping[str, Any]) -> Iterator[LintFinding]:
    for number, started in _started_workflows(read):
        name, version = str(started.get("name") or ""), started.get("version")
        if not name:
            yield LintFinding(
                ERROR, "no name", f"actions[{number}].start_workflow", _("The action names no workflow to start.")
            )
        elif "${" not in name:
            yield from _workflow_findings(name, version, f"actions[{number}].start_workflow")


def _workflow_findings(name: str, version: Any, path: str) -> Iterator[LintFinding]:
    versions = WorkflowDefinition.objects.filter(name=name).order_by("-version").values_list("version", flat=True)
    known = list(versions[:200])
    if not known:
        yield LintFinding(
            WARNING, "no workflow", f"{path}.name", _("Workflow `%(name)s` does not exist.") % {"name": name}
        )
    elif isinstance(version, int) and version not in known:
        message = _("Version %(version)s of workflow `%(name)s` does not exist.") % {"version": version, "name": name}
        yield LintFinding(WARNING, "no version", f"{path}.version", message)


def _started_workflows(read: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, action in enumerate(read.get("actions") or ()):
        if isinstance(action, Mapping) and action.get("action") == "start_workflow":
            yield number, action.get("start_workflow") or {}


def with_last_verdict(rows: QuerySet[EventHandler]) -> QuerySet[EventHandler]:
    """Annotate handlers with the time (`last_at`) and outcome (`last_outcome`) of their last event."""
    newest = HandlerEvaluation.objects.filter(handler=OuterRef("name")).order_by("-at", "-pk")
    return rows.annotate(last_at=Subquery(newest.values("at")[:1]), last_outcome=Subquery(newest.values("outcome")[:1]))
