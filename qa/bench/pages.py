"""Benchmark of the operator pages over a million runs: `python -m qa.bench.pages`.

It has the options of `qa.bench.search`: DB=sqlite, RUNS, TRIES, FOLDER, EXPLAIN=1, ONLY=failures. The database is
the same, with the other rows that the pages show: 30,000 failures with 40 causes, 200,000 audit entries, 300 workers,
a bulk operation on 5,000 runs, 40 definitions, 30 schedules with 60,000 starts, and 600,000 counts of queues and
workers.
"""

import os
from functools import partial
from statistics import median
from typing import Any

from .search import (
    DAY_MS,
    DOCUMENT,
    END,
    RUNS,
    SqlDialect,
    explain_queries,
    id_of,
    insert_statement,
    measure_request,
    open_database,
    reset_sequences,
    set_clock_to_newest_run,
    started_at_expression,
)

MAX_STATEMENTS, MAX_CPU_MS = 15, 200
CAUSE_COUNT, AUDIT_ENTRY_COUNT, WORKER_COUNT, OPERATION_RUN_COUNT = 40, 200_000, 300, 5_000
DEFINITION_COUNT, SCHEDULE_COUNT, SCHEDULED_START_COUNT, MINUTE_COUNT = 40, 30, 60_000, 600_000
RUNS_LIST_URL = "/admin/conductor/run/"
LONG_AGO = END - 20 * DAY_MS
"""A moment within the period of the generated runs."""


def list_run_pages() -> dict[str, str]:
    """Return URLs of the list of runs: each filter with many results, and most of them with none as well."""
    queries = {
        "all": "",
        "status": "status=FAILED",
        "status, current steps": "status=RUNNING",
        "two statuses": "status=FAILED,TIMED_OUT",
        "status, all of them": "status=COMPLETED",
        "definition": "name=flow_00",
        "definition that is rare": "name=flow_99",
        "definition and status": "name=flow_03&status=FAILED",
        "definition and version": "name=flow_00&version=3",
        "version": "version=77",
        "started": f"started_since={LONG_AGO}&started_before={LONG_AGO + 3_600_000}",
        "started and status": f"started_since={LONG_AGO}&started_before={LONG_AGO + DAY_MS}&status=FAILED",
        "ended": f"ended_since={LONG_AGO}&ended_before={LONG_AGO + 3_600_000}",
        "ended, definition and status": f"ended_since={LONG_AGO}&name=flow_03&status=FAILED",
        "took at least": "least=30 d",
        "took at most": "most=5 min",
        "correlation id": "correlation_id=c-77",
        "idempotency key": "idempotency_key=k-5000",
        "parent": f"parent={id_of(RUNS // 100)}",
        "started by, rare": "started_by=alice",
        "started by, never": "started_by=nobody",
        "started by, all": "started_by=shop",
        "schedule": "schedule=nightly",
        "task": "task=step_1",
        "task that failed, never": "task=t1:FAILED",
        "task that failed": "task=step_0:FAILED",
        "error": "error=timeout",
        "error, never": "error=nobody says so",
        "inside": "inside=input.customer.id=42",
        "inside, never": "inside=input.nothing=42",
        "failure group": "failure_group=1",
        "refused in operation": f"refused_of={id_of(1)}",
        "search: an id": f"q={id_of(RUNS // 3)}",
        "search: the beginning of ids": f"q={id_of(RUNS // 3)[:8]}",
        "search: a correlation id": "q=c-77",
        "search: part of a name": "q=flow",
        "search: nothing": "q=nowhere",
        "search: query": "q=workflowType = flow_00 AND status = FAILED",
        "search: query inside": "q=status = FAILED AND input.customer.id = 42",
        "status and task": "status=FAILED&task=step_0:FAILED",
        "definition and error": "name=flow_03&error=nobody says so",
        "ended and took at least": f"ended_since={LONG_AGO}&least=30 d",
        "started by nobody and inside": "started_by=nobody&inside=input.nothing=42",
        "page in the middle": f"after={END - 15 * DAY_MS}.0",
        "oldest first": "sort=oldest",
        "ended last first": "sort=ended",
        "ended last first, definition": "sort=ended&name=flow_99&status=FAILED",
    }
    return {f"runs: {name}": f"{RUNS_LIST_URL}?{query}" for name, query in queries.items()}


