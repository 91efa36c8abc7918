"""The contents of an archive: tables at any state of the migrations, and payloads.

Rows are portable values, the same on SQLite and PostgreSQL; one at a time is in memory. The record of a payload is a
line of JSON with the path, then chunks with their length in four bytes, an empty chunk, and the SHA-256 digest of the
content. A record of an archive without contents has no chunks, but the digest.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import IO, Any

import orjson
from django.core.files.base import File
from django.db import DataError, IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.models import DateTimeField, Model

from ...core import errors
from ...db.database import transaction
from ...payloads import store as payload_store
from ...processes.upgrade_check import describe_outdated
from .archive import (
    SEALED_COLUMN,
    ArchiveDamaged,
    BackupRefused,
    KeyUses,
    MemberWriter,
    PayloadInventory,
    StreamKeyUses,
)

MIGRATIONS_TABLE = "django_migrations"


@dataclass(frozen=True)
class ProductTable:
    """A table of this server, as its models describe it."""

    name: str
    columns: list[str]
    time_columns: frozenset[str]
    sealed_columns: frozenset[str]
    id_column: str | None
    """The column with a sequence, None if there is none."""


def read_migrations(connection: BaseDatabaseWrapper) -> dict[str, list[str]]:
    """Return the names of the applied migrations of each app."""
    by_app: dict[str, list[str]] = {}
    for app, name in sorted(MigrationLoader(connection).applied_migrations):
        by_app.setdefault(app, []).append(name)
    return by_app


def product_tables(migrations: Mapping[str, list[str]]) -> list[ProductTable]:
    """Return the tables of the models at this state of the migrations."""
    loader = MigrationLoader(None, replace_migrations=False)
    keys = require_known(loader, migrations)
    apps = loader.project_state(keys).apps
    models = [model for model in apps.get_models(include_auto_created=True) if model._meta.managed]
    return sorted((_product_table(model) for model in models if not model._meta.proxy), key=lambda table: table.name)


def require_known(loader: MigrationLoader, migrations: Mapping[str, list[str]]) -> list[tuple[str, str]]:
    """Return the keys of the migrations."""
    keys = [(app, name) for app, names in migrations.items() for name in names]
    replaced = {key for migration in loader.disk_migrations.values() for key in migration.replaces}
    if unknown := sorted(set(keys) - set(loader.disk_migrations) - replaced):
        listed = ", ".join(f"{app}.{name}" for app, name in unknown[:5])
        raise BackupRefused(
            f"The database has migrations that this version does not have: {listed}. Use the version that applied "
            "them, or a newer one."
        )
    if refusal := describe_outdated(loader, keys):
        raise BackupRefused(refusal)
    return [key for key in keys if key in loader.graph.nodes]


def apply_migrations(connection: BaseDatabaseWrapper, migrations: Mapping[str, list[str]]) -> None:
    """Apply exactly these migrations to an empty database."""
    executor = MigrationExecutor(connection)
    graph = executor.loader.graph
    keys = set(require_known(executor.loader, migrations))
    followed = {parent.key for key in keys for parent in graph.node_map[key].parents if parent.key[0] == key[0]}
    executor.migrate(sorted(keys - followed))


def _product_table(model: type[Model]) -> ProductTable:
    fields = {str(field.column): field for field in model._meta.local_concrete_fields}
    key = model._meta.pk
    return ProductTable(
        name=model._meta.db_table,
        columns=list(fields),
        time_columns=frozenset(column for column, field in fields.items() if isinstance(field, DateTimeField)),
        sealed_columns=frozenset(
            column
            for column, field in fields.items()
            if SEALED_COLUMN.fullmatch(column) and field.get_internal_type() == "TextField"
        ),
        id_column=key.column if key is not None and key.get_internal_type().endswith("AutoField") else None,
    )


ROW_OPTIONS = orjson.OPT_NAIVE_UTC | orjson.OPT_APPEND_NEWLINE


@contextmanager
def consistent_snapshot(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Read the database as of one moment in this block. Writers are not blocked."""
    if connection.vendor == "postgresql":
        with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute("SET LOCAL statement_timeout = 0")
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            yield
        return
    with connection.cursor() as cursor:
        # Not `atomic`, which takes the lock of writers. The first read begins the snapshot of the log.
        cursor.execute("BEGIN DEFERRED")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")


def dump_rows(connection: BaseDatabaseWrapper, table: ProductTable, writer: MemberWriter, uses: KeyUses) -> int:
    """Write the rows of a table as lines of JSON. Returns their number."""
    sealed = [index for index, column in enumerate(table.columns) if column in table.sealed_columns]
    count = 0
    for row in read_rows(connection, table.name, table.columns):
        line = orjson.dumps(row, default=str, option=ROW_OPTIONS)
        for index in sealed:
            uses.count_in_column(row[index])
        uses.count_in_text(line)
        writer.write(line)
        count += 1
    return count


