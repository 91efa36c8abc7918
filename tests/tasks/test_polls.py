"""Polling, as workers do it (api §5.1-5.3)."""

import pytest

from tests.builders import simple, step_of


def test_a_batch_poll_without_tasks_returns_an_empty_list(api):
    reply = api.get("/tasks/poll/batch/pay", count=5, timeout=0)

    assert (reply.status_code, reply.content, reply["Content-Type"]) == (200, b"[]", "application/json")


def test_a_single_poll_without_tasks_returns_an_empty_body_without_a_type(api):
    reply = api.get("/tasks/poll/pay")

    assert (reply.status_code, reply.content) == (204, b"")
    assert "Content-Type" not in reply


def test_a_polled_task_has_every_field_that_a_worker_needs(api, clock):
    api.post("/metadata/taskdefs", [{"name": "pay", "responseTimeoutSeconds": 30, "rateLimitPerFrequency": 100}])
    api.define(simple("pay", inputParameters={"total": "${workflow.input.total}"}))
    workflow_id = api.start(input={"total": 7}, correlationId="c1", priority=3)
    scheduled_at = clock.now()
    clock.advance(seconds=2)

    [task] = api.poll("pay", workerid="ann")

    shown = {name: task[name] for name in ("taskType", "taskDefName", "referenceTaskName", "status", "workflowType")}
    assert shown == {
        "taskType": "pay",
        "taskDefName": "pay",
        "referenceTaskName": "pay",
        "status": "IN_PROGRESS",
        "workflowType": "order",
    }
    assert (task["workflowInstanceId"], task["correlationId"], task["workerId"]) == (workflow_id, "c1", "ann")
    assert (task["inputData"], task["outputData"], task["workflowPriority"]) == ({"total": 7}, {}, 3)
    assert (task["scheduledTime"], task["startTime"], task["endTime"]) == (scheduled_at, clock.now(), 0)
    assert (task["queueWaitTime"], task["pollCount"], task["retryCount"], task["seq"]) == (2000, 1, 0, 1)
    assert (task["responseTimeoutSeconds"], task["callbackAfterSeconds"], task["rateLimitPerFrequency"]) == (30, 0, 100)
    assert (task["retried"], task["executed"], task["callbackFromWorker"], task["loopOverTask"]) == (
        False,
        False,
        True,
        False,
    )
    assert task["workflowTask"]["taskReferenceName"] == "pay"
    assert task["taskDefinition"]["responseTimeoutSeconds"] == 30
    assert "reasonForIncompletion" not in task


def test_a_batch_contains_at_most_the_requested_tasks(api):
    api.define(simple("pay"))
    for _ in range(3):
        api.start()

    assert len(api.poll("pay", count=2)) == 2
    assert len(api.poll("pay", count=2)) == 1


def test_a_worker_of_a_domain_gets_only_its_tasks(api):
    api.define(simple("pay"))
    api.start(taskToDomain={"pay": "blue"})

    assert api.poll("pay") == []
    [task] = api.poll("pay", domain="blue")
    assert task["domain"] == "blue"


