"""A client that sends requests as Taskcluster's clients do, and helpers for common setups."""

import base64
import json
import uuid
from typing import Any

import pytest
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client

from conductor_app.processes import sweeps
from conductor_app.runs.models import PulseMessage
from conductor_app.taskcluster.commands import tasks as claims
from conductor_app.taskcluster.queries import format_timestamp
from tests.scenario import run_commit_hooks

HOUR = 3600
LINUX = "proj/linux"
JSON = "application/json"


def new_id() -> str:
    """Return a new id."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


class Queue:
    """The Queue service of a server without authentication."""

    def __init__(self, clock: Any) -> None:
        self.clock, self.client = clock, Client()

    def get(self, path: str, **query: Any) -> HttpResponse:
        return self.client.get(f"/api/queue/v1{path}", query)

    def send(
        self, verb: str, path: str, body: Any = None, type: str = "application/json", **query: str
    ) -> HttpResponse:
        """Send a request: bytes unchanged, any other body as JSON; without a body, also without a content type."""
        sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        with run_commit_hooks():
            return self.client.generic(
                verb, f"/api/queue/v1{path}", sent, type if body is not None else "", query_params=query
            )

    def post(self, path: str, body: Any = None, **query: str) -> HttpResponse:
        return self.send("POST", path, body, **query)

    def at(self, seconds: float) -> str:
        """Return the time in `seconds` seconds."""
        return format_timestamp(self.clock.now() + round(seconds * 1000))

    def definition(self, **fields: Any) -> dict[str, Any]:
        metadata = {"name": "build", "description": "", "owner": "me@example.org", "source": "https://example.org/"}
        moments = {"created": self.at(0), "deadline": self.at(HOUR)}
        whole = {"taskQueueId": LINUX, **moments, "payload": {}, "metadata": metadata, **fields}
        return {name: value for name, value in whole.items() if value is not None}

    def request_creation(self, id: str, **fields: Any) -> HttpResponse:
        """Send a request to create a task and return the reply."""
        return self.send("PUT", f"/task/{id}", self.definition(**fields))

    def create(self, id: str = "", **fields: Any) -> str:
        """Create a task and return its id."""
        id = id or new_id()
        reply = self.request_creation(id, **fields)
        assert reply.status_code == 200, reply.content
        return id

    def status(self, id: str) -> dict[str, Any]:
        return self.get(f"/task/{id}/status").json()["status"]

    def state(self, id: str) -> str:
        return self.status(id)["state"]

    def runs(self, id: str) -> list[tuple[str, str, str | None]]:
        """Return state, reason of creation and reason of resolution of each run."""
        return [(run["state"], run["reasonCreated"], run.get("reasonResolved")) for run in self.status(id)["runs"]]

    def claim(self, tasks: int = 1, worker: str = "w1", queue: str = LINUX) -> list[dict[str, Any]]:
        """Claim tasks without waiting."""
        reply = self.post(f"/claim-work/{queue}", {"workerGroup": "here", "workerId": worker, "tasks": tasks})
        assert reply.status_code == 200, reply.content
        return reply.json()["tasks"]

    def report(self, id: str, run: int, how: str) -> HttpResponse:
        """Report `completed`, `failed`, or the reason of an exception."""
        if how in ("completed", "failed"):
            return self.post(f"/task/{id}/runs/{run}/{how}")
        return self.post(f"/task/{id}/runs/{run}/exception", {"reason": how})

    def claim_specific_task(self, id: str, run: int = -1, worker: str = "w1") -> HttpResponse:
        """Claim this task for a worker; by default its last run."""
        number = run if run >= 0 else len(self.status(id)["runs"]) - 1
        return self.post(f"/task/{id}/runs/{number}/claim", {"workerGroup": "here", "workerId": worker})

    def claim_and_report(self, id: str, how: str = "completed") -> None:
        """Claim this task and report on it."""
        taken = self.claim_specific_task(id)
        assert taken.status_code == 200, taken.content
        reply = self.report(id, taken.json()["runId"], how)
        assert reply.status_code == 200, reply.content

    def later(self, seconds: float) -> None:
        """Advance the time and handle due timers."""
        self.clock.advance(seconds=seconds)
        with run_commit_hooks():
            while sweeps.sweep_once():
                pass

    def message_names(self, id: str = "") -> list[str]:
        """Return the names of the messages about a task or a group, or of all messages."""
        found = PulseMessage.objects.filter(task_id=id) if id else PulseMessage.objects.all()
        return list(found.order_by("id").values_list("name", flat=True))


@pytest.fixture
def queue(db: None, clock: Any, monkeypatch: pytest.MonkeyPatch) -> Queue:
    """Return the Queue service. Claims do not wait: the reply for an empty queue is immediate."""
    monkeypatch.setattr(claims, "CLAIM_WAIT_SECONDS", 0.0)
    return Queue(clock)


def refusal_code(reply: HttpResponse) -> tuple[int, str]:
    """Return the status and code of an error reply."""
    return reply.status_code, reply.json()["code"]


def printed_messages(id: str, name: str = "") -> list[dict[str, Any]]:
    """Return the messages that `manage.py messages` prints, optionally only those with this name."""
    from io import StringIO

    out = StringIO()
    call_command("messages", "--", id, stdout=out)
    return [each for each in json.loads(out.getvalue()) if each["exchange"].endswith(name)]
