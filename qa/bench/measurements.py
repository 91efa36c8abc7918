"""The workloads, and their measurement on one server."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

from . import standalone, workloads
from .conductor_oss import CONDUCTOR_OSS
from .dispatch import Dispatch
from .load import Load, Outcome, run_in_process, run_load
from .processes import cpu_seconds
from .samples import Sample, summarize
from .servers import EMBEDDED, ROOT, Server

PAYLOAD_BYTES, DEEP_QUEUE, WIDTH, STANDALONE_TASKS, SQLITE_STARTS = 100_000, 5000, 3000, 2000, 2000
IDLE_POLLS = int(os.environ.get("IDLE_POLLS", "200"))
SDK_RUNS_PER_SECOND = 12
LIMIT_SECONDS, LEAST_SECONDS = 60.0, 5.0
MEMORY_INTERVAL_SECONDS = 1.0


@dataclass
class Options:
    """Options of a measurement."""

    seconds: float
    """Time in which runs are started, for each load."""
    connections: int
    """The number of connections that work."""
    ends_at: float = float("inf")
    """The time of `time.monotonic` at which the whole measurement ends."""

    @property
    def limit_seconds(self) -> float:
        """Time after which a load gives up."""
        return max(min(self.seconds + LIMIT_SECONDS, self.ends_at - time.monotonic()), LEAST_SECONDS)


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
    open_runs: int = 60
    profile: str = ""
    """The profile of the measured servers. Without one, it is that of the option DB."""
    changes: dict[str, Any] = field(default_factory=dict)
    """Changes of the load."""
    measure: "Callable[[Workload, Server, Options], list[Sample]]" = lambda *args: measure_load(*args)

    @property
    def is_plain_load(self) -> bool:
        """Return whether it starts runs for the time of the option, and nothing else."""
        return self.measure is Workload.measure and "max_runs" not in self.changes

    def load(self, server: Server, options: Options, **changes: Any) -> Load:
        values = {
            "url": server.url,
            "token": server.token,
            "definition": self.definitions[-1]["name"],
            "types": self.types,
            "tasks_a_run": self.tasks_a_run,
            "input": self.input,
            "output": self.output,
            "connections": options.connections,
            "open_runs": self.open_runs,
            "seconds": options.seconds,
            "limit_seconds": options.limit_seconds,
        }
        return Load(**(values | self.changes | changes))


def measure_load(workload: Workload, server: Server, options: Options) -> list[Sample]:
    return [_measure(workload.name, server, workload.load(server, options))]


def measure_starts_and_deep_queue(workload: Workload, server: Server, options: Options) -> list[Sample]:
    """Measure starts without workers, and then numbers of connections on the queue that the starts have filled."""
    samples = [_measure("starts", server, workload.load(server, options, connections=0, waits_for_end=False))]
    waiting, seconds = samples[0].tasks, options.seconds / len(CONNECTIONS)
    for count in CONNECTIONS:
        is_last = count == CONNECTIONS[-1]
        load = workload.load(
            server,
            options,
            connections=count,
            starters=0,
            seconds=seconds,
            waits_for_end=is_last,
            waiting_tasks=waiting,
        )
        samples.append(_measure(f"deep_queue_{count}", server, load))
        waiting -= samples[-1].tasks
    return samples


def measure_sdk(workload: Workload, server: Server, options: Options) -> list[Sample]:
    """Measure the workers of the official Python SDK: from the first start to the end of the last run."""
    command = [sys.executable, "-m", "qa.bench.sdk_workers", server.url, *server.key, *workload.types]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout
        if process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{server.name}: the workers of the SDK do not work.")
        runs = round(options.seconds * SDK_RUNS_PER_SECOND)
        load = workload.load(server, options, connections=0, max_runs=runs)
        before = cpu_seconds(process.pid)
        sample = _measure(workload.name, server, load)
        sample.client_cpu += cpu_seconds(process.pid) - before
        return [sample]
    finally:
        process.communicate(timeout=30)


def measure_dispatch(workload: Workload, server: Server, options: Options) -> list[Sample]:
    """Measure the time from a start to the arrival of its task: alone, beside and among other long polls."""
    found = []
    for name, idle, is_shared, samples in (
        ("dispatch", 0, False, 200),
        ("waiting", IDLE_POLLS, False, 0),
        ("dispatch_idle", IDLE_POLLS, False, 200),
        ("dispatch_shared", IDLE_POLLS, True, 200),
    ):
        dispatch = Dispatch(
            server.url, server.token, "bench_single", workload.types[0], idle, is_shared, samples, options.seconds
        )
        began, cpu = time.monotonic(), server.cpu_seconds()
        latencies = run_in_process("dispatch", dispatch)
        latency = summarize(latencies) if latencies else []
        rate = 1000 / latency[0] if latency else 0.0
        used = {part: seconds - cpu[part] for part, seconds in server.cpu_seconds().items()}
        seconds = time.monotonic() - began
        found.append(
            Sample(name, server.name, 0, rate, samples, seconds, cpu=used, latency_of="dispatch", latency_ms=latency)
        )
    return found


def measure_standalone(workload: Workload, server: Server, options: Options) -> list[Sample]:
    """Measure claimWork and reportCompleted on tasks that were created before."""
    if server.name == CONDUCTOR_OSS:
        return []
    load = standalone.StandaloneLoad(server.url, STANDALONE_TASKS, 4, is_working=False)
    run_in_process("standalone", load)
    load.is_working = True
    with observe(server) as sample:
        outcome = Outcome(**run_in_process("standalone", load))
    return [_complete(sample, workload.name, outcome, outcome.tasks)]


def _measure(name: str, server: Server, load: Load) -> Sample:
    with observe(server) as sample:
        outcome = run_load(load)
    if not outcome.is_complete:
        terminate_runs(server, load.definition)
    _check(server, load, outcome)
    if load.connections:
        tasks = outcome.tasks
    else:
        tasks = (outcome.runs - outcome.open_runs) * load.tasks_a_run if load.waits_for_end else outcome.runs
    return _complete(sample, name, outcome, tasks)


def _complete(sample: Sample, name: str, outcome: Outcome, tasks: int) -> Sample:
    if outcome.errors:
        print(f"{sample.server}, {name}: {outcome.errors}: {outcome.examples}", file=sys.stderr, flush=True)
    sample.workload, sample.seconds, sample.is_complete = name, outcome.seconds, outcome.is_complete
    sample.tasks, sample.rate = tasks + outcome.late_tasks, tasks / outcome.seconds
    sample.client_cpu, sample.errors = outcome.client_cpu, outcome.errors
    sample.latency_of = "report" if outcome.reports_ms else "start"
    sample.latency_ms = summarize(outcome.reports_ms or outcome.starts_ms)
    return sample


def _check(server: Server, load: Load, outcome: Outcome) -> None:
    """Check the status of the first run of a load that waits for the end of its runs.

    Raises:
        RuntimeError: the run has not completed.
    """
    if not (outcome.is_complete and outcome.first_run and load.waits_for_end):
        return
    status, body = server.client.get(f"/workflow/{outcome.first_run}?includeTasks=false")
    if status != 200 or orjson.loads(body)["status"] != "COMPLETED":
        raise RuntimeError(f"{server.name}: the run {outcome.first_run} has not completed: {status} {body[:300]!r}")


@contextmanager
def observe(server: Server) -> Iterator[Sample]:
    """Observe a server. The sample has the CPU time, the memory and the counts of the database afterwards."""
    sample, stop = Sample("", server.name, 0, 0.0, 0, 0.0), threading.Event()
    thread = threading.Thread(target=_observe_memory, args=(server, sample.peak_mb, stop), daemon=True)
    counters = server.database.count() if server.database else None
    cpu = server.cpu_seconds()
    thread.start()
    try:
        yield sample
    finally:
        stop.set()
        thread.join()
    sample.cpu = {part: seconds - cpu[part] for part, seconds in server.cpu_seconds().items()}
    if server.database and counters:
        sample.counts = server.database.counts_since(*counters)


def _observe_memory(server: Server, peak: dict[str, float], stop: threading.Event) -> None:
    while True:
        parts = server.pss_mb()
        database = parts.pop("PostgreSQL", 0.0)
        for name, size in (("server", sum(parts.values())), ("database", database)):
            peak[name] = max(peak.get(name, 0.0), size)
        if stop.wait(MEMORY_INTERVAL_SECONDS):
            return


def terminate_runs(server: Server, definition: str) -> None:
    """Terminate the open runs of a definition."""
    client = server.client
    with suppress(OSError, EOFError):
        for run in orjson.loads(client.get(f"/workflow/running/{definition}")[1]):
            client.send(f"DELETE {client.base}/workflow/{run} HTTP/1.1\r\n{client.headers}\r\n".encode())


def register(server: Server, selected: list[Workload]) -> None:
    """Register the definitions of workflows and tasks.

    Raises:
        RuntimeError: the server rejected them.
    """
    if server.database:
        server.database.prepare_counters()
    definitions = [each for workload in selected for each in workload.definitions]
    tasks = [workloads.task_definition(name) for workload in selected for name in workload.types]
    for path, values, method in (("/metadata/taskdefs", tasks, "POST"), ("/metadata/workflow", definitions, "PUT")):
        status, body = server.client.post(path, values, method)
        if status not in (200, 204):
            raise RuntimeError(f"{server.name} rejected the definitions: {status} {body[:500]!r}")


SINGLE = workloads.workflow("bench_single", workloads.simple("bench_single_step"))
PAYLOAD = workloads.workflow("bench_payload", workloads.simple("bench_payload_step", text="${workflow.input.text}"))
SDK_STEPS = [f"bench_sdk_step_{number}" for number in range(5)]
SDK = workloads.workflow(workloads.SDK_DEFINITION, *map(workloads.simple, SDK_STEPS))
STEPS = [f"bench_step_{number}" for number in range(5)]
TEXT = {"text": "x" * PAYLOAD_BYTES}
CONNECTIONS = (1, 16, 64)
"""The numbers of connections on a deep queue. The last one empties it."""
POLLS = {"takes_next": False}
CHAIN = Workload("chain", "chain of 5", [workloads.chain(5)], STEPS, 5)
WORKLOADS = [
    CHAIN,
    Workload("chain_polled", "chain of 5, poll and report", [workloads.chain(5)], STEPS, 5, changes=POLLS),
    Workload("sdk", "chain of 5, workers of the Python SDK", [SDK], SDK_STEPS, 5, measure=measure_sdk),
    Workload(
        "starts", "", [SINGLE], ["bench_single_step"], changes={"max_runs": DEEP_QUEUE, "starters": 16},
        measure=measure_starts_and_deep_queue,
    ),
    Workload(
        "sqlite_starts", f"SQLite: {SQLITE_STARTS:,} starts by 20 clients", [SINGLE], ["bench_single_step"],
        profile=EMBEDDED,
        changes={"max_runs": SQLITE_STARTS, "starters": 20, "connections": 0, "waits_for_end": False},
    ),
    Workload("sqlite_chain", "SQLite: chain of 5", [workloads.chain(5)], STEPS, 5, profile=EMBEDDED),
    Workload(
        "fan_out", "fan-out of 50, join", [workloads.fan_out()], ["bench_branch"], 50, workloads.branches(50),
        open_runs=6,
    ),
    Workload(
        "fan_out_wide", f"fan-out of {WIDTH:,}, join", [workloads.fan_out("bench_wide")], ["bench_wide_branch"], WIDTH,
        workloads.branches(WIDTH, "bench_wide_branch"), changes={"max_runs": 1, "starters": 1},
    ),
    Workload("choices", "INLINE, SWITCH, DO_WHILE × 10", [workloads.choices(10)], ["bench_case"], 10, open_runs=20),
    Workload("nested", "sub-workflows, two levels", workloads.nested_twice(), ["bench_innermost"]),
    Workload("payload", "100 KB in and out", [PAYLOAD], ["bench_payload_step"], 1, TEXT, TEXT, open_runs=30),
    Workload("standalone", "claimWork, reportCompleted", [], [], measure=measure_standalone),
    Workload("dispatch", "", [SINGLE], ["bench_single_step"], measure=measure_dispatch),
]  # fmt: skip
TARGETS = ("chain", "chain_polled", "sdk", "starts", "sqlite_starts", "sqlite_chain")
"""The workloads of the summary."""
LABELS = {
    **{workload.name: workload.label for workload in WORKLOADS},
    "starts": "starts",
    **{
        f"deep_queue_{count}": f"out of a queue of {DEEP_QUEUE:,}, connections: {count}"
        for count in sorted(CONNECTIONS)
    },
    "dispatch": "dispatch of one task",
    "waiting": f"{IDLE_POLLS:,} long polls, no task",
    "dispatch_idle": f"dispatch beside {IDLE_POLLS:,} long polls of other queues",
    "dispatch_shared": f"dispatch among {IDLE_POLLS:,} long polls of its queue",
}
"""The label of each sample by its workload."""