def list_other_pages() -> dict[str, str]:
    """Return URLs of the other pages, without filters and with the most frequent ones."""
    from conductor_app.web.links import queue_address, worker_address

    worker, a_run, failed = worker_address("worker-7@0"), id_of(RUNS // 40 * 10), id_of(RUNS // 40 * 20 + 3)
    return {
        "overview": "/admin/",
        "overview: pulse": "/admin/overview-activity/",
        "overview: pulse, 30 days": "/admin/overview-activity/live/?range=30d",
        "overview: attention": "/admin/overview-attention/live/",
        "runs: news": f"{RUNS_LIST_URL}news/?since={LONG_AGO}",
        "failures": "/admin/failures/",
        "failures: all, of a definition, words": "/admin/failures/?view=all&definition=flow_00&q=time",
        "failures: by failed runs": "/admin/failures/?sort=lost",
        "failures: a group": "/admin/failures/1/",
        "failures: a group, 30 days": "/admin/failures/1/?range=30d",
        "failures: a group, by value": "/admin/failures/1/?place=customer.id",
        "operations": "/admin/bulk/",
        "operations: one": f"/admin/bulk/{id_of(1)}/",
        "operations: plan, failed": "/admin/bulk/plan/?status=FAILED",
        "operations: plan, all": "/admin/bulk/plan/?status=COMPLETED",
        "operations: plan, group": "/admin/bulk/plan/?failure_group=1",
        "overview: tiles": "/admin/view-tiles/",
        "waiting": "/admin/human-tasks/",
        "queues": "/admin/queues/",
        "queues: one": queue_address("task_000"),
        "queues: one, 7 days": f"{queue_address('task_000')}&range=7d",
        "workers": "/admin/workers/",
        "workers: one": worker,
        "workers: one, 7 days": f"{worker}&range=7d",
        "views": "/admin/views/",
        "workflows": "/admin/conductor/workflowdefinition/",
        "a workflow": "/admin/conductor/workflowdefinition/1/change/",
        "a workflow: history": "/admin/workflows/1/history/live/",
        "a workflow: history, 30 days": "/admin/workflows/1/history/live/?range=30d",
        "task definitions": "/admin/conductor/taskdefinition/",
        "schedules": "/admin/conductor/schedule/",
        "schedules: one": "/admin/conductor/schedule/1/change/",
        "schedules: starts": "/admin/conductor/scheduleexecution/",
        "audit": "/admin/conductor/auditentry/",
        "audit: object": "/admin/conductor/auditentry/?object_type=run",
        "audit: search": "/admin/conductor/auditentry/?q=olga",
        "retention": "/admin/retention/",
        "system": "/admin/system/",
        "a run": f"{RUNS_LIST_URL}{a_run}/change/",
        "a run: a task": f"{RUNS_LIST_URL}{a_run}/change/?task=step_0",
        "a run: diagram": f"{RUNS_LIST_URL}{a_run}/change/?tab=diagram",
        "a run: comparison": f"/admin/runs/{a_run}/compare/",
        "a run that failed": f"{RUNS_LIST_URL}{failed}/change/",
        "runs: views": f"{RUNS_LIST_URL}views/",
        "find": "/admin/search/?q=flow",
        "find: a correlation id": "/admin/search/?q=c-77",
        "find: a value": "/admin/search/?q=customer-42",
    }


def fill_statements(dialect: SqlDialect) -> list[str]:
    """Return statements that fill the tables of the other pages."""
    from conductor_app.access.models import AuditEntry
    from conductor_app.bulk.models import BulkItem, BulkOperation
    from conductor_app.definitions.models import DurationBaseline, WorkflowDefinition
    from conductor_app.failures.models import Failure, FailureGroup, HourlyFailureCount
    from conductor_app.schedules.models import Schedule, ScheduleExecution
    from conductor_app.tasks.models import MinuteCount, Poller

    started_at = f"(CAST({END} AS BIGINT) - n * 60000)"
    of_flow = "'flow_' || CASE WHEN n / 2 < 10 THEN '0' ELSE '' END || CAST(n / 2 AS VARCHAR)"
    of_run = "(SELECT id, name, version, reason, ended_at FROM conductor_run WHERE status IN ('FAILED', 'TIMED_OUT'))"
    return [
        insert_statement(
            FailureGroup,
            {
                "id": "n + 1", "fingerprint": "'f' || CAST(n AS VARCHAR)", "definition": "'flow_00'", "ref": "'pay'",
                "message": "'Read timeout at the gateway'",
                "first_at": started_at, "last_at": started_at, "count": "800",
                "merged_into_id": "NULL",
            },
            dialect.series(CAUSE_COUNT),
            dialect,
        ),
        insert_statement(
            Failure,
            {
                "id": "row_number() OVER ()", "group_id": "1", "fingerprint": "'f0'",
                "run_id": "id", "definition": "name", "version": "version", "ref": "'pay'", "message": "reason",
                "worker": "'w7'", "build": "'41'", "at": "ended_at",
            },
            f"{of_run} AS failed",
            dialect,
        ),
        insert_statement(
            HourlyFailureCount,
            {
                "id": "n + 1", "group_id": f"1 + n % {CAUSE_COUNT}",
                "hour_at": f"{END - END % 3_600_000} - 3600000 * n",
                "version": "1", "build": "'41'", "count": "9",
            },
            dialect.series(720),
            dialect,
        ),
        insert_statement(
            AuditEntry,
            {
                "id": "n + 1", "at": started_at, "actor": "CASE WHEN n % 9 = 0 THEN 'olga' ELSE 'otto' END",
                "action": "'retry'", "object_type": "'run'", "object_id": "'r-' || CAST(n AS VARCHAR)",
                "reason": "'The gateway is back.'",
            },
            dialect.series(AUDIT_ENTRY_COUNT),
            dialect,
        ),
        insert_statement(
            Poller,
            {
                "id": "n + 1", "task_type": "'task_00' || CAST(n % 10 AS VARCHAR)", "polled_at": started_at,
                "worker": "'worker-' || CAST(n AS VARCHAR) || '@' || CAST(n % 7 AS VARCHAR)",
            },
            dialect.series(WORKER_COUNT),
            dialect,
        ),
        insert_statement(
            BulkOperation,
            {
                "id": f"'{id_of(1)}'", "action": "'retry'", "selection": "'{\"status\":[\"FAILED\"]}'", "by": "'olga'",
                "rate": "50", "created_at": started_at, "updated_at": started_at,
                "total": str(OPERATION_RUN_COUNT), "done": "10",
            },
            dialect.series(1),
            dialect,
        ),
        insert_statement(
            BulkItem,
            {
                "id": "n + 1", "operation_id": f"'{id_of(1)}'", "number": "n + 1",
                "run_id": dialect.id(started_at, "n"),
                "outcome": "CASE WHEN n % 5 = 0 THEN 'REFUSED' ELSE 'DONE' END",
                "answer": "CASE WHEN n % 5 = 0 THEN 'It is COMPLETED.' ELSE '' END",
            },
            dialect.series(OPERATION_RUN_COUNT),
            dialect,
        ),
        insert_statement(
            WorkflowDefinition,
            {"id": "n + 1", "name": of_flow, "version": "1 + n % 2", "document": f"'{DOCUMENT}'"},
            dialect.series(DEFINITION_COUNT),
            dialect,
        ),
        insert_statement(
            DurationBaseline,
            {
                "id": "n + 1", "name": of_flow, "version": "1 + n % 2", "count": "800", "p50_ms": "40000",
                "p95_ms": "70000", "measured_at": str(END),
            },
            dialect.series(DEFINITION_COUNT),
            dialect,
        ),
        insert_statement(
            Schedule,
            {
                "id": "n + 1", "name": "'schedule-' || CAST(n AS VARCHAR)", "workflow_name": "'flow_00'",
                "document": "'{\"cronExpression\":\"0 0 * * * *\",\"zoneId\":\"UTC\"}'",
                "next_run_at": f"{END} + 60000 * n", "next_slot_at": f"{END} + 60000 * n",
            },
            dialect.series(SCHEDULE_COUNT),
            dialect,
        ),
        insert_statement(
            ScheduleExecution,
            {
                "id": dialect.id(started_at, "n"), "workflow_name": "'flow_00'", "state": "'EXECUTED'",
                "schedule_name": f"'schedule-' || CAST(n % {SCHEDULE_COUNT} AS VARCHAR)",
                "run_id": dialect.id(started_at_expression(f"{RUNS} - 1 - n"), f"{RUNS} - 1 - n"),
                "slot_at": started_at, "executed_at": started_at, "created_at": started_at,
            },
            dialect.series(min(SCHEDULED_START_COUNT, RUNS)),
            dialect,
        ),
        insert_statement(
            MinuteCount,
            {
                "id": "n + 1", "kind": "CASE WHEN n % 60 < 10 THEN 'queue' ELSE 'worker' END",
                "name": "CASE WHEN n % 60 < 10 THEN 'task_00' || CAST(n % 60 AS VARCHAR) "
                "ELSE 'worker-' || CAST(n % 60 - 10 AS VARCHAR) || '@' || CAST((n % 60 - 10) % 7 AS VARCHAR) END",
                "at": f"{END - END % 60_000} - 60000 * (n / 60)",
                "scheduled": "9", "started": "8", "done": "7", "failed": "1", "busy_ms": "30000",
            },
            dialect.series(MINUTE_COUNT),
            dialect,
        ),
    ]  # fmt: skip


def fill_other_tables() -> None:
    from django.db import connection

    from conductor_app.failures.models import FailureGroup

    if FailureGroup.objects.exists():
        return
    with connection.cursor() as cursor:
        for statement in fill_statements(SqlDialect(connection.vendor)):
            cursor.execute(statement.replace("%", "%%"), [])
        reset_sequences(cursor)
        if connection.vendor == "postgresql":
            cursor.execute("ANALYZE")


def measure_page(client: Any, name: str, address: str) -> None:
    """Print a row with statements, CPU time and size of a page, and marks for exceeded limits."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    _, cpus, _ = measure_request(partial(client.get, address))
    with CaptureQueriesContext(connection) as context:
        reply = client.get(address)
    queries = [query for query in context.captured_queries if query["sql"] not in ("BEGIN", "COMMIT")]
    cpu, statements = median(cpus), len(queries)
    marks = [f"status {reply.status_code}"] if reply.status_code != 200 else []
    marks += ["SLOW"] if cpu > MAX_CPU_MS else []
    marks += ["MANY"] if statements > MAX_STATEMENTS else []
    size = len(reply.content) // 1024
    print(f"{name:<40}{statements:>11}{cpu:>9.0f}{size:>7}  {' '.join(marks)}", flush=True)
    if os.environ.get("EXPLAIN") and marks:
        explain_queries(context.captured_queries)


def main() -> None:
    """Fill the database if it is empty, and measure every page."""
    with open_database():
        from django.test import Client

        from .search import superuser

        fill_other_tables()
        set_clock_to_newest_run()
        client = Client(raise_request_exception=True)
        client.force_login(superuser())
        print(f"{'page':<40}{'statements':>11}{'CPU ms':>9}{'kB':>7}")
        for name, address in {**list_run_pages(), **list_other_pages()}.items():
            if os.environ.get("ONLY", "") in name:
                measure_page(client, name, address)


if __name__ == "__main__":
    main()
