"""Load generators: workers and clients in processes of their own, which return their measurements over a queue."""

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
"""Wait of a poll, and pause after a poll that returned less than a full batch: the defaults of the SDKs."""


@dataclass
class Measurements:
    """Measurements of one process: latencies in milliseconds, and the time of the reply to the last report."""

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
    """Run a worker for each task type until `is_done`: one loop polls, and `threads` threads complete the tasks."""
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
    """Task runner of one task type, as in an SDK: poll a batch, complete its tasks, poll again."""

    def __init__(self, url: str, token: str, name: str, threads: int, batch: int) -> None:
        self.url, self.token, self.name, self.threads, self.batch = url, token, name, threads, batch
        self.measured = Measurements()
        self._thread_data = threading.local()

    def run(self, is_done: Callable[[], bool]) -> None:
        """Poll and complete tasks until `is_done`."""
        with ThreadPoolExecutor(self.threads) as pool:
            while not is_done():
                tasks = _poll(self._client(), self.name, self.batch, self.measured)
                list(pool.map(self._complete, tasks))
                if len(tasks) < self.batch:
                    time.sleep(INTERVAL_SECONDS)

    def _complete(self, task: dict[str, Any]) -> None:
        _complete(self._client(), task, self.measured)

    def _client(self) -> Client:
        if not hasattr(self._thread_data, "client"):
            self._thread_data.client = Client(self.url, self.token)
        return self._thread_data.client


def _poll(client: Client, name: str, batch: int, measurements: Measurements) -> list[dict[str, Any]]:
    began = time.perf_counter()
    status, body = client.get(f"/tasks/poll/batch/{name}?workerid=bench&count={batch}&timeout={WAIT_MS}")
    if status != 200:
        measurements.errors.append(f"poll: {status} {body[:200]!r}")
        time.sleep(0.1)
        return []
    tasks = orjson.loads(body)
    if tasks:
        measurements.polls.append((time.perf_counter() - began) * 1000)
    return tasks


def _complete(client: Client, task: dict[str, Any], measurements: Measurements) -> None:
    began = time.perf_counter()
    result = {
        "workflowInstanceId": task["workflowInstanceId"],
        "taskId": task["taskId"],
        "status": "COMPLETED",
        "workerId": "bench",
        "outputData": {"done": True, "by": "bench"},
    }
    status, body = client.post("/tasks", result)
    measurements.last = time.perf_counter()
    measurements.updates.append((measurements.last - began) * 1000)
    measurements.tasks += 1
    if status != 200:
        measurements.errors.append(f"update: {status} {body[:200]!r}")


def run_in_processes(count: int, target: Callable[..., Measurements], *args: Any) -> Callable[[], Measurements]:
    """Run the target in processes. Return a function that stops them and returns the sum of their measurements."""
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
