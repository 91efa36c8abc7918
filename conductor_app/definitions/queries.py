"""Catalog data of workflow definitions: health, use and lint flags, for one page of a list."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import OuterRef, Subquery
from django.utils.translation import gettext as _

from ...core.document.lint import BROKEN, LintContext, lint_definition
from ...core.document.lint.findings import NO_TIMEOUT, NO_WORKER
from ...core.step_tree import walk
from ...core.step_types.start_workflow import StartWorkflow
from ...core.step_types.sub_workflow import SubWorkflow
from ...models import AuditEntry, Run, Schedule, WorkflowDefinition
from ..durations import DAY
from .definition_context import definition_context, named_workflows
from .definition_usage import newest_definitions
from .version_history import VersionHealth, health_of_runs

MAX_RUNS = 5_000
MAX_USERS = 500
UNUSED_AFTER_MS = 30 * DAY


@dataclass(frozen=True, slots=True)
class CatalogWorkflow:
    """Catalog data of one workflow definition. `flags`: problems, each with an explanation."""

    health: VersionHealth = field(default_factory=VersionHealth)
    is_capped: bool = False
    used_by: int = 0
    reason: str = ""
    flags: Mapping[str, str] = field(default_factory=dict)


def catalog_workflows(rows: Sequence[WorkflowDefinition], now: int) -> dict[int, CatalogWorkflow]:
    """Return the catalog data of each row. The number of queries does not grow with the rows."""
    known = definition_context([row.document for row in rows], with_examples=False)
    names = {row.name for row in rows}
    health, is_capped = _health_by_name(names, now)
    users, reasons, last = _count_callers(names), _change_reasons(rows), _last_run_times(rows)
    return {
        row.pk: CatalogWorkflow(
            health.get(row.name, VersionHealth()),
            is_capped,
            users.get(row.name, 0),
            reasons.get(f"{row.name}:{row.version}", ""),
            dict(_find_flags(row, known, users.get(row.name, 0), last.get(row.pk), now)),
        )
        for row in rows
    }


def _health_by_name(names: Iterable[str], now: int) -> tuple[dict[str, VersionHealth], bool]:
    """Return the health of each name from the newest runs of the last day, and True if not all runs were read."""
    found = Run.objects.filter(name__in=list(names), created_at__gte=now - DAY).order_by("-created_at")
    rows = list(found.values_list("name", "status", "created_at", "ended_at")[: MAX_RUNS + 1])
    by_name: dict[str, list[tuple[str, int | None]]] = {}
    for name, status, started_at, ended in rows[:MAX_RUNS]:
        by_name.setdefault(name, []).append((status, None if ended is None else ended - started_at))
    return {name: health_of_runs(runs) for name, runs in by_name.items()}, len(rows) > MAX_RUNS


def _count_callers(names: set[str]) -> dict[str, int]:
    """Count the workflows and schedules that start each workflow."""
    counts = dict.fromkeys(names, 0)
    callers = newest_definitions().filter(document__contains=SubWorkflow.type) | newest_definitions().filter(
        document__contains=StartWorkflow.type
    )
    for caller in callers[:MAX_USERS]:
        called = {name for spot in walk(caller.document.get("tasks")) for name in named_workflows(spot.step)}
        for name in called & names - {caller.name}:
            counts[name] += 1
    for name in Schedule.objects.filter(workflow_name__in=list(names)).values_list("workflow_name", flat=True):
        counts[name] += 1
    return counts


def _change_reasons(rows: Sequence[WorkflowDefinition]) -> dict[str, str]:
    ids = [f"{row.name}:{row.version}" for row in rows]
    entries = AuditEntry.objects.filter(object_type="workflow_definition", object_id__in=ids).order_by("at", "pk")
    return dict(entries.exclude(reason="").values_list("object_id", "reason"))


def _last_run_times(rows: Sequence[WorkflowDefinition]) -> dict[int, int | None]:
    """Return the creation time of the newest run of each definition."""
    runs = Run.objects.filter(name=OuterRef("name")).order_by("-created_at").values("created_at")[:1]
    found = WorkflowDefinition.objects.filter(pk__in=[row.pk for row in rows]).annotate(last_run_at=Subquery(runs))
    return dict(found.values_list("pk", "last_run_at"))


def _find_flags(
    row: WorkflowDefinition, known: LintContext, users: int, last: int | None, now: int
) -> Iterator[tuple[str, str]]:
    findings = lint_definition(row.document, known)
    broken = [finding.message for finding in findings if finding.kind in BROKEN and finding.severity != "hint"]
    if broken:
        yield "broken reference", broken[0]
    for kind, flag in ((NO_TIMEOUT, "no timeout"), (NO_WORKER, "no worker")):
        if messages := [finding.message for finding in findings if finding.kind == kind]:
            yield flag, messages[0]
    if not users and (last is None or now - last > UNUSED_AFTER_MS):
        never, lately = (
            _("No workflow or schedule starts it, and it has never run."),
            _("No workflow or schedule starts it, and it has not run for 30 days."),
        )
        yield "unused", never if last is None else lately
