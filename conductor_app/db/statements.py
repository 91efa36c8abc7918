"""SQL for both databases: bulk inserts and updates, and the statements in SQL files.

A statement in a file has a name, named parameters, and the index that serves it. It begins with its comments:

    -- name: due_runs
    -- Find the open runs with a due timer.
    -- index: run_to_wake
    SELECT id FROM conductor_run
    INDEXED BY run_to_wake -- sqlite
    WHERE status IN ('PAUSED', 'RUNNING') AND wake_at <= %(now)s ORDER BY wake_at LIMIT %(limit)s

- `%(now)s` is a parameter. `IN (%(ids)s)` takes a list.
- A line that ends with `-- sqlite` or `-- postgresql` belongs to the statement of that database only.
- `{gates}` inserts a fragment: one of the same file, which begins with `-- fragment: gates`, or one of the module that
  loads the file.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

from django.db import connections, models

from ..settings import conf
from . import pipeline
from .database import alias, connection, transaction

Result = TypeVar("Result")
MAX_BATCH_ROWS = 500
"""The maximum number of rows per statement. Longer lists are split."""
CACHED_SHAPES = 100
"""The number of cached statements, each for one number of rows. The longest have 100 kB or more."""
FOLDER = files("conductor_app")
HEADER = re.compile(r"^ *-- (name|fragment): (\w+)$", re.MULTILINE)
INDEXES = re.compile(r"^ *-- index: (.+)$", re.MULTILINE)
DIALECT = re.compile(r" -- (sqlite|postgresql)$")
DESCRIPTION = re.compile(r"^ *-- (.+)$", re.MULTILINE)
COMMENT = re.compile(r"--.*$")
FRAGMENT = re.compile(r"\{(\w+)\}")
PARAMETER = re.compile(r"(?<=IN \()%\((\w+)\)s(?=\))|%\((\w+)\)s")
LIST = "\0"
"""Stands for a list in a statement, until its length is known."""
CACHED_LENGTHS = 200
"""The number of cached statements with lists, each for one length of its lists."""


class StatementResult(NamedTuple):
    """The number of rows that a statement changed, and the ids that it returned."""

    changed: int
    ids: list[int]


def fetch(sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return all rows of a query."""
    if _bypasses_cursors():
        from . import pipeline

        return pipeline.fetch(sql, params)
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


def fetch_together(queries: Sequence[tuple[str, Sequence[Any]]]) -> list[list[tuple[Any, ...]]]:
    """Return all rows of each query, in one round trip on PostgreSQL."""
    if _bypasses_cursors():
        from . import pipeline

        return pipeline.fetch_together(queries)
    return [fetch(sql, params) for sql, params in queries]


def execute(sql: str, params: Sequence[Any] = ()) -> int:
    """Execute a statement. Returns the number of changed rows."""
    [count] = execute_together([(sql, params)])
    return count


def execute_together(statements: Sequence[tuple[str, Sequence[Any]]]) -> list[int]:
    """Execute the statements in order. Returns the number of rows that each changed."""
    return [result.changed for result in execute_batch(statements)]


def execute_batch(statements: Sequence[tuple[str, Sequence[Any]]]) -> Sequence[StatementResult]:
    """Execute the statements in order, in one round trip if possible. A statement may end with `RETURNING id`."""
    if _bypasses_cursors():
        from . import pipeline

        return [StatementResult(*result) for result in pipeline.execute_batch(statements)]
    return [_execute(sql, params) for sql, params in statements]


def commit_batch(
    statements: Sequence[tuple[str, Sequence[Any]]], queries: Sequence[tuple[str, Sequence[Any]]] = ()
) -> tuple[Sequence[StatementResult], list[list[tuple[Any, ...]]]]:
    """Execute the statements of `execute_batch` and then the queries, and commit, in one round trip on PostgreSQL.

    Returns the results of the statements, and all rows of each query. Nothing may be written in the transaction
    afterwards. Django's own commit at the end of the block then finds no transaction, and runs the hooks.
    """
    results, rows = pipeline.commit_batch(statements, queries)
    return [StatementResult(*result) for result in results], rows


def supports_commit_in_batch() -> bool:
    """Return True if `commit_batch` is available: on PostgreSQL."""
    return _bypasses_cursors()


def is_in_transaction() -> bool:
    """Return True within a transaction."""
    return bool(connection.in_atomic_block)


def execute_in_transaction(work: Callable[[], Result], *, is_one_statement: bool = False) -> Result:
    """Execute work in a transaction, and return its result.

    On SQLite, threads that wait for their turn share a transaction and its commit. Another thread may execute the work,
    in the context of this one; work that is undone because the transaction fails is executed again. `is_one_statement`:
    the work needs no transaction if it shares none.

    Raises:
        DatabaseError: when the transaction fails. Other exceptions are those of the work, which is undone then.
    """
    database: Any = connections[alias()]
    if database.vendor == "sqlite" and not database.in_atomic_block:
        # Another Django project may use Django's own backend.
        share = getattr(database, "share_transaction", None)
        if share is not None:
            return share(work, is_one_statement)
    with transaction.atomic():
        return work()


