"""Entry point of `make hostile`: start a server and send it hostile requests to every address.

REQUESTS=100000 sets their number, SEED=7 their contents, DB=postgresql the cluster profile, FROM=4711 the first number.
The exit status is 1 if a reply is an internal error or reveals a secret, or if the server works no longer.
"""

import os
import sys
import time
import traceback
from pathlib import Path

import django

ROOT = Path(__file__).parents[2]
LOG = ROOT / "var" / "hostile-server.log"
CONNECTIONS = 32


def main() -> int:
    count, seed = int(os.environ.get("REQUESTS", "20000")), int(os.environ.get("SEED", "1"))
    first = int(os.environ.get("FROM", "0"))
    console = write_server_output_to(LOG)
    sys.excepthook = lambda *error: traceback.print_exception(*error, file=console)
    os.environ |= {"CONDUCTOR_API_ACCESS": "token", "CONDUCTOR_SECRET_HOSTILE": "hostile-secret-value-4711"}
    from qa.bench.servers import postgresql_server, sqlite_server

    start = postgresql_server if os.environ.get("DB") == "postgresql" else sqlite_server
    with start(web_workers=1) as server:
        os.environ |= server.environment
        django.setup()
        from django.conf import settings

        from qa.hostile.attack import attack, find_failure
        from qa.hostile.verdicts import Report

        port = int(server.url.rpartition(":")[2].partition("/")[0])
        began = time.monotonic()

        def show_progress(report: Report) -> None:
            sent = sum(counter.total() for counter in report.counts.values())
            rate = sent / (time.monotonic() - began)
            print(
                f"{sent} requests, {rate:.0f} a second, {len(report.violations)} violations", file=console, flush=True
            )

        report = Report(server_secrets=[settings.SECRET_KEY.encode()])
        attack(port, seed, range(first, first + count), CONNECTIONS, report, progress=show_progress)
        failure = find_failure(port)
        print(f"\n{report.table()}\n\npeak memory of the web process: {server.web_peak_mb():.0f} MB", file=console)
        print("slowest: " + "; ".join(f"{s:.1f} s {name}" for s, name in reversed(report.slowest)), file=console)
        for what, requests in report.violations.items():
            print(f"\nVIOLATION, {len(requests)} times: {what}\n{requests[0]}", file=console)
        print(failure or "The server works after the requests.", file=console, flush=True)
    if report.violations:
        print(f"{len(report.violations)} violations. The server's log: {LOG}", file=console)
    return 1 if report.violations or failure else 0


def write_server_output_to(path: Path):
    """Write the output of this process and of the server into a file. Return the console."""
    path.parent.mkdir(exist_ok=True)
    console = os.fdopen(os.dup(1), "w")
    with path.open("wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    return console


if __name__ == "__main__":
    sys.exit(main())
