"""Execute programs in forks of an interpreter that has imported the libraries of the server, but none of its modules.

A new interpreter spends more time on the import of these libraries than most commands take afterwards:

    done = run_forked("-c", "print('hello')", env={"PATH": "/usr/bin"})

The arguments are those of Python: `-c CODE`, `-m MODULE` or the path of a program, and the arguments of the program.
Tests of the start of a process use a new interpreter, and so do tests that measure one.
"""

import atexit
import gc
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Timer
from typing import Any

ROOT = Path(__file__).parents[1]
LIBRARIES = (
    *("django.core.management.commands.migrate", "django.core.serializers.json", "django.db.migrations.executor"),
    *("django.db.backends.postgresql.base", "django.db.backends.sqlite3.base", "django.db.models", "django.forms"),
    *("django.http", "django.template", "django.urls", "wsgiref.simple_server", "zoneinfo", "sqlite3", "asyncio"),
    *("psycopg_pool", "celery.app.amqp", "celery.app.task", "celery.schedules", "celery.utils.threads", "structlog"),
    *("cryptography.fernet", "cryptography.hazmat.primitives.asymmetric.ec", "jwt", "yaml", "requests", "orjson"),
    *("jsonschema_rs", "regex", "re2", "dateutil.parser", "attr", "click", "platformdirs"),
)
"""Libraries that read no variables and no settings, and start no threads, when they are imported."""


def run_forked(
    *arguments: str, env: Mapping[str, str], cwd: Path = ROOT, timeout: float = 180
) -> subprocess.CompletedProcess[str]:
    """Execute a program and return its exit status and its output."""
    return _interpreter().run(arguments, env, cwd, timeout)


@cache
def _interpreter() -> "ForkedInterpreter":
    return ForkedInterpreter()


class ForkedInterpreter:
    """The process whose forks execute the programs, one after the other."""

    def __init__(self) -> None:
        self._lock = Lock()
        command = [sys.executable, "-m", "tests.forked_interpreter"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        atexit.register(self.stop)

    def stop(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.wait()

    def run(
        self, arguments: tuple[str, ...], env: Mapping[str, str], cwd: Path, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Execute a program.

        Raises:
            TimeoutExpired: when it took too long, and was killed.
        """
        with self._lock, TemporaryDirectory() as folder:
            request = {"arguments": arguments, "env": dict(env), "cwd": str(cwd), "folder": folder}
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            killer = Timer(timeout, os.kill, (int(self._process.stdout.readline()), 9))
            killer.start()
            status = int(self._process.stdout.readline())
            if killer.finished.is_set():
                raise subprocess.TimeoutExpired(arguments, timeout)
            killer.cancel()
            outputs = [Path(folder, name).read_text(encoding="utf-8") for name in ("stdout", "stderr")]
        return subprocess.CompletedProcess(arguments, status, *outputs)


def serve_forks() -> dict[str, Any] | None:
    """Fork for each request, and return it in the fork. Returns None after the last one."""
    for line in sys.stdin:
        if not (pid := os.fork()):
            return json.loads(line)
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    return None


def enter(request: dict[str, Any]) -> list[str]:
    """Give this process the environment, the folder and the output of a request. Returns the arguments of Python."""
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    files = [os.devnull, os.path.join(request["folder"], "stdout"), os.path.join(request["folder"], "stderr")]
    for target, path in enumerate(files):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(descriptor, target)
        os.close(descriptor)
    return request["arguments"]


def execute(arguments: list[str]) -> None:
    """Execute a program as Python does with these arguments."""
    kind, *rest = arguments
    folder = os.getcwd() if kind in ("-c", "-m") else os.path.dirname(os.path.abspath(kind))
    sys.path[:1] = [folder, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    if kind == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = arguments
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    for library in LIBRARIES:
        import_module(library)
    gc.freeze()
    # Its end is the end of the interpreter, which reports exceptions and the exit status as always.
    if request := serve_forks():
        execute(enter(request))
