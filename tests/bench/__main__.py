"""`make bench`: start the server, drive it as workers do, print a table.

DB=sqlite measures the embedded profile, URL=http://host:port/api any other Conductor-compatible server,
ONLY=chain,loop some of the workloads, WEB_WORKERS=2 the number of web processes.
"""

import os
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from statistics import median, quantiles

import orjson

from tests.bench.database_baseline import floor

from . import groups, long_polls, workloads
from .client import Client
from .load import Measurements, in_processes, serve
from .servers import Server, postgresql_server, sqlite_server, statements_a_task

STARTERS, THREADS, BATCH, RUNS_OF_CHAIN, TASKS_ALONE = 4, 4, 20, 600, 2000


@dataclass
class Result:
    """One line of the table."""

    name: str
    tasks: int
    runs: int
    seconds: float
    measured: Measurements
    cpu: float
    peak_mb: float
    statements: float | None

    def line(self, limit: float) -> str:
        polls, updates = percentiles(self.measured.polls), percentiles(self.measured.updates)
        rate = self.tasks / self.seconds
        share = f"{100 * rate / limit:5.1f} %" if limit else "      –"
        return (
            f"{self.name:<22}{rate:>9.0f}{self.runs / self.seconds:>8.1f}  {polls}  {updates}"
            f"{1000 * self.cpu / max(self.tasks, 1):>9.2f}{self.peak_mb:>8.0f}"
            f"{'–' if self.statements is None else f'{self.statements:.1f}':>10}  {share}"
        )


HEAD = (
    f"{'workload':<22}{'tasks/s':>9}{'runs/s':>8}  {'poll p50/p95/p99 ms':>22}  {'update p50/p95/p99 ms':>22}"
    f"{'CPU s/kt':>9}{'web MB':>8}{'SQL/task':>10}  of the limit"
)


def percentiles(values: list[float]) -> str:
    if len(values) < 2:
        return f"{'–':>22}"
    cuts = quantiles(values, n=100)
    return f"{f'{median(values):.1f} / {cuts[94]:.1f} / {cuts[98]:.1f}':>22}"


class LoadedServer:
    """One server under load."""

    def __init__(self, server: Server) -> None:
        self.server, self._own = server, threading.local()
        self.statements = statements_a_task(server)

    def register(self, *definitions: dict, tasks: Sequence[str] = ()) -> None:
        """Make definitions known."""
        self._must(self.client.post("/metadata/workflow", list(definitions), method="PUT"))
        if tasks:
            self._must(self.client.post("/metadata/taskdefs", [workloads.task_definition(name) for name in tasks]))

    @property
    def client(self) -> Client:
        """The connection of this thread."""
        if not hasattr(self._own, "client"):
            self._own.client = Client(self.server.url, self.server.token)
        return self._own.client

    def start(self, name: str, input: dict) -> str:
        return self._must(self.client.post(f"/workflow/{name}", input)).decode()

    def is_running(self, name: str) -> bool:
        return bool(orjson.loads(self._must(self.client.get(f"/workflow/running/{name}"))))

    def check(self, run: str) -> None:
        status = orjson.loads(self._must(self.client.get(f"/workflow/{run}/status")))["status"]
        if status != "COMPLETED":
            raise SystemExit(f"The run {run} is {status}.")

    def drive(self, label: str, definition: str, inputs: list[dict], types: list[str], tasks_a_run: int) -> Result:
        """Start a run for each input, serve them until the last is over."""
        cpu, began = self.server.cpu_seconds(), time.perf_counter()
        finish = in_processes(1, serve, self.server.url, self.server.token, types, THREADS, BATCH)
        with ThreadPoolExecutor(STARTERS) as starters:
            runs = list(starters.map(partial(self.start, definition), inputs))
        while self.is_running(definition):
            time.sleep(0.1)
        used, measured = self.server.cpu_seconds() - cpu, finish()
        if measured.errors:
            print(f"{label}: {len(measured.errors)} errors, the first: {measured.errors[0]}", file=sys.stderr)
        for run in runs:
            self.check(run)
        # Until the last report is answered: asking whether all are over is no work of theirs.
        seconds, peak = measured.last - began, self.server.web_peak_mb()
        statements = self.statements.get(definition)
        return Result(label, tasks_a_run * len(runs), len(runs), seconds, measured, used, peak, statements)

    @staticmethod
    def _must(reply: tuple[int, bytes]) -> bytes:
        status, body = reply
        if status not in (200, 204):
            raise SystemExit(f"The server answered {status}: {body[:500]!r}")
        return body


