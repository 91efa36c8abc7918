"""Views that search workflows and tasks: parameters, summaries and whole documents (api §3.10, §3.11, §6).

Times in summaries are texts, and payloads are in Java's format.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.http import HttpResponse

from ...access.authentication import Actor
from ...access.quotas import SEARCHES
from ...access.visibility import visible_to
from ...core.decision_context import conductor_status, conductor_task_type
from ...core.errors import CONDUCTOR_LENGTH, Invalid, ValidationError, ValidationFailed
from ...core.expressions.json_text import java_text
from ...core.masking import redact_text
from ...db.fields import loads
from ...db.statements import read_snapshot
from ...web.api.operations import RUN_SEARCH_QUERY, SEARCH_QUERY, ApiOperation, Json, Shape
from ...web.api.permissions import ALLOW_ALL
from ...web.api.requests import QueryParameters
from ...web.api.view import ConductorRequest, ConductorView
from ..documents.tasks import NAMED_BY_TYPE, wire_tasks
from ..documents.workflows import wire_runs
from ..models import Run
from ..search import RUNS, TASKS, Clause, PageEnds, QueryValue, Search, SearchPage, SearchQuery
from ..search.free_text import SearchLanguage
from ..search.results import AttemptLine, RunLine, Sort, attempt_lines, run_lines, runs_of_tasks
from ..search.tables import searchable_attempts
from . import serializers

MAX_PAGE_SIZE = 5_000
MAX_SORTS = 5
QUERY_IDENTITY_PARAMETERS = ("query", "freeText", "sort", "classifier", "topLevelOnly")


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search: its page, and the response in Conductor's format."""

    search: Search
    start: int
    size: int
    page_ends: PageEnds
    has_query_id: bool

    def page(self) -> SearchPage:
        return self.search.page(self.start, self.size, self.page_ends)

    def reply(self, page: SearchPage, results: Sequence[Any]) -> dict[str, Any]:
        """Return a SearchResult. Fields beyond Conductor's are present only if they have a value."""
        document: dict[str, Any] = {"totalHits": page.total, "results": results}
        if self.has_query_id and page.page_end:
            document["queryId"] = self.page_ends.query_id(page.page_end)
        if not page.is_exact:
            document["totalHitsIsLowerBound"] = True
        if page.since is not None:
            document["searchedSince"] = page.since
        return document


def parse_workflow_search(query: QueryParameters, actor: Actor) -> SearchRequest:
    """Return a search for workflows that the actor may read."""
    classifiers = tuple(QueryValue(each.strip(), 0) for each in query.texts("classifier"))
    extra_clauses = [Clause("classifier", "IN", classifiers, 0)] if classifiers else []
    if query.flag("topLevelOnly", False):
        extra_clauses.append(Clause("parentWorkflowId", "=", (QueryValue("", 0),), 0))
    return parse_search(query, actor, RUNS, visible_to(actor, Run.objects.all()), extra_clauses, int)


def parse_task_search(query: QueryParameters, actor: Actor, hit_field: str = "pk") -> SearchRequest:
    """Return a search for tasks of readable workflows. `hit_field`: the field that each result contains."""
    return parse_search(query, actor, TASKS, visible_to(actor, searchable_attempts()), [], str, hit_field)


def parse_search(
    query: QueryParameters,
    actor: Actor,
    language: SearchLanguage,
    rows: Any,
    extra_clauses: list[Clause],
    kind: type,
    hit_field: str = "pk",
) -> SearchRequest:
    start, size = query.integer("start", 0), query.integer("size", 100)
    for name, value in (("start", start), ("size", size)):
        if value < 0:
            raise ValidationFailed([ValidationError(f"searchWorkflows.{name}", "must be at least 0", value)])
    if size > MAX_PAGE_SIZE:
        validation_error = f"Cannot return more than {MAX_PAGE_SIZE} workflows. Please use pagination."
        raise ValidationFailed([ValidationError("searchWorkflows.size", validation_error, size)])
    question = SearchQuery(language, query.text("query"), query.text("freeText"), extra_clauses)
    identity = [actor.name, language.plural_name, *(query.values.get(name) for name in QUERY_IDENTITY_PARAMETERS)]
    page_ends = PageEnds(identity, kind, query.text("queryId"), query.flag("skipCache", False))
    search = Search(rows, question, parse_sorts(query, language), hit_field)
    return SearchRequest(search, start, size, page_ends, "queryId" in query.values)


