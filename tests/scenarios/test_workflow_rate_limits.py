"""Limits of tasks and runs: blocked tasks, and their release when capacity is available (execution §5)."""

import pytest

from conductor_app.core.errors import Conflict
from conductor_app.runs.commands import control
from tests.builders import definition, dynamic_fork, fork, noop, policy, simple, step, sub_workflow, wait
from tests.scenario import ACTOR, Scenario, register_definitions


def fan(clock, count: int, limits: dict) -> Scenario:
    """Start a fan-out of `count` pending tasks named `pay`."""
    inputs = {"forkTaskInputs": list(range(count)), "forkTaskName": "pay"}
    return Scenario(clock, *dynamic_fork(inputs=inputs, optional=False), tasks=[limits])


def test_no_more_tasks_are_claimed_than_the_limit_allows(clock):
    scenario = fan(clock, 5, policy("pay", concurrent_limit=2))

    assert len(scenario.worker("pay").polls(count=5)) == 2
    assert scenario.worker("pay", "another").polls(count=5) == []


def test_a_freed_slot_is_assigned_to_the_next_task_at_once(clock):
    scenario = fan(clock, 3, policy("pay", concurrent_limit=1))
    worker = scenario.worker("pay")
    assert len(worker.polls()) == 1
    assert scenario.worker("pay", "another").polls() == []

    worker.completes()

    assert len(scenario.worker("pay", "another").polls()) == 1


def test_a_released_task_frees_its_slot(clock):
    scenario = fan(clock, 2, policy("pay", concurrent_limit=1))
    scenario.worker("pay").polls()
    scenario.worker("pay").in_progress(callback_seconds=30)

    assert len(scenario.worker("pay", "another").polls()) == 1


def test_a_lost_lease_frees_its_slot(clock):
    scenario = fan(clock, 2, policy("pay", concurrent_limit=1, lease_seconds=20, retries=1, delay_seconds=60))
    scenario.worker("pay").polls()

    assert scenario.at(19).worker("pay", "another").polls() == []
    assert len(scenario.at(20).worker("pay", "another").polls()) == 1


def test_a_limit_applies_across_all_runs_and_definitions(clock):
    limits = policy("pay", concurrent_limit=1)
    one = Scenario(clock, simple("a", "pay"), tasks=[limits])
    clock.advance(seconds=1)
    other = Scenario(clock, simple("b", "pay"), name="other")
    assert one.worker("pay").polls(count=9) == ["a"]
    assert other.worker("pay").polls(count=9) == []

    one.worker("pay").completes()

    assert other.worker("pay").polls() == ["b"]


def test_a_limit_applies_across_all_domains(clock):
    steps = fork([simple("a", "pay")], [simple("b", "pay")])
    scenario = Scenario(clock, *steps, tasks=[policy("pay", concurrent_limit=1)])
    blue = Scenario(clock, simple("c", "pay"), name="blue", start={"domains": {"pay": "blue"}})
    assert blue.worker("pay", domain="blue").polls() == ["c"]

    assert scenario.worker("pay").polls() == []


def test_no_more_tasks_are_claimed_in_a_window_than_the_rate_allows(clock):
    scenario = fan(clock, 5, policy("pay", rate_count=2, rate_seconds=10))
    worker = scenario.worker("pay")

    assert len(worker.polls(count=5)) == 2
    assert scenario.at(9).worker("pay").polls(count=5) == []
    assert len(scenario.at(10).worker("pay").polls(count=5)) == 2


def test_the_window_of_a_rate_slides(clock):
    scenario = fan(clock, 9, policy("pay", rate_count=2, rate_seconds=10))
    scenario.worker("pay").polls()
    scenario.at(6).worker("pay").polls()

    assert scenario.at(9).worker("pay").polls() == []
    assert len(scenario.at(10).worker("pay").polls(count=5)) == 1
    assert scenario.at(15).worker("pay").polls() == []
    assert len(scenario.at(16).worker("pay").polls(count=5)) == 1


def test_a_changed_limit_applies_to_active_runs(clock):
    scenario = fan(clock, 5, policy("pay", concurrent_limit=1))
    assert len(scenario.worker("pay").polls(count=5)) == 1

    register_definitions(tasks=[policy("pay", concurrent_limit=3)])

    assert len(scenario.worker("pay").polls(count=5)) == 2


LIMITED = {"name": "limited", "rateLimitConfig": {"rateLimitKey": "all", "concurrentExecLimit": 2}}


def by_customer(**config) -> dict:
    config = {"rateLimitKey": "${workflow.input.customer}", "concurrentExecLimit": 1, **config}
    return {"name": "limited", "rateLimitConfig": config}


def test_a_run_beyond_the_limit_is_running_with_its_first_task_not_to_be_polled(clock):
    scenario = Scenario(clock, step("a"), **LIMITED)
    scenario.starts("limited")
    third = scenario.starts("limited")

    assert (third.status, third.statuses) == ("RUNNING", {"a": "SCHEDULED"})
    assert third.row.is_held
    assert len(scenario.worker("a").polls(count=9)) == 2


