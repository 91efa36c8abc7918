"""Create a backup while the server works, and restore one.

Until the last step of a restore, the former database stays as it is.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import IO, Any

import orjson
from django.core.management import call_command
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader

from ...access import audit
from ...db.database import transaction
from ...payloads import store as payload_store
from ...utils import clock
from . import contents
from .archive import (
    PAYLOADS,
    Archive,
    ArchiveDamaged,
    ArchiveWriter,
    BackupRefused,
    KeysMissing,
    KeyUses,
    Manifest,
    PayloadInventory,
    RestoreIncomplete,
    TableContent,
    create_archive,
    fingerprints,
    open_archive,
    require_keys,
)
from .targets import PostgresqlTarget, RestoreTarget, SqliteTarget, first_used_table

PAYLOAD_TABLE = "conductor_storedpayload"
Log = Callable[[str], None]


@dataclass(frozen=True)
class BackupOptions:
    """What to write into the archive, and where."""

    path: Path
    with_payload_contents: bool = True


def create_backup(connection: BaseDatabaseWrapper, options: BackupOptions, log: Log) -> Manifest:
    """Write the database as of this moment, and the payloads that it refers to.

    Raises:
        BackupRefused: when the archive cannot be written, or the database or the payloads cannot be read.
    """
    uses = KeyUses()
    with create_archive(options.path) as archive, tempfile.TemporaryFile() as payload_list:
        with contents.consistent_snapshot(connection):
            created_at = clock.now()
            migrations = contents.read_migrations(connection)
            if "conductor" not in migrations:
                raise BackupRefused("The database has no tables of this server. `conductor-app migrate` creates them.")
            log("Reading the tables ...")
            tables = [_dump_table(connection, table, archive, uses) for table in contents.product_tables(migrations)]
            _list_payloads(connection, payload_list)
        payloads = _dump_payload_contents(payload_list, archive, uses, options, log)
        manifest = Manifest(
            version=version("conductor-app"),
            created_at=created_at,
            database=connection.vendor,
            migrations=migrations,
            available_keys=fingerprints(),
            tables=tables,
            payloads=payloads,
            used_keys=dict(uses.counts),
            members=archive.members,
        )
        archive.finish(manifest)
    return manifest


def _dump_table(
    connection: BaseDatabaseWrapper, table: contents.ProductTable, archive: ArchiveWriter, uses: KeyUses
) -> TableContent:
    member = TableContent(table.name, table.columns, 0).member
    with archive.member(member) as writer:
        rows = contents.dump_rows(connection, table, writer, uses)
    return TableContent(table.name, table.columns, rows, contents.read_next_id(connection, table))


def _list_payloads(connection: BaseDatabaseWrapper, file: IO[bytes]) -> None:
    """Write the paths of the complete payloads into a file. The snapshot ends before their contents are read."""
    for path, size, expires_at in contents.read_rows(connection, PAYLOAD_TABLE, ["path", "size", "expires_at"]):
        if size is not None:
            file.write(orjson.dumps([path, expires_at is None], option=orjson.OPT_APPEND_NEWLINE))
    file.seek(0)


def _dump_payload_contents(
    payload_list: IO[bytes], archive: ArchiveWriter, uses: KeyUses, options: BackupOptions, log: Log
) -> PayloadInventory:
    with archive.member(PAYLOADS) as writer:
        if not payload_store.is_storage_configured():
            return PayloadInventory(has_contents=options.with_payload_contents)
        log("Reading the payloads ...")
        return contents.dump_payloads(_payload_rows(payload_list), writer, uses, options.with_payload_contents)


def _payload_rows(payload_list: IO[bytes]) -> Iterator[contents.PayloadRow]:
    for line in payload_list:
        path, is_used = orjson.loads(line)
        yield contents.PayloadRow(path, is_used)


RestoreRunLog = Callable[[str], None]
DAY_MS = 86_400_000
MAX_LISTED = 5


@dataclass(frozen=True)
class RestoreOptions:
    """The archive, and what the operator has permitted."""

    path: Path
    replaces: bool = False
    accepts_missing_keys: bool = False
    only_checks: bool = False


def restore_backup(connection: BaseDatabaseWrapper, options: RestoreOptions, log: RestoreRunLog) -> Manifest:
    """Verify an archive, and replace the database by its content.

    Raises:
        BackupRefused: when the archive, the keys or the database do not permit it. Nothing was changed.
    """
    with open_archive(options.path) as archive:
        log("Verifying the archive ...")
        _verify(archive, options, log)
        if not options.only_checks:
            _restore(connection, archive, options, log)
    return archive.manifest


def _verify(archive: Archive, options: RestoreOptions, log: RestoreRunLog) -> None:
    for check in (archive.verify_signature, lambda: require_keys(archive.manifest.used_keys)):
        try:
            check()
        except KeysMissing as error:
            if not options.accepts_missing_keys:
                raise KeysMissing(f"{error} With --without-keys, such values are restored unreadable.") from None
            log(f"Warning: {error}")
    archive.verify_contents()
    contents.require_known(MigrationLoader(None, replace_migrations=False), archive.manifest.migrations)
    if archive.manifest.payloads.count and not payload_store.is_storage_configured():
        raise BackupRefused("The archive has payloads outside the database. Set PAYLOAD_STORAGE.")
    if archive.manifest.available_keys and not set(archive.manifest.available_keys) & set(fingerprints()):
        log("Warning: this server has none of the former keys. Sessions, tokens and signed links become invalid.")
    if archive.manifest.payloads.count and not archive.manifest.payloads.has_contents:
        _require_listed_payloads(archive)


def _require_listed_payloads(archive: Archive) -> None:
    with archive.open(PAYLOADS) as stream:
        if damaged := list(islice(contents.find_damaged_payloads(contents.PayloadReader(stream)), MAX_LISTED)):
            raise BackupRefused(
                "The archive only lists the payloads, and PAYLOAD_STORAGE does not have them as they were: "
                f"{', '.join(damaged)}. Restore the storage first."
            )


def _restore(connection: BaseDatabaseWrapper, archive: Archive, options: RestoreOptions, log: RestoreRunLog) -> None:
    if not options.replaces and (table := first_used_table(connection)):
        raise BackupRefused(
            f"The database is not empty: {table} has rows. Choose an empty one, or replace its content with --replace."
        )
    is_postgresql = connection.vendor == "postgresql"
    target: RestoreTarget = PostgresqlTarget(connection) if is_postgresql else SqliteTarget(connection)
    payloads = contents.RestoredPayloads([], set())
    with target.exclusive_access():
        try:
            with target.staging():
                _fill(connection, archive, log)
                now = clock.now()
                target.expire_former_payloads(now, now + DAY_MS)
                _record(archive.manifest, options)
                if archive.manifest.payloads.has_contents:
                    log("Writing the payloads ...")
                    with archive.open(PAYLOADS) as stream:
                        contents.restore_payloads(contents.PayloadReader(stream), payloads)
            log("Replacing the database ...")
            target.swap()
        except BaseException:
            payloads.remove_created()
            raise
        if payloads.different:
            _replace_payloads(archive, payloads.different)


def _replace_payloads(archive: Archive, paths: set[str]) -> None:
    """Give payloads of the same path the archived content, now that no row needs the other one."""
    try:
        with archive.open(PAYLOADS) as stream:
            contents.replace_payloads(contents.PayloadReader(stream), paths)
    except BackupRefused as error:
        raise RestoreIncomplete(f"The database is restored, but {error} Repeat the restore with --replace.") from error


def _fill(connection: BaseDatabaseWrapper, archive: Archive, log: RestoreRunLog) -> None:
    """Create the tables of the archived version, insert the rows, and migrate to this version."""
    manifest = archive.manifest
    log("Creating the tables ...")
    contents.apply_migrations(connection, manifest.migrations)
    tables = contents.product_tables(manifest.migrations)
    # Foreign keys are checked when all rows are there: on PostgreSQL at the end of the transaction, on SQLite later.
    with connection.constraint_checks_disabled(), _one_transaction(connection):
        contents.empty_tables(connection, tables)
        by_name = {table.name: table for table in tables}
        for content in manifest.tables:
            if content.rows:
                log(f"Inserting {content.rows:,} rows into {content.name} ...")
            _load(connection, archive, content, by_name)
    log("Migrating to this version ...")
    call_command("migrate", verbosity=0, interactive=False)


def _one_transaction(connection: BaseDatabaseWrapper) -> AbstractContextManager[Any]:
    if connection.vendor == "postgresql":
        return transaction.atomic(using=connection.alias)
    # SQLite would keep the pages of all tables in its journal.
    return nullcontext()


def _load(
    connection: BaseDatabaseWrapper,
    archive: Archive,
    content: TableContent,
    tables: Mapping[str, contents.ProductTable],
) -> None:
    table = tables.get(content.name)
    if table is None or not set(content.columns) <= set(table.columns):
        raise ArchiveDamaged(f"The table {content.name} of the archive does not fit the migrations of the archive.")
    if contents.load_rows(connection, table, content.columns, archive.rows(content)) != content.rows:
        raise ArchiveDamaged(f"The table {content.name} of the archive is incomplete.")
    contents.set_next_id(connection, table, content.next_id)


def _record(manifest: Manifest, options: RestoreOptions) -> None:
    facts = {"archive": options.path.name, "createdAt": manifest.created_at, "version": manifest.version}
    with transaction.atomic():
        audit.record("server", "database", "restore", "conductor-app restore", facts=facts)
