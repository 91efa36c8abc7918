"""Consistent reads during writes: each reply and each page shows a single state of the database."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count, takewhile
from time import monotonic
from typing import Any

import pytest
from django.core.handlers.base import BaseHandler
from django.db import connection
from django.test import RequestFactory

from conductor_app.core.decide import Report
from conductor_app.runs.commands import repair
from conductor_app.taskcluster.commands import tasks as standalone_tasks
from conductor_app.tasks.commands import reports
from tests.builders import policy, step
from tests.runs.test_parallel import at_once
from tests.runs.test_statements import CONTROL
from tests.scenario import ACTOR, Scenario
from tests.taskcluster.conftest import LINUX
from tests.taskcluster.test_groups_parallel import RETRIES as RETRIED
from tests.taskcluster.test_groups_parallel import new_task

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

SECONDS = 0.4
WRITERS, READERS = 2, 3
RETRIES, MAX_RUNS = 4, 40
OPEN = ("SCHEDULED", "IN_PROGRESS")
Act = Callable[[], Iterable[str]]
"""A function that a thread calls repeatedly; it returns the inconsistencies that it finds."""


class Web:
    """The server without a socket, for many threads at once."""

    def __init__(self, cookie: str = "") -> None:
        self.handler, self.factory = BaseHandler(), RequestFactory(headers={"Cookie": cookie} if cookie else {})
        self.handler.load_middleware()

    def get(self, path: str, **query: Any) -> Any:
        return self._answer(self.factory.get(path, query))

    def post(self, path: str, body: Any) -> Any:
        return self._answer(self.factory.post(path, json.dumps(body), "application/json"))

    def _answer(self, request: Any) -> Any:
        reply = self.handler.get_response(request)
        assert reply.status_code == 200, (request.path, reply.status_code, reply.content[:500])
        is_json = reply.headers["Content-Type"].startswith("application/json")
        return json.loads(reply.content) if is_json else reply.content.decode()


@pytest.fixture(autouse=True)
def threads_change_often() -> Iterator[None]:
    """Switch threads often, also between two statements. By default, Python lets a thread run for 5 ms."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


@pytest.fixture
def api() -> Web:
    return Web()


@pytest.fixture
def pages(admin_client) -> Web:
    return Web(f"sessionid={admin_client.cookies['sessionid'].value}")


def found_between(look: Act, changes: list[Callable[[], Any]]) -> list[str]:
    """Return the inconsistencies that a reader finds if another connection writes after the reader's n-th statement.

    Repeats for each n up to the reader's number of statements; the changes end in the initial state.

    Raises:
        AssertionError: the reader has too many statements.
    """
    # Run once without a change to fill the process's caches, which would otherwise affect the first place only.
    found = list(look())
    for place in count(1):
        for change in changes:
            with after_statement(place, change) as is_made:
                found += look()
            if not is_made:
                assert place > 1
                return found
    raise AssertionError


@contextmanager
def after_statement(place: int, change: Callable[[], Any]) -> Iterator[list[bool]]:
    """Make the change after the n-th statement of the block; the yielded list is not empty if the change was made."""
    made: list[bool] = []
    passed = count(1)

    def watch(execute: Callable[..., Any], *said: Any) -> Any:
        result = execute(*said)
        if not said[0].startswith(CONTROL) and next(passed) == place:
            at_once(lambda _: change(), 1)
            made.append(True)
        return result

    with connection.execute_wrapper(watch):
        yield made


def found_by(acts: Iterable[Act]) -> list[str]:
    """Return the inconsistencies that concurrent threads find within a limited time."""
    acts = list(acts)
    # Run each once alone, because the first request of a process loads modules.
    find_standalone = [each for act in acts for each in act()]
    assert find_standalone == []
    ends_at = monotonic() + SECONDS

    def live(number: int) -> list[str]:
        found: list[str] = []
        while monotonic() < ends_at:
            found += acts[number]()
        return found

    return [each for found in at_once(live, len(acts)) for each in found]


# Runs: tried, tried again, completed and rerun.


@pytest.fixture
def orders(clock) -> list[str]:
    first = Scenario(clock, step("a", policy=policy(retries=1)), step("b"), start={"correlation_id": "one"})
    return [first.id, *(first.starts("order", correlation_id="one").id for _ in range(WRITERS - 1))]


def report_later(run_id: str, ref: str, outcome: str) -> Callable[[], Any]:
    return lambda: reports.report_by_ref(run_id, ref, Report(outcome, {"n": 1}), ACTOR)


def changes_of(run_id: str) -> list[Callable[[], Any]]:
    """Return changes of a run: a retry, progress, completion, and a restart."""
    steps = (("a", "FAILED"), ("a", "COMPLETED"), ("b", "COMPLETED"))
    return [*(report_later(run_id, *step) for step in steps), lambda: repair.rerun(run_id, ACTOR)]


