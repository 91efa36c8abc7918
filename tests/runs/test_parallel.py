"""Concurrency: limits are exact, no attempt is claimed twice, no decision is made twice."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from conductor_app.core.decide import Report
from conductor_app.runs.models import Attempt, Run, Task
from conductor_app.tasks.commands import reports as task_commands
from conductor_app.tasks.commands.claims import claim_tasks
from tests.builders import dynamic_fork, fork, policy, step
from tests.scenario import ACTOR, Scenario

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

POLLERS = 50


def at_once(what: Callable[[int], Any], times: int = POLLERS) -> list[Any]:
    """Return the results of concurrent threads."""
    ready = Barrier(times)

    def begin(number: int) -> Any:
        ready.wait(30)
        try:
            return what(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(begin, range(times)))


def fan(clock, count: int, limits: dict) -> Scenario:
    inputs = {"forkTaskInputs": list(range(count)), "forkTaskName": "pay"}
    return Scenario(clock, *dynamic_fork(inputs=inputs, optional=False), tasks=[limits])


def polled_by_all(count: int = 2) -> list[str]:
    taken = at_once(lambda number: claim_tasks("pay", worker=f"worker {number}", count=count, wait_ms=0))
    return [attempt.id for found in taken for attempt in found]


def test_no_attempt_is_claimed_by_two_workers(clock):
    fan(clock, 60, policy("pay"))

    ids = polled_by_all() + polled_by_all()

    assert len(ids) == len(set(ids)) == 60


def test_a_limit_of_tasks_at_a_time_is_exact(clock):
    fan(clock, 60, policy("pay", concurrent_limit=7))

    assert len(polled_by_all()) == 7
    assert Attempt.objects.filter(status="LEASED", name="pay").count() == 7
    assert polled_by_all() == []


def test_a_limit_of_starts_in_a_window_is_exact(clock):
    fan(clock, 60, policy("pay", rate_count=11, rate_seconds=60))

    assert len(polled_by_all()) == 11
    clock.advance(seconds=59)
    assert polled_by_all() == []
    clock.advance(seconds=1)
    assert len(polled_by_all()) == 11


def test_only_one_of_many_reports_on_an_attempt_is_applied(clock):
    scenario = Scenario(clock, step("a"), step("b"))
    id = scenario.task("a").id

    accepted = at_once(
        lambda number: task_commands.report_task(scenario.id, id, Report("COMPLETED", {"by": number}), ACTOR), 20
    )

    assert sum(accepted) == 1
    assert scenario.task("a").output == {"by": accepted.index(True)}
    assert Task.objects.filter(run_id=scenario.id, ref="b").count() == 1


def test_a_report_while_others_poll_is_never_lost(clock):
    scenario = Scenario(clock, step("a", policy=policy(retries=30)), step("b"))

    def poll_or_fail(number: int) -> None:
        if number % 2:
            claim_tasks("a", worker=f"worker {number}", wait_ms=0)
        else:
            task_commands.report_task(scenario.id, scenario.task("a").id, Report("FAILED"), ACTOR)

    at_once(poll_or_fail, 20)

    assert scenario.status == "RUNNING"
    assert Attempt.objects.filter(run_id=scenario.id, status__in=("PENDING", "LEASED")).count() == 1


def test_branches_that_end_together_complete_their_join_one_time(clock):
    branches = [[step(f"b{number}")] for number in range(16)]
    scenario = Scenario(clock, *fork(*branches), step("after"))

    at_once(
        lambda number: task_commands.report_task(
            scenario.id, scenario.task(f"b{number}").id, Report("COMPLETED"), ACTOR
        ),
        16,
    )

    assert scenario.statuses["join"] == "COMPLETED"
    assert Task.objects.filter(run_id=scenario.id, ref="after").count() == 1


def test_a_limit_of_runs_at_a_time_is_exact(clock):
    limits = {"rateLimitKey": "all", "concurrentExecLimit": 3}
    scenario = Scenario(clock, step("a"), name="limited", rateLimitConfig=limits)

    at_once(lambda number: scenario.starts("limited"), 12)
    assert Run.objects.filter(name="limited", is_held=False).count() == 3

    at_once(lambda number: scenario.worker("a", f"worker {number}").polls(), 12)
    held = list(Attempt.objects.filter(status="LEASED"))
    at_once(
        lambda number: task_commands.report_task(held[number].run_id, held[number].id, Report("COMPLETED"), ACTOR),
        len(held),
    )
    assert Run.objects.filter(name="limited", is_held=False, status="RUNNING").count() == 3
