"""The start of a server, and what each process of `serve` executes.

The processes are forked, so that they share the memory of loaded modules.
"""

import errno
import http.client
import os
import secrets
import socket
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

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
from ..system_tasks.network_guard import require_network_guards
from .periodic_jobs import sync_periodic_jobs


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


WILDCARD_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
ANSWER_SECONDS = 0.5


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