def parse_sorts(query: QueryParameters, language: SearchLanguage) -> list[Sort]:
    """Parse `startTime:DESC|status`, or several parameters."""
    texts = [each for value in query.values.get("sort", ()) for each in value.replace(",", "|").split("|")]
    found: dict[str, bool] = {}
    for text in texts:
        name, _, direction = text.partition(":")
        if not name.strip():
            continue
        column = sort_columns(language).get(name.strip().lower())
        if column is None:
            raise Invalid(
                f"{language.plural_name.capitalize()} cannot be sorted by '{name.strip()[:50]}'. "
                f"Use one of: {', '.join(sorted(language.sorts))}."
            )
        if len(found) < MAX_SORTS:
            found.setdefault(column, direction.strip().upper() == "DESC")
    return list(found.items())


def sort_columns(language: SearchLanguage) -> dict[str, str]:
    return {name.lower(): column for name, column in language.sorts.items()}


def workflow_summary_document(run: RunLine) -> dict[str, Any]:
    summary = {
        "workflowType": run.name,
        "version": run.version,
        "workflowId": run.id,
        "startTime": format_time(run.created_at),
        "updateTime": format_time(run.updated_at),
        "status": run.status,
        "input": format_payload(run.input),
        "output": format_payload(run.output),
        "executionTime": max(run.ended_at - run.created_at, 0) if run.ended_at else 0,
        "failedReferenceTaskNames": ",".join(run.failed_refs),
        "failedTaskNames": run.failed_names,
        "priority": run.priority,
        "taskToDomain": run.domains,
        "parentWorkflowId": run.parent_id,
        "classifier": "workflow",
        "inputSize": run.input_size,
        "outputSize": run.output_size,
    }
    return summary | drop_empty(
        endTime=format_time(run.ended_at) if run.ended_at else None,
        correlationId=run.correlation_id,
        reasonForIncompletion=run.reason,
        event=run.event,
        createdBy=run.started_by,
        idempotencyKey=run.idempotency_key,
        externalInputPayloadStoragePath=run.input_path,
        externalOutputPayloadStoragePath=run.output_path,
    )


def task_summary_document(attempt: AttemptLine) -> dict[str, Any]:
    is_newest = attempt.id == attempt.task_attempt_id
    kind = conductor_task_type(attempt.task_type, attempt.name)
    summary = {
        "workflowId": attempt.run_id,
        "workflowType": attempt.run_name,
        "scheduledTime": format_time(attempt.scheduled_at),
        "startTime": format_time(attempt.started_at),
        "updateTime": format_time(attempt.updated_at),
        "endTime": format_time(attempt.ended_at),
        "status": conductor_status(attempt.status, attempt.task_status if is_newest else ""),
        "executionTime": duration_between(attempt.started_at, attempt.ended_at),
        "queueWaitTime": duration_between(attempt.scheduled_at, attempt.started_at),
        "taskDefName": kind if kind in NAMED_BY_TYPE else attempt.name or kind,
        "taskType": kind,
        "input": format_payload(attempt.input),
        "output": format_payload(attempt.output),
        "taskId": attempt.id,
        "workflowPriority": attempt.run_priority,
    }
    return summary | drop_empty(
        correlationId=attempt.run_correlation_id,
        reasonForIncompletion=attempt.reason[:CONDUCTOR_LENGTH],
        domain=attempt.domain,
        externalInputPayloadStoragePath=attempt.input_path,
        externalOutputPayloadStoragePath=attempt.output_path,
    )


