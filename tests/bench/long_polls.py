"""Cost of waiting long polls, and the time until one of them receives a task."""

import multiprocessing
import os
import random
import resource
import selectors
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import orjson

from .client import Client
from .servers import Server

IDLE_POLLS, IDLE_QUEUES, DISPATCH_QUEUE = int(os.environ.get("IDLE_POLLS", "200")), 10, "bench_rare"
SETTLE_SECONDS, CPU_SECONDS, SAMPLES, PAUSE_SECONDS = 1, 5, 150, 0.05
MISSED_SECONDS = 5.0
"""The time after which a task that no poll has received counts as lost."""
CASES = {
    "alone": {DISPATCH_QUEUE: 1},
    f"beside {IDLE_POLLS} idle polls": {
        DISPATCH_QUEUE: 1,
        **{f"bench_never_{number}": IDLE_POLLS // IDLE_QUEUES for number in range(IDLE_QUEUES)},
    },
    f"among {IDLE_POLLS} polls of its queue": {DISPATCH_QUEUE: IDLE_POLLS},
}
"""The polls that wait in each case, by task type."""


class PollingClient(Client):
    """A connection that always has a poll of 5 s in progress."""

    def __init__(self, server: Server, task_type: str, worker: str) -> None:
        super().__init__(server.url, server.token)
        self.path = f"/tasks/poll/batch/{task_type}?workerid={worker}&count=1&timeout=5000"

    def start_poll(self) -> None:
        """Send the poll."""
        connection = self.socket or self._ensure_connected()
        connection.sendall(f"GET {self.base}{self.path} HTTP/1.1\r\n{self.headers}\r\n".encode())

    def finish_poll(self) -> list[dict[str, Any]]:
        """Return the tasks of the reply, whose first bytes have arrived."""
        assert self.socket is not None
        status, body = self._read_reply(self.socket)
        return orjson.loads(body) if status == 200 else []


def poll_forever(server: Server, polls: Mapping[str, int], arrivals: Connection) -> None:
    """Keep the polls of each task type waiting. Send the id of the run and the time of arrival of each task."""
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    selector = selectors.DefaultSelector()
    for task_type, count in polls.items():
        for number in range(count):
            client = PollingClient(server, task_type, f"idle-{number}")
            client.start_poll()
            selector.register(client.socket, selectors.EVENT_READ, client)  # type: ignore[arg-type]
    while True:
        for key, _ in selector.select():
            tasks, arrived = key.data.finish_poll(), time.monotonic()
            for task in tasks:
                arrivals.send((task["workflowInstanceId"], arrived))
                ids = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"]}
                key.data.post("/tasks", {**ids, "status": "COMPLETED"})
            key.data.start_poll()


@contextmanager
def waiting_polls(server: Server, polls: Mapping[str, int]) -> Iterator[Connection]:
    """Keep polls waiting in a process of their own during the block. Yields the connection that sends arrivals."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=poll_forever, args=(server, polls, sender), daemon=True)
    process.start()
    try:
        yield receiver
    finally:
        process.terminate()
        process.join()


def dispatch_ms(start: Callable[[], str], arrivals: Connection) -> float:
    """Return the milliseconds from the start of a run to the arrival of its task."""
    began = time.monotonic()
    run_id = start()
    while arrivals.poll(MISSED_SECONDS):
        arrived_id, arrived = arrivals.recv()
        if arrived_id == run_id:
            return (arrived - began) * 1000
    return MISSED_SECONDS * 1000


def measure(server: Server, start: Callable[[], str]) -> Iterator[tuple[str, float, list[float]]]:
    """Yield each case with the share of one core that the web processes use while its polls wait, and the latencies."""
    for case, polls in CASES.items():
        with waiting_polls(server, polls) as arrivals:
            time.sleep(SETTLE_SECONDS)
            cpu = server.web_cpu_seconds()
            time.sleep(CPU_SECONDS)
            share = (server.web_cpu_seconds() - cpu) / CPU_SECONDS
            latencies = []
            for _ in range(SAMPLES):
                latencies.append(dispatch_ms(start, arrivals))
                time.sleep(random.uniform(0, 2 * PAUSE_SECONDS))
        yield case, share, latencies
        time.sleep(SETTLE_SECONDS)
