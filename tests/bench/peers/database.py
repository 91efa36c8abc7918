"""PostgreSQL servers of the comparison: one for each measured server, so that its cost can be told apart."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.faults.backends import create_database, wait_until
from tests.faults.processes import Member
from tests.free_port import free_port

SETTINGS = {
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "max_connections": "200",
    "checkpoint_timeout": "30min",
    "unix_socket_directories": "",
    "log_min_messages": "fatal",
}
"""Both databases have these settings. Commits are durable (fsync and synchronous_commit are on)."""
INDEX_RECORDS = ("INSERT_LEAF", "INSERT_UPPER", "INSERT_POST", "SPLIT_L", "SPLIT_R")


@dataclass
class Counters:
    """Counters of writes: a position in the write-ahead log, and row changes so far."""

    position: str
    inserted: int
    updated: int
    updated_hot: int
    deleted: int


@dataclass
class Writes:
    """What a load wrote."""

    wal_bytes: float
    page_image_bytes: float
    """The part of the write-ahead log that are images of pages, written after each checkpoint."""
    index_entries: float | None
    inserted: int
    updated: int
    updated_hot: int
    deleted: int


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

    def count_writes(self) -> Counters:
        sums = ", ".join(f"coalesce(sum({name}), 0)::bigint" for name in ("n_tup_ins", "n_tup_upd", "n_tup_hot_upd"))
        [row] = self.query(
            f"SELECT pg_current_wal_lsn()::text, {sums}, coalesce(sum(n_tup_del), 0)::bigint FROM pg_stat_user_tables"
        )
        return Counters(*row)

    def writes_since(self, earlier: Counters) -> Writes:
        """Return what was written since the counters were read."""
        now = self.count_writes()
        [(size,)] = self.query("SELECT pg_wal_lsn_diff(%s, %s)::float8", now.position, earlier.position)
        images, entries = self._read_wal(earlier.position, now.position)
        names = ("inserted", "updated", "updated_hot", "deleted")
        return Writes(size, images, entries, *(getattr(now, name) - getattr(earlier, name) for name in names))

    def _read_wal(self, begin: str, end: str) -> tuple[float, float | None]:
        """Return the bytes of page images, and the number of entries that B-trees received."""
        try:
            self.query("CREATE EXTENSION IF NOT EXISTS pg_walinspect")
            rows = self.query(
                'SELECT "resource_manager/record_type", count, fpi_size FROM pg_get_wal_stats(%s, %s, true)', begin, end
            )
        except psycopg.Error:
            return 0.0, None
        entries = sum(count for name, count, _ in rows if name in {f"Btree/{each}" for each in INDEX_RECORDS})
        return float(sum(size for *_, size in rows)), float(entries)


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
