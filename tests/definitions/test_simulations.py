"""Workflows that are tried out (api §1.2): the same document as of a real one, and no run of it."""

import pytest

from conductor_app.definitions.models import ResolvedDefinition
from conductor_app.processes import sweeps
from conductor_app.runs.models import Attempt, Run
from tests.builders import (
    definition,
    dynamic_fork,
    each,
    fork,
    inline,
    loop,
    noop,
    policy,
    step,
    sub_workflow,
    switch,
    terminate,
    try_,
    wait,
)

SECOND = 1000


@pytest.fixture
def tries(api, clock):
    """Return a function that simulates a workflow of these steps."""

    def ask(*steps, mocks=None, input=None, children=None, **fields):
        tasks = [inner for given in steps for inner in (given if isinstance(given, list) else [given])]
        document = {"name": "order", "version": 1, "tasks": tasks, "schemaVersion": 2, **fields}
        asked = {"name": "order", "workflowDef": document, "input": input or {}, "taskRefToMockOutput": mocks or {}}
        reply = api.post("/workflow/test", {**asked, "subWorkflowTestRequest": children or {}})
        assert reply.status_code == 200, reply.content
        assert (Run.objects.count(), Attempt.objects.count(), ResolvedDefinition.objects.count()) == (0, 0, 0)
        return reply.json()

    return ask


def statuses(workflow) -> dict[str, str]:
    return {task["referenceTaskName"]: task["status"] for task in workflow["tasks"]}


def mock(**output):
    return {"status": "COMPLETED", "output": output}


def test_tasks_have_their_mock_results(tries):
    found = tries(
        step("a"), step("b", inputs={"n": "${a.output.n}"}), mocks={"a": [mock(n=1)], "b": [mock(m=2)]},
        outputParameters={"m": "${b.output.m}"},
    )  # fmt: skip

    assert (found["status"], found["output"]) == ("COMPLETED", {"m": 2})
    assert [task["inputData"] for task in found["tasks"]] == [{}, {"n": 1}]
    assert found["workflowDefinition"]["name"] == "order"


def test_mocked_failures_are_caught_and_items_have_their_mock_results(tries):
    body = try_("t", step("pay", inputs={"item": "${each.output.item}"}), default=[step("refund")])
    found = tries(
        each("each", body, items="${workflow.input.orders}"),
        mocks={
            "pay__1__1__1": [mock(n=1)], "pay__2__1__1": [{"status": "FAILED_WITH_TERMINAL_ERROR"}], "refund": [mock()],
        },
        input={"orders": ["x", "y"]}, outputParameters={"results": "${each.output.results}"},
    )  # fmt: skip

    assert (found["status"], statuses(found)["refund__2__1__2"]) == ("COMPLETED", "COMPLETED")
    first, second = (result["t"] for result in found["output"]["results"])
    assert (first, second["caughtBy"]) == ({"try": {"pay": {"n": 1}}}, "catch default")


def test_the_document_has_the_fields_of_a_real_execution(api, tries):
    api.define(step("a", inputs={"n": "${workflow.input.n}"}))
    real_id = api.start(input={"n": 1})
    [task] = api.poll("a")
    api.report(task)

    asked = {"name": "order", "input": {"n": 1}, "taskRefToMockOutput": {"a": [{}]}}
    imagined = api.post("/workflow/test", asked).json()
    real = api.workflow(real_id)

    assert imagined.keys() == real.keys() - {"createdBy"}
    [one], [other] = imagined["tasks"], real["tasks"]
    assert one.keys() == other.keys() - {"workerId"}
    different = {name for name in one if one[name] != other[name]}
    assert different <= {"taskId", "workflowInstanceId", "workerId"}


def test_a_task_without_a_mock_result_ends_the_test(tries):
    found = tries(step("a"), step("b"), step("c"), mocks={"a": [{}], "c": [{}]})

    assert (found["status"], statuses(found)) == ("RUNNING", {"a": "COMPLETED", "b": "SCHEDULED"})


def test_attempts_have_consecutive_mock_results(tries):
    steps = [step("a", policy=policy(retries=2, delay_seconds=10))]
    failed = {"status": "FAILED", "output": {"n": 1}}

    found = tries(*steps, mocks={"a": [failed, mock(n=2)]})

    first, second = found["tasks"]
    assert (first["status"], first["retried"], second["status"], second["retryCount"]) == (
        "FAILED",
        True,
        "COMPLETED",
        1,
    )
    assert second["retriedTaskId"] == first["taskId"]
    assert second["startTime"] - first["endTime"] == 10 * SECOND
    assert found["status"] == "COMPLETED"


def test_a_run_fails_with_its_last_attempt(tries):
    found = tries(step("a"), step("b"), mocks={"a": [{"status": "FAILED_WITH_TERMINAL_ERROR"}]})

    assert (found["status"], found["failedReferenceTaskNames"]) == ("FAILED", ["a"])


