"""Catalogs of definitions: versions, use, health and warnings, for one page of a list; options as a tool of agents."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _

from ..access.models import AuditEntry
from ..access.visibility import usable, visible
from ..core.definition import structure_of, walk
from ..core.errors import Invalid
from ..core.states import RUN
from ..core.step_types.sub_workflows import StartWorkflow, SubWorkflow
from ..core.validation.findings import BROKEN, NO_TIMEOUT, NO_WORKER, LintContext, closest_name, did_you_mean
from ..core.validation.lint import lint_definition
from ..db.database import connection
from ..runs.models import Attempt, Run, run_duration_ms
from ..tasks.models import Poller
from ..utils import clock
from ..utils.formatting import DAY
from .models import TaskDefinition, WorkflowDefinition
from .policies import policy_of, time_limits
from .validation import definition_context, named_workflows

RESULT_COLUMNS = ("status", "created_at", "ended_at", "idle_ms", "failed_before_at")
MAX_OPEN = 10_000
MAX_VERSIONS = 100
BAD_ENDS = ("FAILED", "TIMED_OUT")
LIMIT = 50
MAX_RUNS, MAX_COUNTED = 5_000, 100_000
MAX_USERS = 500
UNUSED_AFTER_MS = 30 * DAY
MAX_WORKFLOWS = 500
MAX_NAMES = 1_000
TOOL_KEY = "mcp"
MAX_TOOL_NAME, MAX_TOOL_TEXT = 64, 4_000
"""Providers of models accept names of tools up to this length."""
MAX_WAIT_SECONDS = 120
DEFAULT_WAIT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class VersionHealth:
    """Results of the runs that started in the last 24 hours: how many ended and failed, and the 95th percentile.

    A run counts as failed although it was retried since.
    """

    runs: int = 0
    ended: int = 0
    failed: int = 0
    p95_ms: int | None = None

    @property
    def failure_percent(self) -> int | None:
        return round(100 * self.failed / self.ended) if self.ended else None


@dataclass(frozen=True, slots=True)
class VersionEntry:
    """One version with its author and reason, open runs and health."""

    row: WorkflowDefinition
    author: str
    reason: str
    at: int
    open_runs: int
    health: VersionHealth
    is_newest: bool


@dataclass(frozen=True, slots=True)
class CatalogWorkflow:
    """Catalog data of one workflow definition. `flags`: problems, each with an explanation."""

    health: VersionHealth = field(default_factory=VersionHealth)
    is_capped: bool = False
    used_by: int = 0
    reason: str = ""
    flags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CatalogTask:
    """Catalog data of one task definition. `flags`: problems, each with an explanation."""

    used_by: int = 0
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
            dict(_find_workflow_flags(row, known, users.get(row.name, 0), last.get(row.pk), now)),
        )
        for row in rows
    }


def _health_by_name(names: Iterable[str], now: int) -> tuple[dict[str, VersionHealth], bool]:
    """Return the health of each name from the newest runs of the last day, and True if not all runs were read."""
    found = _runs_of_a_day(names, now).order_by("-created_at")
    rows = list(found.values_list("name", *RESULT_COLUMNS)[: MAX_RUNS + 1])
    by_name: dict[str, list[tuple[Any, ...]]] = {}
    for name, *result in rows[:MAX_RUNS]:
        by_name.setdefault(name, []).append(tuple(result))
    return {name: _health_of_runs(runs) for name, runs in by_name.items()}, len(rows) > MAX_RUNS


def _runs_of_a_day(names: Iterable[str], now: int) -> QuerySet[Run]:
    return Run.objects.filter(name__in=list(names), created_at__gte=now - DAY)


def ended_runs_by_name(names: Collection[str], now: int) -> dict[str, int]:
    """Return the number of runs of each name that started within the last day and have ended, at most MAX_COUNTED.

    The health of a name counts the same runs, among the newest MAX_RUNS.
    """
    if not names:
        return {}
    ended = _runs_of_a_day(names, now).filter(status__in=RUN.final).values("name")[:MAX_COUNTED]
    sql, params = ended.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT name, COUNT(*) FROM ({sql}) AS ended GROUP BY 1", params)
        return dict(cursor.fetchall())


def _count_callers(names: set[str]) -> dict[str, int]:
    """Count the workflows and schedules that start each workflow."""
    counts = dict.fromkeys(names, 0)
    callers = newest_definitions().filter(document__contains=SubWorkflow.type) | newest_definitions().filter(
        document__contains=StartWorkflow.type
    )
    for caller in visible(callers)[:MAX_USERS]:
        called = {name for spot in walk(caller.document.get("tasks")) for name in named_workflows(spot.step)}
        for name in called & names - {caller.name}:
            counts[name] += 1
    # The table by name, because its slice imports this one.
    schedules = apps.get_model("conductor", "Schedule")._default_manager.filter(workflow_name__in=list(names))
    for name in visible(schedules).values_list("workflow_name", flat=True):
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


def _find_workflow_flags(
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


def catalog_tasks(rows: Sequence[TaskDefinition], now: int) -> dict[int, CatalogTask]:
    """Return the catalog data of each row. The number of queries does not grow with the rows."""
    names = {row.name for row in rows}
    users, is_cut = _count_users(names)
    worked = set(Poller.objects.filter(task_type__in=names).values_list("task_type", flat=True))
    in_use = set() if is_cut else recently_used([row for row in rows if not users[row.name]], now)
    return {
        row.pk: CatalogTask(
            users[row.name],
            dict(_find_task_flags(row, users[row.name], row.name in worked, is_cut or row.name in in_use)),
        )
        for row in rows
    }


def recently_used(rows: Sequence[TaskDefinition], now: int) -> set[str]:
    """Return the names of those with a task in the last 30 days. Dynamic steps name their tasks only in a run."""
    newest = Attempt.objects.filter(name=OuterRef("name")).order_by("-pk").values("scheduled_at")[:1]
    found = TaskDefinition.objects.filter(pk__in=[row.pk for row in rows]).annotate(last_at=Subquery(newest))
    return set(found.filter(last_at__gte=now - UNUSED_AFTER_MS).values_list("name", flat=True)) if rows else set()


def _count_users(names: set[str]) -> tuple[dict[str, int], bool]:
    """Count the workflows whose newest version uses each task. Return True if not all workflows were read."""
    counts = dict.fromkeys(names, 0)
    documents = list(
        visible(newest_definitions()).order_by("name").values_list("document", flat=True)[: MAX_WORKFLOWS + 1]
    )
    for document in documents[:MAX_WORKFLOWS]:
        for name in {spot.name for spot in walk(document.get("tasks"))} & names:
            counts[name] += 1
    return counts, len(documents) > MAX_WORKFLOWS


def _find_task_flags(row: TaskDefinition, users: int, is_worked: bool, may_be_used: bool) -> Iterator[tuple[str, str]]:
    if users and not is_worked and not structure_of(row.name).is_built_in:
        yield "no worker", _("No worker has ever polled this task.")
    if not time_limits(policy_of(row.document)):
        yield "no timeout", _("No timeout: if a worker stops responding, the run waits forever.")
    if not users and not may_be_used:
        yield "unused", _("No workflow names this task in its newest version, and it has not run for 30 days.")


def version_history(name: str) -> list[VersionEntry]:
    """Return all versions of a workflow, newest first. Runs four queries."""
    rows = list(WorkflowDefinition.objects.filter(name=name).order_by("-version")[:MAX_VERSIONS])
    notes, open_counts, health = _reasons(name), open_runs(name), _health_by_version(name, clock.now())
    return [
        VersionEntry(
            row,
            *notes.get(f"{name}:{row.version}", (row.updated_by or row.created_by, "")),
            row.updated_at or row.created_at,
            open_counts.get(row.version, 0),
            health.get(row.version, VersionHealth()),
            is_newest=place == 0,
        )
        for place, row in enumerate(rows)
    ]


def _reasons(name: str) -> dict[str, tuple[str, str]]:
    """Return the last author and reason of each version."""
    entries = AuditEntry.objects.filter(
        object_type="workflow_definition", object_id__startswith=f"{name}:", action__in=("create", "overwrite")
    ).order_by("at", "pk")
    return {entry.object_id: (entry.actor, entry.reason) for entry in entries}


def open_runs(name: str) -> dict[int, int]:
    """Return the number of open runs of each version."""
    found = Run.objects.open().of_definition(name).order_by().values("version")[:MAX_OPEN]
    counts = Run.objects.filter(pk__in=found.values("pk")).values_list("version").annotate(Count("pk"))
    return dict(counts)


def _health_by_version(name: str, now: int) -> dict[int, VersionHealth]:
    """Return the health of each version, from the same runs as the health of the name."""
    rows = Run.objects.of_definition(name).filter(created_at__gte=now - DAY).order_by("-created_at")
    found: dict[int, list[tuple[Any, ...]]] = {}
    for version, *result in rows.values_list("version", *RESULT_COLUMNS)[:MAX_RUNS]:
        found.setdefault(version, []).append(tuple(result))
    return {version: _health_of_runs(runs) for version, runs in found.items()}


def _health_of_runs(runs: Collection[tuple[Any, ...]]) -> VersionHealth:
    """Return the health from the RESULT_COLUMNS of each run."""
    ended = [run for run in runs if run[0] in RUN.final]
    spans = sorted(
        run_duration_ms(created_at, ended_at, idle_ms, 0)
        for status, created_at, ended_at, idle_ms, _failed_at in ended
        if status == "COMPLETED"
    )
    p95 = spans[min(int(len(spans) * 0.95), len(spans) - 1)] if spans else None
    failed = sum(status in BAD_ENDS or failed_at is not None for status, *_times, failed_at in ended)
    return VersionHealth(len(runs), len(ended), failed, p95)


def newest_definitions():
    """Return the newest version of every workflow definition."""
    versions = WorkflowDefinition.objects.filter(name=OuterRef("name")).order_by("-version")
    return WorkflowDefinition.objects.filter(pk=Subquery(versions.values("pk")[:1]))


def usable_workflow_names() -> list[str]:
    """Return the names of the workflows that the current actor may use, at most MAX_NAMES."""
    names = usable(WorkflowDefinition.objects.order_by("name")).values_list("name", flat=True).distinct()
    return list(names[:MAX_NAMES])


def missing_workflow(name: str, version: int | None = None) -> str:
    """Return a message if the current actor may use no such workflow, or not in this version, otherwise ""."""
    rows = usable(WorkflowDefinition.objects.filter(name=name))
    if not rows.exists():
        message = _("Workflow %(name)s does not exist.") % {"name": name}
        return message + did_you_mean(closest_name(name, usable_workflow_names())).replace("`", "")
    if version and not rows.filter(version=version).exists():
        facts = {"version": version, "name": name}
        return _("Version %(version)s of workflow %(name)s does not exist.") % facts
    return ""


def document_to_use(name: str, version: str = "") -> dict[str, Any] | None:
    """Return the document of a workflow that the current actor may use: its newest version, or the given one."""
    rows = usable(WorkflowDefinition.objects.filter(name=name)) if name else WorkflowDefinition.objects.none()
    if version.isdecimal() and len(version) < 10:
        rows = rows.filter(version=version)
    return rows.order_by("-version").values_list("document", flat=True).first()


def workflows_using_task(name: str) -> list[WorkflowDefinition]:
    # The text search narrows the rows. Only the steps decide: a name may occur elsewhere in a document.
    rows = visible(newest_definitions().filter(document__contains=name)).order_by("name")[: 4 * LIMIT]
    return [row for row in rows if any(spot.name == name for spot in walk(row.document.get("tasks")))][:LIMIT]


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """How agents see a workflow. `wait_seconds`: how long a call waits for the end of its run; 0 for not at all."""

    name: str
    title: str
    description: str
    wait_seconds: int


def tool_options(name: str, document: Mapping[str, Any]) -> ToolOptions | None:
    """Return the options of a workflow as a tool, or None if it is none.

    `metadata.mcp` is true, or an object with `name`, `title`, `description`, `waitSeconds` and `enabled`, each of them
    optional. A value of another type is ignored.
    """
    metadata = document.get("metadata")
    given = metadata.get(TOOL_KEY) if isinstance(metadata, Mapping) else None
    options: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    if given is not True and (given is None or not isinstance(given, Mapping) or options.get("enabled") is False):
        return None
    seconds = options.get("waitSeconds")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        seconds = DEFAULT_WAIT_SECONDS
    return ToolOptions(
        tool_name(_text(options, "name") or name),
        _text(options, "title") or name,
        (_text(options, "description") or _text(document, "description") or f"Run the workflow {name}.")[
            :MAX_TOOL_TEXT
        ],
        int(max(0, min(seconds, MAX_WAIT_SECONDS))),
    )


def with_tool_switch(document: Mapping[str, Any], *, is_on: bool) -> dict[str, Any]:
    """Return a definition that is a tool, or is none. Other options stay.

    Raises:
        Invalid: when `metadata` of the definition is no object.
    """
    metadata = document.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise Invalid("`metadata` of the definition must be an object.")
    given = metadata.get(TOOL_KEY)
    if isinstance(given, Mapping):
        switched: Any = {**{key: value for key, value in given.items() if key != "enabled"}}
        switched = switched if is_on else {**switched, "enabled": False}
    else:
        switched = is_on
    return {**document, "metadata": {**metadata, TOOL_KEY: switched}}


def tool_name(text: str) -> str:
    """Return a name that every provider of models accepts for a tool."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text)[:MAX_TOOL_NAME] or "_"


def _text(options: Mapping[str, Any], name: str) -> str:
    value = options.get(name)
    return value if isinstance(value, str) else ""
