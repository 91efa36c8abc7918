"""Sends hostile requests to a running server, through many connections."""

import json
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from qa.hostile.accounts import ensure_accounts
from qa.hostile.connections import Connection
from qa.hostile.endpoints import all_endpoints
from qa.hostile.objects import Setup, ensure_objects, read_forms, read_objects
from qa.hostile.request_generator import Generator
from qa.hostile.verdicts import Report

BATCH = 2_000
"""Requests before accounts and objects are created again, because requests of administrators remove some."""


def attack(
    port: int, seed: int, numbers: Iterable[int], connections: int, report: Report, has_framings: bool = True,
    form_share: int = 1, progress: Callable[[Report], None] = lambda report: None,
) -> Report:  # fmt: skip
    """Send the requests with these numbers. The forms of one in `form_share` pages are read before."""
    remaining = list(numbers)
    endpoints = all_endpoints()
    forms: dict = {}
    while remaining:
        batch, remaining = remaining[:BATCH], remaining[BATCH:]
        accounts = ensure_accounts()
        setup = Setup(port, accounts)
        ensure_objects(setup)
        objects = read_objects()
        if not forms:
            read_forms(setup, endpoints[::form_share], objects)
            forms = objects.forms
        objects.forms = forms
        setup.close()
        generator = Generator(seed, port, endpoints, accounts, objects, has_framings)
        send_all(generator, batch, port, connections, report)
        progress(report)
    return report


def send_all(generator: Generator, numbers: Iterable[int], port: int, connections: int, report: Report) -> None:
    """Send requests through this many connections at the same time."""
    own = threading.local()
    opened: list[Connection] = []

    def send(number: int) -> None:
        if not hasattr(own, "connection"):
            own.connection = Connection(port)
            opened.append(own.connection)
        request = generator.build(number)
        report.add(request, own.connection.send(request))

    with ThreadPoolExecutor(connections) as pool:
        for _ in pool.map(send, numbers):
            pass
    for connection in opened:
        connection.close()


def find_failure(port: int, seconds: float = 30) -> str | None:
    """Start a run, complete its task, and return what does not work."""
    setup = Setup(port, ensure_accounts())
    name = f"hostile_check_{time.time_ns()}"
    task = {"name": name, "taskReferenceName": "check", "type": "SIMPLE"}
    status, body = setup.send("PUT", "/api/metadata/workflow", [{"name": name, "version": 1, "tasks": [task]}])
    if status != 200:
        return f"A definition cannot be saved: {status} {body!r}"
    status, run = setup.send("POST", f"/api/workflow/{name}", {})
    status, polled = setup.send("GET", f"/api/tasks/poll/{name}?workerid=check")
    if status != 200:
        return f"A task cannot be polled: {status} {polled!r}"
    result = {"workflowInstanceId": run.decode(), "taskId": json.loads(polled)["taskId"], "status": "COMPLETED"}
    setup.send("POST", "/api/tasks", result)
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        _, document = setup.send("GET", f"/api/workflow/{run.decode()}?includeTasks=false")
        if b'"COMPLETED"' in document:
            return (
                None if "<table" in setup.open_page("/admin/conductor/run/") else "The list of runs cannot be opened."
            )
        time.sleep(0.1)
    return f"The run is not completed: {document!r}"