def test_a_mock_result_can_have_a_duration(tries):
    mocks = {"a": [{**mock(), "queueWaitTime": 2 * SECOND, "executionTime": 3 * SECOND}]}

    found = tries(step("a"), step("b"), mocks=mocks)

    a, b = found["tasks"]
    assert (a["startTime"] - a["scheduledTime"], a["endTime"] - a["startTime"]) == (2 * SECOND, 3 * SECOND)
    assert (a["queueWaitTime"], b["scheduledTime"]) == (2 * SECOND, a["endTime"])


def test_a_mock_duration_above_the_timeout_times_out(tries):
    steps = [step("a", policy=policy(timeout_seconds=5, timeout_policy="TIME_OUT_WF"))]

    found = tries(*steps, mocks={"a": [{**mock(), "executionTime": 60 * SECOND}]})

    [task] = found["tasks"]
    assert (found["status"], task["status"], task["endTime"] - task["startTime"]) == ("TIMED_OUT", "TIMED_OUT", 5000)


def test_a_workflow_that_takes_too_long_times_out(tries):
    mocks = {"a": [{**mock(), "executionTime": 60 * SECOND}]}

    found = tries(step("a"), mocks=mocks, timeoutSeconds=30, timeoutPolicy="TIME_OUT_WF", ownerEmail="a@b.c")

    assert (found["status"], found["endTime"] - found["startTime"]) == ("TIMED_OUT", 30 * SECOND)


def test_a_day_passes_in_no_time(tries):
    found = tries(wait("rest", duration="1 day"), noop("done"))

    assert (found["status"], found["endTime"] - found["startTime"]) == ("COMPLETED", 86_400 * SECOND)


def test_a_signal_can_be_mocked(tries):
    open_wait = tries(wait("approve"))
    signalled = tries(wait("approve"), mocks={"approve": [mock(by="ann")]})

    assert (open_wait["status"], statuses(open_wait)) == ("RUNNING", {"approve": "IN_PROGRESS"})
    assert (signalled["status"], signalled["output"]) == ("COMPLETED", {"by": "ann"})


def test_branches_are_played_side_by_side(tries):
    mocks = {"a": [{**mock(n=1), "executionTime": 5 * SECOND}], "b": [{**mock(n=2), "executionTime": 9 * SECOND}]}

    found = tries(fork([step("a")], [step("b")]), mocks=mocks)

    assert (found["status"], found["endTime"] - found["startTime"]) == ("COMPLETED", 9 * SECOND)
    assert found["tasks"][-1]["outputData"] == {"a": {"n": 1}, "b": {"n": 2}}


def test_a_branch_without_mock_results_does_not_stop_the_others(tries):
    found = tries(fork([step("a")], [step("b"), step("c")]), mocks={"b": [{}], "c": [{}]})

    assert statuses(found) == {
        "fork_join": "COMPLETED", "join": "IN_PROGRESS", "a": "SCHEDULED", "b": "COMPLETED", "c": "COMPLETED",
    }  # fmt: skip


def test_a_dynamic_fork_is_played(tries):
    tasks = [{"name": "pay", "taskReferenceName": ref, "type": "SIMPLE"} for ref in ("x", "y")]
    given = {"tasks": tasks, "inputs": {"x": {"n": 1}, "y": {"n": 2}}}

    found = tries(dynamic_fork(), input=given, mocks={"x": [mock(n=1)], "y": [mock(n=2)]})

    assert found["status"] == "COMPLETED"
    assert found["tasks"][-1]["outputData"] == {"x": {"n": 1}, "y": {"n": 2}}
    paid = [task for task in found["tasks"] if task["taskType"] == "pay"]
    assert [task["workflowTask"]["taskReferenceName"] for task in paid] == ["x", "y"]


def test_iterations_of_a_loop_use_consecutive_mock_results(tries):
    mocks = {"a": [mock(n=1), mock(n=3)], "a__2": [mock(n=2)]}

    found = tries(loop("l", step("a"), times=3), mocks=mocks)

    outputs = {task["referenceTaskName"]: task["outputData"] for task in found["tasks"]}
    assert found["status"] == "COMPLETED"
    assert [outputs[f"a__{turn}"]["n"] for turn in (1, 2, 3)] == [1, 2, 3]


def test_scripts_are_run_and_cases_chosen(tries):
    steps = [
        inline("sum", "$.a + 1", inputs={"a": "${workflow.input.a}"}),
        switch("way", {"3": [terminate("stop", output={"why": "three"})]}, inputs={"v": "${sum.output.result}"}),
    ]

    found = tries(*steps, input={"a": 2})

    assert (found["status"], found["output"]) == ("COMPLETED", {"why": "three"})


CHILD = {"name": "child", "version": 1, "tasks": [step("c", inputs={"n": "${workflow.input.n}"})], "schemaVersion": 2}


def test_a_child_is_simulated_with_its_mock_results(tries):
    steps = [sub_workflow("inner", CHILD, inputs={"n": 5}), step("b", inputs={"n": "${inner.output.m}"})]
    children = {"inner": {"name": "child", "taskRefToMockOutput": {"c": [mock(m=7)]}}}

    found = tries(*steps, children=children)

    inner, b = found["tasks"]
    assert (inner["status"], inner["outputData"]["m"], b["inputData"]) == ("COMPLETED", 7, {"n": 7})


