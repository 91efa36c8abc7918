"""The servers that faults are injected into: the cluster profile and the embedded profile."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import orjson

from tests.free_port import free_port

from . import product_hooks
from .backends import Disk, PostgreSQL, Redis, wait_until
from .history import History
from .processes import CHECK_SECONDS, ROOT, Member, process_tree, restart_ended
from .proxy import Proxy, ProxyThread

START_SECONDS = 90.0
PROBE_SECONDS = 2.0
MANAGE = (sys.executable, "-W", "ignore", "manage.py")
PYTHON = (sys.executable, "-W", "ignore", "-m")
GUNICORN = (*PYTHON, "gunicorn", "-c", "python:conductor_app.processes.gunicorn_config", "conductor_app.wsgi")
CELERY = (*PYTHON, "celery", "-A", "conductor_app")
CREATE_SCHEMA = "from django.core.management import call_command; call_command('migrate', verbosity=0)"
Pids = Callable[[], list[int]]


class ServerUnderTest(ABC):
    """A server, its processes and everything between them that can fail.

    `members`: the processes that are restarted when they end. `listener_url`: the address to which the server sends the
    status of workflows.
    """

    profile = ""

    def __init__(self, folder: Path, history: History, listener_url: str) -> None:
        self.folder, self.history, self.listener_url = folder, history, listener_url
        self.token = ""
        self.urls: list[str] = []
        self.members: list[Member] = []
        self.disk = Disk(folder / "disk")
        self._stopping = Event()
        self._supervisor = Thread(target=self._supervise_forever, name="supervisor", daemon=True)
        for name in ("points", "clocks", "ready", "logs"):
            (folder / name).mkdir()

    @abstractmethod
    def start(self) -> None:
        """Start all processes and wait until they are ready."""

    @abstractmethod
    def targets(self) -> dict[str, Pids]:
        """Return the processes that can be killed and stopped, by name."""

    @abstractmethod
    def pulse(self) -> dict[str, int]:
        """Return the revisions of the heartbeats; empty if they cannot be read."""

    @abstractmethod
    def clock_roles(self) -> list[str]:
        """Return the names of the clocks that can be stepped."""

    def environment(self, role: str, **extra: str) -> dict[str, str]:
        """Return the environment of a process."""
        return (
            os.environ
            | {
                product_hooks.FOLDER: str(self.folder),
                product_hooks.ROLE: role,
                "LOG_LEVEL": "WARNING",
                "WEB_THREADS": "64",
                "HOST": "127.0.0.1",
                "WORKFLOW_STATUS_LISTENER_URL": self.listener_url,
                "HTTP_TASK_ALLOWED_NETWORKS": "127.0.0.0/8",
                "PYTHONUNBUFFERED": "1",
            }
            | extra
        )

    def member(self, name: str, command: tuple[str, ...], environment: dict[str, str]) -> Member:
        """Add a process."""
        member = Member(name, command, environment, self.folder / "logs" / f"{name}.log")
        self.members.append(member)
        return member

    def supervise(self) -> None:
        """Restart the members that end, from a thread."""
        self._supervisor.start()

    def _supervise_forever(self) -> None:
        while not self._stopping.wait(CHECK_SECONDS):
            restart_ended(self.members, self.history)

    def is_ready(self) -> bool:
        """Return True if all processes run and every address is ready."""
        return all(member.is_alive for member in self.members) and all(map(is_ready, self.urls))

    def wait_until_recovered(self, seconds: float) -> bool:
        """Wait until all processes are ready and their heartbeats have advanced twice. False after `seconds`."""
        ends_at, before = time.monotonic() + seconds, self.pulse()
        changes = dict.fromkeys(before, 0)
        while time.monotonic() < ends_at:
            now = self.pulse()
            for name, revision in now.items():
                changes[name] = changes.get(name, 0) + (before.get(name) != revision)
            before = now or before
            if changes and min(changes.values()) >= 2 and self.is_ready():
                return True
            time.sleep(CHECK_SECONDS)
        return False

    def close(self) -> None:
        """Kill all processes."""
        self._stopping.set()
        if self._supervisor.is_alive():
            self._supervisor.join()
        for member in self.members:
            member.kill()


class ClusterServer(ServerUnderTest):
    """Two web processes, two Celery workers and two beats, each behind its own proxies to PostgreSQL and Redis."""

    profile = "cluster"
    ROLES = ("web1", "web2", "worker1", "worker2", "beat1", "beat2")

    def __init__(self, folder: Path, history: History, listener_url: str) -> None:
        super().__init__(folder, history, listener_url)
        place = self.disk.folder if self.disk.is_mounted else folder
        self.postgresql = PostgreSQL(place, folder / "logs" / "postgresql.log")
        self.redis = Redis(folder, folder / "logs" / "redis.log")
        self._proxy_thread = ProxyThread()
        self.proxies: dict[str, dict[str, Proxy]] = {"postgresql": {}, "redis": {}}

    def start(self) -> None:
        self.postgresql.start()
        self.redis.start()
        for role in self.ROLES:
            self.proxies["postgresql"][role] = self._proxy_thread.open(self.postgresql.port)
            self.proxies["redis"][role] = self._proxy_thread.open(self.redis.port)
        direct = self._environment("manage", self.postgresql.address(), self.redis.address())
        subprocess.run([*MANAGE, "migrate", "--verbosity=0"], cwd=ROOT, env=direct, check=True)
        self.postgresql.observe_leases()
        for number in (1, 2):
            self._add_web(f"web{number}")
            self._add(f"worker{number}", (*CELERY, "worker", "-n", f"worker{number}@faults", "--loglevel=WARNING"))
            self._add(f"beat{number}", (*CELERY, "beat", "--loglevel=WARNING", "--pidfile="))
        for member in self.members:
            member.start()
        self.token = self._create_token(direct)
        self.supervise()
        wait_until(self.is_ready, START_SECONDS, "The cluster")

    def _environment(self, role: str, database: str, redis: str, **extra: str) -> dict[str, str]:
        return self.environment(
            role,
            DJANGO_SETTINGS_MODULE="qa.faults.settings_of_cluster",
            DATABASE_URL=database,
            REDIS_URL=redis,
            SECRET_KEY="faults" * 10,
            HTTPS="0",
            ALLOWED_HOSTS="127.0.0.1",
            CELERY_THREADS="4",
            **extra,
        )

    def _add(self, role: str, command: tuple[str, ...], **extra: str) -> None:
        database = self.postgresql.address(self.proxies["postgresql"][role].port)
        redis = self.redis.address(self.proxies["redis"][role].port)
        self.member(role, command, self._environment(role, database, redis, **extra))

    def _add_web(self, role: str) -> None:
        port = free_port()
        self._add(role, GUNICORN, PORT=str(port), WEB_WORKERS="1")
        self.urls.append(f"http://127.0.0.1:{port}")

    def _create_token(self, environment: dict[str, str]) -> str:
        made = subprocess.run(
            [*MANAGE, "create_access_key", "faults"], cwd=ROOT, env=environment, check=True, capture_output=True
        )
        _, key, _, secret = made.stdout.decode().split()
        wait_until(lambda: is_ready(self.urls[0]), START_SECONDS, "The first web process")
        body = orjson.dumps({"keyId": key, "keySecret": secret})
        request = urllib.request.Request(
            f"{self.urls[0]}/api/token", data=body, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as reply:
            return orjson.loads(reply.read())["token"]

    def is_ready(self) -> bool:
        return super().is_ready() and all(
            self._has_started(member) for member in self.members if member.name.startswith(("worker", "beat"))
        )

    def _has_started(self, member: Member) -> bool:
        path = self.folder / "ready" / member.name
        return path.exists() and path.read_text() == str(member.pid)

    def targets(self) -> dict[str, Pids]:
        trees = {member.name: _tree_of(member) for member in self.members}
        return trees | {f"{name}.child": _children_of(trees[name]) for name in ("web1", "web2")}

    def pulse(self) -> dict[str, int]:
        return dict(
            self.postgresql.fetch("SELECT name, revision FROM conductor_lease WHERE name IN ('beat', 'sweeps')")
        )

    def clock_roles(self) -> list[str]:
        return list(self.ROLES)

    def lease_history(self) -> list[dict[str, Any]]:
        """Return the renewals of all leases."""
        rows = self.postgresql.fetch("SELECT at, name, holder, revision FROM faults_lease ORDER BY at, revision")
        return [{"at": at, "name": name, "holder": holder, "revision": revision} for at, name, holder, revision in rows]

    def close(self) -> None:
        super().close()
        self.postgresql.member.kill()
        self.redis.member.kill()
        self._proxy_thread.close()


class EmbeddedServer(ServerUnderTest):
    """`manage.py serve` on SQLite. It restarts its own processes."""

    profile = "embedded"
    KINDS = ("web", "worker", "beat")

    def __init__(self, folder: Path, history: History, listener_url: str) -> None:
        super().__init__(folder, history, listener_url)
        self.var = (self.disk.folder if self.disk.is_mounted else folder) / "var"

    def start(self) -> None:
        port = free_port()
        environment = self.environment(
            "serve",
            DJANGO_SETTINGS_MODULE="qa.faults.settings_of_embedded",
            VAR_DIR=str(self.var),
            PORT=str(port),
            CELERY_THREADS="4",
        )
        self.member("serve", (*MANAGE, "serve"), environment).start()
        self.urls = [f"http://127.0.0.1:{port}"]
        self.supervise()
        wait_until(self.is_ready, START_SECONDS, "The server")

    def is_ready(self) -> bool:
        return super().is_ready() and all(self._find(kind) for kind in self.KINDS)

    def targets(self) -> dict[str, Pids]:
        kinds: dict[str, Pids] = {kind: partial(self._find, kind) for kind in self.KINDS}
        return {"serve": _tree_of(self.members[0]), **kinds}

    def _find(self, kind: str) -> list[int]:
        """Return the processes of one kind."""
        found = []
        for pid in process_tree(self.members[0].pid)[1:]:
            with suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text() == f"serve: {kind}\n":
                    found.append(pid)
        return found

    def pulse(self) -> dict[str, int]:
        found = {}
        for name in ("beat", "sweeps", "worker"):
            with suppress(OSError):
                found[name] = (self.var / "heartbeats" / name).stat().st_mtime_ns
        return found

    def clock_roles(self) -> list[str]:
        return ["serve"]


def _tree_of(member: Member) -> Pids:
    return lambda: process_tree(member.pid) if member.is_alive else []


def _children_of(pids: Pids) -> Pids:
    return lambda: pids()[1:]


def is_ready(url: str) -> bool:
    """Return True if the server at this address is ready."""
    with suppress(OSError), urllib.request.urlopen(f"{url}/health/ready", timeout=PROBE_SECONDS) as reply:
        return reply.status == 200
    return False


@contextmanager
def running_server(kind: type[ServerUnderTest], history: History, listener_url: str) -> Iterator[ServerUnderTest]:
    """Run a server in a temporary folder during the block."""
    folder = Path(tempfile.mkdtemp(prefix="conductor-faults-"))
    # PostgreSQL runs as another user if this process is root's.
    folder.chmod(0o755)
    server = kind(folder, history, listener_url)
    try:
        server.start()
        yield server
    finally:
        server.close()
        server.disk.close()
        shutil.rmtree(folder, ignore_errors=True)