def worked_on(run_id: str) -> Act:
    def turn() -> Iterable[str]:
        for change in changes_of(run_id):
            change()
        return ()

    return turn


def torn_run(run: dict[str, Any]) -> Iterable[str]:
    """Yield inconsistencies: a run is open exactly while one of its tasks is, and each retry is counted."""
    statuses = [task["status"] for task in run["tasks"]]
    if (run["status"] == "RUNNING") != any(status in OPEN for status in statuses):
        yield f"{run['status']} with tasks {statuses}"
    for ref in ("a", "b"):
        tries = [task for task in run["tasks"] if task["referenceTaskName"] == ref]
        if [task["retryCount"] for task in tries] != list(range(len(tries))):
            yield f"{ref} has the tries {[task['retryCount'] for task in tries]}"


def torn_bundle(bundle: dict[str, Any]) -> Iterable[str]:
    """Yield inconsistencies: the newest transition in a run's history leads to its displayed status."""
    yield from torn_run(bundle["run"])
    effects = [effect for entry in bundle["history"] for effect in reversed(entry["effects"])]
    last = next((effect["event"] for effect in effects if effect["effect"] == "TransitionRun"), "rerun")
    if {"complete": "COMPLETED", "rerun": "RUNNING"}[last] != bundle["run"]["status"]:
        yield f"{bundle['run']['status']} after {last}"


def torn_table(page: str) -> Iterable[str]:
    """Yield inconsistencies: a page shows Running exactly while it shows an active task."""
    [status] = re.findall(r'<h1>.*?<span class="badge \w+">.*?</svg>(.*?)</span>\s*</h1>', page, re.DOTALL)
    rows = re.findall(r'<tr data-key="\w+"[^>]*>.*?<span class="badge \w+">.*?</svg>(.*?)</span>', page, re.DOTALL)
    if (status == "Running") != ("Active" in rows):
        yield f"{status} with tasks {rows}"


def torn_history(page: str) -> Iterable[str]:
    """Yield inconsistencies: a run's revision equals that of its newest history entry."""
    [revision] = re.findall(r"<dt>Revision</dt><dd>(\d+)</dd>", page)
    newest = re.search(r'data-key="rev-(\d+)"', page)
    if newest is None or newest[1] != revision:
        yield f"revision {revision}, history up to {newest and newest[1]}"


LOOKS_AT_RUNS: dict[str, Callable[[Web, Web, str], Iterable[str]]] = {
    "a workflow": lambda api, _, id: torn_run(api.get(f"/api/workflow/{id}")),
    "a status with its output": lambda api, _, id: (
        wrong for run in [api.get(f"/api/workflow/{id}/status", includeOutput="true")] for wrong in torn_output(run)
    ),
    "workflows that belong together": lambda api, _, id: (
        wrong
        for run in api.get("/api/workflow/order/correlated/one", includeTasks="true", includeClosed="true")
        for wrong in torn_run(run)
    ),
    "a search": lambda api, _, id: (
        f"{run['status']} among the completed"
        for run in api.get("/api/workflow/search-v2", query="status IN (COMPLETED)")["results"]
        if run["status"] != "COMPLETED"
    ),
    "a bundle": lambda _, pages, id: torn_bundle(pages.get(f"/admin/conductor/run/{id}/bundle.json")),
    "a page's tasks": lambda _, pages, id: torn_table(pages.get(f"/admin/conductor/run/{id}/change/", tab="tasks")),
    "a page's history": lambda _, pages, id: torn_history(pages.get(f"/admin/conductor/run/{id}/parts/", tab="events")),
}


def torn_output(run: dict[str, Any]) -> Iterable[str]:
    """Yield inconsistencies: a completed run has an output."""
    if (run["status"] == "COMPLETED") != bool(run["output"]):
        yield f"{run['status']} with the output {run['output']}"


@pytest.mark.parametrize("what", LOOKS_AT_RUNS)
def test_a_run_and_its_tasks_are_read_in_one_snapshot(api, pages, orders, what):
    look = LOOKS_AT_RUNS[what]
    readers = [lambda id=orders[number % WRITERS]: look(api, pages, id) for number in range(READERS)]

    assert found_by([*map(worked_on, orders), *readers]) == []


@pytest.mark.parametrize("what", LOOKS_AT_RUNS)
def test_a_change_between_two_statements_of_a_run_reader_is_invisible(api, pages, orders, what):
    look = partial(LOOKS_AT_RUNS[what], api, pages, orders[0])

    assert found_between(look, changes_of(orders[0])) == []


# Standalone tasks: claimed, reported, retried until no retry remains, and rerun.


