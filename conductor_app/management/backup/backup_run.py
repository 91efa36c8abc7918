"""Create a backup while the server works."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO

import orjson
from django.db.backends.base.base import BaseDatabaseWrapper

from conductor_app import blob_storage, clock

from .archive_keys import KeyUses, fingerprints
from .archive_writer import ArchiveWriter, create_archive
from .errors import BackupRefused
from .manifest import PAYLOADS, Manifest, PayloadInventory, TableContent
from .payload_contents import PayloadRow, dump_payloads
from .schema_state import ProductTable, product_tables, read_migrations
from .table_rows import consistent_snapshot, dump_rows, read_next_id, read_rows

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
        with consistent_snapshot(connection):
            created_at = clock.now()
            migrations = read_migrations(connection)
            if "conductor" not in migrations:
                raise BackupRefused("The database has no tables of this server. `conductor-app migrate` creates them.")
            log("Reading the tables ...")
            tables = [_dump_table(connection, table, archive, uses) for table in product_tables(migrations)]
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
    connection: BaseDatabaseWrapper, table: ProductTable, archive: ArchiveWriter, uses: KeyUses
) -> TableContent:
    member = TableContent(table.name, table.columns, 0).member
    with archive.member(member) as writer:
        rows = dump_rows(connection, table, writer, uses)
    return TableContent(table.name, table.columns, rows, read_next_id(connection, table))


def _list_payloads(connection: BaseDatabaseWrapper, file: IO[bytes]) -> None:
    """Write the paths of the complete payloads into a file. The snapshot ends before their contents are read."""
    for path, size, expires_at in read_rows(connection, PAYLOAD_TABLE, ["path", "size", "expires_at"]):
        if size is not None:
            file.write(orjson.dumps([path, expires_at is None], option=orjson.OPT_APPEND_NEWLINE))
    file.seek(0)


def _dump_payload_contents(
    payload_list: IO[bytes], archive: ArchiveWriter, uses: KeyUses, options: BackupOptions, log: Log
) -> PayloadInventory:
    with archive.member(PAYLOADS) as writer:
        if not blob_storage.is_storage_configured():
            return PayloadInventory(has_contents=options.with_payload_contents)
        log("Reading the payloads ...")
        return dump_payloads(_payload_rows(payload_list), writer, uses, options.with_payload_contents)


def _payload_rows(payload_list: IO[bytes]) -> Iterator[PayloadRow]:
    for line in payload_list:
        path, is_used = orjson.loads(line)
        yield PayloadRow(path, is_used)
