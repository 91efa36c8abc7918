"""Time from the start of a run until a waiting long poll receives its task, alone or beside idle long polls.

`python -m tests.bench.peers.dispatch` with a `Dispatch` as JSON on standard input.
"""

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

import orjson

from .connections import Requests, Script, run_scripts
from .load import IDS

LONG_POLL_MS = 5000
IDLE_QUEUES = 10
ARRIVAL_SECONDS, PAUSE_SECONDS = 2.0, 0.02


@dataclass
class Dispatch:
    """What is measured: starts of a definition of one task, while `idle` other long polls wait."""

    url: str
    token: str
    definition: str
    task: str
    idle: int = 0
    samples: int = 200
    seconds: float = 10.0


class Prober:
    """Scripts that start runs one after the other and receive their tasks."""

    def __init__(self, dispatch: Dispatch) -> None:
        self.dispatch = dispatch
        self.requests = Requests(dispatch.url, dispatch.token)
        self.sent, self.latencies = 0.0, list[float]()
        self.has_ended = self.is_waiting = False

    def run(self) -> list[float]:
        run_scripts(
            self.dispatch.url,
            [self.start(), self.receive(), *(self.wait_in_vain(number) for number in range(self.dispatch.idle))],
            lambda: self.has_ended,
        )
        return self.latencies

    def start(self) -> Script:
        request = self.requests.post(f"/workflow/{self.dispatch.definition}", orjson.dumps({"order": 1}))
        # The long polls must have arrived, and the ones of earlier measurements must have ended.
        yield from _pause(ARRIVAL_SECONDS)
        ends_at = time.perf_counter() + self.dispatch.seconds
        while len(self.latencies) < self.dispatch.samples and time.perf_counter() < ends_at:
            yield from _pause(PAUSE_SECONDS)
            self.is_waiting, self.sent = True, time.perf_counter()
            yield request
            while self.is_waiting and time.perf_counter() - self.sent < 30:
                yield None
        self.has_ended = True

    def receive(self) -> Script:
        poll = self._poll(self.dispatch.task, "receiver")
        while not self.has_ended:
            reply = yield poll
            ids = dict(IDS.findall(reply.body))
            if ids:
                self.latencies.append((time.perf_counter() - self.sent) * 1000)
                names = b'{"workflowInstanceId":"%b","taskId":"%b",' % (ids[b"workflowInstanceId"], ids[b"taskId"])
                yield self.requests.post("/tasks", names + b'"status":"COMPLETED","outputData":{}}')
                self.is_waiting = False

    def wait_in_vain(self, number: int) -> Script:
        poll = self._poll(f"bench_never_{number % IDLE_QUEUES}", f"idle-{number}")
        while not self.has_ended:
            yield poll

    def _poll(self, task: str, worker: str) -> bytes:
        return self.requests.get(f"/tasks/poll/batch/{task}?workerid={worker}&count=1&timeout={LONG_POLL_MS}")


def _pause(seconds: float) -> Script:
    ends_at = time.perf_counter() + seconds
    while time.perf_counter() < ends_at:
        yield None


def measure_dispatch(dispatch: Dispatch) -> list[float]:
    """Return the latencies in milliseconds, measured by a process of its own."""
    command = [sys.executable, "-m", "tests.bench.peers.dispatch"]
    process = subprocess.run(
        command, input=json.dumps(asdict(dispatch)), capture_output=True, text=True, check=False, start_new_session=True
    )
    if process.returncode:
        raise RuntimeError(f"The measurement failed: {process.stderr[-2000:]}")
    return json.loads(process.stdout)


def main() -> None:
    print(json.dumps(Prober(Dispatch(**json.load(sys.stdin))).run()))


if __name__ == "__main__":
    main()
