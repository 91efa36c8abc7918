"""The page that explains why a task waits and estimates when it will be claimed."""

import pytest

from conductor_app.definitions import commands as definition_commands
from conductor_app.runs.models import Attempt
from tests.builders import policy, simple, step
from tests.page_text import button_names, html, page_text
from tests.scenario import ACTOR, Scenario

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(clock) -> tuple[Scenario, Attempt]:
    """Return the second of two runs; the first holds the only slot of a limit."""
    scenario = Scenario(clock, simple("ship"), tasks=[policy("ship", concurrent_limit=1)])
    clock.advance(seconds=1)
    attempt = scenario.starts("order").task("ship")
    scenario.worker("ship", "van@7").polls()
    return scenario, attempt


def page(attempt: Attempt) -> str:
    return f"/admin/why-waiting/{attempt.pk}/"


def test_the_page_names_the_gate_and_its_holders(operator, waiting):
    scenario, attempt = waiting

    text = page_text(operator.get(page(attempt)))

    assert "1 of 1 tasks of this name run (concurrentExecLimit). Position 1" in text
    assert f"…{scenario.id[-4:]} with van@7" in text
    assert "Change the limit in the definition" in text


def test_raising_the_limit_opens_the_gate(operator, waiting):
    _, attempt = waiting

    definition_commands.save_task(policy("ship", concurrent_limit=2), ACTOR)

    assert "Every gate is open" in page_text(operator.get(page(attempt)))


def test_a_task_that_is_not_waiting_is_labeled_as_such(operator, waiting):
    scenario, _ = waiting

    assert "The task is not waiting in a queue" in page_text(operator.get(page(scenario.task("ship"))))
    assert operator.get("/admin/why-waiting/unknown/").status_code == 404


def test_the_estimate_agrees_with_the_rate_limit(operator, clock):
    limit = policy("ship", rate_count=2, rate_seconds=120)
    scenario = Scenario(clock, simple("ship"), tasks=[limit])
    scenario.worker("ship").completes()
    clock.advance(seconds=30)
    scenario.starts("order")
    scenario.worker("ship").completes()
    clock.advance(seconds=14.8)
    attempt = scenario.starts("order").task("ship")
    scenario.worker("ship").polls()

    page_now = page_text(operator.get(page(attempt)))

    assert "The next start is possible in 75.2 s. Position 1 · 1.0/min · ETA ~1 min 15 s" in page_now
    queue = page_text(operator.get("/admin/queue/?name=ship"))
    assert "Dispatches 1.0/min and is empty in about 1 min 15 s." in queue
    assert "21.8/h 1 min" in page_text(operator.get("/admin/queues/")), "the list has the rate of the last minutes"


def test_no_estimate_is_made_while_no_worker_polls(operator, clock):
    scenario = Scenario(clock, step("ship"))
    scenario.worker("ship").completes()
    attempt = scenario.starts("order").task("ship")
    clock.advance(seconds=90)

    page_now = page_text(operator.get(page(attempt)))

    assert "No worker has polled queue ship for 1 min 30 s. Position 1" in page_now and "ETA" not in page_now


def test_a_task_behind_others_is_not_announced_as_the_next_one(operator, clock):
    scenario = Scenario(clock, step("ship"))
    scenario.worker("ship").polls()
    scenario.starts("order")
    clock.advance(seconds=1)

    page_now = page_text(operator.get(page(scenario.starts("order").task("ship"))))

    assert "Every gate is open: workers claim it after the preceding tasks. Position 2" in page_now


def test_a_live_update_replaces_status_and_buttons(operator, waiting):
    scenario, attempt = waiting
    taken = scenario.task("ship")

    assert "ship attempt 1 Pending" in page_text(operator.get(f"{page(attempt)}live/"))
    assert "ship attempt 1 Running" in page_text(operator.get(f"{page(taken)}live/"))
    assert button_names(operator.get(f"{page(taken)}live/")) == ["release", "conclude"]


def test_the_run_and_the_queue_lead_there(operator, waiting):
    _, attempt = waiting

    assert page(attempt) in html(operator.get(f"/admin/conductor/run/{attempt.run_id}/change/?task=ship"))
    assert page(attempt) in html(operator.get("/admin/queue/?name=ship"))


def test_the_page_takes_few_queries(operator, viewer, waiting, django_assert_max_num_queries):
    _, attempt = waiting
    operator.get(page(attempt))
    with django_assert_max_num_queries(15):
        operator.get(page(attempt))
    assert button_names(operator.get(page(attempt))) == ["front", "priority", "conclude"]
    assert button_names(viewer.get(page(attempt))) == []


def test_the_page_lists_preceding_tasks(operator, waiting, clock):
    scenario, attempt = waiting
    clock.advance(seconds=1)
    other = scenario.starts("order").task("ship")

    shown = page_text(operator.get(page(other)))

    assert "Preceding tasks" in shown and f"/admin/why-waiting/{attempt.pk}/" in html(operator.get(page(other)))
