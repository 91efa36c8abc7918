"""The process that the servers of the test kit are forked from, and what each of them does.

The process reads from a socket that it inherits. Each message starts a server: it has the folder of the server, and one
end of a connection, over which the test sends its commands. A server ends when the test closes that connection. There
is no other way to set the time of a server: neither its API nor a setting can.
"""

import gc
import hashlib
import os
import signal
import socket
from importlib.metadata import version
from pathlib import Path
from typing import Any

import django
from django.core.management import call_command
from django.urls import get_resolver

from ..db.database import connection

SETTINGS = "conductor_app.settings.test_kit"
DATABASE = "conductor.sqlite3"
TICK_SECONDS = 0.05
PACKAGES_WITH_TABLES = ("Django", "django-celery-beat", "django-axes")
Document = dict[str, Any]


def main(descriptor: int, templates: str) -> None:
    """Fork servers until the test run closes the socket. `templates`: the folder of databases with all tables."""
    os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS
    control = socket.socket(fileno=descriptor)
    django.setup()
    # Loaded before the first fork, so that no server has to.
    from .server_commands import run_server

    _ = get_resolver().url_patterns
    template = prepare_template(Path(templates))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    control.sendall(b"ready\n")
    while True:
        message, descriptors, _flags, _address = socket.recv_fds(control, 65536, 1)
        if not message:
            return
        if os.fork() == 0:
            control.close()
            run_server(socket.socket(fileno=descriptors[0]), Path(message.decode()), template)
        os.close(descriptors[0])


def prepare_template(folder: Path) -> Path:
    """Return a database with all tables. It is created at the first call after a change of the package."""
    path = folder / f"{_source_digest()}.sqlite3"
    if not path.exists():
        call_command("migrate", verbosity=0, interactive=False)
        draft = folder / f"{path.name}.{os.getpid()}"
        with connection.cursor() as cursor:
            cursor.execute("VACUUM INTO %s", [str(draft)])
        connection.close()
        for outdated in folder.glob("*.sqlite3"):
            outdated.unlink(missing_ok=True)
        draft.replace(path)
    return path


def _source_digest() -> str:
    """Return a text that changes with the code of this package, and with the packages that have tables."""
    package = Path(__file__).parents[1]
    newest = max(path.stat().st_mtime_ns for path in package.rglob("*.py"))
    parts = [str(package), newest, *map(version, PACKAGES_WITH_TABLES)]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
