"""Entry point of `make bench`: start the server, send it the requests of workers and print a table.

DB=sqlite measures the embedded profile; URL=http://host:port/api measures another Conductor-compatible server;
ONLY=chain,loop selects workloads; WEB_WORKERS=2 sets the number of web processes. PEERS=1 compares this server with
others (`tests.bench.peers.comparison`), and WEB_WORKERS=2,4,8 compares numbers of web processes.
IDLE_POLLS=2000 sets the number of idle polls of the workload idle.
SCALE=10m compares the costs with many stored runs instead (`tests.bench.scale`).
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

from tests.bench.database_baseline import measure_baseline

from . import groups, long_polls, rest, scale, workloads
from .client import Client
from .load import Measurements, run_in_processes, serve
from .servers import Server, count_statements_per_task, postgresql_server, sqlite_server

STARTERS, THREADS, BATCH, RUNS_OF_CHAIN, STANDALONE_TASKS = 4, 4, 20, 600, 2000


@dataclass
class Result:
    """One row of the table."""

    name: str
    tasks: int
    runs: int
    seconds: float
    measured: Measurements
    cpu: float
    peak_mb: float
    statements: float | None

    def line(self, limit: float) -> str:
        polls, updates = format_percentiles(self.measured.polls), format_percentiles(self.measured.updates)
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


def format_percentiles(values: list[float]) -> str:
    if len(values) < 2:
        return f"{'–':>22}"
    cuts = quantiles(values, n=100)
    return f"{f'{median(values):.1f} / {cuts[94]:.1f} / {cuts[98]:.1f}':>22}"


class LoadedServer:
    """Commands and measurements of a server under load."""

    def __init__(self, server: Server) -> None:
        self.server, self._thread_data = server, threading.local()
        self.statements = count_statements_per_task(server)

    def register(self, *definitions: dict, tasks: Sequence[str] = ()) -> None:
        """Register workflow definitions, and task definitions of these names."""
        self._require_success(self.client.post("/metadata/workflow", list(definitions), method="PUT"))
        if tasks:
            self._require_success(
                self.client.post("/metadata/taskdefs", [workloads.task_definition(name) for name in tasks])
            )

    @property
    def client(self) -> Client:
        """Return the connection of this thread."""
        if not hasattr(self._thread_data, "client"):
            self._thread_data.client = Client(self.server.url, self.server.token)
        return self._thread_data.client

    def start(self, name: str, input: dict) -> str:
        return self._require_success(self.client.post(f"/workflow/{name}", input)).decode()

    def is_running(self, name: str) -> bool:
        return bool(orjson.loads(self._require_success(self.client.get(f"/workflow/running/{name}"))))

    def check(self, run: str) -> None:
        status = orjson.loads(self._require_success(self.client.get(f"/workflow/{run}/status")))["status"]
        if status != "COMPLETED":
            raise SystemExit(f"The run {run} is {status}.")

    def measure(self, label: str, definition: str, inputs: list[dict], types: list[str], tasks_a_run: int) -> Result:
        """Start a run for each input and work on them until the last one has ended."""
        cpu, began = self.server.cpu_seconds(), time.perf_counter()
        finish = run_in_processes(1, serve, self.server.url, self.server.token, types, THREADS, BATCH)
        with ThreadPoolExecutor(STARTERS) as starters:
            runs = list(starters.map(partial(self.start, definition), inputs))
        while self.is_running(definition):
            time.sleep(0.1)
        cpu_used, measured = self.server.cpu_seconds() - cpu, finish()
        if measured.errors:
            print(f"{label}: {len(measured.errors)} errors, the first: {measured.errors[0]}", file=sys.stderr)
        for run in runs:
            self.check(run)
        # The time ends with the reply to the last report, because the check for open runs is no part of the load.
        seconds, peak = measured.last - began, self.server.web_peak_mb()
        statements = self.statements.get(definition)
        return Result(label, tasks_a_run * len(runs), len(runs), seconds, measured, cpu_used, peak, statements)

    @staticmethod
    def _require_success(reply: tuple[int, bytes]) -> bytes:
        status, body = reply
        if status not in (200, 204):
            raise SystemExit(f"The server answered {status}: {body[:500]!r}")
        return body


def measure_chain(bench: LoadedServer) -> list[Result]:
    steps = [f"bench_step_{number}" for number in range(5)]
    bench.register(workloads.chain(5), tasks=steps)
    inputs = [{"order": number} for number in range(RUNS_OF_CHAIN)]
    return [bench.measure("chain of 5", "bench_chain_5", inputs, steps, 5)]


def measure_fan_out(bench: LoadedServer) -> list[Result]:
    bench.register(workloads.fan_out(), tasks=["bench_branch"])
    return [
        bench.measure(
            f"fan-out of {width}", "bench_fan_out", [workloads.branches(width)] * runs, ["bench_branch"], width
        )
        for width, runs in ((50, 10), (100, 5), (300, 3), (1000, 1), (3000, 1))
    ]


def measure_loop(bench: LoadedServer) -> list[Result]:
    bench.register(workloads.loop(20), tasks=["bench_turn"])
    return [bench.measure("loop of 20", "bench_loop_20", [{}] * 20, ["bench_turn"], 20)]


def measure_nested(bench: LoadedServer) -> list[Result]:
    bench.register(*workloads.nested(), tasks=["bench_inner"])
    return [
        bench.measure("sub-workflow", "bench_parent", [{"order": number} for number in range(200)], ["bench_inner"], 1)
    ]


def measure_idle(bench: LoadedServer) -> list[Result]:
    bench.register(workloads.workflow("bench_dispatch", workloads.simple("bench_rare")), tasks=["bench_rare"])
    for case, share, latencies in long_polls.measure(bench.server, lambda: bench.start("bench_dispatch", {"order": 1})):
        print(
            f"dispatch {case}: start to arrival p50/p95/p99 {format_percentiles(latencies).strip()} ms; "
            f"CPU of the web processes meanwhile {100 * share:.1f} %",
            flush=True,
        )
    return []


def measure_standalone_tasks(bench: LoadedServer) -> list[Result]:
    """Measure claims and reports of standalone tasks, which are created beforehand."""
    url, server = bench.server.url, bench.server
    groups.create_tasks(url, STANDALONE_TASKS)
    cpu, began = server.cpu_seconds(), time.perf_counter()
    finish = run_in_processes(1, groups.serve, url, THREADS, BATCH // 4)
    while groups.count_pending(url):
        time.sleep(0.25)
    seconds, used = time.perf_counter() - began, server.cpu_seconds() - cpu
    # The workers are in long polls now, and stop after an empty reply.
    measured, peak = finish(), server.web_peak_mb()
    if measured.errors:
        print(f"{len(measured.errors)} errors, the first: {measured.errors[0]}", file=sys.stderr)
    return [Result("claimWork, report", STANDALONE_TASKS, 0, seconds, measured, used, peak, None)]


def measure_rest(bench: LoadedServer) -> list[Result]:
    """Print the resources of a server without load. It runs first, since other workloads leave caches and rows."""
    if bench.server.services:
        print(rest.measure_cluster(bench.server))
    print(*rest.measure_embedded(), sep="\n")
    return []


WORKLOADS = {
    "rest": measure_rest,
    "chain": measure_chain,
    "fan_out": measure_fan_out,
    "loop": measure_loop,
    "nested": measure_nested,
    "alone": measure_standalone_tasks,
    "idle": measure_idle,
}


def main() -> None:
    """Run the selected workloads and print the table."""
    if "SCALE" in os.environ:
        scale.main()
        return
    if os.environ.get("PEERS"):
        from .peers import comparison

        comparison.main()
        return
    if "," in os.environ.get("WEB_WORKERS", ""):
        from .peers import web_processes

        web_processes.main()
        return
    url, workers = os.environ.get("URL"), int(os.environ.get("WEB_WORKERS", "2"))
    selected = os.environ.get("ONLY", ",".join(WORKLOADS)).split(",")
    if unknown := set(selected) - WORKLOADS.keys():
        sys.exit(f"ONLY names {', '.join(sorted(unknown))}: the workloads are {', '.join(WORKLOADS)}.")
    if url:
        server = nullcontext(Server(url.rstrip("/"), token=os.environ.get("TOKEN", "")))
    else:
        server = sqlite_server(1) if os.environ.get("DB") == "sqlite" else postgresql_server(workers)
    with server as running:
        limit = measure_baseline(running.database_url) if running.database_url else 0.0
        if limit:
            print(f"Limit of the database: {limit:.0f} claim-and-complete steps/s with plain SQL.")
        bench = LoadedServer(running)
        print(HEAD)
        for name in selected:
            for result in WORKLOADS[name](bench):
                print(result.line(limit), flush=True)


if __name__ == "__main__":
    main()
