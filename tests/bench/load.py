"""Workers and starters as processes of their own; what they measured comes back over a queue."""

import multiprocessing
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from .client import Client

WAIT_MS, INTERVAL_SECONDS = 100, 0.05
"""A worker's wait in one poll and its pause after one that did not fill its hands: half of what the SDKs pause."""


@dataclass
class Measured:
    """What one process saw: latencies in milliseconds."""

    tasks: int = 0
    polls: list[float] = field(default_factory=list)
    updates: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def add(self, other: "Measured") -> None:
        self.tasks += other.tasks
        self.polls += other.polls
        self.updates += other.updates
        self.errors += other.errors


def serve(
    url: str, token: str, types: Sequence[str], threads: int, batch: int, is_done: Callable[[], bool]
) -> Measured:
    """Poll the types and complete what comes, until it is said to be done."""
    measured = [Measured() for _ in range(threads)]
    running = [
        threading.Thread(target=_serve, args=(url, token, types, batch, is_done, own, number))
        for number, own in enumerate(measured)
    ]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    total = Measured()
    for own in measured:
        total.add(own)
    return total


def _serve(
    url: str, token: str, types: Sequence[str], batch: int, is_done: Callable[[], bool], own: Measured, number: int
) -> None:
    client = Client(url, token)
    while not is_done():
        found = _poll(client, types[number % len(types)], batch, own)
        for task in found:
            _complete(client, task, own)
        if len(found) < batch:
            time.sleep(INTERVAL_SECONDS)
    client.close()


def _poll(client: Client, name: str, batch: int, own: Measured) -> list[dict[str, Any]]:
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


def _complete(client: Client, task: dict[str, Any], own: Measured) -> None:
    began = time.perf_counter()
    result = {
        "workflowInstanceId": task["workflowInstanceId"],
        "taskId": task["taskId"],
        "status": "COMPLETED",
        "workerId": "bench",
        "outputData": {"done": True, "by": "bench"},
    }
    status, body = client.post("/tasks", result)
    own.updates.append((time.perf_counter() - began) * 1000)
    own.tasks += 1
    if status != 200:
        own.errors.append(f"update: {status} {body[:200]!r}")


def in_processes(count: int, target: Callable[..., Measured], *args: Any) -> Callable[[], Measured]:
    """Run the target in processes; returns a function that stops them and gives the sum of what they measured."""
    context = multiprocessing.get_context("fork")
    stop, results = context.Event(), context.Queue()
    processes = [context.Process(target=_run, args=(target, args, stop, results), daemon=True) for _ in range(count)]
    for process in processes:
        process.start()

    def finish() -> Measured:
        stop.set()
        total = Measured()
        for _ in processes:
            total.add(results.get(timeout=60))
        for process in processes:
            process.join()
        return total

    return finish


def _run(target: Callable[..., Measured], args: tuple, stop: Any, results: Any) -> None:
    results.put(target(*args, stop.is_set))
