"""A Django project made by `django-admin startproject`, with the lines that the documentation names, and its server."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from tests.free_port import free_port
from tests.in_process.shop import ROOT, stop
from tests.management.server import wait_until

NAME, PASSWORD = "boss", "correct horse battery"
SETTINGS = """
INSTALLED_APPS += ["conductor_app", "depot"]
DATABASES["default"]["ENGINE"] = "conductor_app.db.sqlite"
ALLOWED_HOSTS = ["127.0.0.1"]
"""
URLS = """
from django.urls import include
urlpatterns += [path("flows/", include("conductor_app.in_process.urls"))]
"""
WORKFLOW = """
name: parcel
version: 1
ownerEmail: shop@example.com
tasks:
  - {name: pack, taskReferenceName: pack, type: SIMPLE}
"""
SERVERS = {
    "runserver": ("manage.py", "runserver", "--noreload", "127.0.0.1:{port}"),
    "WSGI": ("-m", "gunicorn", "--threads", "4", "--bind", "127.0.0.1:{port}", "depot.wsgi"),
    "ASGI": ("-m", "uvicorn", "--port", "{port}", "depot.asgi:application"),
}


class NewProject:
    """A project in a folder. `python`: the interpreter with Django."""

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self.folder, self.python, self.port = folder, python, free_port()
        self._run("-m", "django", "startproject", "depot", ".")
        for file, text in (("settings.py", SETTINGS), ("urls.py", URLS)):
            with (folder / "depot" / file).open("a") as lines:
                lines.write(text)
        workflows = folder / "depot" / "workflows"
        workflows.mkdir()
        (workflows / "parcel.yaml").write_text(WORKFLOW)
        self.manage("migrate", "-v", "0")
        self.manage("createsuperuser", "--noinput", "--username", NAME, "--email", "boss@example.com")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        bare = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return bare | {"PYTHONPATH": str(ROOT), "DJANGO_SUPERUSER_PASSWORD": PASSWORD, "PYTHONDONTWRITEBYTECODE": "1"}

    def _run(self, *arguments: str) -> str:
        ended = subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout
        return ended.stdout

    def manage(self, *arguments: str) -> str:
        """Execute a command of `manage.py`, and return what it printed."""
        return self._run("manage.py", *arguments)

    def access_key(self) -> tuple[str, str]:
        """Create an access key, and return its id and its secret."""
        [pair] = re.findall(r"KEY (\S+)\s+CONDUCTOR_AUTH_SECRET (\S+)", self.manage("conductor_access_key", "depot"))
        return pair

    @contextmanager
    def served(self, kind: str) -> Iterator[str]:
        """Serve the project, and yield the address of its root."""
        log = self.folder / "server.log"
        process = subprocess.Popen(
            [self.python, *(part.format(port=self.port) for part in SERVERS[kind])],
            cwd=self.folder,
            env=self.environment,
            stdout=log.open("ab"),
            stderr=subprocess.STDOUT,
        )

        def is_up() -> bool:
            assert process.poll() is None, log.read_text()
            try:
                return requests.get(f"{self.url}/flows/admin/login/", timeout=60).status_code == 200
            except requests.ConnectionError:
                return False

        try:
            wait_until(is_up, seconds=240)
            yield self.url
        finally:
            stop(process)
