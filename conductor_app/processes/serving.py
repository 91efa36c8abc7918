"""The start of a server, what each process of `serve` executes, and the supervision of the processes.

The processes are forked, so that they share the memory of loaded modules. They are monitored and restarted, and stop
within five seconds of a stop signal.
"""

import atexit
import ctypes
import errno
import gc
import http.client
import os
import secrets
import signal
import socket
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from time import monotonic, sleep
from typing import Generic, TypeVar

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.migrations.executor import MigrationExecutor
from django.urls import get_resolver
from gunicorn.app.wsgiapp import WSGIApplication

from ..apps import create_first_access
from ..celery import app
from ..db.database import connection
from ..monitoring.queries.health import Liveness
from ..system_tasks.network_guard import require_network_guards
from .background import sync_periodic_jobs

PRELOADED = (
    *(
        "conductor_app.wsgi",
        "conductor_app.web.gunicorn_worker",
        "conductor_app.processes.gunicorn_config",
        "gunicorn.arbiter",
    ),
    *("conductor_app.processes.job_trigger", "conductor_app.processes.beat"),
    *("celery.apps.beat", "celery.apps.worker", "celery.app.amqp", "celery.app.log", "celery.concurrency.thread"),
    *("celery.events.dispatcher", "celery.worker.components", "celery.worker.consumer", "celery.worker.control"),
)
"""Modules that gunicorn and Celery would otherwise load in each process."""
WILDCARD_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
ANSWER_SECONDS = 0.5
FORK = get_context("fork")
"""Forked processes share the memory of what their parent has loaded. The parent must have no threads."""
FIRST_PAUSE, MAX_PAUSE = 0.5, 30.0
# A child that has run for this time is healthy. The next restart begins with a short pause again.
HEALTHY_SECONDS = 60.0
# The time without a heartbeat after which a process is killed, and the time that its start may take.
FROZEN_SECONDS, START_SECONDS = 10.0, 30.0
PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
STANDARD_OUTPUT = 1
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
CHECK_SECONDS = 0.1
# Longer than the three seconds in which gunicorn finishes requests.
GRACE_SECONDS = 4.0


@dataclass(frozen=True)
class Administrator:
    """The created administrator. `generated_password`: to be displayed once; None if the environment sets it."""

    username: str
    generated_password: str | None


