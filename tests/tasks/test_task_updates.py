"""Task updates from workers (api §5.4-5.6)."""

import pytest

from tests.builders import simple


@pytest.fixture
def task(api, clock):
    """Return a claimed task; another task follows it."""
    api.define(simple("pay"), simple("ship"))
    api.start()
    return api.poll("pay")[0]


def test_a_report_is_answered_with_the_bare_id_of_the_task(api, task):
    reply = api.report(task, outputData={"paid": True})

    assert (reply.status_code, reply.content.decode()) == (200, task["taskId"])
    assert reply["Content-Type"].startswith("text/plain")
    stored = api.get(f"/tasks/{task['taskId']}").json()
    assert (stored["status"], stored["outputData"], stored["executed"]) == ("COMPLETED", {"paid": True}, True)


def test_a_second_report_is_accepted_and_changes_nothing(api, task):
    api.report(task, outputData={"first": 1})

    reply = api.report(task, "FAILED", outputData={"second": 2})

    assert (reply.status_code, reply.content.decode()) == (200, task["taskId"])
    assert api.get(f"/tasks/{task['taskId']}").json()["outputData"] == {"first": 1}


def test_a_failed_task_is_retried_as_a_new_task(api, task):
    api.report(task, "FAILED", reasonForIncompletion="no funds")

    first, second = api.workflow(task["workflowInstanceId"])["tasks"]

    assert (first["status"], first["retried"], first["reasonForIncompletion"]) == ("FAILED", True, "no funds")
    assert (second["status"], second["retryCount"], second["retriedTaskId"]) == ("SCHEDULED", 1, first["taskId"])
    assert second["taskId"] != first["taskId"]


def test_a_task_in_progress_is_dispatched_again_after_the_requested_delay(api, task, clock):
    api.report(task, "IN_PROGRESS", callbackAfterSeconds=30)

    assert api.poll("pay") == []
    clock.advance(seconds=30)
    assert api.poll("pay")[0]["taskId"] == task["taskId"]


def test_a_worker_can_extend_its_lease(api, task):
    reply = api.report(task, "IN_PROGRESS", extendLease=True, outputData={"ignored": 1})

    stored = api.get(f"/tasks/{task['taskId']}").json()
    assert (reply.status_code, stored["status"], stored["outputData"]) == (200, "IN_PROGRESS", {})


def test_a_lease_extension_requires_no_status(api, task):
    result = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"], "extendLease": True}

    assert api.post("/tasks", result).status_code == 200


def test_log_lines_of_a_report_are_stored(api, task):
    api.report(task, logs=[{"log": "one", "createdTime": 5}, {"log": "two", "createdTime": 6, "taskId": "x"}])

    lines = api.get(f"/tasks/{task['taskId']}/log").json()

    assert lines == [
        {"log": "one", "taskId": task["taskId"], "createdTime": 5},
        {"log": "two", "taskId": task["taskId"], "createdTime": 6},
    ]


def test_a_report_with_next_returns_the_next_task_of_the_same_queue(api, task):
    api.start()
    result = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"], "status": "COMPLETED"}

    reply = api.post("/tasks/update-v2", {**result, "workerId": "ann"})

    assert (reply.status_code, reply.json()["taskType"], reply.json()["workerId"]) == (200, "pay", "ann")
    assert reply.json()["workflowInstanceId"] != task["workflowInstanceId"]


def test_a_report_with_next_returns_an_empty_body_without_a_pending_task(api, task):
    result = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"], "status": "COMPLETED"}

    reply = api.post("/tasks/update-v2", result)

    assert (reply.status_code, reply.content, reply.has_header("Content-Type")) == (204, b"", False)


def test_a_task_that_continues_returns_no_next_task(api, task):
    api.start()
    result = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"]}

    going_on = api.post("/tasks/update-v2", {**result, "status": "IN_PROGRESS", "callbackAfterSeconds": 60})
    extended = api.post("/tasks/update-v2", {**result, "extendLease": True})

    assert (going_on.status_code, extended.status_code) == (204, 204)


