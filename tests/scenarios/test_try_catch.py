"""TRY_CATCH and the failures that it handles, in the database."""

from tests.builders import catch, definition, fork, policy, simple, step, sub_workflow, try_
from tests.runs.report_contexts import row_violations
from tests.scenario import Scenario, register_definitions


def test_a_failed_payment_is_refunded_and_the_order_continues(clock):
    said = {"why": "${paid.output.error.reason}", "who": "${paid.output.error.taskRef}"}
    refund = catch(step("refund", inputs=said), reason="no funds")
    body = try_("paid", step("charge", policy=policy(retries=1)), on=[refund], last=[step("tell")])
    scenario = Scenario(clock, body, step("ship"))

    scenario.worker("charge").fails("no funds left")
    assert scenario.attempts("charge__1") == ["FAILED", "SCHEDULED"]
    scenario.worker("charge").fails("no funds left")
    assert scenario.task("refund__2").input == {"why": "no funds left", "who": "charge"}
    for name in ("refund", "tell", "ship"):
        scenario.worker(name).completes()

    assert scenario.status == "COMPLETED"
    assert scenario.task("paid").output["caughtBy"] == "catch 0"


def test_a_failed_child_is_caught_and_its_sibling_is_terminated(clock):
    child = definition(step("x", "pay"), name="child")
    body = fork([sub_workflow("one")], [sub_workflow("two")])
    scenario = Scenario(clock, try_("t", *body, default=[step("c")]), others=[child])
    one, two = scenario.child("one__1"), scenario.child("two__1")

    scenario.worker("pay").fail_terminally("broken")

    assert {one.status, two.status} == {"FAILED", "TERMINATED"}
    assert scenario.is_waiting_for("c__2")
    failed = "one" if one.status == "FAILED" else "two"
    assert scenario.task("t").output["error"]["taskRef"] == failed


def test_a_retry_continues_in_the_try_body(clock):
    scenario = Scenario(clock, try_("t", step("a"), on=[catch(status="CANCELED")], last=[step("z")]), step("after"))
    scenario.worker("a").fails("no luck")
    scenario.worker("z").completes()
    assert (scenario.status, "no luck" in scenario.reason) == ("FAILED", True)

    scenario.retry()
    for name in ("a", "z", "after"):
        scenario.worker(name).completes()

    assert (scenario.status, scenario.attempts("a__1")) == ("COMPLETED", ["FAILED", "COMPLETED"])


def test_definitions_inside_get_the_policies_that_are_registered_for_them(clock):
    register_definitions(tasks=[{"name": "pay", **policy(retries=1)}, {"name": "mail", **policy(retries=1)}])
    parts = {"catchCases": [{"match": {}, "tasks": [simple("c", "mail")]}]}
    scenario = Scenario(clock, {**try_("t", simple("a", "pay")), **parts})

    scenario.worker("pay").fails()
    scenario.worker("pay").fails()
    scenario.worker("mail").fails()

    assert (scenario.attempts("a__1"), scenario.attempts("c__2")) == (["FAILED", "FAILED"], ["FAILED", "SCHEDULED"])


def test_a_retry_of_a_child_whose_failure_was_handled_does_not_affect_its_parent(clock):
    child = definition(step("x", "pay"), name="child")
    scenario = Scenario(clock, try_("t", sub_workflow("s"), default=[step("c")]), others=[child])
    scenario.worker("pay").fail_terminally("broken")
    scenario.worker("c").completes()
    child_of = scenario.child("s__1")

    child_of.retry()
    scenario.worker("pay").completes()

    assert (child_of.status, scenario.status) == ("COMPLETED", "COMPLETED")
    assert scenario.statuses["s__1"] == "FAILED"


def test_a_rerun_terminates_the_child_that_the_catch_branch_started(clock):
    child = definition(step("x", "pay"), name="child")
    scenario = Scenario(clock, try_("t", step("a"), default=[sub_workflow("s")]), others=[child])
    scenario.worker("a").fail_terminally("broken")
    scenario.terminate()
    scenario.rerun("a__1")
    scenario.worker("a").completes()

    assert (scenario.status, set(scenario.statuses)) == ("COMPLETED", {"t", "a__1"})
    assert row_violations(scenario.id) == []
