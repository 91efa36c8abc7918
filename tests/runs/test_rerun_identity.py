"""A task keeps its id and seq when its run is opened again, and a report from an earlier lease is refused."""

from typing import Any

import pytest

from tests.builders import join, simple, step_of

CHILDREN = ("bad", "good")


@pytest.fixture
def ended(api) -> dict[str, Any]:
    """Return a completed run of two tasks, both completed by the worker "first"."""
    api.define(simple("charge"), simple("ship"))
    run_id = api.start()
    for name in ("charge", "ship"):
        api.report(api.poll(name, workerid="first")[0], outputData={"by": "first"}, workerId="first")
    return api.workflow(run_id)


def rerun(api, run_id: str, task_id: str) -> None:
    reply = api.post(f"/workflow/{run_id}/rerun", {"reRunFromTaskId": task_id})
    assert (reply.status_code, reply.content.decode()) == (200, run_id)


def test_a_rerun_task_answers_under_the_id_and_seq_that_clients_noted(api, ended):
    noted = ended["tasks"][1]

    rerun(api, ended["workflowId"], noted["taskId"])

    shown = api.get(f"/tasks/{noted['taskId']}").json()
    assert (shown["status"], shown["seq"], "workerId" in shown) == ("SCHEDULED", noted["seq"], False)
    [polled] = api.poll("ship", workerid="second")
    assert polled["taskId"] == noted["taskId"]
    assert api.report(polled, outputData={"by": "second"}, workerId="second").status_code == 200
    after = api.workflow(ended["workflowId"])
    assert (after["status"], after["tasks"][0]) == ("COMPLETED", ended["tasks"][0])
    assert after["tasks"][1]["outputData"] == {"by": "second"}


def test_a_second_rerun_accepts_the_id_from_before_the_first(api, ended):
    noted = ended["tasks"][0]["taskId"]

    for cycle in range(3):
        rerun(api, ended["workflowId"], noted)
        for name in ("charge", "ship"):
            api.report(api.poll(name)[0], outputData={"cycle": cycle})

        tasks = api.workflow(ended["workflowId"])["tasks"]
        assert next(task["taskId"] for task in tasks) == noted
        assert [(task["seq"], task["outputData"]) for task in tasks] == [(1, {"cycle": cycle}), (2, {"cycle": cycle})]


def test_a_report_from_before_the_rerun_is_refused_though_the_id_is_the_same(api, ended):
    noted = ended["tasks"][1]
    rerun(api, ended["workflowId"], noted["taskId"])
    [polled] = api.poll("ship", workerid="second")

    late = api.report(noted, outputData={"by": "first"}, workerId="first")

    shown = api.get(f"/tasks/{polled['taskId']}").json()
    assert (shown["status"], shown["workerId"], shown["outputData"]) == ("IN_PROGRESS", "second", {})
    assert late.status_code == 200, "as the original answers every report on a task that has moved on"
    assert api.report(polled, outputData={"by": "second"}, workerId="second").status_code == 200
    assert api.get(f"/tasks/{polled['taskId']}").json()["outputData"] == {"by": "second"}


def test_a_canceled_sibling_reopens_under_its_own_id_when_a_child_next_to_it_is_retried(api):
    api.put("/metadata/taskdefs", {"name": "charge", "retryCount": 0})
    api.define(simple("charge"), name="child")
    fork = step_of("FORK_JOIN", "both", forkTasks=[[sub_workflow("bad")], [simple("pack")]])
    api.define(fork, join("joined", ["bad", "pack"]))
    run_id = api.start()
    [packing] = api.poll("pack", workerid="first")
    api.report(api.poll("charge")[0], "FAILED")
    assert api.get(f"/tasks/{packing['taskId']}").json()["status"] == "CANCELED"

    api.post(f"/workflow/{children_of(api, run_id)['bad']}/retry")

    shown = api.get(f"/tasks/{packing['taskId']}").json()
    assert (shown["status"], shown["seq"], shown["retryCount"]) == ("SCHEDULED", packing["seq"], 1)
    api.report(packing, workerId="first")
    assert api.get(f"/tasks/{packing['taskId']}").json()["status"] == "SCHEDULED"


@pytest.mark.parametrize("way", ["the child", "the parent"])
def test_a_sibling_of_the_failed_child_continues(api, way):
    """Both operations keep the sibling's task, its run and completed tasks (compatibility: 19 of 28 differences)."""
    api.put("/metadata/taskdefs", {"name": "charge", "retryCount": 0})
    api.define(simple("charge"), simple("ship"), name="child")
    branches = [[sub_workflow(ref)] for ref in CHILDREN]
    api.define(step_of("FORK_JOIN", "both", forkTasks=branches), join("joined", [*CHILDREN]), name="parent")
    run_id = api.start("parent")
    before = children_of(api, run_id)
    polled = {task["workflowInstanceId"]: task for task in api.poll("charge", count=2)}
    api.report(polled[before["good"]], outputData={"receipt": 7})
    api.report(polled[before["bad"]], "FAILED")
    charged = api.workflow(before["good"])["tasks"][0]
    assert (api.workflow(before["good"])["status"], charged["status"]) == ("TERMINATED", "COMPLETED")

    if way == "the child":
        api.post(f"/workflow/{before['bad']}/retry")
    else:
        api.post(f"/workflow/{run_id}/retry?resumeSubworkflowTasks=true")

    good = api.workflow(before["good"])
    assert children_of(api, run_id) == before
    assert (good["status"], good["tasks"][0]) == ("RUNNING", charged)
    assert [task["workflowInstanceId"] for task in api.poll("charge", count=5)] == [before["bad"]]
    assert [task["workflowInstanceId"] for task in api.poll("ship", count=5)] == [before["good"]]


def sub_workflow(ref: str) -> dict[str, Any]:
    return step_of("SUB_WORKFLOW", ref, subWorkflowParam={"name": "child"})


def children_of(api, run_id: str) -> dict[str, str]:
    tasks = api.workflow(run_id)["tasks"]
    return {task["referenceTaskName"]: task["subWorkflowId"] for task in tasks if task["taskType"] == "SUB_WORKFLOW"}
