"""Late reports, released attempts, domains and repeated reports of workers."""

import pytest

from tests.builders import human, policy, step, wait
from tests.scenario import Scenario


def test_a_report_on_an_ended_attempt_changes_nothing(clock):
    scenario = Scenario(clock, step("a"), step("b"))
    worker = scenario.worker("a")
    worker.completes(total=1)

    assert worker.report_again("COMPLETED", total=2) is False
    assert worker.report_again("FAILED") is False
    assert scenario.task("a").output == {"total": 1}
    assert scenario.status == "RUNNING"


def test_a_report_on_a_retried_attempt_changes_nothing(clock):
    scenario = Scenario(clock, step("a", policy=policy(retries=1)))
    worker = scenario.worker("a")
    worker.fails()

    assert worker.report_again("COMPLETED") is False
    assert scenario.attempts("a") == ["FAILED", "SCHEDULED"]


def test_a_released_task_is_claimed_by_another_worker_under_the_same_id(clock):
    scenario = Scenario(clock, step("a"))
    one, another = scenario.worker("a", "one"), scenario.worker("a", "another")
    one.polls()
    id = one.held.id
    one.in_progress(callback_seconds=9, done="half")

    assert scenario.statuses == {"a": "SCHEDULED"}
    assert scenario.at(8).worker("a", "another").polls() == []
    assert scenario.at(9).worker("a", "another").polls() == ["a"]
    assert (another.held.id, another.held.output, another.held.poll_count) == (id, {"done": "half"}, 2)
    assert another.held.worker == "another"
    assert scenario.seconds(another.held.started_at) == 0


def test_the_output_of_the_last_report_replaces_the_earlier_one(clock):
    scenario = Scenario(clock, step("a"))
    scenario.worker("a").in_progress(one=1)
    scenario.worker("a").completes(two=2)

    assert scenario.task("a").output == {"two": 2}


def test_a_task_can_be_completed_without_a_poll(clock):
    scenario = Scenario(clock, step("a"))

    assert scenario.reports("a", n=1) is True
    assert scenario.status == "COMPLETED"


def test_a_wait_and_a_human_task_end_by_a_report(clock):
    scenario = Scenario(clock, wait("pause"), human("ask"))

    scenario.reports("pause")
    scenario.reports("ask", answer=42)

    assert (scenario.status, scenario.output) == ("COMPLETED", {"answer": 42})


@pytest.mark.parametrize(
    ("asked", "polled_by", "domain"),
    [
        pytest.param({"a": "blue"}, [], "blue", id="one domain"),
        pytest.param({"*": "blue"}, [], "blue", id="for every type"),
        pytest.param({"*": "red", "a": "blue"}, [], "blue", id="the type's own goes first"),
        pytest.param({"a": "red,blue"}, ["blue"], "blue", id="the first that is alive"),
        pytest.param({"a": "red,blue"}, ["red", "blue"], "red", id="the first of two that are alive"),
        pytest.param({"a": "red,blue"}, [], "blue", id="the last, if none is alive"),
        pytest.param({"a": "red,NO_DOMAIN"}, [], "", id="none, if none is alive"),
        pytest.param({"a": "red,NO_DOMAIN"}, ["red"], "red", id="one that is alive before none"),
        pytest.param({"b": "blue"}, [], "", id="of another type"),
    ],
)
def test_which_domain_a_task_is_scheduled_in(clock, asked, polled_by, domain):
    scenario = Scenario(clock, step("first"), step("a"), start={"domains": asked})
    for name in polled_by:
        scenario.worker("a", domain=name).polls()

    scenario.reports("first")

    assert scenario.task("a").domain == domain
    assert scenario.worker("a", domain=domain).polls() == ["a"]


def test_a_worker_without_a_domain_gets_no_tasks_of_a_domain(clock):
    scenario = Scenario(clock, step("a"), start={"domains": {"a": "blue"}})

    assert scenario.worker("a").polls() == []
    assert scenario.worker("a", domain="blue").polls() == ["a"]


def test_tasks_of_runs_with_a_higher_priority_are_dispatched_first(clock):
    scenario = Scenario(clock, step("a"), start={"priority": 1})
    urgent = scenario.starts("order", priority=9)

    scenario.worker("a").polls()

    assert scenario.worker("a").held.run_id == urgent.id


def test_the_oldest_tasks_are_dispatched_first(clock):
    scenario = Scenario(clock, step("a"))
    clock.advance(seconds=1)
    scenario.starts("order")

    scenario.worker("a").polls()

    assert scenario.worker("a").held.run_id == scenario.id


def test_an_output_that_is_too_large_fails_the_task_for_good(clock, settings):
    settings.CONDUCTOR_TASK_PAYLOAD_MAX_BYTES = 100
    scenario = Scenario(clock, step("a", policy=policy(retries=3)))

    scenario.worker("a").completes(text="x" * 200)

    assert scenario.statuses == {"a": "FAILED_WITH_TERMINAL_ERROR"}
    assert "100 bytes" in scenario.task("a").reason