def read_rows(connection: BaseDatabaseWrapper, table: str, columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    """Yield the values of these columns of each row."""
    query = f"SELECT {_names(connection, columns)} FROM {connection.ops.quote_name(table)}"
    with connection.cursor() as cursor, connection.wrap_database_errors:
        if connection.vendor != "postgresql":
            yield from cursor.execute(query)
            return
        cursor.execute(f"{query} LIMIT 0")
        types = [column.type_code for column in cursor.description]
        with cursor.copy(f"COPY ({query}) TO STDOUT") as copy:
            copy.set_types(types)
            yield from copy.rows()


def empty_tables(connection: BaseDatabaseWrapper, tables: Sequence[ProductTable]) -> None:
    """Delete the rows that migrations have inserted. Foreign keys are not checked."""
    names = [connection.ops.quote_name(table.name) for table in tables]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"TRUNCATE {', '.join(names)}")
            return
        for name in names:
            cursor.execute(f"DELETE FROM {name}")


def load_rows(
    connection: BaseDatabaseWrapper, table: ProductTable, columns: Sequence[str], rows: Iterable[list[Any]]
) -> int:
    """Insert rows into an empty table. Returns their number."""
    target = f"{connection.ops.quote_name(table.name)} ({_names(connection, columns)})"
    counted = _Counted(rows)
    try:
        with (
            transaction.atomic(using=connection.alias),
            connection.cursor() as cursor,
            # The methods of the database's own module, which are called here, raise its own errors.
            connection.wrap_database_errors,
        ):
            if connection.vendor == "postgresql":
                with cursor.copy(f"COPY {target} FROM STDIN") as copy:
                    for row in counted:
                        copy.write_row(row)
            else:
                _insert(cursor, target, _sqlite_rows(table, columns, counted))
    except (DataError, IntegrityError) as error:
        # The full text of the error would contain the row.
        reason = str(error).partition("\n")[0]
        raise BackupRefused(f"Row {counted.count:,} of {table.name} is refused by the database: {reason}") from error
    return counted.count


def _names(connection: BaseDatabaseWrapper, columns: Sequence[str]) -> str:
    return ", ".join(map(connection.ops.quote_name, columns))


class _Counted:
    def __init__(self, rows: Iterable[list[Any]]) -> None:
        self._rows, self.count = rows, 0

    def __iter__(self) -> Iterator[list[Any]]:
        for row in self._rows:
            self.count += 1
            yield row


def _sqlite_rows(table: ProductTable, columns: Sequence[str], rows: Iterable[list[Any]]) -> Iterator[list[Any]]:
    """Yield rows with times in the format of Django's SQLite backend."""
    times = [index for index, column in enumerate(columns) if column in table.time_columns]
    for row in rows:
        for index in times:
            if row[index] is not None:
                row[index] = row[index].replace("T", " ").removesuffix("+00:00")
        yield row


def _insert(cursor: Any, target: str, rows: Iterable[list[Any]]) -> None:
    iterator = iter(rows)
    for first in iterator:
        # The connection of the database's own module: Django's cursor would copy all rows into a list.
        places = ", ".join("?" * len(first))
        cursor.connection.executemany(f"INSERT INTO {target} VALUES ({places})", _chain(first, iterator))


def _chain(first: list[Any], rest: Iterator[list[Any]]) -> Iterator[list[Any]]:
    yield first
    yield from rest


def read_next_id(connection: BaseDatabaseWrapper, table: ProductTable) -> int | None:
    """Return the next value of the table's sequence, None if it has no sequence or has issued no value."""
    if table.id_column is None:
        return None
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            if (sequence := _sequence(cursor, connection, table)) is None:
                return None
            cursor.execute(f"SELECT last_value + 1 FROM {sequence} WHERE is_called")
        else:
            cursor.execute("SELECT seq + 1 FROM sqlite_sequence WHERE name = %s", [table.name])
        found = cursor.fetchone()
    return found[0] if found else None


def set_next_id(connection: BaseDatabaseWrapper, table: ProductTable, next_id: int | None) -> None:
    """Let the table's sequence continue with this value."""
    if table.id_column is None or next_id is None:
        return
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            if sequence := _sequence(cursor, connection, table):
                cursor.execute("SELECT setval(%s::regclass, %s, false)", [sequence, next_id])
        else:
            cursor.execute("DELETE FROM sqlite_sequence WHERE name = %s", [table.name])
            cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [table.name, next_id - 1])


def _sequence(cursor: Any, connection: BaseDatabaseWrapper, table: ProductTable) -> str | None:
    quoted = connection.ops.quote_name(table.name)
    cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", [quoted, table.id_column])
    sequence: str | None = cursor.fetchone()[0]
    return sequence


LENGTH_BYTES, DIGEST_BYTES = 4, 32
MEMORY_BYTES = 8 * 1024 * 1024
"""The size from which a content is restored through a temporary file."""


@dataclass(frozen=True)
class PayloadRow:
    """A payload that the database refers to. `is_used`: a run needs it, so that it does not expire."""

    path: str
    is_used: bool


