"""Whether the disks have room for the migrations of an upgrade."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.exceptions import InconsistentMigrationHistory
from django.db.migrations.executor import MigrationExecutor

from conductor_app.management.migration_effects import MigrationEffect
from conductor_app.management.upgrade_check import Finding, pending_effects, table_size

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
