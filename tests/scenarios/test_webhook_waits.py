"""WAIT_FOR_WEBHOOK and YIELD: tasks that an event or a signal completes (Orkes' step types)."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conductor_app.core.decide import Report
from conductor_app.events.commands import intake as event_intake
from conductor_app.events.commands import webhooks
from conductor_app.events.models import EventDelivery, WebhookPaths, WebhookWait
from conductor_app.processes import sweeps
from conductor_app.tasks.commands import waits as run_waits
from tests.builders import definition, fork, loop, policy, step, sub_workflow, wait_for_webhook, yield_
from tests.runs.report_contexts import row_violations
from tests.scenario import ACTOR, RunView, Scenario, run_commit_hooks

PAID = {"$['event']['type']": "paid", "$['order']": "${workflow.input.order}"}
KEY = "a secret"


@pytest.fixture
def shop(db) -> str:
    return webhook("shop", {"order": 0})


def webhook(name: str, receivers: dict[str, int]) -> str:
    fields = {"verifier": "HEADER_BASED", "headers": {"X-Key": KEY}}
    return webhooks.create_webhook({"name": name, "receiverWorkflowNamesToVersions": receivers, **fields}, ACTOR).pk


def send_to_webhook(webhook_id: str, payload: Any) -> None:
    with run_commit_hooks():
        webhooks.receive_webhook(webhook_id, {"x-key": KEY}, json.dumps(payload).encode())


def paid(order: int, **more: Any) -> dict[str, Any]:
    return {"event": {"type": "paid"}, "order": order, **more}


def test_an_event_with_all_values_completes_the_task_with_its_payload(clock, shop):
    scenario = Scenario(clock, wait_for_webhook("w", PAID), step("after"), input={"order": 7})
    assert scenario.statuses == {"w": "IN_PROGRESS"}
    assert scenario.task("w").input == {"matches": {"$['event']['type']": "paid", "$['order']": 7}}

    send_to_webhook(shop, paid(7, sum=12))

    assert scenario.statuses == {"w": "COMPLETED", "after": "SCHEDULED"}
    assert scenario.task("w").output == paid(7, sum=12)
    assert row_violations(scenario.id) == []


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"order": 7},
        {"event": {"type": "paid"}},
        paid(8),
        {**paid(7), "event": {"type": "sent"}},
        paid(True),
        [7],
        "x",
    ],
)
def test_an_event_without_a_matched_value_changes_nothing(clock, shop, payload):
    scenario = Scenario(clock, wait_for_webhook("w", PAID), input={"order": 7})

    send_to_webhook(shop, payload)

    assert scenario.statuses == {"w": "IN_PROGRESS"}


def test_integers_and_equal_floats_match(clock, shop):
    scenario = Scenario(clock, wait_for_webhook("w", {"$.order": 7}))

    send_to_webhook(shop, {"order": 7.0})

    assert scenario.status == "COMPLETED"


def test_one_event_completes_all_tasks_that_match_and_no_other(clock, shop):
    conditions = {"a": {"$.n": 1}, "b": {"$.m": 2}, "c": {"$.n": 2}}
    scenario = Scenario(clock, *fork(*[[wait_for_webhook(ref, matches)] for ref, matches in conditions.items()]))
    other = scenario.starts("order")

    send_to_webhook(shop, {"n": 1, "m": 2})

    for run in (scenario, other):
        assert [run.statuses[ref] for ref in ("a", "b", "c")] == ["COMPLETED", "COMPLETED", "IN_PROGRESS"]


def test_only_the_workflows_that_the_webhook_names_receive_its_events(clock, shop):
    scenario = Scenario(clock, wait_for_webhook("w", {"$.n": 1}), name="bill")

    send_to_webhook(shop, {"n": 1})
    assert scenario.statuses == {"w": "IN_PROGRESS"}
    send_to_webhook(webhook("bills", {"bill": 2}), {"n": 1})
    assert scenario.statuses == {"w": "IN_PROGRESS"}, "another version"
    send_to_webhook(webhook("all bills", {"bill": 1}), {"n": 1})

    assert scenario.status == "COMPLETED"


def test_the_matches_that_the_javascript_sdk_sends_are_a_condition(clock, shop):
    scenario = Scenario(clock, wait_for_webhook("w", None, **{"$['n']": 1}))

    send_to_webhook(shop, {"n": 2})
    assert scenario.status == "RUNNING"
    send_to_webhook(shop, {"n": 1})

    assert scenario.status == "COMPLETED"


def test_without_a_condition_any_event_completes_the_task(clock, shop):
    scenario = Scenario(clock, wait_for_webhook("w"))

    send_to_webhook(shop, {"n": 1})

    assert scenario.status == "COMPLETED"


@pytest.mark.parametrize(
    ("matches", "reason"),
    [({"order": 7}, "must begin with $"), ({"$[": 7}, "Invalid path"), ([7], "must be an object")],
)
def test_a_condition_that_cannot_be_read_fails_the_task(clock, shop, matches, reason):
    scenario = Scenario(clock, wait_for_webhook("w", matches))

    assert scenario.statuses == {"w": "FAILED_WITH_TERMINAL_ERROR"}
    assert reason in scenario.task("w").reason


def test_an_earlier_event_does_not_complete_the_wait(clock, shop):
    send_to_webhook(shop, {"n": 1})
    scenario = Scenario(clock, wait_for_webhook("w", {"$.n": 1}))

    assert scenario.statuses == {"w": "IN_PROGRESS"}


def test_a_rerun_task_waits_for_a_new_event(clock, shop):
    scenario = Scenario(clock, wait_for_webhook("w", {"$.n": 1}), step("after"))
    send_to_webhook(shop, {"n": 1})
    scenario.worker("after").completes()

    scenario.rerun("w")
    assert scenario.statuses == {"w": "IN_PROGRESS"}
    send_to_webhook(shop, {"n": 1, "second": True})

    assert scenario.task("w").output == {"n": 1, "second": True}


def test_a_retried_task_waits_again(clock, shop):
    scenario = Scenario(clock, *fork([wait_for_webhook("w", {"$.n": 1})], [step("a")]))
    scenario.worker("a").fails()
    send_to_webhook(shop, {"n": 1})
    assert scenario.statuses["w"] == "CANCELED"

    scenario.retry()
    send_to_webhook(shop, {"n": 1})

    assert scenario.statuses["w"] == "COMPLETED"


def test_each_iteration_of_a_loop_waits_for_its_own_event(clock, shop):
    scenario = Scenario(clock, loop("l", wait_for_webhook("w", {"$.n": "${l.output.iteration}"}), times=2))

    send_to_webhook(shop, {"n": 1})
    send_to_webhook(shop, {"n": 2})

    assert scenario.status == "COMPLETED"


def test_a_child_waits_under_its_own_name(clock):
    child = definition(wait_for_webhook("w", {"$.n": 1}), name="child")
    scenario = Scenario(clock, sub_workflow("s", "child"), others=[child])

    send_to_webhook(webhook("children", {"child": 1}), {"n": 1})

    assert scenario.status == "COMPLETED"


def test_the_limits_of_the_task_definition_apply(clock, shop):
    own = policy("w", timeout_seconds=10, timeout_policy="TIME_OUT_WF")
    scenario = Scenario(clock, {**wait_for_webhook("w", {"$.n": 1}), "taskDefinition": own})

    assert scenario.later(11).status == "TIMED_OUT"


def test_a_message_delivered_twice_completes_one_task(clock, shop):
    scenario = Scenario(clock, loop("l", wait_for_webhook("w", {"$.n": 1}), times=2))

    send_to_webhook(shop, {"n": 1})
    delivery = EventDelivery.objects.get()
    assert scenario.statuses == {"l": "IN_PROGRESS", "w__1": "COMPLETED", "w__2": "IN_PROGRESS"}
    with run_commit_hooks():
        event_intake.receive_event(delivery.event, delivery.message_id, {"n": 1}, "webhook")

    assert scenario.statuses["w__2"] == "IN_PROGRESS"


def test_the_cost_of_an_event_does_not_grow_with_the_number_of_waiting_tasks(clock, shop):
    scenario = Scenario(clock, wait_for_webhook("w", PAID), input={"order": 0})

    def cost(order: int) -> int:
        with (
            CaptureQueriesContext(
                connection,
            ) as queries,
            run_commit_hooks(),
        ):
            webhooks.receive_webhook(shop, {"x-key": KEY}, json.dumps(paid(order)).encode())
        return len(queries)

    few = cost(1000)
    for order in range(1, 30):
        scenario.starts("order", {"order": order})

    assert cost(1001) == few
    assert WebhookPaths.objects.count() == 1


def test_rows_of_tasks_that_have_ended_are_deleted_after_a_day(clock, shop):
    scenario = Scenario(clock, wait_for_webhook("w", {"$.n": 1}))
    open_one = scenario.starts("order")
    scenario.terminate()
    clock.advance(seconds=86_401)

    sweeps.prune_finished(10)

    assert [each.attempt_id for each in WebhookWait.objects.all()] == [open_one.task("w").id]


# YIELD


def test_a_signal_completes_a_yield(clock):
    scenario = Scenario(clock, yield_("y", shown="${workflow.input.a}"), step("after"), input={"a": 1})
    assert (scenario.statuses, scenario.task("y").input) == ({"y": "IN_PROGRESS"}, {"shown": 1})

    with run_commit_hooks():
        run_waits.signal_run(scenario.id, Report("COMPLETED", {"by": "ann"}), ACTOR)

    assert scenario.statuses == {"y": "COMPLETED", "after": "SCHEDULED"}
    assert scenario.task("y").output == {"by": "ann"}
    assert row_violations(scenario.id) == []


def test_a_run_waits_at_a_yield_of_a_child(clock):
    child = definition(yield_("y"), name="child")
    scenario = Scenario(clock, sub_workflow("s", "child"), others=[child])

    found = run_waits.check_wait_outcome(scenario.id)

    assert (found.run_id, found.attempt_id) == (scenario.child("s").id, scenario.child("s").task("y").id)


def test_a_yield_is_not_dispatched_and_accepts_reports(clock):
    scenario = Scenario(clock, yield_("y"))
    assert scenario.worker("YIELD").polls() == []
    assert scenario.worker("y").polls() == []

    assert scenario.reports("y", n=1)

    assert (scenario.status, RunView(scenario.id).output) == ("COMPLETED", {"n": 1})


def test_a_yield_that_is_rerun_waits_for_another_signal(clock):
    scenario = Scenario(clock, yield_("y"), step("after"))
    scenario.reports("y")
    scenario.worker("after").completes()

    scenario.rerun("y")

    assert scenario.statuses == {"y": "IN_PROGRESS"}