def test_waiting_runs_are_admitted_in_start_order(clock):
    scenario = Scenario(clock, step("a"), **by_customer(rateLimitKey="one"))
    later = []
    for _ in range(3):
        clock.advance(seconds=1)
        later.append(scenario.starts("limited"))

    order = []
    for _ in range(4):
        scenario.worker("a").polls()
        order.append(scenario.worker("a").held.run_id)
        scenario.worker("a").completes()

    assert order == [scenario.id, *(view.id for view in later)]
    assert {view.status for view in later} == {"COMPLETED"}


def test_each_value_of_a_key_has_a_limit_of_its_own(clock):
    scenario = Scenario(clock, step("a"), input={"customer": "x"}, **by_customer())
    same, other = (scenario.starts("limited", {"customer": customer}) for customer in ("x", "y"))

    assert (same.row.is_held, other.row.is_held) == (True, False)
    assert (same.row.limit_key, other.row.limit_key) == ("x", "y")


def test_a_key_may_be_the_correlation_id(clock):
    fields = by_customer(rateLimitKey="${workflow.correlationId}")
    scenario = Scenario(clock, step("a"), start={"correlation_id": "c"}, **fields)

    assert scenario.starts("limited", correlation_id="c").row.is_held
    assert not scenario.starts("limited", correlation_id="d").row.is_held


def test_a_policy_of_rejecting_refuses_the_start(clock):
    scenario = Scenario(clock, step("a"), input={"customer": "x"}, **by_customer(policy="REJECT"))

    with pytest.raises(Conflict, match="concurrent runs"):
        scenario.starts("limited", {"customer": "x"})


def test_the_end_of_any_kind_makes_room(clock):
    scenario = Scenario(clock, step("a"), input={"customer": "x"}, **by_customer())
    second, third = (scenario.later(1).starts("limited", {"customer": "x"}) for _ in range(2))

    scenario.terminate()
    assert (second.row.is_held, third.row.is_held) == (False, True)
    scenario.worker("a").fails()
    assert (second.status, third.row.is_held) == ("FAILED", False)


def test_a_waiting_run_that_is_terminated_makes_no_room(clock):
    scenario = Scenario(clock, step("a"), input={"customer": "x"}, **by_customer())
    second, third = (scenario.later(1).starts("limited", {"customer": "x"}) for _ in range(2))

    second.terminate()

    assert (second.status, third.row.is_held) == ("TERMINATED", True)


@pytest.mark.parametrize("first", [noop("n"), wait("n", duration="1 s")], ids=["NOOP", "WAIT"])
def test_a_waiting_run_executes_no_system_task(clock, first):
    scenario = Scenario(clock, step("a"), input={"customer": "x"}, **by_customer())
    register_definitions(definition(first, step("b"), **by_customer(), version=2))
    second = scenario.starts("limited", {"customer": "x"})
    assert scenario.later(5).queue("b") == []

    scenario.worker("a").completes()

    assert scenario.later(1).queue("b") == ["b, attempt 1"]
    assert second.status == "RUNNING"


def test_waiting_for_room_is_not_waiting_for_a_poll(clock):
    limits = policy(poll_seconds=30)
    scenario = Scenario(clock, step("a"), input={"customer": "x"}, **by_customer())
    register_definitions(definition(step("b", policy=limits), **by_customer(), version=2))
    second = scenario.starts("limited", {"customer": "x"})

    assert scenario.at(100).queue("b") == []
    assert second.status == "RUNNING"
    scenario.worker("a").completes()

    assert scenario.at(129).queue("b") == ["b, attempt 1"]
    scenario.at(130)
    assert second.status == "TIMED_OUT"


def test_a_newcomer_does_not_overtake_a_run_that_waits(clock):
    scenario = Scenario(clock, step("a"), input={"customer": "x"}, **by_customer())
    waiting = scenario.later(1).starts("limited", {"customer": "x"})
    # The notification is lost: no process learns of the end before the next start.
    control.terminate_run(scenario.id, ACTOR)
    clock.advance(seconds=1)
    newcomer = scenario.starts("limited", {"customer": "x"})

    scenario.later(1)

    assert (waiting.row.is_held, newcomer.row.is_held) == (False, True)


def test_children_wait_for_room_too_and_are_never_rejected(clock):
    child = definition(step("x"), **by_customer(rateLimitKey="one", policy="REJECT"))
    steps = fork([sub_workflow("s", "limited")], [sub_workflow("t", "limited")])
    scenario = Scenario(clock, *steps, others=[child])

    assert len(scenario.worker("x").polls(count=9)) == 1
    scenario.worker("x").completes()
    assert len(scenario.worker("x").polls(count=9)) == 1
    scenario.worker("x").completes()

    assert scenario.status == "COMPLETED"
