"""`python -m tests.bench.pages`: what each of the operators' pages costs over a million runs.

Takes what `tests.bench.search` takes: DB=sqlite, RUNS, TRIES, FOLDER, EXPLAIN=1, ONLY=failures. The database is the
same and holds what else pages show: 30,000 failures among 40 causes, 200,000 lines of audit, 300 workers, an operation
on 5,000 runs.
"""

import os
import sys
from functools import partial
from statistics import median
from typing import Any

from .search import (
    DAY_MS,
    END,
    RUNS,
    SqlDialect,
    explain_queries,
    id_of,
    insert_statement,
    measure_request,
    open_database,
)

MOST_STATEMENTS, MOST_MS = 15, 200
CAUSES, AUDITED, WORKERS, OF_OPERATION = 40, 200_000, 300, 5_000
LIST = "/admin/conductor/run/"
LONG_AGO = END - 20 * DAY_MS
"""In the middle of what is filled."""


def runs_pages() -> dict[str, str]:
    """The list of runs by each of its filters; each once where it finds much, and once where it finds nothing."""
    asked = {
        "all": "",
        "status": "status=FAILED",
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
        "parent": f"parent={id_of(10_000)}",
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
    return {f"runs: {name}": f"{LIST}?{query}" for name, query in asked.items()}


def other_pages() -> dict[str, str]:
    """The other pages, each as it opens and with what is asked for most."""
    from conductor_app.admin.queues.queue_list import queue_address
    from conductor_app.models import Attempt

    attempt = Attempt.objects.order_by("id").values_list("pk", flat=True).first()
    return {
        "overview": "/admin/",
        "overview: pulse": "/admin/pulse/",
        "runs: news": f"{LIST}news/?since={LONG_AGO}",
        "failures": "/admin/failures/",
        "failures: all, of a definition, words": "/admin/failures/?view=all&definition=flow_00&q=time",
        "failures: a group": "/admin/failures/1/",
        "operations": "/admin/bulk/",
        "operations: one": f"/admin/bulk/{id_of(1)}/",
        "operations: plan, failed": "/admin/bulk/plan/?status=FAILED",
        "operations: plan, all": "/admin/bulk/plan/?status=COMPLETED",
        "operations: plan, group": "/admin/bulk/plan/?failure_group=1",
        "attempts": "/admin/conductor/attempt/",
        "attempts: search": "/admin/conductor/attempt/?q=task_rare",
        "attempts: retrying": "/admin/conductor/attempt/?state=retrying",
        "overview: tiles": "/admin/tiles/",
        "waiting": "/admin/waiting/",
        "stand-alone tasks": "/admin/conductor/solo/",
        "queues": "/admin/queues/",
        "queues: one": queue_address("task_000"),
        "workers": "/admin/workers/",
        "views": "/admin/views/",
        "workflows": "/admin/conductor/workflowdefinition/",
        "task definitions": "/admin/conductor/taskdefinition/",
        "schedules": "/admin/conductor/schedule/",
        "audit": "/admin/conductor/auditentry/",
        "audit: object": "/admin/conductor/auditentry/?object_type=run",
        "audit: search": "/admin/conductor/auditentry/?q=olga",
        "retention": "/admin/retention/",
        "system": "/admin/system/",
        "sweeps": "/admin/sweeps/",
        "a run": f"{LIST}{id_of(RUNS // 3)}/change/",
        "an attempt": f"/admin/conductor/attempt/{attempt}/change/",
        "find": "/admin/find/?q=flow",
    }


def other_tables(spelling: SqlDialect) -> list[str]:
    """What the other pages show, beside runs, tasks and attempts."""
    from conductor_app.models import (
        AuditEntry,
        BulkItem,
        BulkOperation,
        Failure,
        FailureGroup,
        HourlyFailureCount,
        Poller,
    )

    begun = f"(CAST({END} AS BIGINT) - n * 60000)"
    of_run = "(SELECT id, name, version, reason, ended_at FROM conductor_run WHERE status IN ('FAILED', 'TIMED_OUT'))"
    return [
        insert_statement(
            FailureGroup,
            {
                "id": "n + 1", "fingerprint": "'f' || CAST(n AS VARCHAR)", "definition": "'flow_00'", "ref": "'pay'",
                "message": "'Read timeout at the gateway'", "first_at": begun, "last_at": begun, "count": "800",
                "merged_into_id": "NULL",
            },
            spelling.series(CAUSES),
            spelling,
        ),
        insert_statement(
            Failure,
            {
                "id": "row_number() OVER ()", "group_id": "1", "fingerprint": "'f0'",
                "run_id": "id", "definition": "name", "version": "version", "ref": "'pay'", "message": "reason",
                "worker": "'w7'", "build": "'41'", "at": "ended_at",
            },
            f"{of_run} AS failed",
            spelling,
        ),
        insert_statement(
            HourlyFailureCount,
            {
                "id": "n + 1", "group_id": f"1 + n % {CAUSES}", "hour_at": f"{END - END % 3_600_000} - 3600000 * n",
                "version": "1", "build": "'41'", "count": "9",
            },
            spelling.series(720),
            spelling,
        ),
        insert_statement(
            AuditEntry,
            {
                "id": "n + 1", "at": begun, "actor": "CASE WHEN n % 9 = 0 THEN 'olga' ELSE 'otto' END",
                "action": "'retry'", "object_type": "'run'", "object_id": "'r-' || CAST(n AS VARCHAR)",
                "reason": "'The gateway is back.'",
            },
            spelling.series(AUDITED),
            spelling,
        ),
        insert_statement(
            Poller,
            {
                "id": "n + 1", "task_type": "'task_00' || CAST(n % 10 AS VARCHAR)", "polled_at": begun,
                "worker": "'worker-' || CAST(n AS VARCHAR) || '@' || CAST(n % 7 AS VARCHAR)",
            },
            spelling.series(WORKERS),
            spelling,
        ),
        insert_statement(
            BulkOperation,
            {
                "id": f"'{id_of(1)}'", "action": "'retry'", "selection": "'{\"status\":[\"FAILED\"]}'", "by": "'olga'",
                "rate": "50", "created_at": begun, "updated_at": begun, "total": str(OF_OPERATION), "done": "10",
            },
            spelling.series(1),
            spelling,
        ),
        insert_statement(
            BulkItem,
            {
                "id": "n + 1", "operation_id": f"'{id_of(1)}'", "number": "n + 1", "run_id": spelling.id(begun, "n"),
                "outcome": "CASE WHEN n % 5 = 0 THEN 'REFUSED' ELSE 'DONE' END",
                "answer": "CASE WHEN n % 5 = 0 THEN 'It is COMPLETED.' ELSE '' END",
            },
            spelling.series(OF_OPERATION),
            spelling,
        ),
    ]  # fmt: skip


def fill_other_tables() -> None:
    from django.db import connection

    from conductor_app.models import FailureGroup

    if FailureGroup.objects.exists():
        return
    with connection.cursor() as cursor:
        for statement in other_tables(SqlDialect(connection.vendor)):
            cursor.execute(statement.replace("%", "%%"), [])
        if connection.vendor == "postgresql":
            cursor.execute("ANALYZE")


def measure_page(client: Any, name: str, address: str) -> None:
    """One line: statements, processor time, size; and what is too dear."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    _, cpus, _ = measure_request(partial(client.get, address))
    with CaptureQueriesContext(connection) as context:
        reply = client.get(address)
    cpu, statements = median(cpus), len(context)
    marks = [f"status {reply.status_code}"] if reply.status_code != 200 else []
    marks += ["SLOW"] if cpu > MOST_MS else []
    marks += ["MANY"] if statements > MOST_STATEMENTS else []
    size = len(reply.content) // 1024
    print(f"{name:<40}{statements:>11}{cpu:>9.0f}{size:>7}  {' '.join(marks)}", flush=True)
    if os.environ.get("EXPLAIN") and marks:
        explain_queries(context.captured_queries)


def main() -> None:
    """Fill a database, unless it is there, and ask for every page."""
    with open_database():
        from django.test import Client

        from .search import superuser

        fill_other_tables()
        client = Client(raise_request_exception=True)
        client.force_login(superuser())
        print(f"{'page':<40}{'statements':>11}{'CPU ms':>9}{'kB':>7}")
        for name, address in {**runs_pages(), **other_pages()}.items():
            if os.environ.get("ONLY", "") in name:
                measure_page(client, name, address)


if __name__ == "__main__":
    sys.exit(main())
