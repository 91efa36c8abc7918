"""Servers that benchmarks measure: web processes, a Celery worker and beat, with a database of their own.

`postgresql_server` and `sqlite_server` are for tests that need a whole server.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from qa.faults.backends import Redis
from tests.free_port import free_port

from .client import Client
from .database import Database, start_database
from .processes import cpu_seconds, peak_mb, pss_mb
from .standalone import CLIENT_ID, KEY

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60
CLUSTER, EMBEDDED = "cluster", "embedded"
"""The profiles: PostgreSQL with Redis, and SQLite."""


class NotAvailable(Exception):
    """A program cannot run on this machine. The message says what is missing."""


@dataclass(frozen=True)
class Source:
    """The code whose server is started, and the file that receives its output. Without a file, it prints."""

    root: Path = ROOT
    python: str = sys.executable
    log: Path | None = None

    @classmethod
    def named(cls, name: str, folder: Path) -> "Source":
        """Return the code of another checkout, or of a commit, which is copied into the folder.

        A checkout has the packages of its `.venv`. A commit has the packages of this environment.

        Raises:
            NotAvailable: there is no such folder, and no such commit.
        """
        if (root := Path(name).resolve()).is_dir():
            python = root / ".venv/bin/python"
            return cls(root, str(python) if python.exists() else sys.executable)
        archive = folder.with_suffix(".tar")
        command = ["git", "archive", f"--output={archive}", name]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotAvailable(f"BASE={name} is neither a folder nor a commit. {done.stderr.strip()}")
        shutil.unpack_archive(archive, folder)
        return cls(folder)

    def commands(self, port: int) -> dict[str, list[str]]:
        """Return the commands of the processes by name."""
        has_module = (self.root / "conductor_app/processes/gunicorn_config.py").exists()
        config = "processes.gunicorn_config" if has_module else "settings.gunicorn"  # The name in earlier commits.
        celery = [self.python, "-m", "celery", "-A", "conductor_app"]
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        return {
            "web": [self.python, "-m", "gunicorn", "-c", f"python:conductor_app.{config}", "conductor_app.wsgi"],
            "worker": [*celery, "worker", "--loglevel=WARNING", *quiet],
            "beat": [*celery, "beat", "--loglevel=WARNING", "-s", f"/tmp/beat-{port}"],
        }


@dataclass
class Server:
    """A running server and its processes."""

    name: str
    url: str
    token: str = ""
    key: tuple[str, str] = ("", "")
    """The access key and its secret, from which SDKs get tokens. Without a key, the server requires no token."""
    profile: str = CLUSTER
    environment: dict[str, str] = field(default_factory=dict)
    parts: dict[str, int] = field(default_factory=dict)
    """The process of each part, with descendants: web, worker, beat, Redis, PostgreSQL; or JVM, PostgreSQL."""
    database: Database | None = None

    def cpu_seconds(self) -> dict[str, float]:
        """Return the CPU time of each part so far."""
        return {name: cpu_seconds(pid) for name, pid in self.parts.items()}

    def pss_mb(self) -> dict[str, float]:
        """Return the memory of each part."""
        return {name: pss_mb(pid) for name, pid in self.parts.items()}

    def web_peak_mb(self) -> float:
        """Return the peak memory of the largest web process."""
        return peak_mb(self.parts["web"])

    @property
    def client(self) -> Client:
        """Return a new connection."""
        return Client(self.url, self.token)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a folder that other users can read: PostgreSQL runs as another user if root runs the benchmark."""
    with tempfile.TemporaryDirectory(prefix="conductor-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@contextmanager
def postgresql_server(web_workers: int) -> Iterator[Server]:
    """Start the cluster profile."""
    with temporary_folder() as folder, start_server(CLUSTER, folder, web_workers) as server:
        yield server


@contextmanager
def sqlite_server(web_workers: int) -> Iterator[Server]:
    """Start the embedded profile."""
    with temporary_folder() as folder, start_server(EMBEDDED, folder, web_workers) as server:
        yield server


@contextmanager
def start_server(
    profile: str, folder: Path, web_workers: int, name: str = "this server", source: Source | None = None
) -> Iterator[Server]:
    """Create a database, and start web processes, a Celery worker and beat. Callers of the cluster have a token."""
    source, port = source or Source(), free_port()
    with ExitStack() as stack:
        environment = {"DJANGO_SETTINGS_MODULE": f"conductor_app.settings.{profile}"}
        server = Server(name, f"http://127.0.0.1:{port}/api", profile=profile)
        if profile == CLUSTER:
            server.database = stack.enter_context(start_database(folder))
            redis = Redis(folder, folder / "redis.log")
            stack.callback(redis.member.terminate)
            redis.start()
            environment |= {"DATABASE_URL": server.database.url, "REDIS_URL": redis.address()}
            environment |= {"SECRET_KEY": "bench" * 10, "HTTPS": "0", "ALLOWED_HOSTS": "127.0.0.1"}
            server.parts = {"Redis": redis.member.pid, "PostgreSQL": server.database.pid}
        else:
            environment |= {"VAR_DIR": str(folder)}
        environment |= {"TASKCLUSTER_ROOT_CLIENT_ID": CLIENT_ID, "TASKCLUSTER_ROOT_ACCESS_TOKEN": KEY}
        environment |= {"HOST": "127.0.0.1", "PORT": str(port), "WEB_WORKERS": str(web_workers)}
        server.environment = os.environ | environment | {"LOG_LEVEL": "WARNING"}
        manage(server, source, "migrate", "--verbosity=0")
        processes = [_spawn(command, server, source) for command in source.commands(port).values()]
        stack.callback(_stop, processes)
        server.parts = dict(zip(source.commands(port), [each.pid for each in processes], strict=True)) | server.parts
        _wait_for(server)
        if profile == CLUSTER:
            _, key, _, secret = manage(server, source, "create_access_key", "bench").split()
            status, body = server.client.post("/token", {"keyId": key, "keySecret": secret})
            assert status == 200, body
            server.key, server.token = (key, secret), orjson.loads(body)["token"]
        yield server


def manage(server: Server, source: Source, *arguments: str) -> str:
    """Run a command of the server, and return what it prints.

    Raises:
        SystemExit: the command failed.
    """
    command = [source.python, "manage.py", *arguments]
    done = subprocess.run(command, cwd=source.root, env=server.environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{arguments[0]} failed in {source.root}: {done.stderr[-2000:]}")
    return done.stdout


def _spawn(command: list[str], server: Server, source: Source) -> subprocess.Popen:
    """Start a process in a session of its own: Ctrl-C interrupts only the benchmark, which stops its servers."""
    with source.log.open("a") if source.log else nullcontext() as output:
        return subprocess.Popen(
            command,
            cwd=source.root,
            env=server.environment,
            start_new_session=True,
            stdout=output,
            stderr=subprocess.STDOUT if output else None,
        )


def _stop(processes: list[subprocess.Popen]) -> None:
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        process.wait(30)


def _wait_for(server: Server) -> None:
    ends_at = time.monotonic() + START_SECONDS
    while time.monotonic() < ends_at:
        try:
            if server.client.get("/health")[0] == 200:
                return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"The server did not answer within {START_SECONDS} s.")
