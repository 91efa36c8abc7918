"""Failures that a TRY_CATCH takes, on real rows."""

from tests.builders import catch, definition, fork, policy, step, step_without_policy, sub_workflow, try_
from tests.engine.views import row_violations
from tests.story import Story, register_definitions


def test_a_failed_payment_is_refunded_and_the_order_continues(clock):
    said = {"why": "${paid.output.error.reason}", "who": "${paid.output.error.taskRef}"}
    refund = catch(step("refund", inputs=said), reason="no funds")
    body = try_("paid", step("charge", policy=policy(retries=1)), on=[refund], last=[step("tell")])
    story = Story(clock, body, step("ship"))

    story.worker("charge").fails("no funds left")
    assert story.attempts("charge__1") == ["FAILED", "SCHEDULED"]
    story.worker("charge").fails("no funds left")
    assert story.task("refund__2").input == {"why": "no funds left", "who": "charge"}
    for name in ("refund", "tell", "ship"):
        story.worker(name).completes()

    assert story.status == "COMPLETED"
    assert story.task("paid").output["caughtBy"] == "catch 0"


def test_a_failed_child_is_caught_and_its_sibling_is_terminated(clock):
    child = definition(step("x", "pay"), name="child")
    body = fork([sub_workflow("one")], [sub_workflow("two")])
    story = Story(clock, try_("t", *body, default=[step("c")]), others=[child])
    one, two = story.child("one__1"), story.child("two__1")

    story.worker("pay").fail_terminally("broken")

    assert {one.status, two.status} == {"FAILED", "TERMINATED"}
    assert story.is_waiting_for("c__2")
    failed = "one" if one.status == "FAILED" else "two"
    assert story.task("t").output["error"]["taskRef"] == failed


def test_a_retry_continues_in_the_try_body(clock):
    story = Story(clock, try_("t", step("a"), on=[catch(status="CANCELED")], last=[step("z")]), step("after"))
    story.worker("a").fails("no luck")
    story.worker("z").completes()
    assert (story.status, "no luck" in story.reason) == ("FAILED", True)

    story.retry()
    for name in ("a", "z", "after"):
        story.worker(name).completes()

    assert (story.status, story.attempts("a__1")) == ("COMPLETED", ["FAILED", "COMPLETED"])


def test_definitions_inside_get_the_policies_that_are_registered_for_them(clock):
    register_definitions(tasks=[{"name": "pay", **policy(retries=1)}, {"name": "mail", **policy(retries=1)}])
    parts = {"catchCases": [{"match": {}, "tasks": [step_without_policy("c", "mail")]}]}
    story = Story(clock, {**try_("t", step_without_policy("a", "pay")), **parts})

    story.worker("pay").fails()
    story.worker("pay").fails()
    story.worker("mail").fails()

    assert (story.attempts("a__1"), story.attempts("c__2")) == (["FAILED", "FAILED"], ["FAILED", "SCHEDULED"])


def test_a_retry_of_a_child_whose_failure_was_handled_does_not_affect_its_parent(clock):
    child = definition(step("x", "pay"), name="child")
    story = Story(clock, try_("t", sub_workflow("s"), default=[step("c")]), others=[child])
    story.worker("pay").fail_terminally("broken")
    story.worker("c").completes()
    child_of = story.child("s__1")

    child_of.retry()
    story.worker("pay").completes()

    assert (child_of.status, story.status) == ("COMPLETED", "COMPLETED")
    assert story.statuses["s__1"] == "FAILED"


def test_a_rerun_terminates_the_child_that_the_catch_branch_started(clock):
    child = definition(step("x", "pay"), name="child")
    story = Story(clock, try_("t", step("a"), default=[sub_workflow("s")]), others=[child])
    story.worker("a").fail_terminally("broken")
    story.terminate()
    story.rerun("a__1")
    story.worker("a").completes()

    assert (story.status, set(story.statuses)) == ("COMPLETED", {"t", "a__1"})
    assert row_violations(story.id) == []
