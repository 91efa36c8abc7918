"""What would make an upgrade slow or impossible, and the limits for migrations on PostgreSQL. Nothing is changed.

A migration may block other processes, read all rows of a table, or need more room than the disks have. While it waits
for the lock of a table, all later statements on the table wait behind it, so that it must not wait long.
"""

import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
    RemoveIndexConcurrently,
    ValidateConstraint,
)
from django.core.checks import ERROR, run_checks
from django.db import DatabaseError, OperationalError, migrations
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.exceptions import InconsistentMigrationHistory
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import Count

from conductor_app.core.definition import walk
from conductor_app.core.document.reading import read_definition
from conductor_app.db.migration_operations import (
    AddUniqueConstraintWithoutLock,
    RemoveUniqueConstraintWithoutLock,
    SetFillFactor,
)
from conductor_app.definitions.models import ResolvedDefinition, WorkflowDefinition
from conductor_app.runs.models import Run
from conductor_app.settings import conf

from ..definitions.validation import validate_workflow

WHOLE_APP = "all tables"
"""The table of operations that name no model."""


class MigrationEffect(Enum):
    """The effect of an operation on a table, from the lightest to the heaviest."""

    NO_LOCK = "blocks no reader or writer"
    SHORT_LOCK = "locks the table briefly"
    LONG_LOCK = "locks the table while it reads or copies all rows"
    UNKNOWN = "runs code or SQL, whose duration depends on the rows"


POSTGRESQL: tuple[tuple[tuple[type[Operation], ...], MigrationEffect], ...] = (
    (
        (
            AddIndexConcurrently,
            RemoveIndexConcurrently,
            AddUniqueConstraintWithoutLock,
            RemoveUniqueConstraintWithoutLock,
            SetFillFactor,
            ValidateConstraint,
            migrations.AlterModelOptions,
            migrations.AlterModelManagers,
        ),
        MigrationEffect.NO_LOCK,
    ),
    ((AddConstraintNotValid,), MigrationEffect.SHORT_LOCK),
    ((migrations.RunPython, migrations.RunSQL), MigrationEffect.UNKNOWN),
    ((migrations.AddIndex, migrations.AddConstraint, migrations.AlterField), MigrationEffect.LONG_LOCK),
)
SQLITE: tuple[tuple[tuple[type[Operation], ...], MigrationEffect], ...] = (
    (
        (
            SetFillFactor,
            migrations.AlterModelOptions,
            migrations.AlterModelManagers,
        ),
        MigrationEffect.NO_LOCK,
    ),
    ((RemoveIndexConcurrently, RemoveUniqueConstraintWithoutLock, migrations.RemoveIndex), MigrationEffect.SHORT_LOCK),
    ((migrations.RunPython, migrations.RunSQL), MigrationEffect.UNKNOWN),
    # SQLite copies the table for most changes.
    (
        (
            AddIndexConcurrently,
            ValidateConstraint,
            migrations.AddIndex,
            migrations.AddConstraint,
            migrations.RemoveConstraint,
            migrations.AlterUniqueTogether,
            migrations.AddField,
            migrations.AlterField,
            migrations.RemoveField,
        ),
        MigrationEffect.LONG_LOCK,
    ),
)
"""Effects by the class of the operation. The first line that fits counts; other operations lock a table briefly."""


@dataclass(frozen=True)
class TableEffect:
    """The heaviest effect of a migration on one table."""

    table: str
    effect: MigrationEffect


def table_effects(migration: migrations.Migration, state: ProjectState, vendor: str) -> list[TableEffect]:
    """Return the effects on tables that exist before the migration. `state`: the models before it; it is changed."""
    heaviest: dict[str, MigrationEffect] = {}
    created: set[str] = set()
    for operation in _database_operations(migration.operations):
        if isinstance(operation, migrations.CreateModel):
            created.add(operation.name_lower)
        elif _model_name(operation) not in created:
            table, effect = _table(operation, migration.app_label, state), effect_of(operation, vendor)
            heaviest[table] = max(heaviest.get(table, effect), effect, key=list(MigrationEffect).index)
    migration.mutate_state(state, preserve=False)
    return [TableEffect(table, effect) for table, effect in heaviest.items()]