def test_a_late_report_returns_the_next_task(api, task):
    api.report(task)
    later = api.start()
    result = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"]}

    late = api.post("/tasks/update-v2", {**result, "status": "IN_PROGRESS", "workerId": "tester"})

    assert (late.status_code, late.json()["workflowInstanceId"]) == (200, later)


def test_a_report_on_a_task_deleted_by_its_loop_returns_the_next_task(api, clock):
    body = [simple("pay")]
    rounds = {"loopCondition": "$.l.iteration < 4", "loopOver": body, "inputParameters": {"keepLastN": 1}}
    api.define({"name": "l", "taskReferenceName": "l", "type": "DO_WHILE", **rounds})
    api.start()
    [task] = api.poll("pay")

    for turn in range(2, 5):
        result = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"], "status": "COMPLETED"}
        reply = api.post("/tasks/update-v2", result)
        assert reply.status_code == 200, reply.content
        task = reply.json()
        assert task["iteration"] == turn


@pytest.mark.parametrize("address", ["/tasks", "/tasks/update-v2"])
def test_an_unknown_task_is_not_found(api, task, address):
    result = {"workflowInstanceId": task["workflowInstanceId"], "taskId": "nobody", "status": "COMPLETED"}

    reply = api.post(address, result)

    assert (reply.status_code, reply.json()["status"]) == (404, 404)


FAULTY = {
    "no ids": ({"status": "COMPLETED"}, {"workflowInstanceId", "taskId"}),
    "empty ids": ({"workflowInstanceId": "", "taskId": None, "status": "FAILED"}, {"workflowInstanceId", "taskId"}),
    "no status": ({"workflowInstanceId": "w", "taskId": "t"}, {"status"}),
    "a status of no worker": ({"workflowInstanceId": "w", "taskId": "t", "status": "SCHEDULED"}, {"status"}),
    "an output that is a list": (
        {"workflowInstanceId": "w", "taskId": "t", "status": "FAILED", "outputData": []},
        {"outputData"},
    ),
}


@pytest.mark.parametrize("case", FAULTY)
def test_a_faulty_report_is_refused_with_all_complaints(api, case):
    result, fields = FAULTY[case]

    reply = api.post("/tasks", result)

    assert reply.status_code == 400
    assert reply.json()["message"] == "Validation failed, check below errors for detail."
    paths = {error["path"] for error in reply.json()["validationErrors"]}
    assert paths == {f"updateTask.taskResult.{field}" for field in fields}
    assert "instance" not in reply.json()


def test_a_report_under_the_id_of_another_run_is_accepted_like_in_the_original(api, task):
    other = api.start()

    reply = api.report({**task, "workflowInstanceId": other}, outputData={"paid": True})

    assert (reply.status_code, reply.content.decode()) == (200, task["taskId"])
    assert api.get(f"/tasks/{task['taskId']}").json()["outputData"] == {"paid": True}
    assert [each["status"] for each in api.workflow(task["workflowInstanceId"])["tasks"]] == ["COMPLETED", "SCHEDULED"]
    assert [each["status"] for each in api.workflow(other)["tasks"]] == ["SCHEDULED"]


def test_the_lease_is_extended_under_the_id_of_another_run_too(api, task):
    result = {"workflowInstanceId": api.start(), "taskId": task["taskId"], "extendLease": True}

    assert api.post("/tasks", result).status_code == 200


@pytest.mark.parametrize("named", [{"workflowInstanceId": "unknown"}, {"taskId": "unknown"}])
def test_a_report_names_a_run_and_a_task_that_exist(api, task, named):
    assert api.report({**task, **named}).status_code == 404
    assert api.get(f"/tasks/{task['taskId']}").json()["status"] == "IN_PROGRESS"
