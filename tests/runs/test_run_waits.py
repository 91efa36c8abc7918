"""Requests that wait for a run: woken by its changes, without a connection, free of cost without waiters."""

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import Any

import pytest
from django.db import connection, connections

from conductor_app import notifications
from conductor_app.core.decide import Report
from conductor_app.notifications.channel import WAITERS
from conductor_app.runs.commands.start import StartRequest, start_run
from conductor_app.runs.models import Run
from conductor_app.runs.store import loading
from conductor_app.tasks.commands import reports as task_commands
from conductor_app.tasks.commands import waits as run_waits
from tests.builders import definition, fork, human, loop, policy, step, sub_workflow, wait
from tests.clients.wait_until import eventually
from tests.scenario import Scenario, register_definitions

BY = "ann"
LONG = 60.0


def wait_for_run(run: str, seconds: float, until_refs: Collection[str] = ()) -> run_waits.WaitOutcome:
    """Wait as a request does, in a thread."""
    return notifications.wait_in_thread(run_waits.begin_run_wait(run, seconds, until_refs))


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable periodic checks, so that only notifications can end a wait."""
    monkeypatch.setattr(run_waits, "MAX_POLL_INTERVAL", LONG)


@pytest.fixture
def run(transactional_db) -> str:
    register_definitions(definition(step("a"), step("b")))
    return start_run(StartRequest("order"), BY)


def in_thread(wait: Callable[[], Any]) -> tuple[Thread, list]:
    """Wait in a thread of its own, which holds no connection afterwards."""
    found: list = []

    def run() -> None:
        found.append(wait())
        connection.close()

    before = notifications.count_waiting()
    thread = Thread(target=run, daemon=True)
    thread.start()
    eventually(lambda: notifications.count_waiting() > before)
    return thread, found


def report_on(run_id: str, ref: str) -> None:
    assert task_commands.report_by_ref(run_id, ref, Report("COMPLETED"), BY)


def test_the_end_of_a_run_ends_the_wait_for_it(run, patient):
    thread, found = in_thread(lambda: wait_for_run(run, LONG))

    report_on(run, "a")
    report_on(run, "b")
    thread.join(10)

    assert found == [run_waits.WaitOutcome(run)]


def test_a_task_that_was_waited_for_ends_the_wait(run, patient):
    thread, found = in_thread(lambda: wait_for_run(run, LONG, ["a"]))

    report_on(run, "a")
    thread.join(10)

    [stop] = found
    assert stop.attempt_id and not stop.timed_out


def test_every_waiting_request_is_notified(run, patient):
    waiters = [in_thread(lambda: wait_for_run(run, LONG, ["a"])) for _ in range(5)]

    report_on(run, "a")

    for thread, found in waiters:
        thread.join(10)
        assert len(found) == 1


def test_a_wait_in_a_later_child_ends_the_wait_for_its_parent(transactional_db, patient):
    register_definitions(definition(step("c"), wait("approve"), name="child"))
    register_definitions(definition(step("a"), sub_workflow("inner")))
    run = start_run(StartRequest("order"), BY)
    thread, found = in_thread(lambda: wait_for_run(run, LONG))

    report_on(run, "a")
    child = Run.objects.get(parent_id=run).id
    report_on(child, "c")
    thread.join(10)

    assert [stop.run_id for stop in found] == [child]


def test_an_existing_child_notifies_the_wait(transactional_db, patient):
    register_definitions(definition(step("c"), wait("approve"), name="child"))
    register_definitions(definition(sub_workflow("inner")))
    run = start_run(StartRequest("order"), BY)
    thread, found = in_thread(lambda: wait_for_run(run, LONG))

    report_on(child := Run.objects.get(parent_id=run).id, "c")
    thread.join(10)

    assert [stop.run_id for stop in found] == [child]


def test_a_wait_that_exceeds_its_limit_reports_it(run):
    assert wait_for_run(run, 0.05) == run_waits.WaitOutcome(run, timed_out=True)


def test_a_run_without_waiting_requests_sends_no_notification(run, monkeypatch):
    topics = []
    notifications.on_announce(topics.extend)

    report_on(run, "a")

    assert topics
    assert not any(topic.startswith("\0") for topic in topics)


def test_forty_waiting_requests_use_no_connection(run):
    if connection.vendor != "postgresql":
        pytest.skip("A SQLite file stays open: that costs nothing, and opening it each second does.")
    before = count_connections()
    with ThreadPoolExecutor(40) as pool:
        waiting = [pool.submit(lambda: (wait_for_run(run, LONG), connections.close_all())) for _ in range(40)]
        eventually(lambda: WAITERS.value.count >= 40 and count_connections() <= before)
        report_on(run, "a")
        report_on(run, "b")
        assert all(one.result(timeout=20)[0] == run_waits.WaitOutcome(run) for one in waiting)


def count_connections() -> int:
    """Return the number of open connections of this process."""
    stats = connection.pool.get_stats()
    return stats["pool_size"] - stats["pool_available"]


def test_concurrent_identical_requests_start_one_run(transactional_db):
    register_definitions(definition(step("a")))
    begin = Event()

    def ask() -> str:
        begin.wait()
        try:
            return start_run(StartRequest("order", request_id="r-1"), BY)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask) for _ in range(4)]
        begin.set()

    assert len({one.result() for one in asked}) == 1
    assert Run.objects.count() == 1


@pytest.mark.django_db
def test_a_named_task_is_found_in_any_or_a_given_iteration(clock):
    scenario = Scenario(clock, loop("l", step("a"), times=3))
    scenario.worker("a").completes()
    scenario.worker("a").completes()

    assert run_waits.check_wait_outcome(scenario.id, ["a"]).attempt_id == scenario.task("a__1").id
    assert run_waits.check_wait_outcome(scenario.id, ["a__2"]).attempt_id == scenario.task("a__2").id
    assert run_waits.check_wait_outcome(scenario.id, ["a__3", "b"]) is None


@pytest.mark.django_db
def test_a_retried_failure_does_not_end_its_task(clock):
    scenario = Scenario(clock, step("a", policy=policy(retries=1)))

    scenario.worker("a").fails()
    assert run_waits.check_wait_outcome(scenario.id, ["a"]) is None

    scenario.worker("a").completes()
    assert run_waits.check_wait_outcome(scenario.id, ["a"]) == run_waits.WaitOutcome(scenario.id)


@pytest.mark.django_db
def test_a_signal_does_not_complete_a_human_task(clock):
    scenario = Scenario(clock, *fork([human("sign")], [wait("approve")]))

    assert (
        run_waits.signal_run(scenario.id, Report("COMPLETED", {"n": 1}, merges=True), BY) == scenario.task("approve").id
    )
    assert run_waits.signal_run(scenario.id, Report("COMPLETED"), BY) is None


@pytest.mark.django_db
def test_the_topic_of_an_earlier_watcher_is_kept(clock):
    scenario = Scenario(clock, step("a"))
    now = clock.now()

    first = loading.mark_watched([scenario.id], "operator", now + 10_000, now)
    second = loading.mark_watched([scenario.id], scenario.id, now + 5_000, now)
    third = loading.mark_watched([scenario.id], scenario.id, now + 30_000, now + 10_000)

    assert (first, second, third) == ({"operator"}, {"operator"}, {scenario.id})
