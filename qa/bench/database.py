"""PostgreSQL servers of benchmarks: one for each measured server, so that its cost can be told apart."""

import os
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from qa.faults.backends import create_database, wait_until
from qa.faults.processes import Member
from tests.free_port import free_port

SETTINGS = {
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "max_connections": "200",
    "checkpoint_timeout": "30min",
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track_utility": "off",
    "unix_socket_directories": "",
    "log_min_messages": "fatal",
}
"""All databases have these settings. Commits are durable (fsync and synchronous_commit are on)."""
COUNTERS = {
    "statements": "SELECT sum(calls) FROM pg_stat_statements",
    "fsyncs": "SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal'",
}
"""Counters of the whole database. Statements are counted without transaction control."""
WAL_RECORDS = {
    "commits": ("Transaction/COMMIT",),
    "inserted": ("Heap/INSERT", "Heap/INSERT+INIT"),
    "updated": ("Heap/UPDATE", "Heap/UPDATE+INIT", "Heap/HOT_UPDATE"),
    "updated_hot": ("Heap/HOT_UPDATE",),
    "deleted": ("Heap/DELETE",),
    "index_entries": tuple(
        f"Btree/{name}" for name in ("INSERT_LEAF", "INSERT_UPPER", "INSERT_POST", "SPLIT_L", "SPLIT_R")
    ),
}
"""Types of records of the write-ahead log by what they count. Rows include those of long values (TOAST)."""
Counts = dict[str, float]


@dataclass
class Database:
    """A PostgreSQL server."""

    port: int
    pid: int

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres?sslmode=disable&gssencmode=disable"

    def query(self, sql: str, *values: object) -> list[tuple]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(sql, values or None)
            return cursor.fetchall() if cursor.description else []

    def prepare_counters(self) -> None:
        """Create the extensions that `count` and `counts_since` read."""
        for name in ("pg_stat_statements", "pg_walinspect"):
            self.query(f"CREATE EXTENSION IF NOT EXISTS {name}")

    def count(self) -> tuple[str, Counts]:
        """Return the position in the write-ahead log, and the counters so far."""
        sums = ", ".join(f"COALESCE(({sql}), 0)::float8" for sql in COUNTERS.values())
        [(position, *values)] = self.query(f"SELECT pg_current_wal_lsn()::text, {sums}")
        return position, dict(zip(COUNTERS, values, strict=True))

    def counts_since(self, position: str, earlier: Counts) -> Counts:
        """Return how the counters have changed, and what the write-ahead log contains since the position.

        `wal_bytes` includes `page_image_bytes`: images of pages, which are written after each checkpoint.
        """
        now, counts = self.count()
        rows = self.query(
            'SELECT "resource_manager/record_type", count, record_size, fpi_size FROM pg_get_wal_stats(%s, %s, true)',
            position, now,
        )  # fmt: skip
        images = float(sum(size for *_, size in rows))
        found = {name: counts[name] - earlier[name] for name in counts}
        found |= {"wal_bytes": images + float(sum(size for _, _, size, _ in rows)), "page_image_bytes": images}
        return found | {
            name: float(sum(count for record, count, *_ in rows if record in records))
            for name, records in WAL_RECORDS.items()
        }


@contextmanager
def start_database(folder: Path) -> Iterator[Database]:
    """Start a new PostgreSQL server on a port of its own."""
    data, binary, user = create_database(folder)
    port = free_port()
    options = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
    command = [binary, "-D", str(data), "-h", "127.0.0.1", "-p", str(port), *options]
    member = Member("PostgreSQL", command, os.environ, folder / "postgresql.log", user)
    member.start()
    try:
        database = Database(port, member.pid)
        wait_until(lambda: _accepts(database), 60, "PostgreSQL")
        yield database
    finally:
        member.terminate()


def _accepts(database: Database) -> bool:
    try:
        return database.query("SELECT 1") == [(1,)]
    except psycopg.OperationalError:
        return False


STEPS, PROCESSES, LIMIT_SECONDS = 8000, 2, 3.0
TABLE = (
    "DROP TABLE IF EXISTS bench_attempt",
    "CREATE TABLE bench_attempt (id text PRIMARY KEY, queue text, status text, worker text, output text, "
    "visible_at bigint, due_at bigint, ended_at bigint)",
    "CREATE INDEX bench_waiting ON bench_attempt (queue, visible_at) WHERE status = 'PENDING'",
)
CLAIM = (
    "UPDATE bench_attempt SET status = 'LEASED', worker = 'w', due_at = 1 WHERE id = (SELECT id FROM bench_attempt "
    "WHERE queue = %s AND status = 'PENDING' ORDER BY visible_at LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"
)
COMPLETE = (
    "UPDATE bench_attempt SET status = 'COMPLETED', output = '{\"done\": true}', ended_at = 2 "
    "WHERE id = %s AND status = 'LEASED'"
)


def measure_limit(database: Database) -> float:
    """Measure the claims and completions of one row per second that the database executes as plain SQL."""
    with psycopg.connect(database.url, autocommit=True) as connection:
        for statement in TABLE:
            connection.execute(statement)
        with connection.cursor().copy("COPY bench_attempt (id, queue, status, visible_at) FROM STDIN") as copy:
            for number in range(PROCESSES * STEPS):
                copy.write_row((str(uuid.uuid4()), f"q{number % PROCESSES}", "PENDING", number))
        connection.execute("ANALYZE bench_attempt")
    with ProcessPoolExecutor(PROCESSES) as pool:
        return sum(pool.map(_claim_and_complete, [database.url] * PROCESSES, [f"q{n}" for n in range(PROCESSES)]))


def _claim_and_complete(url: str, queue: str) -> float:
    """Return the claims and completions per second of one connection."""
    with psycopg.connect(url, autocommit=True, prepare_threshold=1) as connection:
        began, steps = time.perf_counter(), 0
        while steps < STEPS and time.perf_counter() < began + LIMIT_SECONDS:
            [(id,)] = connection.execute(CLAIM, [queue]).fetchall()
            connection.execute(COMPLETE, [id])
            steps += 1
        return steps / (time.perf_counter() - began)
