"""Time from the start of a run until a waiting long poll receives its task, beside other long polls.

`python -m qa.bench.dispatch` with a `Dispatch` as JSON on standard input.
"""

import json
import sys
import time
from dataclasses import dataclass

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
    is_shared: bool = False
    """The idle long polls wait for the same queue. Otherwise, they wait for others, which stay empty."""
    samples: int = 200
    """The number of starts, at most. With 0, the long polls only wait."""
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
            [self.start(), self.receive("receiver"), *(self.wait(number) for number in range(self.dispatch.idle))],
            lambda: self.has_ended,
        )
        return self.latencies

    def start(self) -> Script:
        request = self.requests.post(f"/workflow/{self.dispatch.definition}", orjson.dumps({"order": 1}))
        # The long polls must have arrived, and the ones of earlier measurements must have ended.
        yield from _pause(ARRIVAL_SECONDS)
        if not self.dispatch.samples:
            yield from _pause(self.dispatch.seconds)
        ends_at = time.perf_counter() + self.dispatch.seconds
        while len(self.latencies) < self.dispatch.samples and time.perf_counter() < ends_at:
            yield from _pause(PAUSE_SECONDS)
            self.is_waiting, self.sent = True, time.perf_counter()
            yield request
            while self.is_waiting and time.perf_counter() - self.sent < 30:
                yield None
        self.has_ended = True

    def receive(self, worker: str) -> Script:
        poll = self._poll(self.dispatch.task, worker)
        while not self.has_ended:
            reply = yield poll
            ids = dict(IDS.findall(reply.body))
            if ids:
                self.latencies.append((time.perf_counter() - self.sent) * 1000)
                names = b'{"workflowInstanceId":"%b","taskId":"%b",' % (ids[b"workflowInstanceId"], ids[b"taskId"])
                yield self.requests.post("/tasks", names + b'"status":"COMPLETED","outputData":{}}')
                self.is_waiting = False

    def wait(self, number: int) -> Script:
        """Repeat a long poll of a queue that stays empty, or of the queue of the task."""
        if self.dispatch.is_shared:
            yield from self.receive(f"receiver-{number}")
        poll = self._poll(f"bench_never_{number % IDLE_QUEUES}", f"idle-{number}")
        while not self.has_ended:
            yield poll

    def _poll(self, task: str, worker: str) -> bytes:
        return self.requests.get(f"/tasks/poll/batch/{task}?workerid={worker}&count=1&timeout={LONG_POLL_MS}")


def _pause(seconds: float) -> Script:
    ends_at = time.perf_counter() + seconds
    while time.perf_counter() < ends_at:
        yield None


def main() -> None:
    print(json.dumps(Prober(Dispatch(**json.load(sys.stdin))).run()))


if __name__ == "__main__":
    main()