def drop_empty(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def format_time(time_ms: int | None) -> str:
    """Return a time in the format of the summaries; the epoch if there is none yet."""
    at = datetime.fromtimestamp((time_ms or 0) / 1000, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{(time_ms or 0) % 1000:03d}Z"


def duration_between(start: int | None, end: int | None) -> int:
    return max(end - start, 0) if start and end else 0


def format_payload(excerpt: str) -> str:
    """Return a payload in the original's format, `{total=5}`. For a long one, return the start of its JSON."""
    return f"{redact_text(excerpt[1:])}…" if excerpt.startswith("…") else java_text(loads(excerpt))


def search_operations(summary: str, reply: Shape, query: dict[str, type] = SEARCH_QUERY) -> dict[str, ApiOperation]:
    """Return the operation of a search. Every caller may search, and finds only what the caller may read."""
    return {"get": ApiOperation(summary, ALLOW_ALL, reply=reply, query=query, rate=SEARCHES)}


def run_summaries(ids: list[str]) -> list[dict[str, Any]]:
    """Return the summaries of workflows, in the order of the ids."""
    return [workflow_summary_document(run) for run in run_lines(ids)]


def load_workflows(ids: list[str]) -> list[dict[str, Any]]:
    """Return workflows without their tasks, in the order of the ids."""
    found = {each["workflowId"]: each for each in wire_runs(Run.objects.filter(pk__in=ids), with_tasks=False)}
    return [found[id] for id in ids if id in found]


def task_summaries(ids: list[str]) -> list[dict[str, Any]]:
    """Return the summaries of tasks, in the order of the ids."""
    return [task_summary_document(attempt) for attempt in attempt_lines(ids)]


class WorkflowSearch(ConductorView):
    """GET /api/workflow/search: search workflows; the reply has summaries."""

    operations = search_operations("Search workflows", serializers.WORKFLOW_SUMMARY_PAGE, RUN_SEARCH_QUERY)
    load_results = staticmethod(run_summaries)

    @read_snapshot()
    def get(self, request: ConductorRequest) -> HttpResponse:
        search_request = parse_workflow_search(request.query, request.actor)
        page = search_request.page()
        return Json(search_request.reply(page, self.load_results(page.ids)))


class WorkflowSearchV2(WorkflowSearch):
    """GET /api/workflow/search-v2: search workflows; the reply has workflows without their tasks."""

    operations = search_operations("Search workflows and get them in full", serializers.WORKFLOW_PAGE, RUN_SEARCH_QUERY)
    load_results = staticmethod(load_workflows)


class WorkflowSearchByTasks(ConductorView):
    """GET /api/workflow/search-by-tasks: search workflows by their tasks; the reply has summaries."""

    operations = search_operations("Search workflows by their tasks", serializers.WORKFLOW_SUMMARY_PAGE)
    load_results = staticmethod(run_summaries)

    @read_snapshot()
    def get(self, request: ConductorRequest) -> HttpResponse:
        search_request = parse_task_search(request.query, request.actor, hit_field="run_id")
        page = runs_of_tasks(search_request.search, search_request.start, search_request.size)
        return Json(search_request.reply(page, self.load_results(page.ids)))


class WorkflowSearchByTasksV2(WorkflowSearchByTasks):
    """GET /api/workflow/search-by-tasks-v2: search by tasks; the reply has workflows without their tasks."""

    operations = search_operations("Search workflows by their tasks and get them in full", serializers.WORKFLOW_PAGE)
    load_results = staticmethod(load_workflows)


class TaskSearch(ConductorView):
    """GET /api/tasks/search: search tasks; the reply has summaries."""

    operations = search_operations("Search tasks", serializers.TASK_SUMMARY_PAGE)
    load_results = staticmethod(task_summaries)

    @read_snapshot()
    def get(self, request: ConductorRequest) -> HttpResponse:
        search_request = parse_task_search(request.query, request.actor)
        page = search_request.page()
        return Json(search_request.reply(page, self.load_results(page.ids)))


class TaskSearchV2(TaskSearch):
    """GET /api/tasks/search-v2: search tasks; the reply has whole tasks."""

    operations = search_operations("Search tasks and get them in full", serializers.TASK_PAGE)
    load_results = staticmethod(wire_tasks)
