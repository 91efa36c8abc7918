"""Long polls that wait: what they cost the server, and how soon one of them is handed a task."""

import threading
import time
from collections.abc import Callable

import orjson

from .client import Client
from .servers import Server

POLLS, ON_RARE, SAMPLES = 100, 20, 50


class LongPollers:
    """Connections that poll for 5 s at a time and note when a task arrives."""

    def __init__(self, server: Server) -> None:
        self.server, self.stop, self.arrivals = server, threading.Event(), []
        self.threads = [threading.Thread(target=self._poll, args=(self._type(n),), daemon=True) for n in range(POLLS)]
        for thread in self.threads:
            thread.start()

    @staticmethod
    def _type(number: int) -> str:
        return "bench_rare" if number < ON_RARE else f"bench_never_{number % 10}"

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
        """Milliseconds from asking for a run to having its task."""
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
    """The share of one core that the server uses while all wait, and the latencies of single tasks."""
    idlers = LongPollers(server)
    time.sleep(2)
    cpu = server.cpu_seconds()
    time.sleep(10)
    share = (server.cpu_seconds() - cpu) / 10
    latencies = []
    for _ in range(SAMPLES):
        latencies.append(idlers.latency_ms(start))
        time.sleep(0.05)
    idlers.end()
    return share, latencies