def effect_of(operation: Operation, vendor: str) -> MigrationEffect:
    """Return the effect of an operation on its table."""
    lines = POSTGRESQL if vendor == "postgresql" else SQLITE
    return next((effect for classes, effect in lines if isinstance(operation, classes)), MigrationEffect.SHORT_LOCK)


def _database_operations(operations: Sequence[Operation]) -> Iterator[Operation]:
    for operation in operations:
        if isinstance(operation, migrations.SeparateDatabaseAndState):
            yield from _database_operations(operation.database_operations)
        else:
            yield operation


def _model_name(operation: Operation) -> str:
    name = getattr(operation, "model_name", None) or getattr(operation, "name", None)
    return name.lower() if isinstance(name, str) else ""


def _table(operation: Operation, app_label: str, state: ProjectState) -> str:
    model = state.models.get((app_label, _model_name(operation)))
    return str(model.options.get("db_table") or f"{app_label}_{model.name_lower}") if model else WHOLE_APP


RETRYABLE = {"55P03": "a lock was not available", "40P01": "it was part of a deadlock"}
"""The SQLSTATEs of transactions that another transaction blocked."""

LIMITS = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")

OPEN_TRANSACTIONS = """
    SELECT pid, coalesce(nullif(application_name, ''), backend_type), round(extract(epoch FROM now() - xact_start))
    FROM pg_stat_activity
    WHERE xact_start IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()
    ORDER BY xact_start LIMIT 3
"""


@dataclass(frozen=True)
class LockPolicy:
    """The maximum wait for a lock, and how often and after which pause a migration is repeated."""

    wait_seconds: float
    attempts: int
    pause_seconds: float


def repeat_until_unlocked(
    connection: BaseDatabaseWrapper, policy: LockPolicy, migrate: Callable[[], object], report: Callable[[str], None]
) -> None:
    """Migrate, and repeat that while another transaction blocks it. Migrations that are applied are not repeated."""
    for attempt in range(1, policy.attempts + 1):
        try:
            with limited_lock_waits(connection, policy.wait_seconds):
                migrate()
            return
        except OperationalError as error:
            reason = RETRYABLE.get(getattr(error.__cause__, "sqlstate", ""))
            if reason is None or attempt == policy.attempts:
                raise
            report(
                f"\nThe migration was rolled back, because {reason} within {policy.wait_seconds:g} s. "
                f"{describe_open_transactions(connection)} "
                f"Attempt {attempt + 1} of {policy.attempts} starts in {policy.pause_seconds:g} s."
            )
            time.sleep(policy.pause_seconds)


@contextmanager
def limited_lock_waits(connection: BaseDatabaseWrapper, seconds: float) -> Iterator[None]:
    """Limit the wait for locks. The duration of statements is not limited. Restore the limits of the session."""
    with connection.cursor() as cursor:
        values = dict(zip(LIMITS, (f"{round(seconds * 1000)}ms", "0", "0"), strict=True))
        for name, value in values.items():
            cursor.execute("SELECT set_config(%s, %s, false)", [name, value])
    try:
        yield
    finally:
        if connection.is_usable():
            with connection.cursor() as cursor:
                for name in LIMITS:
                    cursor.execute(f"RESET {name}")


def describe_open_transactions(connection: BaseDatabaseWrapper) -> str:
    """Return a sentence that names the oldest transactions, which probably hold the lock."""
    with connection.cursor() as cursor:
        cursor.execute(OPEN_TRANSACTIONS)
        rows = cursor.fetchall()
    if not rows:
        return "No other transaction is open now."
    return f"Oldest open transactions: {', '.join(f'pid {pid} ({name}, {age} s)' for pid, name, age in rows)}."


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


MIB = 1024 * 1024
LEAST_FREE_BYTES = 512 * MIB
"""The free space below which a server is about to stop: its log and its temporary files need it."""


