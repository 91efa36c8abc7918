"""Load of standalone tasks: signed claimWork and reportCompleted requests, like those of Taskcluster workers."""

import base64
import hmac
import secrets
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import orjson

from .client import Client
from .load import Measurements

CLIENT_ID, KEY = "static/bench", "bench" * 8
QUEUE = "bench/linux"
CREATORS = 4


class SigningClient(Client):
    """Client that signs its requests without their bodies, like the JavaScript and Go clients."""

    def __init__(self, url: str) -> None:
        super().__init__(f"{url}/queue/v1")
        self.host = urlsplit(url)

    def post(self, path: str, value: object, method: str = "POST") -> tuple[int, bytes]:
        target = self.base + path
        body = b"" if value is None else orjson.dumps(value)
        kind = "" if value is None else "Content-Type: application/json\r\n"
        head = (
            f"{method} {target} HTTP/1.1\r\n{self.headers}Authorization: {self._signature(method, target)}\r\n{kind}"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return self.send(head.encode() + body)

    def _signature(self, method: str, target: str) -> str:
        moment, nonce = str(int(time.time())), secrets.token_hex(4)
        lines = ("hawk.1.header", moment, nonce, method, target, self.host.hostname, str(self.host.port), "", "")
        signed = hmac.digest(KEY.encode(), "".join(f"{line}\n" for line in lines).encode(), "sha256")
        return f'Hawk id="{CLIENT_ID}", ts="{moment}", nonce="{nonce}", mac="{base64.b64encode(signed).decode()}"'


def create_tasks(url: str, count: int) -> None:
    """Create tasks, each in its own task group.

    Raises:
        SystemExit: the server rejected a task.
    """
    thread_data = threading.local()

    def create_task(number: int) -> None:
        if not hasattr(thread_data, "client"):
            thread_data.client = SigningClient(url)
        status, body = thread_data.client.post(f"/task/{new_id()}", task_definition(number), method="PUT")
        if status != 200:
            raise SystemExit(f"The server answered {status}: {body[:500]!r}")

    with ThreadPoolExecutor(CREATORS) as pool:
        list(pool.map(create_task, range(count)))


def new_id() -> str:
    """Return a random id in Taskcluster's format (slugid)."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def task_definition(number: int) -> dict:
    """Return the definition of a small task."""
    now = datetime.now(UTC)
    metadata = {
        "name": f"bench {number}",
        "description": "",
        "owner": "bench@example.com",
        "source": "https://example.com",
    }
    moments = {"created": now.isoformat(), "deadline": (now + timedelta(hours=1)).isoformat()}
    return {"taskQueueId": QUEUE, **moments, "payload": {"number": number}, "metadata": metadata}


def serve(url: str, threads: int, batch: int, is_done: Callable[[], bool]) -> Measurements:
    """Claim batches and report on their tasks in several threads until `is_done`."""
    results = [Measurements() for _ in range(threads)]
    workers = [
        threading.Thread(target=_work, args=(url, number, batch, measurements, is_done))
        for number, measurements in enumerate(results)
    ]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    total = Measurements()
    for measurements in results:
        total.add(measurements)
    return total


def _work(url: str, number: int, batch: int, measurements: Measurements, is_done: Callable[[], bool]) -> None:
    client = SigningClient(url)
    request = {"workerGroup": "bench", "workerId": f"w{number}", "tasks": batch}
    while not is_done():
        began = time.perf_counter()
        status, body = client.post(f"/claim-work/{QUEUE.replace('/', '%2F')}", request)
        if status != 200:
            measurements.errors.append(f"claimWork: {status} {body[:200]!r}")
            return
        claims = orjson.loads(body)["tasks"]
        if claims:
            measurements.polls.append((time.perf_counter() - began) * 1000)
        for claim in claims:
            _report(client, claim["status"]["taskId"], measurements)


def _report(client: SigningClient, task_id: str, measurements: Measurements) -> None:
    began = time.perf_counter()
    status, body = client.post(f"/task/{task_id}/runs/0/completed", None)
    measurements.updates.append((time.perf_counter() - began) * 1000)
    measurements.tasks += 1
    if status != 200:
        measurements.errors.append(f"reportCompleted: {status} {body[:200]!r}")


def count_pending(url: str) -> int:
    """Return the number of tasks that are not resolved."""
    reply = SigningClient(url).post("/task-queues/counts", {"taskQueueIds": [QUEUE]})[1]
    [counts] = orjson.loads(reply)["taskQueueCounts"]
    return counts["pendingTasks"] + counts["claimedTasks"]
