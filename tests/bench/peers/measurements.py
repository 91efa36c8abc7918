"""The workloads of the comparison, and their measurement on one server."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.bench import workloads
from tests.bench.client import Client

from .dispatch import Dispatch, measure_dispatch
from .load import Load, Outcome, run_load
from .samples import Sample, percentile
from .systems import System

PAYLOAD_BYTES, DEEP_QUEUE, WIDTH, IDLE_POLLS = 100_000, 2500, 3000, 200
WIDE_LIMIT_SECONDS, LIMIT_SECONDS = 60.0, 90.0
MEMORY_INTERVAL_SECONDS = 1.0


@dataclass
class Options:
    """Options of the comparison."""

    seconds: float
    workers: dict[str, int]
    """The number of connections that poll, by server."""


@dataclass
class Workload:
    """A kind of load: definitions, and the load that one round puts on a server."""

    name: str
    label: str
    definitions: list[dict[str, Any]]
    types: list[str]
    tasks_a_run: int = 1
    input: dict[str, Any] = field(default_factory=lambda: {"order": 1})
    output: dict[str, Any] = field(default_factory=lambda: {"done": True})
    open_runs: int = 100
    measure: "Callable[[Workload, System, Options], list[Sample]]" = lambda *args: measure_load(*args)

    def load(self, system: System, options: Options, **changes: Any) -> Load:
        values = {
            "url": system.url,
            "token": system.token,
            "definition": self.definitions[-1]["name"],
            "types": self.types,
            "tasks_a_run": self.tasks_a_run,
            "input": self.input,
            "output": self.output,
            "workers": options.workers[system.name],
            "open_runs": self.open_runs,
            "seconds": options.seconds,
            "limit_seconds": options.seconds + LIMIT_SECONDS,
        }
        return Load(**(values | changes))


def measure_load(workload: Workload, system: System, options: Options) -> list[Sample]:
    return [_measure(workload.name, system, workload.load(system, options))]


def measure_wide_fan_out(workload: Workload, system: System, options: Options) -> list[Sample]:
    """Measure one run with many branches. A slow server has not completed it at the limit."""
    load = workload.load(system, options, max_runs=1, starters=1, limit_seconds=WIDE_LIMIT_SECONDS)
    return [_measure(workload.name, system, load)]


def measure_starts_and_deep_queue(workload: Workload, system: System, options: Options) -> list[Sample]:
    """Measure starts without workers, and then the workers on the queue that the starts have filled."""
    load = workload.load(system, options, max_runs=DEEP_QUEUE, starters=16, is_serving=False)
    starts = _measure("starts", system, load)
    drain = workload.load(system, options, is_starting=False, waiting_tasks=starts.tasks)
    return [starts, _measure("deep_queue", system, drain)]


def measure_dispatch_latency(workload: Workload, system: System, options: Options) -> list[Sample]:
    """Measure the time from a start to the arrival of the task, alone and beside idle long polls."""
    samples = []
    for name, idle in (("dispatch", 0), ("dispatch_idle", IDLE_POLLS)):
        dispatch = Dispatch(
            system.url, system.token, "bench_single", "bench_single_step", idle, seconds=options.seconds
        )
        latencies = measure_dispatch(dispatch)
        middle = percentile(latencies, 0.5)
        last = percentile(latencies, 0.99)
        rate = 1000 / middle if middle else 0.0
        samples.append(Sample(name, system.name, 0, rate, len(latencies), options.seconds, latency_ms=[middle, last]))
    return samples


def _measure(name: str, system: System, load: Load) -> Sample:
    counters, cpu = system.database.count_writes(), system.cpu_seconds()
    with observe_memory(system) as peak:
        outcome = run_load(load)
    used = {part: seconds - cpu[part] for part, seconds in system.cpu_seconds().items()}
    writes = system.database.writes_since(counters)
    if outcome.errors:
        print(f"{system.name}, {name}: {outcome.error_count} errors: {outcome.errors}", file=sys.stderr, flush=True)
    tasks = outcome.tasks if load.is_serving else outcome.runs
    if not outcome.is_complete:
        print(f"{system.name}, {name}: not complete after {outcome.seconds:.0f} s", file=sys.stderr, flush=True)
        terminate_runs(system, load.definition)
    _check(system, outcome)
    return Sample(
        name,
        system.name,
        0,
        tasks / outcome.seconds,
        tasks,
        outcome.seconds,
        outcome.is_complete,
        used,
        outcome.client_cpu,
        peak,
        [percentile(outcome.reports_ms, 0.5), percentile(outcome.reports_ms, 0.99)],
        writes.wal_bytes,
        writes.page_image_bytes,
        writes.index_entries,
        {name: getattr(writes, name) for name in ("inserted", "updated", "updated_hot", "deleted")},
        outcome.error_count,
        outcome.errors[0] if outcome.errors else "",
    )


def _check(system: System, outcome: Outcome) -> None:
    """Check the status of the first run of a complete load with workers.

    Raises:
        RuntimeError: the run has not completed.
    """
    if not (outcome.is_complete and outcome.first_run and outcome.tasks):
        return
    status, body = Client(system.url, system.token).get(f"/workflow/{outcome.first_run}?includeTasks=false")
    if status != 200 or orjson.loads(body)["status"] != "COMPLETED":
        raise RuntimeError(f"{system.name}: the run {outcome.first_run} has not completed: {status} {body[:300]!r}")


@contextmanager
def observe_memory(system: System) -> Iterator[dict[str, float]]:
    """Observe the memory of the server and its database. The dictionary has the highest values afterwards."""
    peak = {"server": 0.0, "database": 0.0}
    stop = threading.Event()

    def observe() -> None:
        while True:
            parts = system.pss_mb()
            database = parts.pop("PostgreSQL")
            peak["server"] = max(peak["server"], sum(parts.values()))
            peak["database"] = max(peak["database"], database)
            if stop.wait(MEMORY_INTERVAL_SECONDS):
                return

    thread = threading.Thread(target=observe, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()


def terminate_runs(system: System, definition: str) -> None:
    """Terminate the open runs of a definition."""
    client = Client(system.url, system.token)
    with suppress(OSError, EOFError):
        for run in orjson.loads(client.get(f"/workflow/running/{definition}")[1]):
            client.send(f"DELETE {client.base}/workflow/{run} HTTP/1.1\r\n{client.headers}\r\n".encode())


def register(system: System, selected: list[Workload]) -> None:
    """Register the definitions of workflows and tasks.

    Raises:
        RuntimeError: the server rejected them.
    """
    client = Client(system.url, system.token)
    definitions = [each for workload in selected for each in workload.definitions]
    tasks = [workloads.task_definition(name) for workload in selected for name in workload.types]
    for status, body in (
        client.post("/metadata/taskdefs", tasks),
        client.post("/metadata/workflow", definitions, method="PUT"),
    ):
        if status not in (200, 204):
            raise RuntimeError(f"{system.name} rejected the definitions: {status} {body[:500]!r}")


SINGLE = workloads.workflow("bench_single", workloads.simple("bench_single_step"))
PAYLOAD = workloads.workflow("bench_payload", workloads.simple("bench_payload_step", text="${workflow.input.text}"))
STEPS = [f"bench_step_{number}" for number in range(5)]
TEXT = {"text": "x" * PAYLOAD_BYTES}
CHAIN = Workload("chain", "chain of 5", [workloads.chain(5)], STEPS, 5)
WORKLOADS = [
    CHAIN,
    Workload(
        "fan_out", "fan-out of 50, join", [workloads.fan_out()], ["bench_branch"], 50, workloads.branches(50),
        open_runs=6,
    ),
    Workload(
        "fan_out_wide", f"fan-out of {WIDTH:,}, join", [workloads.fan_out("bench_wide")], ["bench_wide_branch"], WIDTH,
        workloads.branches(WIDTH, "bench_wide_branch"), measure=measure_wide_fan_out,
    ),
    Workload("choices", "INLINE, SWITCH, DO_WHILE × 10", [workloads.choices(10)], ["bench_case"], 10, open_runs=20),
    Workload("nested", "sub-workflows, two levels", workloads.nested_twice(), ["bench_innermost"], open_runs=60),
    Workload(
        "starts", f"starts, and {DEEP_QUEUE:,} waiting tasks", [SINGLE], ["bench_single_step"],
        measure=measure_starts_and_deep_queue,
    ),
    Workload("payload", "100 KB in and out", [PAYLOAD], ["bench_payload_step"], 1, TEXT, TEXT, open_runs=30),
    Workload("dispatch", "dispatch", [SINGLE], ["bench_single_step"], measure=measure_dispatch_latency),
]  # fmt: skip
LABELS = {
    **{workload.name: workload.label for workload in WORKLOADS},
    "starts": "starts only",
    "deep_queue": f"out of a queue of {DEEP_QUEUE:,}",
    "dispatch": "dispatch of one task, alone",
    "dispatch_idle": f"dispatch beside {IDLE_POLLS} idle long polls",
}
