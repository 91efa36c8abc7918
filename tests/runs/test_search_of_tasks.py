"""Searches for tasks (api §6): results and format. Most tests read the same rows."""

import re

import pytest

from tests.builders import simple

TASK_QUERIES = {
    "": 5,
    "taskType = pay": 4,
    "taskDefName='ship'": 0,
    "taskType IN (HTTP,SIMPLE)": 4,
    "taskType = INLINE": 1,
    "taskType = p*": 4,
    "referenceTaskName='pay'": 4,
    "referenceTaskName='look__1' OR referenceTaskName=pay": 4,
    "status = FAILED": 1,
    "status = COMPLETED": 2,
    "status IN (IN_PROGRESS, SCHEDULED)": 2,
    "status = TIMED_OUT": 0,
    "status != COMPLETED": 3,
    "status = SKIPPED OR status = FAILED": 1,
    "taskDefName = pay AND status = FAILED": 1,
    "taskDefName = pay AND status IN (FAILED, CANCELED) AND reason = '*funds*'": 1,
    "taskDefName = pay AND status = TIMED_OUT": 0,
    "workflowName = refund": 2,
    "workflowType = order": 3,
    "correlationId = cu-1": 1,
    "workerId = w-9": 1,
    "domain IS NULL": 5,
    "domain = x": 0,
    "retryCount = 0": 5,
    "reason = '*funds*'": 1,
    "workflowId = {failed}": 2,
    "workflowId = {failed} AND taskType = pay": 1,
    "scheduledTime >= {two_minutes_later}": 3,
    "scheduledTime < {two_minutes_later}": 2,
    "scheduledTime BETWEEN {noon} AND {noon}": 1,
    "startTime > 0": 5,
    "endTime IS NULL": 2,
    "updateTime >= {two_minutes_later}": 4,
    "input.way = x": 1,
    "output.receipt = 'r-1'": 1,
    "workflowPriority = 5": 1,
}


@pytest.fixture(scope="module")
def tasks(stock):
    """Create five tasks in four workflows."""
    api, clock = stock
    noon = clock.now()
    api.post("/metadata/taskdefs", [{"name": "pay", "retryCount": 0}])
    api.define(simple("pay"))
    look = {"evaluatorType": "javascript", "expression": "1", "way": "x"}
    api.define(
        {"name": "look", "taskReferenceName": "look", "type": "INLINE", "inputParameters": look},
        simple("pay"),
        name="refund",
    )
    first = api.start(correlationId="cu-1", priority=5)
    clock.advance(seconds=60)
    api.start()
    clock.advance(seconds=60)
    failed, done = api.start("refund"), api.start()
    tasks = {task["workflowInstanceId"]: task for task in api.poll("pay", count=4)}
    api.report(tasks[failed], "FAILED", reasonForIncompletion="No funds left")
    clock.advance(seconds=1)
    api.report(tasks[done], outputData={"receipt": "r-1"}, workerId="w-9")
    return {"first": first, "failed": failed, "done": done, "noon": noon, "two_minutes_later": noon + 120_000}


@pytest.mark.parametrize("query", TASK_QUERIES, ids=str)
def test_a_query_of_tasks_finds(reader, tasks, query):
    reply = reader.get("/tasks/search", query=query.format(**tasks)).json()

    assert (len(reply["results"]), reply["totalHits"]) == (TASK_QUERIES[query],) * 2, reply


def test_a_task_summary_has_the_fields_and_forms_that_clients_read(reader, tasks):
    [found] = reader.get("/tasks/search", query="status = COMPLETED AND taskType = pay").json()["results"]

    assert re.fullmatch("[0-9a-f-]{36}", found.pop("taskId"))
    assert found == {
        "workflowId": tasks["done"],
        "workflowType": "order",
        "scheduledTime": "2027-03-01T12:02:00.000Z",
        "startTime": "2027-03-01T12:02:00.000Z",
        "updateTime": "2027-03-01T12:02:00.000Z",
        "endTime": "2027-03-01T12:02:01.000Z",
        "status": "COMPLETED",
        "executionTime": 1000,
        "queueWaitTime": 0,
        "taskDefName": "pay",
        "taskType": "pay",
        "input": "{}",
        "output": "{receipt=r-1}",
        "workflowPriority": 0,
    }


def test_an_open_task_has_the_epoch_as_its_end_in_a_summary(reader, tasks):
    found = reader.get("/tasks/search", query="correlationId = cu-1").json()["results"][0]

    assert (found["endTime"], found["correlationId"]) == ("1970-01-01T00:00:00.000Z", "cu-1")


def test_a_search_for_tasks_returns_full_tasks(reader, tasks):
    found = reader.get("/tasks/search-v2", sort="scheduledTime:ASC").json()["results"]

    assert len(found) == 5
    assert found == [reader.get(f"/tasks/{task['taskId']}").json() for task in found]
    assert [task["scheduledTime"] for task in found] == sorted(task["scheduledTime"] for task in found)


def test_the_workflows_of_tasks_are_returned_once(reader, tasks):
    reply = reader.get("/workflow/search-by-tasks", query="workflowType = refund").json()
    whole = reader.get("/workflow/search-by-tasks-v2", query="taskType = pay", start=1, size=2).json()

    assert [(found["workflowId"], found["workflowType"]) for found in reply["results"]] == [(tasks["failed"], "refund")]
    assert (whole["totalHits"], len(whole["results"])) == (4, 2)
    assert whole["results"][0]["tasks"] == []