def prepare_server() -> Administrator | None:
    """Migrate the database and create the periodic jobs. Returns the administrator if this call created one."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", verbosity=0, interactive=False)
    sync_periodic_jobs()
    create_first_access()
    return None if get_user_model().objects.exists() else _create_administrator()


def _create_administrator() -> Administrator:
    username = os.environ.get("DJANGO_SUPERUSER_USERNAME") or "admin"
    configured_password = os.environ.get("DJANGO_SUPERUSER_PASSWORD")
    password = configured_password or secrets.token_urlsafe(12)
    email = os.environ.get("DJANGO_SUPERUSER_EMAIL", "")
    get_user_model().objects.create_superuser(username, email, password)
    return Administrator(username, None if configured_password else password)


def load_modules() -> None:
    """Load everything that a process loads at its start or with its first request. Call it before the first fork.

    Raises:
        SystemExit: when a network guard has no effect.
    """
    require_network_guards()
    for name in PRELOADED:
        import_module(name)
    _ = get_resolver().url_patterns
    # `serve` has run the checks of Django that concern the configuration.
    os.environ["CELERY_SKIP_CHECKS"] = "true"
    app.loader.init_worker()
    app.finalize()


def run_web(listener: socket.socket) -> None:
    """Run gunicorn on this socket until a stop signal."""
    warnings.simplefilter("ignore")
    config = ("--config", "python:conductor_app.processes.gunicorn_config", "--bind", f"fd://{listener.fileno()}")
    sys.argv = ["gunicorn", *config, "conductor_app.wsgi"]
    WSGIApplication(prog="gunicorn").run()


def run_worker(listener: socket.socket) -> None:
    """Run the Celery worker until a stop signal."""
    listener.close()
    warnings.simplefilter("ignore")
    worker = app.Worker(quiet=True, without_gossip=True, without_mingle=True, without_heartbeat=True)
    worker.start()
    sys.exit(worker.exitcode)


def run_beat(listener: socket.socket) -> None:
    """Run Celery beat until a stop signal."""
    listener.close()
    warnings.simplefilter("ignore")
    app.Beat(quiet=True).run()


def run_command(listener: socket.socket, name: str) -> None:
    """Run a command of `manage.py` until a stop signal."""
    listener.close()
    call_command(name)


def listening_socket(host: str, port: int) -> socket.socket:
    """Return the socket that web processes inherit, so that requests are accepted while one of them restarts.

    Raises:
        CommandError: when the address cannot be used.
    """
    listener = None
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        if listener:
            listener.close()
        raise CommandError(_bind_error(host, port, error)) from error
    return listener


def _bind_error(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is in use. Stop the process that uses it, or choose another: PORT={port + 1}"
    return f"Cannot listen on HOST={host} PORT={port}: {error.strerror}."


class StartupBanner:
    """Prints the addresses of the server once, as soon as it responds."""

    def __init__(self, host: str, port: int, administrator: Administrator | None, say: Callable[[str], None]) -> None:
        self._address = (WILDCARD_HOSTS.get(host, host), port)
        self._administrator = administrator
        self._say = say
        self._is_printed = False
        self._folder = getattr(settings, "VAR_DIR", None)

    def print_when_ready(self) -> None:
        """Print the banner if the server responds and the banner was not printed before."""
        if not self._is_printed and self._is_server_up():
            self._is_printed = True
            self._say("\n".join(self._lines()))

    def _is_server_up(self) -> bool:
        connection = http.client.HTTPConnection(*self._address, timeout=ANSWER_SECONDS)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status > 0
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _lines(self) -> list[str]:
        host, port = self._address
        base_url = f"http://{f'[{host}]' if ':' in host else host}:{port}{settings.FORCE_SCRIPT_NAME or ''}"
        return [
            f"Admin    {base_url}/admin/{self._login()}",
            f"API      {base_url}/api/",
            f"OpenAPI  {base_url}/api/docs",
            *([f"Data     {self._folder}"] if self._folder else []),
            "Stop with Ctrl-C.",
        ]

    def _login(self) -> str:
        if not self._administrator:
            return ""
        if not self._administrator.generated_password:
            return f"   (administrator {self._administrator.username} was created)"
        return (
            f"\n         log in as {self._administrator.username}, password {self._administrator.generated_password}"
            "\n         (generated on first start and shown only once; change it in the admin)"
        )


Result = TypeVar("Result")


class ForkedCall(Generic[Result]):
    """The call of a function. It starts at once, in parallel to this process."""

    def __init__(self, function: Callable[[], Result]) -> None:
        self._receiver, sender = FORK.Pipe(duplex=False)
        self._process = FORK.Process(target=_send_result, args=(function, sender))
        self._process.start()
        sender.close()

    def result(self) -> Result:
        """Wait for the end of the call and return its result, or raise its exception.

        Raises:
            EOFError: when the process was killed.
        """
        result, error = self._receiver.recv()
        self._process.join()
        if error:
            raise error
        return result


def _send_result(function: Callable[[], object], sender: Connection) -> None:
    gc.enable()
    try:
        sender.send((function(), None))
    except Exception as error:
        sender.send((None, error))


@dataclass
class ManagedProcess:
    """A process that is restarted whenever it ends."""

    name: str
    run: Callable[[], object]
    process: ForkProcess | None = None
    started_at: float = 0.0
    restart_at: float = 0.0
    pause: float = field(default=FIRST_PAUSE)
    heartbeat: Path | None = None
    """A file that the process touches at least once a second."""
    liveness: Liveness = field(default_factory=Liveness)

    def start(self) -> None:
        """Fork the process. A stop signal that arrives meanwhile waits until both processes handle it."""
        self.started_at = monotonic()
        self.process = FORK.Process(target=_run_child, args=(self.name, self.run, os.getpid()), name=self.name)
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.is_alive()

    def restart_if_ended(self, report: Callable[[str], None]) -> None:
        """Restart the process if it has ended, after a pause that doubles with each restart."""
        if self.is_running:
            return
        if not self.restart_at:
            self._plan_restart(report)
        elif monotonic() >= self.restart_at:
            self.restart_at = 0.0
            self.start()

    def kill_if_frozen(self, report: Callable[[str], None]) -> None:
        """Kill the process if its heartbeat has stopped. The next check restarts it."""
        if self.heartbeat is None or not self.is_running:
            return
        revision = self.heartbeat.stat().st_mtime_ns if self.heartbeat.exists() else 0
        silent_seconds = self.liveness.observe(self.name, revision)
        if silent_seconds > FROZEN_SECONDS and monotonic() - self.started_at > START_SECONDS:
            report(f"{self.name} has not responded for {silent_seconds:.0f} s and is killed.")
            self.kill()
            self.liveness = Liveness()

    def signal(self, number: int) -> None:
        """Send a signal to the process if it runs."""
        if self.is_running and self.process and self.process.pid:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    def kill(self) -> None:
        """Kill the process and its children."""
        if self.process and self.process.pid:
            # A process that has just started has no group of its own yet.
            self.process.kill()
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.join()

    def _plan_restart(self, report: Callable[[str], None]) -> None:
        if monotonic() - self.started_at > HEALTHY_SECONDS:
            self.pause = FIRST_PAUSE
        code = self.process.exitcode if self.process else None
        report(f"{self.name} ended with code {code}. Restarting in {self.pause:g} s.")
        self.restart_at = monotonic() + self.pause
        self.pause = min(self.pause * 2, MAX_PAUSE)


def _run_child(name: str, run: Callable[[], object], parent: int) -> None:
    """Execute `run` in a session of its own, so that only the parent receives Ctrl-C and stops all children."""
    os.setsid()
    _name_process(f"serve: {name}", parent)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    # Logs go to standard error. Standard output has only banners.
    os.dup2(os.open(os.devnull, os.O_WRONLY), STANDARD_OUTPUT)
    # The functions of the parent would delete its temporary folders.
    atexit._clear()
    try:
        run()
    finally:
        # A forked process of `multiprocessing` does not call them.
        atexit._run_exitfuncs()


def _name_process(name: str, parent: int) -> None:
    """Name this process for `ps` and `top`, and make the kernel stop it when the parent dies."""
    if sys.platform != "linux":
        return
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(PR_SET_NAME, name.encode())
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # The parent may have died before the call of prctl.
    if os.getppid() != parent:
        os._exit(1)


class Supervisor:
    """The child processes and the stop flag."""

    def __init__(self, children: Sequence[ManagedProcess], report: Callable[[str], None]) -> None:
        self.children = children
        self.report = report
        self.is_stopping = False

    def run(self, on_check: Callable[[], None]) -> None:
        """Start and monitor all children, and stop them on the first SIGINT or SIGTERM."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        try:
            for child in self.children:
                child.start()
            while not self.is_stopping:
                self._check_processes()
                on_check()
                sleep(CHECK_SECONDS)
        finally:
            self._kill_remaining()

    def _check_processes(self) -> None:
        for child in self.children:
            child.restart_if_ended(self.report)
            child.kill_if_frozen(self.report)

    def _stop(self, *_: object) -> None:
        self.is_stopping = True

    def _kill_remaining(self) -> None:
        for child in self.children:
            child.signal(signal.SIGTERM)
        kill_at = monotonic() + GRACE_SECONDS
        while monotonic() < kill_at and any(child.is_running for child in self.children):
            sleep(0.02)
        for child in self.children:
            child.kill()