def dump_payloads(
    rows: Iterable[PayloadRow], writer: MemberWriter, uses: KeyUses, has_contents: bool
) -> PayloadInventory:
    """Write a record for each payload."""
    count = size = missing = 0
    for row in rows:
        try:
            chunks = payload_store.stream_payload(row.path)
        except errors.StorageFileMissing:
            # It has expired, or its run was deleted after the snapshot.
            missing += row.is_used
            continue
        except errors.StorageUnavailable as error:
            raise BackupRefused(f"The payload {row.path} cannot be read: {error}") from error
        count += 1
        size += _dump_payload(row.path, chunks, writer, StreamKeyUses(uses) if has_contents else None)
    return PayloadInventory(count, size, missing, has_contents)


def _dump_payload(path: str, chunks: Iterable[bytes], writer: MemberWriter, key_uses: StreamKeyUses | None) -> int:
    writer.write(orjson.dumps({"path": path}, option=orjson.OPT_APPEND_NEWLINE))
    digest, size = sha256(), 0
    for chunk in _read_chunks(path, chunks):
        digest.update(chunk)
        size += len(chunk)
        if key_uses is not None:
            key_uses.count(chunk)
            writer.write(len(chunk).to_bytes(LENGTH_BYTES, "big"))
            writer.write(chunk)
    writer.write(bytes(LENGTH_BYTES))
    writer.write(digest.digest())
    return size


def _read_chunks(path: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    try:
        yield from filter(None, chunks)
    except Exception as error:
        raise BackupRefused(f"The payload {path} cannot be read: {type(error).__name__}: {error}") from error


class PayloadReader:
    """The records of an archive, one after another. Read or skip the content of each before the next."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.digest = b""

    def paths(self) -> Iterator[str]:
        """Yield the path of each record."""
        while line := self._stream.readline():
            yield orjson.loads(line)["path"]

    def chunks(self) -> Iterator[bytes]:
        """Yield the content of the current record. Afterwards, `digest` is its digest."""
        while length := int.from_bytes(self._read(LENGTH_BYTES), "big"):
            yield self._read(length)
        self.digest = self._read(DIGEST_BYTES)

    def _read(self, length: int) -> bytes:
        content = self._stream.read(length)
        if len(content) != length:
            raise ArchiveDamaged("The archive ends within a payload.")
        return content


@dataclass
class RestoredPayloads:
    """The payloads that a restore has handled. `created`: paths that the storage did not have before."""

    created: list[str]
    different: set[str]

    def remove_created(self) -> None:
        """Delete the created payloads after a failed restore."""
        for path in self.created:
            try:
                payload_store.delete_payload(path)
            except errors.StorageUnavailable:
                return


def restore_payloads(reader: PayloadReader, restored: RestoredPayloads) -> None:
    """Store the payloads that the storage does not have. Those with another content are only listed."""
    try:
        for path in reader.paths():
            with tempfile.SpooledTemporaryFile(MEMORY_BYTES) as content:
                digest = _spool(reader.chunks(), content)
                if digest != reader.digest:
                    raise ArchiveDamaged(f"The payload {path} of the archive is damaged.")
                if not payload_store.has_payload(path):
                    restored.created.append(path)
                    _store(path, content)
                elif _stored_digest(path) != digest:
                    restored.different.add(path)
    except errors.StorageUnavailable as error:
        raise BackupRefused(f"The payload storage cannot be used: {error}") from error


def replace_payloads(reader: PayloadReader, paths: set[str]) -> None:
    """Replace the content of these payloads by that of the archive."""
    try:
        for path in reader.paths():
            with tempfile.SpooledTemporaryFile(MEMORY_BYTES) as content:
                _spool(reader.chunks(), content)
                if path in paths:
                    payload_store.delete_payload(path)
                    _store(path, content)
    except errors.StorageUnavailable as error:
        raise BackupRefused(f"a payload could not be replaced: {error}.") from error


def find_damaged_payloads(reader: PayloadReader) -> Iterator[str]:
    """Yield the paths of listed payloads that the storage does not have, or has with another content."""
    try:
        for path in reader.paths():
            for _ in reader.chunks():
                pass
            if not payload_store.has_payload(path) or _stored_digest(path) != reader.digest:
                yield path
    except errors.StorageUnavailable as error:
        raise BackupRefused(f"The payload storage cannot be used: {error}") from error


def _spool(chunks: Iterable[bytes], content: Any) -> bytes:
    digest = sha256()
    for chunk in chunks:
        digest.update(chunk)
        content.write(chunk)
    content.seek(0)
    return digest.digest()


def _store(path: str, content: Any) -> None:
    size = content.seek(0, 2)
    content.seek(0)
    file = File(content, name=path)
    file.size = size
    payload_store.put_payload(path, file)


def _stored_digest(path: str) -> bytes:
    digest = sha256()
    for chunk in payload_store.stream_payload(path):
        digest.update(chunk)
    return digest.digest()
