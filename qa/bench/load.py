"""Load on a Conductor-compatible server: `python -m qa.bench.load` with a `Load` as JSON on standard input.

Starters keep a number of runs open. Each connection works as the task runners of the SDKs do: it reports a task by
`POST /tasks/update-v2`, executes the task of the reply, and polls if there was none.
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
MAX_EXAMPLES = 5


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
    connections: int = 16
    """Connections that work, each for one task type. With 0, only runs are started."""
    takes_next: bool = True
    """Reports by `update-v2`. Otherwise by `POST /tasks`, with a poll before each task."""
    starters: int = 4
    """Connections that start runs."""
    open_runs: int = 100
    """The number of runs that are started and not yet worked on completely, at most."""
    seconds: float = 8.0
    """Time in which runs are started."""
    max_runs: int = 0
    """The number of runs, unless 0, instead of a time."""
    limit_seconds: float = 60.0
    """Time after which the load gives up, and the figures are those of a part."""
    waiting_tasks: int = 0
    """Tasks that earlier runs have left in the queue."""
    waits_for_end: bool = True
    """The load ends when all runs have ended. Otherwise it ends when all are started, or after `seconds` of work."""


@dataclass
class Outcome:
    """What happened."""

    tasks: int = 0
    late_tasks: int = 0
    """Tasks that were claimed before the end of the load, and reported after it."""
    runs: int = 0
    open_runs: int = 0
    """Runs that had not ended when the load gave up."""
    seconds: float = 0.0
    client_cpu: float = 0.0
    is_complete: bool = True
    reports_ms: list[float] = field(default_factory=list)
    starts_ms: list[float] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)
    """The number of failed requests by request and status."""
    examples: list[str] = field(default_factory=list)
    """The first errors."""
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
        scripts += [self.start_runs() for _ in range(load.starters)]
        scripts += [self.work(load.types[number % len(load.types)], number) for number in range(load.connections)]
        cpu = time.process_time()
        self.began = time.perf_counter()
        run_scripts(load.url, scripts, lambda: self.has_ended)
        outcome.client_cpu = time.process_time() - cpu
        return outcome

    def start_runs(self) -> Script:
        load, outcome = self.load, self.outcome
        request = self.requests.post(f"/workflow/{load.definition}", orjson.dumps(load.input))
        while not self.has_ended and not self.all_are_started():
            if load.connections and self.begun_runs - outcome.tasks / load.tasks_a_run >= load.open_runs:
                yield None
                continue
            self.begun_runs += 1
            sent = time.perf_counter()
            reply = yield request
            outcome.starts_ms.append((time.perf_counter() - sent) * 1000)
            if self._is_success(reply, "start"):
                outcome.runs += 1
                outcome.first_run = outcome.first_run or reply.body.decode()
            else:
                self.begun_runs -= 1

    def all_are_started(self) -> bool:
        if not self.load.starters:
            return True
        if self.load.max_runs:
            return self.begun_runs >= self.load.max_runs
        return time.perf_counter() - self.began >= self.load.seconds

    def work(self, name: str, number: int) -> Script:
        load, outcome = self.load, self.outcome
        poll = self.requests.get(f"/tasks/poll/batch/{name}?workerid=bench-{number}&count=1&timeout={POLL_MS}")
        result = orjson.dumps({"status": "COMPLETED", "workerId": f"bench-{number}", "outputData": load.output})[1:]
        ids = dict[bytes, bytes]()
        while ids or not self.has_ended:
            if not ids:
                reply = yield poll
                ids = dict(IDS.findall(reply.body)) if self._is_success(reply, "poll") else {}
                continue
            names = b'{"workflowInstanceId":"%b","taskId":"%b",' % (ids[b"workflowInstanceId"], ids[b"taskId"])
            takes_next = load.takes_next and not self.has_ended
            path, sent = "/tasks/update-v2" if takes_next else "/tasks", time.perf_counter()
            reply = yield self.requests.post(path, names + result)
            is_success = self._is_success(reply, "report")
            ids = dict(IDS.findall(reply.body)) if is_success and takes_next else {}
            if self.has_ended:
                outcome.late_tasks += is_success
            else:
                outcome.tasks += is_success
                outcome.reports_ms.append((time.perf_counter() - sent) * 1000)

    def observe_end(self) -> Script:
        """End the load when all runs are started or have ended, or at its limit."""
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
            is_open = bool(load.connections) and outcome.tasks < expected
            is_started = self.all_are_started() and outcome.runs == self.begun_runs
            if is_started and not load.waits_for_end and (not load.connections or outcome.seconds > load.seconds):
                break
            if is_open or not is_started or now - checked < END_CHECK_SECONDS:
                yield None
            else:
                checked = now
                reply = yield running
                outcome.seconds = time.perf_counter() - self.began
                if self._is_success(reply, "running"):
                    outcome.open_runs = len(orjson.loads(reply.body))
                    if not outcome.open_runs:
                        break
        self.has_ended = True

    def _is_success(self, reply: Reply, request: str) -> bool:
        if reply.status in (200, 204):
            return True
        errors, name = self.outcome.errors, f"{request}: {reply.status}"
        errors[name] = errors.get(name, 0) + 1
        if len(self.outcome.examples) < MAX_EXAMPLES:
            self.outcome.examples.append(f"{name} {reply.body[:200]!r}")
        return False


def run_in_process(module: str, value: Any) -> Any:
    """Run the main function of a module of this package in a process of its own, and return what it prints as JSON.

    `value`: a data class, which the module reads from its standard input as JSON.

    Raises:
        RuntimeError: it failed.
    """
    command = [sys.executable, "-m", f"{__package__}.{module}"]
    process = subprocess.run(
        command, input=json.dumps(asdict(value)), capture_output=True, text=True, check=False, start_new_session=True
    )
    if process.returncode:
        raise RuntimeError(f"The load failed: {process.stderr[-2000:]}")
    return json.loads(process.stdout)


def run_load(load: Load) -> Outcome:
    """Run the load in a process of its own."""
    return Outcome(**run_in_process("load", load))


def main() -> None:
    print(json.dumps(asdict(Clients(Load(**json.load(sys.stdin))).run())))


if __name__ == "__main__":
    main()