def _execute(sql: str, params: Sequence[Any]) -> StatementResult:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        ids = [row[0] for row in cursor.fetchall()] if cursor.description else []
        return StatementResult(cursor.rowcount, ids)


def _bypasses_cursors() -> bool:
    """Return True if statements bypass Django's cursors: on PostgreSQL, unless queries are logged or wrapped."""
    # Each attribute of `connection` finds the connection of the thread again.
    database = connections[alias()]
    return (
        database.vendor == "postgresql"
        and not (database.queries_logged or database.execute_wrappers)
        and _supports_pipeline()
    )


@cache
def _supports_pipeline() -> bool:

    return pipeline.is_supported()


def insert_statements(
    model: type[models.Model], columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> Iterable[tuple[str, list[Any]]]:
    """Yield the statements that insert rows, many rows per statement."""
    for chunk in _chunks(rows):
        yield _insert_sql(model._meta.db_table, tuple(columns), len(chunk)), [value for row in chunk for value in row]


def update_statements(
    model: type[models.Model], columns: Sequence[str], rows: Sequence[tuple[str, str, Sequence[Any]]]
) -> Iterable[tuple[str, list[Any], int]]:
    """Yield the statements that update rows, each with the number of rows that it must change.

    `rows`: for each row its id, its expected status, and the new values.
    """
    table, columns = model._meta.db_table, tuple(columns)
    if len(rows) == 1:
        [(id, status, values)] = rows
        yield _update_one_sql(table, columns), [*values, id, status], 1
        return
    types = tuple(_cast(model, column) for column in columns)
    for chunk in _chunks(rows):
        sql = _update_sql(table, columns, types, len(chunk))
        yield sql, [value for id, status, values in chunk for value in (id, status, *values)], len(chunk)


def placeholders(values: Sequence[Any]) -> str:
    """Return one placeholder per value, for IN (…)."""
    return ", ".join(["%s"] * len(values))


def serialize(name: str) -> None:
    """Take the advisory lock with this name until the transaction ends."""
    if connection.vendor == "postgresql":
        execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])


