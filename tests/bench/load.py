"""Workers and starters as processes of their own; what they measured comes back over a queue."""

import multiprocessing
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import orjson

from .client import Client

WAIT_MS, INTERVAL_SECONDS = 100, 0.1
"""How long a poll waits, and the pause after one that did not fill all hands: what the SDKs have by default."""


@dataclass
class Measurements:
    """What one process saw: latencies in milliseconds, and when the last report was answered."""

    tasks: int = 0
    last: float = 0.0
    polls: list[float] = field(default_factory=list)
    updates: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def add(self, other: "Measurements") -> None:
        self.tasks += other.tasks
        self.last = max(self.last, other.last)
        self.polls += other.polls
        self.updates += other.updates
        self.errors += other.errors


def serve(
    url: str, token: str, types: Sequence[str], threads: int, batch: int, is_done: Callable[[], bool]
) -> Measurements:
    """A worker for each type, until it is said to be done: one loop polls, `threads` of each do the tasks."""
    workers = [Worker(url, token, name, threads, batch) for name in types]
    running = [threading.Thread(target=worker.run, args=(is_done,)) for worker in workers]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    total = Measurements()
    for worker in workers:
        total.add(worker.measured)
    return total


class Worker:
    """What an SDK's task runner does for one type: poll as many as there are hands free, do them, poll again."""

    def __init__(self, url: str, token: str, name: str, threads: int, batch: int) -> None:
        self.url, self.token, self.name, self.threads, self.batch = url, token, name, threads, batch
        self.measured = Measurements()
        self._own = threading.local()

    def run(self, is_done: Callable[[], bool]) -> None:
        """Poll and do, until it is said to be done."""
        with ThreadPoolExecutor(self.threads) as hands:
            while not is_done():
                found = _poll(self._client(), self.name, self.batch, self.measured)
                list(hands.map(self._complete, found))
                if len(found) < self.batch:
                    time.sleep(INTERVAL_SECONDS)

    def _complete(self, task: dict[str, Any]) -> None:
        _complete(self._client(), task, self.measured)

    def _client(self) -> Client:
        if not hasattr(self._own, "client"):
            self._own.client = Client(self.url, self.token)
        return self._own.client


def _poll(client: Client, name: str, batch: int, own: Measurements) -> list[dict[str, Any]]:
    began = time.perf_counter()
    status, body = client.get(f"/tasks/poll/batch/{name}?workerid=bench&count={batch}&timeout={WAIT_MS}")
    if status != 200:
        own.errors.append(f"poll: {status} {body[:200]!r}")
        time.sleep(0.1)
        return []
    found = orjson.loads(body)
    if found:
        own.polls.append((time.perf_counter() - began) * 1000)
    return found


def _complete(client: Client, task: dict[str, Any], own: Measurements) -> None:
    began = time.perf_counter()
    result = {
        "workflowInstanceId": task["workflowInstanceId"],
        "taskId": task["taskId"],
        "status": "COMPLETED",
        "workerId": "bench",
        "outputData": {"done": True, "by": "bench"},
    }
    status, body = client.post("/tasks", result)
    own.last = time.perf_counter()
    own.updates.append((own.last - began) * 1000)
    own.tasks += 1
    if status != 200:
        own.errors.append(f"update: {status} {body[:200]!r}")


def in_processes(count: int, target: Callable[..., Measurements], *args: Any) -> Callable[[], Measurements]:
    """Run the target in processes; returns a function that stops them and gives the sum of what they measured."""
    context = multiprocessing.get_context("fork")
    stop, results = context.Event(), context.Queue()
    processes = [context.Process(target=_run, args=(target, args, stop, results), daemon=True) for _ in range(count)]
    for process in processes:
        process.start()

    def finish() -> Measurements:
        stop.set()
        total = Measurements()
        for _ in processes:
            total.add(results.get(timeout=60))
        for process in processes:
            process.join()
        return total

    return finish


def _run(target: Callable[..., Measurements], args: tuple, stop: Any, results: Any) -> None:
    results.put(target(*args, stop.is_set))
