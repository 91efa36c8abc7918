"""Number of SQL statements per task, without transaction control, for one run of each workload.

Run `python -m tests.bench.statements` in the environment of the measured server, with the token on standard input.
"""

import sys
from collections.abc import Sequence
from typing import Any

import django
import orjson

from . import workloads

TRANSACTION_CONTROL = ("SAVEPOINT", "RELEASE", "BEGIN", "COMMIT", "ROLLBACK")
OCCASIONAL_TABLE = "conductor_poller"


class CountingClient:
    """Client in the process of the server that counts the statements of its requests."""

    def __init__(self, token: str) -> None:
        from django.test import Client

        self._client = Client(headers={"X-Authorization": token} if token else None)

    def send(self, method: str, path: str, value: Any = None) -> bytes:
        """Send a request and return the body of the reply.

        Raises:
            SystemExit: the reply is an error.
        """
        body = b"" if value is None else orjson.dumps(value)
        reply = self._client.generic(method, f"/api{path}", body, "application/json", HTTP_HOST="127.0.0.1")
        if reply.status_code not in (200, 204):
            raise SystemExit(f"{method} {path} was answered {reply.status_code}: {reply.content[:300]!r}")
        return reply.content

    def statements_per_task(self, definition: str, inputs: dict[str, Any], types: Sequence[str]) -> float:
        """Return the statements per task of one run, including its start."""
        from django.db import connection
        from django.test.utils import CaptureQueriesContext

        with CaptureQueriesContext(connection) as captured:
            self.send("POST", f"/workflow/{definition}", inputs)
            tasks = sum(self._serve(name) for name in types)
        counted = [query["sql"] for query in captured.captured_queries]
        return sum(not sql.startswith(TRANSACTION_CONTROL) and OCCASIONAL_TABLE not in sql for sql in counted) / max(
            tasks, 1
        )

    def _serve(self, name: str) -> int:
        done = 0
        while found := orjson.loads(self.send("GET", f"/tasks/poll/batch/{name}?workerid=count&count=20&timeout=0")):
            for task in found:
                ids = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"]}
                self.send("POST", "/tasks", {**ids, "status": "COMPLETED", "outputData": {"done": True}})
            done += len(found)
        return done


def main() -> None:
    django.setup()
    client = CountingClient(sys.stdin.read().strip())
    client.send("PUT", "/metadata/workflow", [workloads.chain(5), workloads.fan_out(), workloads.loop(20)])
    client.send("PUT", "/metadata/workflow", workloads.nested())
    steps = [f"bench_step_{number}" for number in range(5)]
    measured = {
        "bench_chain_5": ({"order": 1}, steps),
        "bench_fan_out": (workloads.branches(100), ["bench_branch"]),
        "bench_loop_20": ({}, ["bench_turn"]),
        "bench_parent": ({"order": 1}, ["bench_inner"]),
    }
    for definition, (inputs, types) in measured.items():
        # The first run reads the resolved definition, which is cached afterwards.
        client.statements_per_task(definition, inputs, types)
    print(orjson.dumps({name: client.statements_per_task(name, *rest) for name, rest in measured.items()}).decode())


if __name__ == "__main__":
    main()
