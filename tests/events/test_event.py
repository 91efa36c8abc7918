"""EVENT tasks that a built-in worker does."""

import pytest

from conductor_app.events.models import EventDelivery
from conductor_app.system_tasks.registry import run_built_in_workers
from tests.builders import event, policy, step
from tests.scenario import Scenario, run_commit_hooks

pytestmark = pytest.mark.django_db


def works() -> None:
    with run_commit_hooks():
        run_built_in_workers()


@pytest.mark.parametrize("sink", ["nonsense:orders", "nonsense", ""])
def test_an_unknown_sink_fails_the_task_with_a_reason(clock, sink):
    scenario = Scenario(clock, event("tell", "${workflow.input.sink}"), input={"sink": sink})

    works()

    assert (scenario.status, scenario.statuses) == ("FAILED", {"tell": "FAILED"})
    assert f"The sink '{sink}' has an unknown provider" in scenario.task("tell").reason


def test_a_failure_is_retried_as_the_policy_defines(clock):
    limits = policy("tell", retries=1)
    scenario = Scenario(clock, event("tell", "nonsense:x", policy=limits))

    works()

    assert scenario.attempts("tell") == ["FAILED", "FAILED"]


def test_an_event_of_a_rate_limited_run_is_published_when_the_run_continues(clock):
    limit = {"rateLimitKey": "k", "concurrentExecLimit": 1}
    first = Scenario(clock, event("tell", "conductor:paid", inputs={"n": 1}), step("a"), rateLimitConfig=limit)
    held = first.starts("order")
    works()
    assert EventDelivery.objects.count() == 1

    first.worker("a").completes()
    first.later(1)
    works()

    delivery = EventDelivery.objects.order_by("id")[1]
    assert held.is_waiting_for("a")
    assert (delivery.event, delivery.message_id) == ("conductor:order:paid", held.task("tell").id)
    assert delivery.payload == held.task("tell").output
    assert delivery.payload["event_produced"] == "conductor:order:paid"
