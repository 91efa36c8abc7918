"""What would make an upgrade slow or impossible. Nothing is changed."""

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from django.core.checks import ERROR, run_checks
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.exceptions import InconsistentMigrationHistory
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from conductor_app import conf
from conductor_app.management.migration_effects import WHOLE_APP, MigrationEffect, TableEffect, table_effects

OLDEST_PYTHON = (3, 11)
OLDEST_DATABASES = {"postgresql": (14,), "sqlite": (3, 35)}
LARGE_TABLE_ROWS = 100_000
"""The number of rows from which a migration that locks a table while it reads all rows is a problem."""
REMOVED_VARIABLES: dict[str, str] = {}
"""Environment variables that earlier releases read, with what to do instead."""
SIMILARITY, LEAST_LENGTH = 0.9, 7


@dataclass(frozen=True)
class Finding:
    """A sentence about the upgrade. A problem must be solved before it."""

    text: str
    is_problem: bool = False


@dataclass(frozen=True)
class TableSize:
    """The approximate size of a table. `bytes` is None where only reading the table would show it."""

    rows: int
    bytes: int | None = None

    def __str__(self) -> str:
        size = "" if self.bytes is None else f", {self.bytes / 1024 / 1024:,.0f} MB"
        return f"about {self.rows:,} rows{size}"


def check_versions(python: tuple[int, ...], vendor: str, database: tuple[int, ...]) -> Iterator[Finding]:
    """Yield a problem for a version that is too old."""
    name = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}[vendor]
    for program, found, oldest in (("Python", python, OLDEST_PYTHON), (name, database, OLDEST_DATABASES[vendor])):
        if found < oldest:
            text = f"{program} {_format_version(found)} is too old: install {_format_version(oldest)} or later."
            yield Finding(text, is_problem=True)


def check_installation(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield problems of this Python, the database, and the settings."""
    yield from check_versions(sys.version_info[:3], connection.vendor, connection.get_database_version())
    for message in run_checks(tags=[conf.CHECKS]):
        yield Finding(str(message.msg), is_problem=message.level >= ERROR)


def check_variables(
    names: Iterable[str], known: Iterable[str], removed: Mapping[str, str] = REMOVED_VARIABLES
) -> Iterator[Finding]:
    """Yield a problem for each removed environment variable, and a note for each name that resembles a known one."""
    known = set(known)
    for name in sorted(set(names) - known):
        if name in removed:
            yield Finding(f"The environment variable {name} has no effect any more: {removed[name]}", is_problem=True)
        elif len(name) >= LEAST_LENGTH and (similar := get_close_matches(name, known, n=1, cutoff=SIMILARITY)):
            yield Finding(f"The environment variable {name} is unknown. Did you mean {similar[0]}?")


def check_migrations(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield what unapplied migrations would do, and whether the database fits this version."""
    executor = MigrationExecutor(connection)
    try:
        executor.loader.check_consistent_history(connection)
    except InconsistentMigrationHistory as error:
        yield Finding(str(error), is_problem=True)
        return
    if refusal := describe_outdated(executor.loader, executor.loader.applied_migrations):
        yield Finding(refusal, is_problem=True)
        return
    yield from _newer_migrations(executor.loader)
    if not connection.introspection.table_names():
        yield Finding("The database is empty: `migrate` creates all tables.")
        return
    for name, effects in pending_effects(executor):
        yield from describe_migration(name, effects, connection)


def pending_effects(executor: MigrationExecutor) -> Iterator[tuple[str, list[TableEffect]]]:
    """Yield each unapplied migration with its effects on existing tables."""
    graph = executor.loader.graph
    state = executor.loader.project_state([key for key in executor.loader.applied_migrations if key in graph.nodes])
    for migration, _ in executor.migration_plan(graph.leaf_nodes()):
        yield str(migration), table_effects(migration, state, executor.connection.vendor)


def describe_outdated(loader: MigrationLoader, applied: Collection[tuple[str, str]]) -> str:
    """Return why a database with these migrations is too old for this version, or "".

    A migration that replaces others, which this version no longer has, needs all of them: Django would skip it.
    """
    known = {*applied, *loader.disk_migrations}
    for (app, name), migration in loader.disk_migrations.items():
        missing = [key for key in migration.replaces if key not in known]
        if 0 < len(missing) < len(migration.replaces):
            return (
                f"The database is too old: {app}.{name} replaces {'.'.join(missing[0])}, which is not applied. "
                f"Migrate it with a version that has {'.'.join(migration.replaces[-1])}, and then with this one."
            )
    return ""


def _newer_migrations(loader: MigrationLoader) -> Iterator[Finding]:
    replaced = {name for migration in loader.disk_migrations.values() for name in migration.replaces}
    installed = {app for app, _ in loader.disk_migrations}
    for app, name in sorted(set(loader.applied_migrations) - set(loader.disk_migrations) - replaced):
        if app in installed:
            yield Finding(f"The database has the migration {app}.{name} of a newer version.", is_problem=True)


def describe_migration(name: str, effects: list[TableEffect], connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield a sentence for each table of a migration. A long lock of a large table is a problem."""
    if not effects:
        yield Finding(f"{name}: creates tables, and touches no existing one.")
    for each in effects:
        size = None if each.table == WHOLE_APP else table_size(connection, each.table)
        is_large = size is not None and size.rows >= LARGE_TABLE_ROWS
        described = f"{each.table} ({size})" if size else each.table
        yield Finding(
            f"{name}: {described}: {each.effect.value}.",
            is_problem=is_large and each.effect is MigrationEffect.LONG_LOCK,
        )


def table_size(connection: BaseDatabaseWrapper, table: str) -> TableSize | None:
    """Return the approximate size of a table without reading it, or None if it does not exist."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT greatest(reltuples, 0)::bigint, pg_total_relation_size(oid) FROM pg_class "
                "WHERE oid = to_regclass(%s)",
                [connection.ops.quote_name(table)],
            )
            row = cursor.fetchone()
            return TableSize(*row) if row else None
        if table not in connection.introspection.table_names(cursor):
            return None
        cursor.execute(f"SELECT coalesce(max(rowid), 0) FROM {connection.ops.quote_name(table)}")
        return TableSize(cursor.fetchone()[0])


def _format_version(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