def chain(bench: LoadedServer) -> list[Result]:
    steps = [f"bench_step_{number}" for number in range(5)]
    bench.register(workloads.chain(5), tasks=steps)
    inputs = [{"order": number} for number in range(RUNS_OF_CHAIN)]
    return [bench.drive("chain of 5", "bench_chain_5", inputs, steps, 5)]


def fan_out(bench: LoadedServer) -> list[Result]:
    bench.register(workloads.fan_out(), tasks=["bench_branch"])
    return [
        bench.drive(f"fan-out of {width}", "bench_fan_out", [workloads.branches(width)] * runs, ["bench_branch"], width)
        for width, runs in ((50, 10), (100, 5), (300, 3), (1000, 1), (3000, 1))
    ]


def loop(bench: LoadedServer) -> list[Result]:
    bench.register(workloads.loop(20), tasks=["bench_turn"])
    return [bench.drive("loop of 20", "bench_loop_20", [{}] * 20, ["bench_turn"], 20)]


def nested(bench: LoadedServer) -> list[Result]:
    bench.register(*workloads.nested(), tasks=["bench_inner"])
    return [
        bench.drive("sub-workflow", "bench_parent", [{"order": number} for number in range(200)], ["bench_inner"], 1)
    ]


def idle(bench: LoadedServer) -> list[Result]:
    bench.register(workloads.workflow("bench_dispatch", workloads.simple("bench_rare")), tasks=["bench_rare"])
    share, latencies = long_polls.measure(bench.server, lambda: bench.start("bench_dispatch", {"order": 1}))
    print(f"100 idle long polls: server CPU {100 * share:.1f} %; start to hand-out {percentiles(latencies).strip()} ms")
    return []


def standalone_tasks(bench: LoadedServer) -> list[Result]:
    """Created beforehand; what is measured is claiming and reporting."""
    url, server = bench.server.url, bench.server
    groups.create_tasks(url, TASKS_ALONE)
    cpu, began = server.cpu_seconds(), time.perf_counter()
    finish = in_processes(1, groups.serve, url, THREADS, BATCH // 4)
    while groups.count_pending(url):
        time.sleep(0.25)
    seconds, used = time.perf_counter() - began, server.cpu_seconds() - cpu
    # The workers wait for work by now, and stop when they are told that there is none.
    measured, peak = finish(), server.web_peak_mb()
    if measured.errors:
        print(f"{len(measured.errors)} errors, the first: {measured.errors[0]}", file=sys.stderr)
    return [Result("claimWork, report", TASKS_ALONE, 0, seconds, measured, used, peak, None)]


WORKLOADS = {
    "chain": chain,
    "fan_out": fan_out,
    "loop": loop,
    "nested": nested,
    "alone": standalone_tasks,
    "idle": idle,
}


def main() -> None:
    """Measure and print."""
    url, workers = os.environ.get("URL"), int(os.environ.get("WEB_WORKERS", "2"))
    wanted = os.environ.get("ONLY", ",".join(WORKLOADS)).split(",")
    if unknown := set(wanted) - WORKLOADS.keys():
        sys.exit(f"ONLY names {', '.join(sorted(unknown))}: the workloads are {', '.join(WORKLOADS)}.")
    if url:
        server = nullcontext(Server(url.rstrip("/"), token=os.environ.get("TOKEN", "")))
    else:
        server = sqlite_server(1) if os.environ.get("DB") == "sqlite" else postgresql_server(workers)
    with server as running:
        limit = floor(running.database_url) if running.database_url else 0.0
        if limit:
            print(f"The database's own limit: {limit:.0f} claim-and-complete steps/s by bare SQL.")
        bench = LoadedServer(running)
        print(HEAD)
        for name in wanted:
            for result in WORKLOADS[name](bench):
                print(result.line(limit), flush=True)


if __name__ == "__main__":
    main()