def _chunks(rows: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (rows[start : start + MAX_BATCH_ROWS] for start in range(0, len(rows), MAX_BATCH_ROWS))


@lru_cache(CACHED_SHAPES)
def _insert_sql(table: str, columns: tuple[str, ...], count: int) -> str:
    row = f"({', '.join(['%s'] * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * count)}"


@cache
def _update_one_sql(table: str, columns: tuple[str, ...]) -> str:
    return f"UPDATE {table} SET {', '.join(f'{column} = %s' for column in columns)} WHERE id = %s AND status = %s"


@lru_cache(CACHED_SHAPES)
def _update_sql(table: str, columns: tuple[str, ...], types: tuple[str, ...], count: int) -> str:
    pairs = ", ".join(f"{column} = v.column{number}" for number, column in enumerate(columns, 3))
    row = f"(%s, %s, {', '.join(f'CAST(%s AS {kind})' for kind in types)})"
    return (
        f"UPDATE {table} SET {pairs} FROM (VALUES {', '.join([row] * count)}) AS v "
        f"WHERE {table}.id = v.column1 AND {table}.status = v.column2"
    )


@cache
def _cast(model: type[models.Model], column: str) -> str:
    kind = model._meta.get_field(column.removesuffix("_id") if column == "run_id" else column).get_internal_type()
    return {
        "BigIntegerField": "bigint",
        "MomentField": "bigint",
        "IntegerField": "integer",
        "SmallIntegerField": "integer",
        "BooleanField": "boolean",
    }.get(kind, "text")


class Inserts(Protocol):
    """What collects the rows that a decision inserts."""

    def insert(self, model: type[models.Model], columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add an insert of rows."""


@contextmanager
def read_snapshot() -> Iterator[None]:
    """Run all SELECTs of a block, or of a decorated function, in one snapshot, which the first of them takes.

    Outside a transaction, each SELECT sees the state at its start: a response that needs two may contain a run before
    a change and its tasks after it.
    It has no effect inside an open transaction, and so inside another snapshot. A write inside a snapshot is an error,
    on SQLite and on PostgreSQL. A single SELECT needs no snapshot, which costs PostgreSQL two round trips (BEGIN,
    COMMIT). Do not wait inside a snapshot, and do not return lazy readers, such as streams, from it.
    """
    if connection.in_atomic_block:
        with _sqlite_query_only() if conf.checks_read_snapshots else nullcontext():
            yield
        return
    read_only = _postgresql_read_only if connection.vendor == "postgresql" else _sqlite_query_only
    with read_only(), transaction.atomic():
        yield


@contextmanager
def _postgresql_read_only() -> Iterator[None]:
    """Begin the next transactions REPEATABLE READ READ ONLY, which cannot cause serialization failures."""
    from psycopg import IsolationLevel

    connection.ensure_connection()
    raw_connection: Any = connection.connection
    level = raw_connection.isolation_level
    raw_connection.isolation_level, raw_connection.read_only = IsolationLevel.REPEATABLE_READ, True
    try:
        yield
    finally:
        if connection.connection is raw_connection and not raw_connection.closed:
            raw_connection.isolation_level, raw_connection.read_only = level, None
        else:
            # Django has dropped the connection after an error. The pool must not reuse it in this state.
            raw_connection.close()


@contextmanager
def _sqlite_query_only() -> Iterator[None]:
    """Begin the next transactions deferred and read-only, so that they neither wait for writers nor block them."""
    if connection.vendor != "sqlite":
        yield
        return
    connection.ensure_connection()
    raw_connection: Any = connection.connection
    # The stubs lack `transaction_mode` of the SQLite backend.
    backend: Any = connection
    mode, was_query_only = backend.transaction_mode, raw_connection.execute("PRAGMA query_only").fetchone()[0]
    backend.transaction_mode = "DEFERRED"
    raw_connection.execute("PRAGMA query_only = ON")
    try:
        yield
    finally:
        backend.transaction_mode = mode
        if connection.connection is raw_connection and not was_query_only:
            raw_connection.execute("PRAGMA query_only = OFF")


class NamedStatement:
    """A statement of both databases.

    `indexes`: the names of the indexes that serve it on PostgreSQL, or why it needs none.
    """

    def __init__(self, source: str, fragments: Mapping[str, str] = MappingProxyType({})) -> None:
        header, indexes = HEADER.search(source), INDEXES.search(source)
        self.name = header[2] if header else ""
        self.indexes = indexes[1] if indexes else ""
        self._source = source
        self._fragments = fragments

    @property
    def description(self) -> str:
        """Return the comment that says what the statement does."""
        return " ".join(DESCRIPTION.findall(HEADER.sub("", self._source).split("-- index:")[0]))

    def bind(self, **values: Any) -> tuple[str, Sequence[Any]]:
        """Return the statement for the database with `%s` for its parameters, and their values in that order."""
        sql, names, lists, values_of = self._positional
        if not lists:
            return sql, values_of(values)
        params: list[Any] = []
        for name in names:
            if name in lists:
                params += values[name]
            else:
                params.append(values[name])
        return _expand_lists(sql, tuple([len(values[name]) for name in lists])), params

    def text(self, vendor: str) -> str:
        """Return the statement of a database, with fragments and with the names of its parameters."""
        return _compose(self._source, self._fragments, vendor)

    def psql(self) -> str:
        r"""Return the statement for `psql`, whose command `\set queue orders` sets the parameter `queue`."""
        return PARAMETER.sub(lambda match: f":'{match[1] or match[2]}'", self.text("postgresql")) + ";"

    @cached_property
    def _positional(self) -> tuple[str, tuple[str, ...], tuple[str, ...], Callable[[Mapping[str, Any]], Sequence[Any]]]:
        """The statement in one line, the names of its parameters, those of its lists, and the getter of the values."""
        sql = re.sub(r"\s+", " ", self.text(connection.vendor)).replace("( ", "(").replace(" )", ")")
        found = list(PARAMETER.finditer(sql))
        names = tuple(match[1] or match[2] for match in found)
        lists = tuple(match[1] for match in found if match[1])
        # A getter of one name would return its value alone.
        getter = itemgetter(*names) if len(names) > 1 else lambda values: [values[name] for name in names]
        return PARAMETER.sub(lambda match: LIST if match[1] else "%s", sql), names, lists, getter


class NamedStatements(dict[str, NamedStatement]):
    """The statements of a file by name, and its fragments."""

    def __init__(self, source: str, fragments: Mapping[str, str]) -> None:
        parts = HEADER.split(source)[1:]
        blocks = list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))
        self.fragments = dict(fragments) | {name: text for kind, name, text in blocks if kind == "fragment"}
        super().__init__(
            (name, NamedStatement(f"-- name: {name}{text}", self.fragments))
            for kind, name, text in blocks
            if kind == "name"
        )


def load_statements(name: str, **fragments: str) -> NamedStatements:
    """Return the statements of a file, such as `tasks/claims`. `fragments`: texts that they insert by name."""
    return NamedStatements((FOLDER / f"{name}.sql").read_text(), fragments)


def _compose(source: str, fragments: Mapping[str, str], vendor: str) -> str:
    lines = []
    for line in source.splitlines():
        dialect = DIALECT.search(line)
        text = COMMENT.sub("", line).rstrip()
        if text and (dialect is None or dialect[1] == vendor):
            lines.append(FRAGMENT.sub(lambda match: _compose(fragments[match[1]], fragments, vendor), text))
    return "\n".join(lines)


@lru_cache(CACHED_LENGTHS)
def _expand_lists(sql: str, lengths: tuple[int, ...]) -> str:
    first, *parts = sql.split(LIST)
    return first + "".join(", ".join(["%s"] * length) + part for length, part in zip(lengths, parts, strict=True))