def test_a_child_without_mock_results_waits(tries):
    found = tries(sub_workflow("inner", CHILD))

    assert (found["status"], statuses(found)) == ("RUNNING", {"inner": "IN_PROGRESS"})


def test_a_child_can_be_mocked(tries):
    found = tries(sub_workflow("inner", CHILD), mocks={"inner": [mock(m=7)]})

    assert (found["status"], found["output"]) == ("COMPLETED", {"m": 7})


def test_a_failed_child_is_retried(tries):
    steps = [sub_workflow("inner", CHILD, taskDefinition={"name": "inner", **policy(retries=1, delay_seconds=5)})]
    children = {"inner": {"taskRefToMockOutput": {"c": [{"status": "FAILED"}]}}}

    found = tries(*steps, children=children)

    assert [task["status"] for task in found["tasks"]] == ["FAILED", "FAILED"]
    assert found["status"] == "FAILED"


def test_an_endless_loop_is_stopped(api, clock, monkeypatch):
    monkeypatch.setattr("conductor_app.definitions.simulation.commands.MAX_SECONDS", 0.5)
    endless = {"loopCondition": "true", "loopOver": [noop("n")]}
    document = {"name": "order", "tasks": [{"name": "l", "taskReferenceName": "l", "type": "DO_WHILE", **endless}]}

    reply = api.post("/workflow/test", {"name": "order", "workflowDef": document})

    assert reply.status_code == 400
    assert "too long" in reply.json()["message"]


def test_an_endless_recursion_of_workflows_fails_at_the_maximum_depth_as_a_run_does(api, clock):
    api.define(sub_workflow("again", "order"))

    reply = api.post("/workflow/test", {"name": "order"})

    assert (reply.status_code, reply.json()["status"]) == (200, "FAILED")
    assert Run.objects.count() == 0


FAULTY = {
    "a list": {"taskRefToMockOutput": {"a": {}}},
    "a status": {"taskRefToMockOutput": {"a": [{"status": "DONE"}]}},
    "a time": {"taskRefToMockOutput": {"a": [{"executionTime": "long"}]}},
    "a child": {"subWorkflowTestRequest": {"a": {"taskRefToMockOutput": {"b": [{"status": "DONE"}]}}}},
}


@pytest.mark.parametrize("case", FAULTY)
def test_invalid_mock_results_are_rejected(api, clock, case):
    reply = api.post("/workflow/test", {"name": "order", **FAULTY[case]})

    assert (reply.status_code, len(reply.json()["validationErrors"])) == (400, 1)


def test_an_unknown_workflow_cannot_be_tested(api, clock):
    assert api.post("/workflow/test", {"name": "nobody"}).status_code == 404


def test_scripts_in_python_are_run(tries):
    total = inline("total", "return sum(prices)", inputs={"evaluatorType": "python", "prices": [1, 2.5]})
    inputs = {"total": "${total.output.result}"}
    route = switch(
        "route", {"true": [noop("large")]}, evaluatorType="python", expression="return total > 3", inputs=inputs
    )

    found = tries(total, route)

    assert found["tasks"][0]["outputData"] == {"result": 3.5}
    assert statuses(found) == {"total": "COMPLETED", "route": "COMPLETED", "large": "COMPLETED"}


def test_the_result_can_be_read_by_its_id_like_a_run(tries, api):
    found = tries(step("a"), mocks={"a": [mock(n=1)]})

    assert api.get(f"/workflow/{found['workflowId']}").json() == found
    assert api.get(f"/workflow/{found['workflowId']}", includeTasks="false").json() == {**found, "tasks": []}


def test_the_result_of_a_sub_workflow_can_be_read_by_its_id(tries, api):
    child = definition(step("x"), name="child")
    found = tries(sub_workflow("s", child), children={"s": {"taskRefToMockOutput": {"x": [mock(n=1)]}}})

    inner = api.get(f"/workflow/{found['tasks'][0]['subWorkflowId']}").json()
    assert (inner["workflowName"], inner["status"], inner["parentWorkflowId"]) == (
        "child",
        "COMPLETED",
        found["workflowId"],
    )


def test_a_test_waiting_for_a_task_dispatches_nothing(tries, api):
    found = tries(step("a"))

    assert (found["status"], api.poll("a")) == ("RUNNING", [])
    assert api.post("/tasks/queue/requeue/a").content == b"0"
    assert api.delete(f"/workflow/{found['workflowId']}").status_code == 404
    assert api.get("/workflow/search").json()["totalHits"] == 0


def test_a_result_is_stored_for_a_day(tries, api, clock):
    id = tries(step("a"))["workflowId"]

    clock.advance(seconds=86_400)
    sweeps.prune_finished(10)
    assert api.get(f"/workflow/{id}").status_code == 200
    clock.advance(seconds=1)
    sweeps.prune_finished(10)
    assert api.get(f"/workflow/{id}").status_code == 404
