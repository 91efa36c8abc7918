"""Answers about runs, tasks, queues and failures, and operations that are planned before they are applied."""

import pytest

from conductor_app.failures import commands as failure_groups
from tests.builders import simple


@pytest.fixture
def failed(api):
    """Return the id of a run whose second task failed without a retry."""
    api.define(simple("pay"), simple("ship", inputParameters={"amount": "${pay.output.amount}"}), name="order")
    run = api.start("order", input={"order": 4711})
    api.report(api.poll("pay")[0], outputData={"amount": 12})
    api.report(api.poll("ship")[0], "FAILED_WITH_TERMINAL_ERROR", reasonForIncompletion="no such address")
    assert api.workflow(run)["status"] == "FAILED"
    return run


def plan(api, run, operation="retry", **fields):
    return api.post(f"/insight/runs/{run}/plan", {"operation": operation, **fields})


def test_the_cause_of_a_failed_run_names_the_task_and_its_error(api, failed):
    found = api.get(f"/insight/runs/{failed}/cause").json()

    assert "ship" in found["sentence"]
    assert "no such address" in found["sentence"]
    assert found["taskReferenceName"] == "ship"
    assert "retry" in found["operations"]
    assert "resume" not in found["operations"]
    assert "terminate" not in found["operations"]


def test_the_cause_of_a_waiting_run_has_its_gates_and_its_position(api):
    api.define(simple("pay"))
    api.start()
    run = api.start()

    found = api.get(f"/insight/runs/{run}/cause").json()

    assert found["isWaiting"]
    closed = [gate["gate"] for gate in found["gates"] if not gate["isOpen"]]
    assert closed == ["polled"]
    assert found["queuePosition"]["tasksAhead"] == 1


def test_an_unknown_run_is_not_found(api):
    for path in ("cause", "compare"):
        assert api.get(f"/insight/runs/no-run/{path}").status_code == 404
    assert plan(api, "no-run").status_code == 404


def test_a_plan_changes_nothing_and_its_token_applies_it(api, failed):
    planned = plan(api, failed).json()

    assert api.workflow(failed)["status"] == "FAILED"
    tasks = {task["taskReferenceName"]: task["impact"] for task in planned["workflows"][0]["tasks"]}
    assert tasks == {"pay": "RESULT_REUSED", "ship": "WILL_RUN_AGAIN"}
    token = {"confirmationToken": planned["confirmationToken"]}
    assert api.post(f"/insight/runs/{failed}/apply", token).status_code == 204
    assert api.workflow(failed)["status"] == "RUNNING"


def test_a_plan_is_applied_only_to_the_run_as_it_was_planned(api, failed):
    planned = plan(api, failed).json()
    api.post(f"/workflow/{failed}/retry")

    reply = api.post(f"/insight/runs/{failed}/apply", {"confirmationToken": planned["confirmationToken"]})

    assert reply.status_code == 409


def test_a_token_is_valid_for_ten_minutes_for_its_run(api, clock, failed):
    token = {"confirmationToken": plan(api, failed).json()["confirmationToken"]}
    other = api.start()

    assert api.post(f"/insight/runs/{other}/apply", token).status_code == 403
    clock.advance(seconds=601)
    reply = api.post(f"/insight/runs/{failed}/apply", token)
    assert reply.status_code == 400
    assert "expired" in reply.json()["message"]


@pytest.mark.parametrize("token", ["", "nonsense", "a:b:c"])
def test_a_token_that_this_server_has_not_signed_is_refused(api, failed, token):
    reply = api.post(f"/insight/runs/{failed}/apply", {"confirmationToken": token})

    assert reply.status_code == 400
    assert "token" in reply.json()["message"].lower()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "operation"),
        ({"operation": "explode"}, "Validation failed"),
        ({"operation": "restart", "version": "x"}, "version"),
    ],
)
def test_an_invalid_plan_request_says_what_is_wrong(api, failed, body, message):
    reply = api.post(f"/insight/runs/{failed}/plan", body)

    assert reply.status_code == 400
    assert message in reply.json()["message"]


def test_a_plan_of_an_impossible_operation_is_refused(api, failed):
    assert plan(api, failed, "resume").status_code == 409


def test_a_comparison_shows_the_tasks_and_payloads_that_differ(api, failed):
    other = api.start("order", input={"order": 4712})

    found = api.get(f"/insight/runs/{failed}/compare", **{"with": other}).json()

    assert {row["taskReferenceName"]: row["differs"] for row in found["tasks"]} == {"pay": True, "ship": True}
    assert found["payloads"]["input"] == [{"path": "order", "kind": "changed", "before": 4711, "after": 4712}]
    assert not found["areIdentical"]


def test_a_comparison_without_another_run_is_refused(api):
    api.define(simple("pay"))

    assert api.get(f"/insight/runs/{api.start()}/compare").status_code == 400


def test_the_provenance_of_an_input_names_its_source(api, failed):
    task = api.workflow(failed)["tasks"][1]["taskId"]

    [found] = api.get(f"/insight/tasks/{task}/provenance").json()["inputs"]

    assert found["expression"] == "${pay.output.amount}"
    assert found["taskReferenceName"] == "pay"
    assert found["value"] == 12


def test_queues_show_what_is_pending_and_in_progress(api):
    api.define(simple("pay"))
    runs = [api.start(), api.start()]
    api.poll("pay")

    [state] = api.get("/insight/queues").json()["queues"]
    detail = api.get("/insight/queues/pay").json()

    assert (state["name"], state["pending"], state["inProgress"], state["isPolled"]) == ("pay", 1, 1, True)
    assert [task["workflowId"] for task in detail["pendingTasks"]] == runs[1:]
    assert [task["workflowId"] for task in detail["tasksInProgress"]] == runs[:1]
    assert detail["pollers"][0]["isPolling"]


def test_failure_groups_can_be_listed_and_explained(api, failed):
    failure_groups.group_failures(100)

    [group] = api.get("/insight/failures").json()["groups"]
    detail = api.get(f"/insight/failures/{group['id']}").json()

    assert group["definition"] == "order"
    assert group["lastDay"] == {"failures": 1, "affectedRuns": 1, "lostRuns": 1}
    assert detail["samples"][0]["workflowId"] == failed
    assert detail["breakdown"]["version"][0]["count"] == 1
    assert api.get("/insight/failures", view="none").status_code == 400
    assert api.get("/insight/failures/99999999").status_code == 404
    assert api.get(f"/insight/failures/{group['id']}", range="1y").status_code == 400
