"""State of the database: size, clock skew, slow statements and missing migrations.

Contains SQL for the catalogs of PostgreSQL and SQLite. It reads no table of this application.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import disk_usage
from typing import Any

from django.db.migrations.executor import MigrationExecutor

from ..settings import conf
from ..utils import clock
from .database import connection

MAX_STATEMENTS = 10
MAX_VALUE = 10
GIB = 1024**3


@dataclass(frozen=True, slots=True)
class SlowStatement:
    """A statement that has run for more than five seconds or waits for a lock."""

    age_ms: int
    waits_for: str
    text: str


@dataclass(frozen=True, slots=True)
class DatabaseStatus:
    """State of the database. `skew_ms`: how far its clock is ahead of this server's clock."""

    name: str
    size: int
    skew_ms: int
    missing: list[str] = field(default_factory=list)
    tables: list[tuple[str, int]] = field(default_factory=list)
    statements: list[SlowStatement] = field(default_factory=list)


def database_status() -> DatabaseStatus:
    """Return the current state of the database."""
    return (_postgresql_status if connection.vendor == "postgresql" else _sqlite_status)(missing_migrations())


def missing_migrations() -> list[str]:
    """Return the migrations that are not applied."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def clock_skew_ms() -> int:
    """Return how far the database's clock is ahead of this server's, in milliseconds.

    SQLite has no clock of its own. The error is at most half of the time that the statement takes.
    """
    if connection.vendor != "postgresql":
        return 0
    before = clock.now()
    [(now,)] = _fetch("SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint")
    return now - (before + clock.now()) // 2


def size_in_bytes() -> int:
    """Return the size of the database in bytes."""
    if connection.vendor == "postgresql":
        return _fetch("SELECT pg_database_size(current_database())")[0][0]
    return _fetch("SELECT c.page_count * s.page_size FROM pragma_page_count() c, pragma_page_size() s")[0][0]


def size_limit_in_bytes() -> int | None:
    """Return the maximum size: the configured limit, or the free disk space for SQLite. None if unknown."""
    if conf.database_limit_gb:
        return conf.database_limit_gb * GIB
    name = connection.settings_dict["NAME"]
    if connection.vendor != "sqlite" or not Path(name).is_file():
        return None
    return size_in_bytes() + disk_usage(Path(name).parent).free


def _postgresql_status(missing: list[str]) -> DatabaseStatus:
    [(version, size, now)] = _fetch(
        "SELECT current_setting('server_version'), pg_database_size(current_database()), "
        "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint"
    )
    tables = _fetch(
        "SELECT relname, pg_total_relation_size(relid) FROM pg_stat_user_tables ORDER BY 2 DESC LIMIT %s", [MAX_VALUE]
    )
    running = _fetch(
        "SELECT (EXTRACT(EPOCH FROM clock_timestamp() - query_start) * 1000)::bigint, "
        "CASE WHEN wait_event_type = 'Lock' THEN COALESCE(wait_event, '') ELSE '' END, LEFT(query, 300) "
        "FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid() "
        "AND (query_start < clock_timestamp() - interval '5 seconds' OR wait_event_type = 'Lock') "
        "ORDER BY query_start LIMIT %s",
        [MAX_STATEMENTS],
    )
    name = f"PostgreSQL {version.split()[0]}"
    return DatabaseStatus(name, size, now - clock.now(), missing, tables, [SlowStatement(*row) for row in running])


def _sqlite_status(missing: list[str]) -> DatabaseStatus:
    [(version, pages, bytes)] = _fetch(
        "SELECT sqlite_version(), c.page_count, s.page_size FROM pragma_page_count() c, pragma_page_size() s"
    )
    return DatabaseStatus(f"SQLite {version}", pages * bytes, 0, missing)


def _fetch(sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()
