"""Resources of a server without load: the time of its second start, CPU time, and memory.

`python -m qa.bench.rest` measures a cluster with PostgreSQL and Redis, and `serve` on SQLite. REST_SECONDS (60) is
the duration of the measurement.
"""

import http.client
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.free_port import free_port

from .processes import cpu_seconds, process_tree, pss_mb
from .servers import ROOT, postgresql_server

SECONDS = int(os.environ.get("REST_SECONDS", "60"))
"""The duration of the measurement of the CPU time."""
SETTLE_SECONDS = 15


def measure_processes(name: str, roots: Sequence[int]) -> str:
    """Wait until the server rests, and return a line with its CPU time and memory."""
    time.sleep(SETTLE_SECONDS)
    before = sum(map(cpu_seconds, roots))
    time.sleep(SECONDS)
    used = sum(map(cpu_seconds, roots)) - before
    return (
        f"{name} at rest: CPU {100 * used / SECONDS:.2f} % of one core in {SECONDS} s, "
        f"{sum(len(process_tree(root)) for root in roots)} processes with {sum(map(pss_mb, roots)):.0f} MB (PSS)"
    )


def measure_cluster() -> str:
    """Return the resources of a cluster."""
    with postgresql_server(web_workers=2) as server:
        return measure_processes("Cluster", list(server.parts.values()))


def measure_embedded() -> list[str]:
    """Start `serve` twice. Return the time until the second one answers, and its resources."""
    with tempfile.TemporaryDirectory(prefix="conductor-rest-") as folder:
        first, _ = _start(Path(folder))
        _stop(first)
        process, seconds = _start(Path(folder))
        try:
            resources = measure_processes("Embedded", [process.pid])
        finally:
            _stop(process)
    return [f"Embedded, second start: answers after {seconds:.2f} s", resources]


def _start(folder: Path) -> tuple[subprocess.Popen, float]:
    port, began = free_port(), time.perf_counter()
    environment = os.environ | {"VAR_DIR": str(folder / "var"), "PORT": str(port), "LOG_LEVEL": "WARNING"}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    command = [sys.executable, "manage.py", "serve"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        with suppress(OSError):
            connection.request("GET", "/health")
            connection.getresponse().read()
            return process, time.perf_counter() - began
        connection.close()
        time.sleep(0.01)
    raise SystemExit(f"The server ended with code {process.returncode}.")


def _stop(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGTERM)
    process.wait(10)


if __name__ == "__main__":
    print(measure_cluster(), *measure_embedded(), sep="\n")
