"""The state of the server after the last fault: runs, schedule executions and messages, read over the API."""

from dataclasses import dataclass, field
from typing import Any

from .definitions import CHILD, ECHO, ORDER, SCHEDULE, TICK
from .http_client import FaultClient

PAGE = 500
KEYS_PER_REQUEST = 50
Document = dict[str, Any]


@dataclass
class FinalState:
    """`orders`, `echoes`: runs by the key of the start. `counts`: the number of runs by workflow.

    `children`: the sub-workflows by id. `slots`: the executions of the schedule. `leases`: the renewals of the lease of
    beat.
    """

    orders: dict[str, list[Document]] = field(default_factory=dict)
    echoes: dict[str, list[Document]] = field(default_factory=dict)
    children: dict[str, Document] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    slots: list[Document] = field(default_factory=list)
    leases: list[Document] = field(default_factory=list)


def read_final_state(client: FaultClient, keys: list[str]) -> FinalState:
    """Read the state of all runs that the keys have started."""
    state = FinalState()
    for start in range(0, len(keys), KEYS_PER_REQUEST):
        part = keys[start : start + KEYS_PER_REQUEST]
        state.orders |= _correlated(client, ORDER, part)
        state.echoes |= _correlated(client, ECHO, part, with_tasks=False)
    for runs in state.orders.values():
        for run in runs:
            for task in run["tasks"]:
                if task["taskType"] == "SUB_WORKFLOW" and (child := task.get("subWorkflowId")):
                    state.children[child] = _get(client, f"/workflow/{child}?includeTasks=true")
    state.counts = {name: _count_runs(client, name) for name in (ORDER, CHILD, ECHO, TICK)}
    state.slots = _slots(client)
    return state


def count_open(client: FaultClient) -> int:
    """Return the number of open runs, or -1 if the server does not reply."""
    replies = [client.send("GET", f"/workflow/running/{name}") for name in (ORDER, CHILD, ECHO, TICK)]
    return sum(len(reply.body) for reply in replies) if all(reply.is_ok for reply in replies) else -1


def _correlated(
    client: FaultClient, name: str, keys: list[str], *, with_tasks: bool = True
) -> dict[str, list[Document]]:
    query = f"includeClosed=true&includeTasks={str(with_tasks).lower()}"
    reply = client.send("POST", f"/workflow/{name}/correlated?{query}", keys)
    assert reply.is_ok, reply
    return reply.body


def _count_runs(client: FaultClient, name: str) -> int:
    return _get(client, f"/workflow/search?query=workflowType%3D{name}&size=1")["totalHits"]


def _slots(client: FaultClient) -> list[Document]:
    found: list[Document] = []
    while True:
        query = f"scheduleName%3D{SCHEDULE}&start={len(found)}&size={PAGE}&sort=scheduledTime:ASC"
        page = _get(client, f"/scheduler/search/executions?query={query}")["results"]
        found += page
        if len(page) < PAGE:
            return found


def _get(client: FaultClient, path: str) -> Any:
    reply = client.send("GET", path)
    assert reply.is_ok, (path, reply)
    return reply.body
