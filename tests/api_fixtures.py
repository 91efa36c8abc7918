"""A client that sends requests as Conductor's clients do, and helpers for common setups."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from conductor_app.utils import process_state
from tests.conftest import Clock, freeze_time, seed_randomness
from tests.database_baseline import restore_baseline


class Api:
    """Requests as the official clients send them."""

    def __init__(self) -> None:
        self.client = Client(headers={"Accept": "*/*"})

    def get(self, path: str, **query: Any) -> HttpResponse:
        return self.client.get(f"/api{path}", query)

    def post(self, path: str, body: Any = None, **headers: Any) -> HttpResponse:
        return self.send("POST", path, body, **headers)

    def put(self, path: str, body: Any = None, **headers: Any) -> HttpResponse:
        return self.send("PUT", path, body, **headers)

    def delete(self, path: str, body: Any = None, **headers: Any) -> HttpResponse:
        return self.send("DELETE", path, body, **headers)

    def send(self, method: str, path: str, body: Any = None, **headers: Any) -> HttpResponse:
        """Send a request: a bytes body unchanged, any other body as JSON, None as no body."""
        sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return self.client.generic(method, f"/api{path}", sent, "application/json", headers=headers)

    def define(self, *tasks: dict[str, Any], name: str = "order", **fields: Any) -> None:
        """Keep a workflow definition."""
        document = {"name": name, "tasks": list(tasks), "schemaVersion": 2, **fields}
        reply = self.post("/metadata/workflow?overwrite=true", document)
        assert reply.status_code == 200, reply.content

    def start(self, name: str = "order", **fields: Any) -> str:
        """Start a workflow; its id."""
        reply = self.post("/workflow", {"name": name, **fields})
        assert reply.status_code == 200, reply.content
        return reply.content.decode()

    def poll(self, task_type: str, **query: Any) -> list[dict[str, Any]]:
        """Poll without waiting."""
        return self.get(f"/tasks/poll/batch/{task_type}", **{"timeout": 0, "workerid": "tester", **query}).json()

    def report(self, task: dict[str, Any], status: str = "COMPLETED", **fields: Any) -> HttpResponse:
        """Report on a task that was polled."""
        result = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"], "status": status}
        return self.post("/tasks", {**result, "workerId": "tester", **fields})

    def workflow(self, workflow_id: str) -> dict[str, Any]:
        """Return a workflow with its tasks."""
        return self.get(f"/workflow/{workflow_id}").json()


@pytest.fixture(scope="module")
def stock(request, django_db_setup, django_db_blocker) -> Iterator[tuple[Api, Clock]]:
    """Yield the API and clock for rows that a module's tests only read; the rows are created once, from noon on.

    Tests of such rows use `reader`.
    """
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock():
        seed_randomness(patch, request.node.nodeid)
        process_state.reset()
        yield Api(), freeze_time(patch)
        restore_baseline()


@pytest.fixture
def reader(db: None) -> Api:
    """Return the API for tests that write nothing."""
    return Api()


@pytest.fixture
def api(transactional_db: None) -> Api:
    """Return the API of a server without authentication."""
    return Api()
