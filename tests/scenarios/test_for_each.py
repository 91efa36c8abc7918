"""FOR_EACH over lists, in the database."""

import pytest

from tests.builders import definition, each, step, sub_workflow
from tests.runs.report_contexts import row_violations
from tests.scenario import Scenario

ORDER = {"order": "${each.output.item.id}", "number": "${each.output.index}"}
ORDERS = [{"id": "A"}, {"id": "B"}, {"id": "C"}]


def orders(clock, *body, **settings) -> Scenario:
    steps = each("each", *body, items="${workflow.input.orders}", **settings)
    return Scenario(clock, steps, step("after"), input={"orders": ORDERS})


@pytest.mark.parametrize("parallel", [1, 2])
def test_each_item_passes_its_outputs_to_its_later_steps(clock, parallel):
    paid = {"paid": "${pay.output.sum}", **ORDER}
    scenario = orders(clock, step("pay", inputs=ORDER), step("ship", inputs=paid), parallel=parallel)

    for number in (1, 2, 3):
        scenario.worker("pay").completes(sum=number)
        scenario.worker("ship").completes(parcel=number)

    for number, order in enumerate("ABC"):
        pay, ship = (scenario.task(f"{ref}__{number + 1}__1") for ref in ("pay", "ship"))
        assert pay.output == {"sum": number + 1}
        assert ship.input == {"paid": pay.output["sum"], "order": order, "number": number}
        assert scenario.task("each").output["results"][number] == {"pay": pay.output, "ship": ship.output}
    scenario.worker("after").completes()
    assert (scenario.status, row_violations(scenario.id)) == ("COMPLETED", [])


def test_items_started_together_are_dispatched_in_list_order(clock):
    scenario = Scenario(clock, each("each", step("a"), items=list(range(30)), parallel=30))

    assert scenario.worker("a").polls(count=12) + scenario.worker("a").polls(count=30) == [
        f"a__{number}__1" for number in range(1, 31)
    ]


def test_an_externally_stored_list_is_iterated(clock, settings):
    settings.CONDUCTOR_TASK_PAYLOAD_SOFT_BYTES = 1000
    settings.CONDUCTOR_WORKFLOW_PAYLOAD_SOFT_BYTES = 1000
    items = [{"id": number, "text": "x" * 500} for number in range(4)]
    steps = each("each", step("a", inputs={"id": "${each.output.item.id}"}), items="${workflow.input.items}")
    scenario = Scenario(clock, steps, input={"items": items})

    for number in range(4):
        assert scenario.task(f"a__{number + 1}__1").input == {"id": number}
        scenario.worker("a").completes()

    assert scenario.status == "COMPLETED"


def test_children_of_other_items_are_stopped_when_one_fails(clock):
    child = definition(step("x", "pay"), name="child")
    scenario = Scenario(clock, each("each", sub_workflow("s"), items=[1, 2], parallel=2), others=[child])
    children = [scenario.child("s__1__1"), scenario.child("s__2__1")]

    scenario.worker("pay").fail_terminally("broken")

    assert sorted(child.status for child in children) == ["FAILED", "TERMINATED"]
    assert (scenario.status, "broken" in scenario.reason) == ("FAILED", True)


def test_failed_items_are_reported_and_the_others_complete(clock):
    scenario = orders(clock, step("pay"), parallel=3, onItemFailure="CONTINUE")

    scenario.worker("pay").fails("no funds")
    scenario.worker("pay").completes()
    scenario.worker("pay").completes()

    output = scenario.task("each").output
    [error] = output["errors"]
    assert (error["reason"], output["results"].count(None)) == ("no funds", 1)
    assert output["results"][error["index"]] is None
    assert scenario.is_waiting_for("after")


def test_a_retry_continues_with_the_failed_item(clock):
    scenario = orders(clock, step("pay"))
    scenario.worker("pay").completes()
    scenario.worker("pay").fails("no funds")
    assert scenario.status == "FAILED"

    scenario.retry()
    for _ in range(2):
        scenario.worker("pay").completes()

    assert (scenario.is_waiting_for("after"), scenario.attempts("pay__2__1")) == (True, ["FAILED", "COMPLETED"])


def test_a_rerun_inside_an_item_preserves_the_others(clock):
    scenario = orders(clock, step("pay", inputs=ORDER), parallel=3)
    for number in (1, 2, 3):
        scenario.worker("pay").completes(n=number)
    scenario.worker("after").completes()
    before, results = scenario.task("pay__1__1").id, scenario.task("each").output["results"]

    scenario.rerun("pay__2__1")
    assert scenario.task("pay__2__1").input == {"order": "B", "number": 1}
    scenario.worker("pay").completes(n=9)

    assert scenario.task("each").output["results"] == [results[0], {"pay": {"n": 9}}, results[2]]
    assert (scenario.task("pay__1__1").id, row_violations(scenario.id)) == (before, [])
    scenario.worker("after").completes()
    assert scenario.status == "COMPLETED"


def test_keep_last_n_deletes_tasks_of_older_items(clock):
    scenario = orders(clock, step("pay"), keepLastN=1)

    for _ in range(3):
        scenario.worker("pay").completes()

    assert set(scenario.statuses) == {"each", "each_item__3", "pay__3__1", "after"}
    assert scenario.task("each").output["results"][:2] == [None, None]