def test_secrets_are_visible_to_the_worker_only(api, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_KEY", "s3cret")
    literal = "Bearer ${workflow.secrets.KEY}"
    api.define(simple("pay", inputParameters={"auth": literal}))
    workflow_id = api.start()

    [task] = api.poll("pay")

    assert task["inputData"] == {"auth": "Bearer s3cret"}
    assert api.workflow(workflow_id)["tasks"][0]["inputData"] == {"auth": literal}
    assert api.get(f"/tasks/{task['taskId']}").json()["inputData"] == {"auth": literal}


def test_settings_of_the_task_definition_are_delivered_with_the_task(api, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_KEY", "s3cret")
    monkeypatch.setenv("CONDUCTOR_ENV_REGION", "north")
    api.post("/metadata/taskdefs", [{"name": "pay", "runtimeMetadata": ["KEY", "REGION", "ABSENT"]}])
    api.define(simple("pay"))
    api.start()

    [task] = api.poll("pay")

    assert task["runtimeMetadata"] == {"KEY": "s3cret", "REGION": "north"}


DYNAMIC_FORK = step_of(
    "FORK_JOIN_DYNAMIC",
    "fork",
    dynamicForkTasksParam="tasks",
    dynamicForkTasksInputParamName="inputs",
    inputParameters={"tasks": "${workflow.input.tasks}", "inputs": {}},
)
GREEDY = simple("steal", taskDefinition={"name": "steal", "runtimeMetadata": ["KEY"]})


@pytest.mark.parametrize(
    ("document", "input"),
    [
        ([DYNAMIC_FORK, step_of("JOIN", "join")], {"tasks": [GREEDY]}),
        (
            [DYNAMIC_FORK, step_of("JOIN", "join")],
            {"tasks": [step_of("DO_WHILE", "again", loopOver=[GREEDY], loopCondition="false")]},
        ),
        (
            [step_of("SUB_WORKFLOW", "child", subWorkflowParam={"workflowDefinition": "${workflow.input.child}"})],
            {"child": {"name": "child", "version": 1, "schemaVersion": 2, "tasks": [GREEDY]}},
        ),
    ],
    ids=["branch", "step within a branch", "inline workflow"],
)
def test_a_task_definition_in_data_gets_no_secrets(api, monkeypatch, document, input):
    monkeypatch.setenv("CONDUCTOR_SECRET_KEY", "s3cret-enough")
    monkeypatch.setenv("CONDUCTOR_ENV_KEY", "a variable")
    api.define(*document)
    api.start(input=input)

    [task] = api.poll("steal")

    assert not task.get("runtimeMetadata")


def test_a_branch_in_data_gets_the_settings_of_its_registered_task_definition(api, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_KEY", "s3cret-enough")
    api.post("/metadata/taskdefs", [{"name": "pay", "runtimeMetadata": ["KEY"]}])
    api.define(DYNAMIC_FORK, step_of("JOIN", "join"))
    api.start(input={"tasks": [simple("pay")]})

    [task] = api.poll("pay")

    assert task["runtimeMetadata"] == {"KEY": "s3cret-enough"}


def test_settings_of_the_task_definition_are_redacted_in_what_its_worker_reports(api, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_KEY", "s3cret-enough")
    api.post("/metadata/taskdefs", [{"name": "pay", "runtimeMetadata": ["KEY"]}])
    api.define(simple("pay"))
    workflow_id = api.start()
    [task] = api.poll("pay")

    report = {"workflowInstanceId": workflow_id, "taskId": task["taskId"], "status": "COMPLETED"}
    api.post("/tasks", report | {"outputData": {"said": "with s3cret-enough"}, "logs": [{"log": "s3cret-enough"}]})

    assert api.workflow(workflow_id)["tasks"][0]["outputData"] == {"said": "with ***"}
    assert [each["log"] for each in api.get(f"/tasks/{task['taskId']}/log").json()] == ["***"]


def test_settings_of_the_task_definition_are_redacted_in_a_line_that_its_worker_adds_to_the_log(api, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_KEY", "s3cret-enough")
    api.post("/metadata/taskdefs", [{"name": "pay", "runtimeMetadata": ["KEY"]}])
    api.define(simple("pay"))
    api.start()
    [task] = api.poll("pay")

    api.post(f"/tasks/{task['taskId']}/log", "with s3cret-enough")

    assert [each["log"] for each in api.get(f"/tasks/{task['taskId']}/log").json()] == ["with ***"]


def test_a_task_of_a_dynamic_branch_contains_its_own_step(api):
    api.define(DYNAMIC_FORK, step_of("JOIN", "join"))
    workflow_id = api.start(input={"tasks": [simple("pay", description="made on the way")]})

    [task] = api.poll("pay")

    assert task["workflowTask"]["description"] == "made on the way"
    assert task["workflowTask"]["joinOn"] == []
    assert [task["taskType"] for task in api.workflow(workflow_id)["tasks"]] == ["FORK", "pay", "JOIN"]


@pytest.mark.parametrize("query", [{"timeout": 5001}, {"timeout": "soon"}, {"count": "many"}, {"count": 2**31}])
def test_an_invalid_poll_is_rejected(api, query):
    assert api.get("/tasks/poll/batch/pay", **query).status_code == 400


@pytest.mark.parametrize("query", [{"count": 0}, {"count": -5}, {"timeout": -1}, {"count": "", "timeout": ""}])
def test_odd_but_readable_numbers_do_no_harm(api, query):
    assert api.get("/tasks/poll/batch/pay", **{"timeout": 0, **query}).json() == []


def test_a_poll_is_remembered_even_when_it_is_empty(api, clock):
    api.poll("pay", workerid="ann", domain="blue")

    reply = api.get("/tasks/queue/polldata", taskType="pay")

    assert reply.json() == [{"queueName": "pay", "domain": "blue", "workerId": "ann", "lastPollTime": clock.now()}]
    assert api.get("/tasks/queue/polldata/all").json() == reply.json()
