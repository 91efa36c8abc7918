"""Clients and workers that use the server while faults occur, and record what they sent and received."""

import random
import time
from dataclasses import dataclass, field
from queue import PriorityQueue
from threading import Event, Thread
from uuid import uuid4

from .definitions import LEASE_SECONDS, ORDER, TASK_TYPES
from .history import History
from .http_client import FaultClient, Reply

POLL_MS = 1000
BATCH = 4
REPORT_TRIES = 25
MAX_PAUSE_SECONDS = 1.0
STARTERS = 3
NEVER_REPEATED = 0.1
"""The share of starts whose client gives up after the first try, so that the run may or may not exist."""


@dataclass(order=True)
class LateReport:
    """A report that a worker sends when its lease has probably ended."""

    due_at: float
    task: dict = field(compare=False)


class Workload:
    """Starts workflows at a rate, and completes their tasks."""

    def __init__(self, urls: list[str], token: str, history: History, rate: float, seed: int) -> None:
        self._urls, self._token, self._history = urls, token, history
        self._rate, self._seed = rate, seed
        self._stops_starting, self._stopping = Event(), Event()
        self._late: PriorityQueue[LateReport] = PriorityQueue()
        self._threads: list[Thread] = []

    def start(self) -> None:
        """Start all threads."""
        self._starters = [Thread(target=self._start_runs, args=(number,), daemon=True) for number in range(STARTERS)]
        names = enumerate(name for name in TASK_TYPES for _ in range(2))
        workers = [Thread(target=self._serve, args=(name, number), daemon=True) for number, name in names]
        self._threads = [*workers, Thread(target=self._report_late, daemon=True)]
        for thread in (*self._starters, *self._threads):
            thread.start()

    def stop_starting(self) -> None:
        """Start no more workflows. Tries of a started workflow continue until it is acknowledged."""
        self._stops_starting.set()
        for thread in self._starters:
            thread.join()

    def stop(self) -> None:
        """Stop the workers."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _client(self, number: int) -> FaultClient:
        return FaultClient(self._urls, self._token, number)

    def _start_runs(self, number: int) -> None:
        client, chance, count = self._client(number), random.Random(f"{self._seed}/start/{number}"), 0
        while not self._stops_starting.wait(chance.uniform(0, 2) * STARTERS / self._rate):
            count += 1
            self._start_run(client, f"{self._seed}-{number}-{count}", chance.random() >= NEVER_REPEATED)

    def _start_run(self, client: FaultClient, key: str, is_repeated: bool) -> None:
        request = {
            "name": ORDER,
            "version": 1,
            "correlationId": key,
            "idempotencyKey": key,
            "idempotencyStrategy": "RETURN_EXISTING",
            "input": {"key": key},
        }
        pause = 0.1
        while True:
            reply = self._send(client, "start", "POST", "/workflow", request, key=key)
            if reply.is_ok or not is_repeated:
                return
            time.sleep(pause)
            pause = min(pause * 2, MAX_PAUSE_SECONDS)

    def _serve(self, task_type: str, number: int) -> None:
        # Every second worker gets its next task with the reply to a report, as those of the official SDKs do.
        worker, client, takes_next = f"{task_type}-{number}", self._client(number), number % 2 == 1
        count = 1 if takes_next else BATCH
        path = f"/tasks/poll/batch/{task_type}?workerid={worker}&count={count}&timeout={POLL_MS}"
        while not self._stopping.is_set():
            reply = self._send(client, "poll", "GET", path, worker=worker)
            for task in reply.body if reply.is_ok else ():
                self._record_claim(task, worker)
                following = self._handle(client, task, worker, takes_next)
                while following:
                    self._record_claim(following, worker, with_report=True)
                    following = self._handle(client, following, worker, takes_next)
            if not reply.is_ok:
                time.sleep(0.2)

    def _record_claim(self, task: dict, worker: str, **more: bool) -> None:
        self._history.record(
            "claim",
            task=task["taskId"],
            run=task["workflowInstanceId"],
            ref=task["referenceTaskName"],
            retry=task["retryCount"],
            polls=task["pollCount"],
            worker=worker,
            **more,
        )

    def _handle(self, client: FaultClient, task: dict, worker: str, takes_next: bool) -> dict | None:
        """Complete a task, or behave like a worker that fails, dies, is late, or needs the task again.

        Returns the next task if the reply to the report has one.
        """
        path = "/tasks/update-v2" if takes_next else "/tasks"
        luck = random.Random(f"{self._seed}/{task['taskId']}/{task['pollCount']}").random()
        if luck < 0.02:
            self._history.record("abandoned", task=task["taskId"])
        elif luck < 0.04:
            self._late.put(LateReport(time.monotonic() + LEASE_SECONDS + 2, task | {"worker": worker}))
        elif luck < 0.07:
            return self._report(client, task, worker, "FAILED", path)
        elif luck < 0.10 and task["pollCount"] == 1:
            return self._report(client, task, worker, "IN_PROGRESS", path, callbackAfterSeconds=1)
        else:
            return self._report(client, task, worker, "COMPLETED", path)
        return None

    def _report(
        self, client: FaultClient, task: dict, worker: str, status: str, path: str = "/tasks", **more: int
    ) -> dict | None:
        """Report a result until the server acknowledges it. Returns the task in the reply, if there is one.

        A worker that returns its task sends that once: a repetition could return the task of the next holder.
        """
        token = uuid4().hex
        result = {
            "workflowInstanceId": task["workflowInstanceId"],
            "taskId": task["taskId"],
            "status": status,
            "workerId": worker,
            "outputData": {"token": token},
            **more,
        }
        for tries in range(REPORT_TRIES):
            facts = {"task": task["taskId"], "token": token, "outcome": status, "polls": task["pollCount"]}
            reply = self._send(client, "report", "POST", path, result, **facts)
            if reply.is_ok or status == "IN_PROGRESS" or self._stopping.is_set():
                return reply.body if reply.is_ok and isinstance(reply.body, dict) else None
            time.sleep(min(0.1 * 2**tries, MAX_PAUSE_SECONDS))
        return None

    def _report_late(self) -> None:
        client = self._client(0)
        while not self._stopping.wait(0.2):
            while self._late.queue and self._late.queue[0].due_at <= time.monotonic():
                task = self._late.get().task
                self._report(client, task, task["worker"], "COMPLETED")

    def _send(
        self, client: FaultClient, kind: str, method: str, path: str, value: object = None, **facts: object
    ) -> Reply:
        """Send a request and record when it was sent, and the reply."""
        sent_at = time.time()
        reply = client.send(method, path, value)
        is_silent = kind == "poll" and reply.is_ok
        if not is_silent:
            facts |= {} if reply.is_ok and kind != "start" else {"body": reply.body}
            if not reply.status:
                facts["connected"] = client.connected_at
            self._history.record(kind, sent=sent_at, status=reply.status, server=client.address, **facts)
        return reply
