"""Cost of waiting long polls, and the time until one of them receives a task."""

import threading
import time
from collections.abc import Callable

import orjson

from .client import Client
from .servers import Server

POLLS, POLLS_OF_RARE_TYPE, SAMPLES = 100, 20, 50


class LongPollers:
    """Connections that poll for 5 s at a time and record the arrivals of tasks."""

    def __init__(self, server: Server) -> None:
        self.server, self.stop, self.arrivals = server, threading.Event(), []
        self.threads = [threading.Thread(target=self._poll, args=(self._type(n),), daemon=True) for n in range(POLLS)]
        for thread in self.threads:
            thread.start()

    @staticmethod
    def _type(number: int) -> str:
        return "bench_rare" if number < POLLS_OF_RARE_TYPE else f"bench_never_{number % 10}"

    def _poll(self, name: str) -> None:
        client = Client(self.server.url, self.server.token)
        while not self.stop.is_set():
            status, body = client.get(f"/tasks/poll/batch/{name}?workerid=idle&count=1&timeout=5000")
            arrived = time.perf_counter()
            for task in orjson.loads(body) if status == 200 else []:
                self.arrivals.append(arrived)
                ids = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"]}
                client.post("/tasks", {**ids, "status": "COMPLETED"})

    def latency_ms(self, start: Callable[[], object]) -> float:
        """Return the milliseconds from the start of a run to the arrival of its task."""
        count, began = len(self.arrivals), time.perf_counter()
        start()
        while len(self.arrivals) == count and time.perf_counter() - began < 5:
            time.sleep(0.0005)
        return (self.arrivals[-1] - began) * 1000 if len(self.arrivals) > count else 5000.0

    def end(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join(6)


def measure(server: Server, start: Callable[[], object]) -> tuple[float, list[float]]:
    """Return the share of one core that the server uses while all polls wait, and the latencies of single tasks."""
    pollers = LongPollers(server)
    time.sleep(2)
    cpu = server.cpu_seconds()
    time.sleep(10)
    share = (server.cpu_seconds() - cpu) / 10
    latencies = []
    for _ in range(SAMPLES):
        latencies.append(pollers.latency_ms(start))
        time.sleep(0.05)
    pollers.end()
    return share, latencies
