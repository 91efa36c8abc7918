"""How many statements a task costs, transaction control apart: one run of each workload inside this process.

`python -m tests.bench.statements` in the environment of the server that is measured; the token on standard input.
"""

import sys
from collections.abc import Sequence
from typing import Any

import django
import orjson

from . import workloads

CONTROL = ("SAVEPOINT", "RELEASE", "BEGIN", "COMMIT", "ROLLBACK")
NOTED_NOW_AND_THEN = "conductor_poller"


class CountingClient:
    """A client inside the process, and the statements that its requests led to."""

    def __init__(self, token: str) -> None:
        from django.test import Client

        self._client = Client(headers={"X-Authorization": token} if token else None)

    def ask(self, method: str, path: str, value: Any = None) -> bytes:
        """The body of the answer."""
        body = b"" if value is None else orjson.dumps(value)
        reply = self._client.generic(method, f"/api{path}", body, "application/json", HTTP_HOST="127.0.0.1")
        if reply.status_code not in (200, 204):
            raise SystemExit(f"{method} {path} was answered {reply.status_code}: {reply.content[:300]!r}")
        return reply.content

    def statements_per_task(self, definition: str, inputs: dict[str, Any], types: Sequence[str]) -> float:
        """Statements for each task of one run, its start included."""
        from django.db import connection
        from django.test.utils import CaptureQueriesContext

        with CaptureQueriesContext(connection) as captured:
            self.ask("POST", f"/workflow/{definition}", inputs)
            tasks = sum(self._serve(name) for name in types)
        counted = [query["sql"] for query in captured.captured_queries]
        return sum(not sql.startswith(CONTROL) and NOTED_NOW_AND_THEN not in sql for sql in counted) / max(tasks, 1)

    def _serve(self, name: str) -> int:
        done = 0
        while found := orjson.loads(self.ask("GET", f"/tasks/poll/batch/{name}?workerid=count&count=20&timeout=0")):
            for task in found:
                ids = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"]}
                self.ask("POST", "/tasks", {**ids, "status": "COMPLETED", "outputData": {"done": True}})
            done += len(found)
        return done


def main() -> None:
    """Print the counts as JSON."""
    django.setup()
    counting = CountingClient(sys.stdin.read().strip())
    counting.ask("PUT", "/metadata/workflow", [workloads.chain(5), workloads.fan_out(), workloads.loop(20)])
    counting.ask("PUT", "/metadata/workflow", workloads.nested())
    steps = [f"bench_step_{number}" for number in range(5)]
    measured = {
        "bench_chain_5": ({"order": 1}, steps),
        "bench_fan_out": (workloads.branches(100), ["bench_branch"]),
        "bench_loop_20": ({}, ["bench_turn"]),
        "bench_parent": ({"order": 1}, ["bench_inner"]),
    }
    for definition, (inputs, types) in measured.items():
        # The first run reads the plan, which is then known.
        counting.statements_per_task(definition, inputs, types)
    print(orjson.dumps({name: counting.statements_per_task(name, *rest) for name, rest in measured.items()}).decode())


if __name__ == "__main__":
    main()
