"""Stand-alone tasks under load: claimWork and reportCompleted, signed as the requests of Taskcluster's workers are."""

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
    """Signs its requests, without their bodies, as the JavaScript and Go clients do."""

    def __init__(self, url: str) -> None:
        super().__init__(f"{url}/queue/v1")
        self.host = urlsplit(url)

    def post(self, path: str, value: object, method: str = "POST") -> tuple[int, bytes]:
        target = self.base + path
        body = b"" if value is None else orjson.dumps(value)
        kind = "" if value is None else "Content-Type: application/json\r\n"
        head = (
            f"{method} {target} HTTP/1.1\r\n{self.fixed}Authorization: {self._signature(method, target)}\r\n{kind}"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return self.ask(head.encode() + body)

    def _signature(self, method: str, target: str) -> str:
        moment, nonce = str(int(time.time())), secrets.token_hex(4)
        lines = ("hawk.1.header", moment, nonce, method, target, self.host.hostname, str(self.host.port), "", "")
        signed = hmac.digest(KEY.encode(), "".join(f"{line}\n" for line in lines).encode(), "sha256")
        return f'Hawk id="{CLIENT_ID}", ts="{moment}", nonce="{nonce}", mac="{base64.b64encode(signed).decode()}"'


def create_tasks(url: str, count: int) -> None:
    """So many tasks, each a group of its own."""
    own = threading.local()

    def one(number: int) -> None:
        if not hasattr(own, "client"):
            own.client = SigningClient(url)
        status, body = own.client.post(f"/task/{new_id()}", definition(number), method="PUT")
        if status != 200:
            raise SystemExit(f"The server answered {status}: {body[:500]!r}")

    with ThreadPoolExecutor(CREATORS) as hands:
        list(hands.map(one, range(count)))


def new_id() -> str:
    """A new id."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def definition(number: int) -> dict:
    """A small task."""
    now = datetime.now(UTC)
    about = {
        "name": f"bench {number}",
        "description": "",
        "owner": "bench@example.com",
        "source": "https://example.com",
    }
    moments = {"created": now.isoformat(), "deadline": (now + timedelta(hours=1)).isoformat()}
    return {"taskQueueId": QUEUE, **moments, "payload": {"number": number}, "metadata": about}


def serve(url: str, threads: int, batch: int, is_done: Callable[[], bool]) -> Measurements:
    """Workers, until it is said to be done: each claims a batch and reports on all of it, one after another."""
    found = [Measurements() for _ in range(threads)]
    working = [
        threading.Thread(target=_work, args=(url, number, batch, own, is_done)) for number, own in enumerate(found)
    ]
    for thread in working:
        thread.start()
    for thread in working:
        thread.join()
    total = Measurements()
    for own in found:
        total.add(own)
    return total


def _work(url: str, number: int, batch: int, own: Measurements, is_done: Callable[[], bool]) -> None:
    client = SigningClient(url)
    asked = {"workerGroup": "bench", "workerId": f"w{number}", "tasks": batch}
    while not is_done():
        began = time.perf_counter()
        status, body = client.post(f"/claim-work/{QUEUE.replace('/', '%2F')}", asked)
        if status != 200:
            own.errors.append(f"claimWork: {status} {body[:200]!r}")
            return
        claims = orjson.loads(body)["tasks"]
        if claims:
            own.polls.append((time.perf_counter() - began) * 1000)
        for claim in claims:
            _report(client, claim["status"]["taskId"], own)


def _report(client: SigningClient, task_id: str, own: Measurements) -> None:
    began = time.perf_counter()
    status, body = client.post(f"/task/{task_id}/runs/0/completed", None)
    own.updates.append((time.perf_counter() - began) * 1000)
    own.tasks += 1
    if status != 200:
        own.errors.append(f"reportCompleted: {status} {body[:200]!r}")


def count_pending(url: str) -> int:
    """How many tasks are not done."""
    reply = SigningClient(url).post("/task-queues/counts", {"taskQueueIds": [QUEUE]})[1]
    [counts] = orjson.loads(reply)["taskQueueCounts"]
    return counts["pendingTasks"] + counts["claimedTasks"]
