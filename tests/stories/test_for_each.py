"""Lists that a FOR_EACH goes through, on real rows."""

import pytest

from tests.builders import definition, each, step, sub_workflow
from tests.engine.views import row_violations
from tests.story import Story

ORDER = {"order": "${each.output.item.id}", "number": "${each.output.index}"}
ORDERS = [{"id": "A"}, {"id": "B"}, {"id": "C"}]


def orders(clock, *body, **settings) -> Story:
    steps = each("each", *body, items="${workflow.input.orders}", **settings)
    return Story(clock, steps, step("after"), input={"orders": ORDERS})


@pytest.mark.parametrize("parallel", [1, 2])
def test_each_item_passes_its_outputs_to_its_later_steps(clock, parallel):
    paid = {"paid": "${pay.output.sum}", **ORDER}
    story = orders(clock, step("pay", inputs=ORDER), step("ship", inputs=paid), parallel=parallel)

    for number in (1, 2, 3):
        story.worker("pay").completes(sum=number)
        story.worker("ship").completes(parcel=number)

    for number, order in enumerate("ABC"):
        pay, ship = (story.task(f"{ref}__{number + 1}__1") for ref in ("pay", "ship"))
        assert pay.output == {"sum": number + 1}
        assert ship.input == {"paid": pay.output["sum"], "order": order, "number": number}
        assert story.task("each").output["results"][number] == {"pay": pay.output, "ship": ship.output}
    story.worker("after").completes()
    assert (story.status, row_violations(story.id)) == ("COMPLETED", [])


def test_items_started_together_are_dispatched_in_list_order(clock):
    story = Story(clock, each("each", step("a"), items=list(range(30)), parallel=30))

    assert story.worker("a").polls(count=12) + story.worker("a").polls(count=30) == [
        f"a__{number}__1" for number in range(1, 31)
    ]


def test_an_externally_stored_list_is_iterated(clock, settings):
    settings.CONDUCTOR_TASK_PAYLOAD_SOFT_BYTES = 1000
    settings.CONDUCTOR_WORKFLOW_PAYLOAD_SOFT_BYTES = 1000
    items = [{"id": number, "text": "x" * 500} for number in range(4)]
    steps = each("each", step("a", inputs={"id": "${each.output.item.id}"}), items="${workflow.input.items}")
    story = Story(clock, steps, input={"items": items})

    for number in range(4):
        assert story.task(f"a__{number + 1}__1").input == {"id": number}
        story.worker("a").completes()

    assert story.status == "COMPLETED"


def test_children_of_other_items_are_stopped_when_one_fails(clock):
    child = definition(step("x", "pay"), name="child")
    story = Story(clock, each("each", sub_workflow("s"), items=[1, 2], parallel=2), others=[child])
    children = [story.child("s__1__1"), story.child("s__2__1")]

    story.worker("pay").fail_terminally("broken")

    assert sorted(child.status for child in children) == ["FAILED", "TERMINATED"]
    assert (story.status, "broken" in story.reason) == ("FAILED", True)


def test_failed_items_are_reported_and_the_others_complete(clock):
    story = orders(clock, step("pay"), parallel=3, onItemFailure="CONTINUE")

    story.worker("pay").fails("no funds")
    story.worker("pay").completes()
    story.worker("pay").completes()

    output = story.task("each").output
    [error] = output["errors"]
    assert (error["reason"], output["results"].count(None)) == ("no funds", 1)
    assert output["results"][error["index"]] is None
    assert story.is_waiting_for("after")


def test_a_retry_continues_with_the_failed_item(clock):
    story = orders(clock, step("pay"))
    story.worker("pay").completes()
    story.worker("pay").fails("no funds")
    assert story.status == "FAILED"

    story.retry()
    for _ in range(2):
        story.worker("pay").completes()

    assert (story.is_waiting_for("after"), story.attempts("pay__2__1")) == (True, ["FAILED", "COMPLETED"])


def test_a_rerun_inside_an_item_preserves_the_others(clock):
    story = orders(clock, step("pay", inputs=ORDER), parallel=3)
    for number in (1, 2, 3):
        story.worker("pay").completes(n=number)
    story.worker("after").completes()
    before, results = story.task("pay__1__1").id, story.task("each").output["results"]

    story.rerun("pay__2__1")
    assert story.task("pay__2__1").input == {"order": "B", "number": 1}
    story.worker("pay").completes(n=9)

    assert story.task("each").output["results"] == [results[0], {"pay": {"n": 9}}, results[2]]
    assert (story.task("pay__1__1").id, row_violations(story.id)) == (before, [])
    story.worker("after").completes()
    assert story.status == "COMPLETED"


def test_keep_last_n_deletes_tasks_of_older_items(clock):
    story = orders(clock, step("pay"), keepLastN=1)

    for _ in range(3):
        story.worker("pay").completes()

    assert set(story.statuses) == {"each", "each_item__3", "pay__3__1", "after"}
    assert story.task("each").output["results"][:2] == [None, None]
