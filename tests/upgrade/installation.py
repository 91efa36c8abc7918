"""Installations without running processes, on SQLite or PostgreSQL, for tests of commands."""

import os
import shutil
import sqlite3
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg

from tests.forked_interpreter import run_forked

ROOT = Path(__file__).parents[2]
KEYS = {"SECRET_KEY": "signing-key-" * 5, "SECRETS_KEYS": "sealing-key-" * 3}
COMMAND = ("-c", "from conductor_app.processes.command_line import main; main()")
SEED = """
import django
django.setup()
from conductor_app.access.commands.secrets import put_secret
from conductor_app.runs.commands.start import StartRequest, start_run
from tests.builders import definition, step
from tests.scenario import ACTOR, register_definitions
put_secret("DB", "a password", ACTOR)
register_definitions(definition(step("a"), step("b")))
for number in range(3):
    start_run(StartRequest("order", input={"note": "ä€😀 " * 1000, "number": number}), ACTOR)
"""


@dataclass
class Installation:
    """A database and a folder of payloads. `database_url`: empty on SQLite."""

    folder: Path
    database_url: str = ""
    keys: dict[str, str] = field(default_factory=lambda: dict(KEYS))

    def environment(self) -> dict[str, str]:
        profile = "cluster" if self.database_url else "embedded"
        return {
            "PATH": os.environ["PATH"],
            "VAR_DIR": str(self.folder),
            "PAYLOAD_STORAGE": str(self.payloads),
            # Inputs of more than 1 KB are stored in files.
            "WORKFLOW_PAYLOAD_SOFT_KB": "1",
            "TASK_PAYLOAD_SOFT_KB": "1",
            "DATABASE_URL": self.database_url,
            "REDIS_URL": "redis://127.0.0.1:1/0",
            "ALLOWED_HOSTS": "localhost",
            "DJANGO_SETTINGS_MODULE": f"conductor_app.settings.{profile}",
            **self.keys,
        }

    @property
    def payloads(self) -> Path:
        return self.folder / "payloads"

    @property
    def file(self) -> Path:
        return self.folder / "conductor.sqlite3"

    def execute(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Execute `conductor-app`."""
        return self._run(*COMMAND, *map(str, arguments))

    def python(self, script: str) -> str:
        """Execute a script with the settings of this installation, and return its output."""
        done = self.run_python(script)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run_python(self, script: str) -> subprocess.CompletedProcess[str]:
        """Execute a script that may fail."""
        return self._run("-c", script)

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return run_forked(*command, env=self.environment())

    def succeed(self, *arguments: str | Path) -> str:
        """Execute `conductor-app`, and return its output."""
        done = self.execute(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refuse(self, *arguments: str | Path) -> str:
        """Execute `conductor-app`, and return the error with which it fails."""
        done = self.execute(*arguments)
        assert done.returncode == 1, done.stdout + done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done.stderr

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Execute a statement, and return its rows."""
        if self.database_url:
            with psycopg.connect(self.database_url, autocommit=True) as connection:
                cursor = connection.execute(statement)  # type: ignore[arg-type]
                return cursor.fetchall() if cursor.description else []
        connection = sqlite3.connect(self.file, isolation_level=None)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()

    def contents(self) -> dict[str, list[Any]]:
        """Return the rows that tests compare, and the payloads."""
        return {
            "runs": sorted(self.query("SELECT id, status, input, input_path FROM conductor_run")),
            "attempts": sorted(self.query("SELECT id, status, queue FROM conductor_attempt")),
            "secrets": sorted(self.query("SELECT name, sealed FROM conductor_secret")),
            "payloads": sorted((path.name, path.read_bytes()) for path in self.payloads.rglob("*.json")),
        }


def create_database(server_url: str) -> str:
    """Create a database on a PostgreSQL server, and return its address."""
    name = f"installation_{uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))


def copy_installation(source: Installation, folder: Path) -> Installation:
    """Copy an installation, whose processes are stopped."""
    if folder.exists():
        folder.rmdir()
    shutil.copytree(source.folder, folder)
    if not source.database_url:
        return Installation(folder)
    parts = urlsplit(source.database_url)
    name = f"installation_{uuid4().hex[:12]}"
    with psycopg.connect(urlunsplit(parts._replace(path="/postgres")), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {parts.path[1:]}")
    return Installation(folder, urlunsplit(parts._replace(path=f"/{name}")))
