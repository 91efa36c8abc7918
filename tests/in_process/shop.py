"""The Django project in `tests/in_process/project`, whose commands run in processes of their own."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = Path(__file__).parent / "project"
DATABASES = pytest.mark.parametrize("shop", ["", "divided"], indirect=True, ids=["default", "two databases"])
"""The test runs with the workflows in `default`, and with them in a database of their own."""


@dataclass
class Shop:
    """The project with a database of its own. `settings`: the dictionary CONDUCTOR.

    `workflows`: what the database of the app and of the orders has else than the other one, if there are two.
    """

    database: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    workflows: dict[str, Any] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        bare = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return bare | {
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "SHOP_DATABASE": json.dumps(self.database),
            "SHOP_CONDUCTOR": json.dumps(({"DATABASE": "workflows"} if self.workflows else {}) | self.settings),
            **({"SHOP_WORKFLOWS": json.dumps(self.workflows)} if self.workflows else {}),
            **self.variables,
        }

    @property
    def alias(self) -> str:
        """The database of the app."""
        return "workflows" if self.workflows else "default"

    def change(self, **settings: Any) -> None:
        """Replace settings of the project by other ones."""
        self.variables["SHOP_SETTINGS"] = json.dumps(settings)

    def call(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Execute a command of `manage.py`, and return its end with all that it printed."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT,
            env=self.environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )

    def manage(self, *arguments: str) -> str:
        """Execute a command of `manage.py` that must succeed, and return what it printed."""
        ended = self.call(*arguments)
        assert ended.returncode == 0, ended.stdout
        return ended.stdout

    def execute(self, code: str) -> Any:
        """Execute lines of code in the project, and return the value of `result` there."""
        lines = ["import json", code, "print('RESULT', json.dumps(result, default=str))"]
        said = self.manage("shell", "--no-imports", "-c", "\n".join(lines))
        return json.loads(said.rpartition("RESULT ")[2])

    def begin(self, *arguments: str, log: Path, **variables: str) -> "subprocess.Popen[bytes]":
        """Start a command of `manage.py` that continues, with its output in a file."""
        return subprocess.Popen(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT,
            env=self.environment | variables,
            stdout=log.open("ab"),
            stderr=subprocess.STDOUT,
        )


def stop(process: "subprocess.Popen[bytes]", how: int = signal.SIGTERM) -> int:
    """Stop a process and return its exit status."""
    if process.poll() is None:
        process.send_signal(how)
    return process.wait(240)
