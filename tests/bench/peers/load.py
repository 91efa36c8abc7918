"""Load on a Conductor-compatible server: `python -m tests.bench.peers.load` with a `Load` as JSON on standard input.

Starters keep a number of runs open, workers poll one task at a time and report it by `POST /tasks`.
"""

import json
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from .connections import Reply, Requests, Script, run_scripts

IDS = re.compile(rb'"(taskId|workflowInstanceId)" ?: ?"([^"]+)"')
POLL_MS = 100
END_CHECK_SECONDS = 0.05


@dataclass
class Load:
    """What the clients do."""

    url: str
    token: str
    definition: str
    types: list[str]
    tasks_a_run: int
    input: dict[str, Any]
    output: dict[str, Any] = field(default_factory=lambda: {"done": True})
    workers: int = 16
    starters: int = 4
    open_runs: int = 100
    """The number of runs that are started and not yet worked on completely, at most."""
    seconds: float = 8.0
    """Time in which runs are started. The load ends when all of them have ended."""
    max_runs: int = 0
    """The number of runs, unless 0, instead of a time."""
    limit_seconds: float = 60.0
    """Time after which the load gives up, and the figures are those of a part."""
    is_serving: bool = True
    is_starting: bool = True
    waiting_tasks: int = 0
    """Tasks that earlier runs have left in the queue."""


@dataclass
class Outcome:
    """What happened."""

    tasks: int = 0
    runs: int = 0
    seconds: float = 0.0
    client_cpu: float = 0.0
    is_complete: bool = True
    reports_ms: list[float] = field(default_factory=list)
    empty_polls: int = 0
    errors: list[str] = field(default_factory=list)
    error_count: int = 0
    first_run: str = ""


class Clients:
    """The scripts of a load, and what they have done so far."""

    def __init__(self, load: Load) -> None:
        self.load, self.outcome = load, Outcome()
        self.requests = Requests(load.url, load.token)
        self.began = time.perf_counter()
        self.begun_runs = 0
        self.has_ended = False

    def run(self) -> Outcome:
        load, outcome = self.load, self.outcome
        scripts: list[Script] = [self.observe_end()]
        if load.is_starting:
            scripts += [self.start_runs() for _ in range(load.starters)]
        if load.is_serving:
            scripts += [self.work(load.types[number % len(load.types)], number) for number in range(load.workers)]
        cpu = time.process_time()
        self.began = time.perf_counter()
        run_scripts(load.url, scripts, lambda: self.has_ended)
        outcome.client_cpu = time.process_time() - cpu
        return outcome

    def start_runs(self) -> Script:
        load = self.load
        request = self.requests.post(f"/workflow/{load.definition}", orjson.dumps(load.input))
        while not self.has_ended and not self.all_are_started():
            if load.is_serving and self.begun_runs - self.outcome.tasks / load.tasks_a_run >= load.open_runs:
                yield None
                continue
            self.begun_runs += 1
            reply = yield request
            if self._is_success(reply, "start"):
                self.outcome.runs += 1
                self.outcome.first_run = self.outcome.first_run or reply.body.decode()
            else:
                self.begun_runs -= 1

    def all_are_started(self) -> bool:
        if self.load.max_runs:
            return self.begun_runs >= self.load.max_runs
        return time.perf_counter() - self.began >= self.load.seconds

    def work(self, name: str, number: int) -> Script:
        poll = self.requests.get(f"/tasks/poll/batch/{name}?workerid=bench-{number}&count=1&timeout={POLL_MS}")
        result = orjson.dumps({"status": "COMPLETED", "workerId": f"bench-{number}", "outputData": self.load.output})
        outcome = self.outcome
        while not self.has_ended:
            reply = yield poll
            if not self._is_success(reply, "poll"):
                continue
            ids = dict(IDS.findall(reply.body))
            if not ids:
                outcome.empty_polls += 1
                continue
            sent = time.perf_counter()
            names = b'{"workflowInstanceId":"%b","taskId":"%b",' % (ids[b"workflowInstanceId"], ids[b"taskId"])
            reply = yield self.requests.post("/tasks", names + result[1:])
            outcome.reports_ms.append((time.perf_counter() - sent) * 1000)
            if self._is_success(reply, "update"):
                outcome.tasks += 1

    def observe_end(self) -> Script:
        """End the load when all runs have ended, or at its limit."""
        load, outcome = self.load, self.outcome
        running = self.requests.get(f"/workflow/running/{load.definition}")
        checked = 0.0
        while not self.has_ended:
            now = time.perf_counter()
            outcome.seconds = now - self.began
            if outcome.seconds > load.limit_seconds:
                outcome.is_complete = False
                break
            expected = self.begun_runs * load.tasks_a_run + load.waiting_tasks
            is_started = not load.is_starting or (self.all_are_started() and outcome.runs == self.begun_runs)
            if not is_started or (load.is_serving and outcome.tasks < expected) or now - checked < END_CHECK_SECONDS:
                yield None
            elif not load.is_serving:
                break
            else:
                checked = now
                reply = yield running
                outcome.seconds = time.perf_counter() - self.began
                if self._is_success(reply, "running") and not orjson.loads(reply.body):
                    break
        self.has_ended = True

    def _is_success(self, reply: Reply, request: str) -> bool:
        if reply.status in (200, 204):
            return True
        self.outcome.error_count += 1
        if len(self.outcome.errors) < 5:
            self.outcome.errors.append(f"{request}: {reply.status} {reply.body[:200]!r}")
        return False


def run_load(load: Load) -> Outcome:
    """Run the load in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.peers.load"]
    process = subprocess.run(
        command, input=json.dumps(asdict(load)), capture_output=True, text=True, check=False, start_new_session=True
    )
    if process.returncode:
        raise RuntimeError(f"The load failed: {process.stderr[-2000:]}")
    return Outcome(**json.loads(process.stdout))


def main() -> None:
    print(json.dumps(asdict(Clients(Load(**json.load(sys.stdin))).run())))


if __name__ == "__main__":
    main()
