"""Load of standalone tasks: signed claimWork and reportCompleted requests, like those of Taskcluster workers.

`python -m qa.bench.standalone` with a `StandaloneLoad` as JSON on standard input.
"""

import base64
import hmac
import json
import re
import secrets
import sys
import time
import uuid
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import orjson

from .connections import Script, run_scripts
from .load import Outcome

CLIENT_ID, KEY = "static/bench", "bench" * 8
QUEUE = "bench/linux"
TASK_ID = re.compile(rb'"status": ?\{"taskId": ?"([^"]+)"')


@dataclass
class StandaloneLoad:
    """What the clients do: they create tasks, or work on those that exist."""

    url: str
    tasks: int
    connections: int
    is_working: bool
    batch: int = 5
    """The number of tasks that a claim asks for."""


class Clients:
    """The scripts of a load, and what they have done so far."""

    def __init__(self, load: StandaloneLoad) -> None:
        self.load, self.outcome, self.begun = load, Outcome(), 0
        self.address = urlsplit(f"{load.url}/queue/v1")

    def run(self) -> Outcome:
        script = self.work if self.load.is_working else self.create
        began, cpu = time.perf_counter(), time.process_time()
        scripts = [script(number) for number in range(self.load.connections)]
        run_scripts(self.load.url, scripts, lambda: self.outcome.tasks >= self.load.tasks)
        self.outcome.seconds, self.outcome.client_cpu = time.perf_counter() - began, time.process_time() - cpu
        return self.outcome

    def create(self, number: int) -> Script:
        while self.begun < self.load.tasks:
            self.begun += 1
            reply = yield self.signed("PUT", f"/task/{new_id()}", task_definition(self.begun))
            if reply.status != 200:
                raise SystemExit(f"The server answered {reply.status}: {reply.body[:500]!r}")
            self.outcome.tasks += 1

    def work(self, number: int) -> Script:
        outcome = self.outcome
        request = {"workerGroup": "bench", "workerId": f"w{number}", "tasks": self.load.batch}
        while outcome.tasks < self.load.tasks:
            reply = yield self.signed("POST", f"/claim-work/{QUEUE.replace('/', '%2F')}", request)
            for task_id in TASK_ID.findall(reply.body):
                sent = time.perf_counter()
                reply = yield self.signed("POST", f"/task/{task_id.decode()}/runs/0/completed")
                outcome.reports_ms.append((time.perf_counter() - sent) * 1000)
                if reply.status != 200:
                    raise SystemExit(f"The server answered {reply.status}: {reply.body[:500]!r}")
                outcome.tasks += 1

    def signed(self, method: str, path: str, value: object = None) -> bytes:
        """Return a request that is signed without its body, like those of the JavaScript and Go clients."""
        target, body = self.address.path + path, b"" if value is None else orjson.dumps(value)
        moment, nonce = str(int(time.time())), secrets.token_hex(4)
        host, port = self.address.hostname, str(self.address.port)
        lines = ("hawk.1.header", moment, nonce, method, target, host, port, "", "")
        signed = hmac.digest(KEY.encode(), "".join(f"{line}\n" for line in lines).encode(), "sha256")
        mac = base64.b64encode(signed).decode()
        head = (
            f"{method} {target} HTTP/1.1\r\nHost: {self.address.netloc}\r\nContent-Length: {len(body)}\r\n"
            f'Authorization: Hawk id="{CLIENT_ID}", ts="{moment}", nonce="{nonce}", mac="{mac}"\r\n'
        )
        return f"{head}{'Content-Type: application/json' if body else 'Accept: */*'}\r\n\r\n".encode() + body


def new_id() -> str:
    """Return a random id in Taskcluster's format (slugid)."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def task_definition(number: int) -> dict:
    """Return the definition of a small task, which gets a task group of its own."""
    now, source = datetime.now(UTC), "https://example.com"
    metadata = {"name": f"bench {number}", "description": "", "owner": "bench@example.com", "source": source}
    moments = {"created": now.isoformat(), "deadline": (now + timedelta(hours=1)).isoformat()}
    return {"taskQueueId": QUEUE, **moments, "payload": {"number": number}, "metadata": metadata}


def main() -> None:
    print(json.dumps(asdict(Clients(StandaloneLoad(**json.load(sys.stdin))).run())))


if __name__ == "__main__":
    main()
