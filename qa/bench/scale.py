"""Costs with many stored runs, compared with 10,000: `make bench SCALE=10m` (or 10k, 100k, 1m).

It fills one database with 10,000 and one with SCALE generated runs, which started within a year; every tenth has a task
with an attempt and three entries of history. It then measures starts, claims and reports, every search and list of the
API, and the pages in both, alternately. A row shows the CPU time of the server and its connection to the database in
milliseconds (the lowest median of the rounds), and the ratio of both.

A row whose number of hits differs measures results of another size: with 10,000 runs, a list may have one row, and a
full page of a hundred with ten millions.

DB=sqlite measures the database of the embedded profile; FOLDER=/tmp/filled keeps the databases; ROUNDS=3 sets the
number of rounds; ONLY=text selects the rows whose name contains the text.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

SCALES = {"10k": 10_000, "100k": 100_000, "1m": 1_000_000, "10m": 10_000_000}
BASE = "10k"
MAX_RATIO, MAX_PAGE_MS, LEAST_MS = 1.2, 300, 3
"""A row is marked above the ratio if the difference exceeds LEAST_MS as well."""
COMMAND_COUNT = 60

LISTS = (
    "api/workflow/running/flow_00",
    "api/workflow/flow_00/correlated/c-76?includeClosed=true",
    "api/workflow/RUN",
    "api/workflow/RUN?includeTasks=false",
    "api/workflow/RUN/status",
    "api/workflow/RUN/tasks",
    "api/workflow/search-v2?size=20",
    "api/workflow/search-by-tasks?size=20&query=taskDefName = task_000",
    "api/tasks/search-v2?size=20",
    "api/tasks/queue/all",
    "api/tasks/queue/all/verbose",
    "api/tasks/queue/size?taskType=task_000",
    "api/tasks/queue/polldata/all",
    "api/admin/task/task_000?count=20",
    "api/metadata/workflow",
    "api/metadata/taskdefs",
    "api/scheduler/search/executions",
    "api/event/execution",
    "health/ready",
    "metrics",
)
"""Addresses that list or count stored rows."""

Row = tuple[float, str]
"""CPU time in milliseconds, and a summary of the result."""


def main() -> None:
    """Fill and measure both databases, and print the table."""
    scale = os.environ.get("SCALE", "1m").lower()
    if scale not in SCALES:
        sys.exit(f"SCALE is refused: use one of {', '.join(SCALES)}.")
    with TemporaryDirectory(prefix="conductor-scale-") as folder:
        root = Path(os.environ.get("FOLDER") or folder)
        rounds: dict[str, list[dict[str, Row]]] = {BASE: [], scale: []}
        for _ in range(int(os.environ.get("ROUNDS", "3"))):
            for name, measured in rounds.items():
                measured.append(measure_in_process(root / name, SCALES[name]))
        print_table(best_rows(rounds[BASE]), best_rows(rounds[scale]), scale)


def measure_in_process(folder: Path, runs: int) -> dict[str, Row]:
    """Measure in a process of its own, because Django has one database per process."""
    sizes = {"RUNS": str(runs), "TASKS": str(runs // 10), "DAYS": "365"}
    command = [sys.executable, "-m", "qa.bench.scale", "measure"]
    environment = os.environ | sizes | {"FOLDER": str(folder), "TRIES": os.environ.get("TRIES", "5")}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    rows: dict[str, tuple[float, str]] = {}
    for line in process.stdout:
        if line.startswith("{"):
            rows |= {name: tuple(row) for name, row in json.loads(line).items()}
        else:
            print(line, end="", flush=True)
    if process.wait():
        sys.exit(process.returncode)
    return rows


def best_rows(rounds: list[dict[str, Row]]) -> dict[str, Row]:
    """Return the row with the lowest time for each name."""
    return {name: min((measured[name] for measured in rounds), key=lambda row: row[0]) for name in rounds[0]}


def print_table(base: dict[str, Row], scaled: dict[str, Row], scale: str) -> None:
    print(f"{'CPU ms':<55}{BASE:>8}{scale:>8}{'ratio':>7}  hits")
    for name, (cpu, hits) in scaled.items():
        before, hits_before = base[name]
        ratio = cpu / before if before else 0.0
        same = hits == hits_before
        marks = ["SLOWER" if same else "more results"] if ratio > MAX_RATIO and cpu - before > LEAST_MS else []
        marks += ["SLOW PAGE"] if name.startswith("page ") and cpu > MAX_PAGE_MS else []
        shown = hits if same else f"{hits_before} | {hits}"
        print(f"{name[:54]:<55}{before:>8.1f}{cpu:>8.1f}{ratio:>7.2f}  {shown} {' '.join(marks)}", flush=True)


def measure() -> None:
    """Measure one database, and print each row as JSON."""
    from .search import open_database

    with open_database():
        for name, row in measured_rows():
            print(json.dumps({name: row}), flush=True)


def measured_rows() -> Iterator[tuple[str, Row]]:
    from django.test import Client

    from . import pages, search

    pages.fill_other_tables()
    search.set_clock_to_newest_run()
    client = Client(raise_request_exception=True)
    client.force_login(search.superuser())
    selected, run = os.environ.get("ONLY", ""), search.id_of(search.RUNS // 20 * 10)
    requests: dict[str, Callable[[], Any]] = {}
    for kind, address, queries in (
        ("runs", "/api/workflow/search", search.WORKFLOWS),
        ("tasks", "/api/tasks/search", search.TASKS),
    ):
        requests |= {
            f"{kind}: {name}": partial(client.get, address, {"size": 100, **query}) for name, query in queries.items()
        }
    requests |= {f"list {name}": partial(client.get, f"/{name}".replace("RUN", run)) for name in LISTS}
    all_pages = {**pages.list_run_pages(), **pages.list_other_pages()}
    requests |= {f"page {name}": partial(client.get, address) for name, address in all_pages.items()}
    if not selected or "command" in selected:
        yield from measure_commands(client)
    for name, send in requests.items():
        if selected in name:
            _, cpus, reply = search.measure_request(send)
            yield name, (median(cpus), describe_hits(reply))


def describe_hits(reply: Any) -> str:
    if reply.status_code != 200:
        return f"status {reply.status_code}"
    if "json" not in reply.headers.get("Content-Type", ""):
        return ""
    found = reply.json()
    if isinstance(found, dict) and "results" in found:
        return f"{len(found['results'])} of {found['totalHits']}"
    return f"{len(found)} rows" if isinstance(found, list) else ""


def completion(task: dict[str, Any]) -> dict[str, Any]:
    ids = {name: task[name] for name in ("workflowInstanceId", "taskId")}
    return {**ids, "workerId": "w", "status": "COMPLETED", "outputData": {"done": True}}


def measure_commands(client: Any) -> Iterator[tuple[str, Row]]:
    """Yield the median CPU times of starts, claims and reports of two runs with two tasks each."""
    from . import workloads
    from .search import cpu_ms

    steps = ["bench_step_0", "bench_step_1"]
    put = partial(client.generic, content_type="application/json")
    put("PUT", "/api/metadata/workflow", json.dumps([workloads.chain(2)]))
    put("POST", "/api/metadata/taskdefs", json.dumps([workloads.task_definition(name) for name in steps]))
    times: dict[str, list[float]] = {
        "start": [],
        "claim": [],
        "report": [],
        "report and claim": [],
        "claim nothing": [],
    }

    def send(name: str, method: str, address: str, body: Any = None) -> Any:
        began = cpu_ms()
        reply = put(method, address, b"" if body is None else json.dumps(body))
        times[name].append(cpu_ms() - began)
        assert reply.status_code == 200, (address, reply.status_code, reply.content[:200])
        return reply

    for number in range(COMMAND_COUNT):
        for _ in range(2):
            send("start", "POST", "/api/workflow/bench_chain_2", {"order": number})
        for step in steps:
            poll = f"/api/tasks/poll/batch/{step}?workerid=w&count=1&timeout=0"
            [task] = send("claim", "GET", poll).json()
            task = send("report and claim", "POST", "/api/tasks/update-v2", completion(task)).json()
            send("report", "POST", "/api/tasks", completion(task))
            send("claim nothing", "GET", poll)
    for name, measured in times.items():
        yield f"command: {name}", (median(measured), "")


if __name__ == "__main__":
    measure() if "measure" in sys.argv else main()