@pytest.fixture
def jobs(clock, monkeypatch) -> "Jobs":
    monkeypatch.setattr(standalone_tasks, "CLAIM_WAIT_SECONDS", 0.0)
    first = standalone_tasks.create_task(new_task(clock, queue=f"{LINUX}-never", retries=RETRIES))
    return Jobs(clock, first.group_id, first.id)


class Jobs:
    """Tasks of one group that all depend on its first one; each writer tries one of them."""

    def __init__(self, clock: Any, group_id: str, first: str) -> None:
        self.clock, self.group, self.first = clock, group_id, first
        self.ids = [self.new(number) for number in range(WRITERS)]

    def new(self, number: int) -> str:
        facts = {"group_id": self.group, "requires": (self.first,), "retries": RETRIES}
        task = new_task(self.clock, queue=f"{LINUX}-{number}", definition={"scopes": []}, **facts)
        return standalone_tasks.apply_action("schedule", standalone_tasks.create_task(task).id, ACTOR).id

    def tried_again_and_again(self, api: Web, number: int) -> Act:
        """Return a worker that always fails its task; the replies that it receives are checked too."""
        worker = {"workerGroup": "here", "workerId": "w", "tasks": 1}

        def turn() -> Iterable[str]:
            for claim in api.post(f"/api/queue/v1/claim-work/{LINUX}-{number}", worker)["tasks"]:
                yield from torn_task(claim["status"])
                task = f"/api/queue/v1/task/{self.ids[number]}"
                run = f"{task}/runs/{claim['runId']}"
                yield from torn_task(api.post(f"{run}/reclaim", {})["status"])
                ended = api.post(f"{run}/exception", {"reason": "intermittent-task"})["status"]
                yield from torn_task(ended)
                if ended["state"] == "exception" and len(ended["runs"]) <= MAX_RUNS:
                    yield from torn_task(api.post(f"{task}/rerun", {})["status"])
                elif ended["state"] == "exception":
                    self.ids[number] = self.new(number)

        return turn


def torn_task(status: dict[str, Any]) -> Iterable[str]:
    """Yield inconsistencies: each retry since the last rerun reduces the remaining retries by one."""
    causes = [run["reasonCreated"] for run in reversed(status["runs"])]
    retried = sum(cause in RETRIED for cause in takewhile(lambda cause: cause != "rerun", causes))
    if retried + status["retriesLeft"] != RETRIES:
        yield f"{retried} retries, {status['retriesLeft']} of {RETRIES} left"


def torn_task_page(page: str) -> Iterable[str]:
    """Yield the same inconsistencies for a page."""
    [left] = re.findall(rf"<dt>Retries left</dt><dd>(\d+) of {RETRIES}</dd>", page)
    causes = re.findall(r"created as ([\w-]+)", page)[::-1]
    retried = sum(cause in RETRIED for cause in takewhile(lambda cause: cause != "rerun", causes))
    if retried + int(left) != RETRIES:
        yield f"{retried} retries, {left} of {RETRIES} left"


def each_of(listed: dict[str, Any], name: str) -> Iterable[str]:
    return (wrong for each in listed[name] for wrong in torn_task(each["status"]))


LOOKS_AT_TASKS: dict[str, Callable[[Web, Web, Jobs], Iterable[str]]] = {
    "a status": lambda api, _, jobs: torn_task(api.get(f"/api/queue/v1/task/{jobs.ids[0]}/status")["status"]),
    "many statuses": lambda api, _, jobs: each_of(
        api.post("/api/queue/v1/tasks/status", {"taskIds": jobs.ids}), "statuses"
    ),
    "a group": lambda api, _, jobs: each_of(api.get(f"/api/queue/v1/task-group/{jobs.group}/list"), "tasks"),
    "dependents": lambda api, _, jobs: each_of(api.get(f"/api/queue/v1/task/{jobs.first}/dependents"), "tasks"),
    "a page": lambda _, pages, jobs: torn_task_page(
        pages.get(f"/admin/conductor/standalonetask/{jobs.ids[0]}/change/")
    ),
}


@pytest.mark.parametrize("what", LOOKS_AT_TASKS)
def test_a_standalone_task_and_its_runs_are_read_in_one_snapshot(api, pages, jobs, what):
    look = LOOKS_AT_TASKS[what]
    writers = [jobs.tried_again_and_again(api, number) for number in range(WRITERS)]

    assert found_by([*writers, *[lambda: look(api, pages, jobs)] * READERS]) == []


@pytest.mark.parametrize("what", LOOKS_AT_TASKS)
def test_a_change_between_two_statements_of_a_standalone_task_reader_is_invisible(api, pages, jobs, what):
    def again() -> None:
        assert list(jobs.tried_again_and_again(api, 0)()) == []

    look = partial(LOOKS_AT_TASKS[what], api, pages, jobs)

    assert found_between(look, [again]) == []