def check_disks(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield a problem for each folder with too little free space for the migrations or for normal work."""
    copied = copied_tables(connection)
    if connection.vendor == "postgresql":
        yield from describe_server_disk(connection, copied)
    else:
        file = Path(connection.settings_dict["NAME"])
        # SQLite's statistics do not have the size of one table.
        needed = file.stat().st_size if copied and file.exists() else 0
        yield from check_folder(file.parent, needed)
    storages: Any = settings.STORAGES
    options = storages.get("payloads", {}).get("OPTIONS", {})
    # The location in a bucket is no folder.
    if options.get("location") and "bucket_name" not in options:
        yield from check_folder(Path(options["location"]))


def copied_tables(connection: BaseDatabaseWrapper) -> list[str]:
    """Return the names of the tables that unapplied migrations copy or index as a whole."""
    executor = MigrationExecutor(connection)
    try:
        executor.loader.check_consistent_history(connection)
    except InconsistentMigrationHistory:
        # The check of the migrations reports it.
        return []
    effects = [effect for _, effects in pending_effects(executor) for effect in effects]
    tables = {effect.table for effect in effects if effect.effect is MigrationEffect.LONG_LOCK}
    return sorted(table for table in tables if table_size(connection, table) is not None)


def describe_server_disk(connection: BaseDatabaseWrapper, tables: Sequence[str]) -> Iterator[Finding]:
    """Yield a note with the space that migrations need on the database server, whose disk is not visible."""
    sizes = [size.bytes or 0 for table in tables if (size := table_size(connection, table))]
    if sum(sizes) >= MIB:
        text = (
            f"Migrations copy {', '.join(tables)}: the database server needs {sum(sizes) / MIB:,.0f} MB of free space."
        )
        yield Finding(f"{text} This check cannot see its disk.")


def check_folder(folder: Path, needed: int = 0) -> Iterator[Finding]:
    """Yield a problem if a folder has too little free space. `needed`: the bytes that migrations write."""
    if not folder.is_dir():
        return
    free = shutil.disk_usage(folder).free
    if free < needed + LEAST_FREE_BYTES:
        reason = f"migrations need up to {needed / MIB:,.0f} MB, and the server" if needed else "the server"
        yield Finding(
            f"{folder} has {free / MIB:,.0f} MB of free space: {reason} at least {LEAST_FREE_BYTES / MIB:,.0f} MB.",
            is_problem=True,
        )


@dataclass(frozen=True)
class BehaviorChange:
    """A change of what steps do. `text`: completes "step x: …". `applies`: returns True for an affected step."""

    text: str
    applies: Callable[[Mapping[str, Any]], bool]


BEHAVIOR_CHANGES: tuple[BehaviorChange, ...] = ()
"""The changes since the previous release that affect existing definitions. The release notes explain each."""


def check_definitions(changes: Sequence[BehaviorChange] = BEHAVIOR_CHANGES) -> Iterator[Finding]:
    """Yield a problem for each definition of open runs that this version cannot execute, and notes on the others."""
    try:
        yield from [*_check_open_runs(changes), *_check_current_definitions()]
    except DatabaseError:
        yield Finding("Definitions cannot be checked before the migrations: their tables change.")


def _check_open_runs(changes: Sequence[BehaviorChange]) -> Iterator[Finding]:
    rows = Run.objects.open().order_by().values_list("resolved_definition_id").annotate(count=Count("pk"))
    counts = dict(rows.values_list("resolved_definition_id", "count"))
    for hash, count in counts.items():
        row = ResolvedDefinition.objects.filter(pk=hash).first()
        if row is None:
            continue
        runs = f"{count:,} open {'run' if count == 1 else 'runs'} of {row.name} version {row.version}"
        yield from check_document(row.document, runs, changes)


def check_document(document: dict[str, Any], runs: str, changes: Iterable[BehaviorChange]) -> Iterator[Finding]:
    """Yield what this version does differently with a resolved document. `runs`: the words for its open runs."""
    try:
        read_definition(document)
    except Exception as error:
        # Whatever the error is, these runs would fail with it.
        yield Finding(f"This version cannot continue {runs}: {error}", is_problem=True)
        return
    steps = [(spot.ref, spot.step) for spot in walk(document.get("tasks"))]
    for change in changes:
        if refs := [ref for ref, step in steps if change.applies(step)]:
            yield Finding(f"{runs}: step {', '.join(refs[:5])}: {change.text}")


def _check_current_definitions() -> Iterator[Finding]:
    for row in WorkflowDefinition.objects.filter(archived_at=None).order_by("name", "version").iterator():
        if errors := validate_workflow(row.document):
            first = f"{errors[0].path}: {errors[0].message}"
            yield Finding(f"This version refuses to save {row.name} version {row.version} unchanged: {first}")
