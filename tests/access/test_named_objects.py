"""Data names a database, an integration or a prompt only with the permission of the starter, in whichever way."""

import pytest
from django.contrib.auth.models import Permission

from conductor_app.runs.models import Attempt, Run
from tests.access.users import api_client_of, create_application, grant_access

SQL = {"connectionId": "billing", "statement": "SELECT 1", "type": "SELECT"}
CHAT = {"llmProvider": "main", "model": "m"}
NAMED_BY_DATA = {"connectionId": "${workflow.variables.db}", "statement": "SELECT 1", "type": "SELECT"}


@pytest.fixture(autouse=True)
def required_logins(with_logins, clock, monkeypatch, settings):
    monkeypatch.setenv("CONDUCTOR_SECRET_MINE", "billing")
    monkeypatch.setenv("CONDUCTOR_ENV_REGION", "eu-central")
    settings.CONDUCTOR_SQL_TASK_CONNECTIONS = {"billing": "sqlite:////dev/null", "own": "sqlite:////dev/null"}


@pytest.fixture
def admin():
    return api_client_of(create_application("root", "ADMIN"))


@pytest.fixture
def team():
    """Return the application of a team that may do everything with its own definitions, and use the debugger."""
    made = create_application("team-a")
    grant_access(made, "WORKFLOW_DEF", "team-a*", "CREATE", "READ", "UPDATE", "EXECUTE")
    grant_access(made, "TASK_DEF", "team-a*", "CREATE", "READ", "UPDATE", "EXECUTE")
    grant_access(made, "INTEGRATION", "own", "EXECUTE")
    grant_access(made, "INTEGRATION_PROVIDER", "x", "EXECUTE")
    grant_access(made, "SECRET_NAME", "MINE", "EXECUTE")
    made.user.user_permissions.add(Permission.objects.get(codename="execute_debug"))
    return made


@pytest.fixture
def author(team):
    return api_client_of(team)


def step(type, name="work", /, **inputs):
    return {"name": name, "taskReferenceName": "work", "type": type, "inputParameters": inputs}


def definition(*tasks, **fields):
    return {"name": "team-a-flow", "version": 1, "schemaVersion": 2, "tasks": list(tasks), **fields}


def start(client, **request):
    return client.post("/workflow", {"name": "team-a-flow", **request}).content.decode()


def attempts_of(run):
    return list(Attempt.objects.filter(run=run, task__ref="work").order_by("number"))


def continue_run(client, run, **given):
    [stop] = client.get(f"/debug/runs/{run}").json()["stops"]
    return client.post(f"/debug/runs/{run}/continue", {"taskId": stop["taskId"], **given})


@pytest.mark.parametrize("name", ["JDBC", "JDBC-batch", "JDBC@space", "JDBC@space-batch"])
def test_a_type_that_data_names_needs_the_permission_of_the_starter(author, name):
    dynamic = {**step("DYNAMIC", kind="${workflow.input.kind}", **SQL), "dynamicTaskNameParam": "kind"}
    assert author.post("/metadata/workflow", definition(dynamic)).status_code == 200

    [attempt] = attempts_of(start(author, input={"kind": name}))

    assert "team-a lacks the permission EXECUTE on INTEGRATION 'billing'" in attempt.reason


CHILD = {"name": "team-b-flow", "version": 1, "schemaVersion": 2, "tasks": [{**step("WAIT", "w")}]}
DATA = "${workflow.input.child}"


@pytest.mark.parametrize(
    "parent",
    [
        {**step("SUB_WORKFLOW"), "subWorkflowParam": {"name": "x", "workflowDefinition": DATA}},
        step("START_WORKFLOW", startWorkflow={"name": "x", "workflowDef": DATA}),
    ],
    ids=["SUB_WORKFLOW", "START_WORKFLOW"],
)
def test_a_definition_from_data_has_only_a_name_that_the_starter_may_start(author, parent):
    assert author.post("/metadata/workflow", definition(parent)).status_code == 200

    refused, own = (start(author, input={"child": {**CHILD, "name": name}}) for name in ("team-b-flow", "team-a-child"))

    assert "team-a lacks the permission EXECUTE on WORKFLOW_DEF 'team-b-flow'" in Run.objects.get(pk=refused).reason
    assert Run.objects.get(pk=own).status in ("RUNNING", "COMPLETED")
    assert set(Run.objects.values_list("name", flat=True)) == {"team-a-flow", "team-a-child"}


def test_a_definition_in_place_has_the_name_that_its_author_has_written(author):
    parent = {**step("SUB_WORKFLOW"), "subWorkflowParam": {"name": "x", "workflowDefinition": CHILD}}
    assert author.post("/metadata/workflow", definition(parent)).status_code == 200

    start(author)

    assert set(Run.objects.values_list("name", flat=True)) == {"team-a-flow", "team-b-flow"}


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (step("JDBC", **{**SQL, "connectionId": "${workflow.secrets.MINE}"}), "connectionId"),
        (step("LLM_CHAT_COMPLETE", **{**CHAT, "llmProvider": "${workflow.secrets.MINE}"}), "llmProvider"),
        (step("LLM_TEXT_COMPLETE", llmProvider="x", model="m-${workflow.secrets.MINE}", prompt="p"), "model"),
    ],
)
def test_the_value_of_a_secret_names_no_object(author, given, name):
    author.post("/metadata/workflow", definition(given))

    [attempt] = attempts_of(start(author))

    assert attempt.reason == f"The input {name} must be a name; the value of a secret cannot be one."


def test_a_text_with_nul_is_no_name(author):
    chat = step("LLM_CHAT_COMPLETE", **{**CHAT, "llmProvider": "x", "instructions": "${workflow.input.text}"})
    assert author.post("/metadata/workflow", definition(chat)).status_code == 200

    [attempt] = attempts_of(start(author, input={"text": "a\0b"}))

    assert (attempt.queue, attempt.status) == ("LLM_CHAT_COMPLETE", "PENDING")


def test_an_input_that_is_changed_at_a_breakpoint_names_nothing_that_the_starter_may_not_use(author, admin):
    admin.post("/metadata/workflow", definition(step("JDBC", **{**SQL, "connectionId": "own"})))
    run = start(author, breakpoints=[{"taskReferenceName": "work"}])

    reply = continue_run(author, run, input=SQL)

    assert (reply.status_code, "INTEGRATION 'billing'" in reply.json()["message"]) == (403, True)
    assert attempts_of(run)[0].input["connectionId"] == "own"
    assert continue_run(author, run, input={**SQL, "connectionId": "own"}).status_code == 204


def test_a_further_attempt_whose_input_names_another_database_needs_the_permission(author, admin):
    document = definition(step("JDBC", **NAMED_BY_DATA), variables={"db": "own"})
    prepare = {"name": "v", "taskReferenceName": "v", "type": "SET_VARIABLE", "inputParameters": {"db": "own"}}
    document["tasks"].insert(0, prepare)
    assert author.post("/metadata/workflow", document).status_code == 200
    run = start(author)
    [first] = attempts_of(run)
    assert first.queue == "JDBC"

    author.post(f"/workflow/{run}/variables", {"db": "billing"})
    author.post("/tasks", {"taskId": first.pk, "workflowInstanceId": run, "status": "FAILED_WITH_TERMINAL_ERROR"})
    assert author.post(f"/workflow/{run}/retry").status_code in (200, 204)

    [_first, second] = attempts_of(run)
    assert (second.queue, "INTEGRATION 'billing'" in second.reason) == ("", True)


def test_a_step_that_was_refused_is_executed_by_a_worker_after_its_input_was_corrected(admin):
    dynamic = {**step("DYNAMIC", kind="${workflow.input.kind}"), "dynamicTaskNameParam": "kind"}
    admin.post("/metadata/workflow", definition(dynamic))
    run = start(admin, breakpoints=[{"taskReferenceName": "work"}])

    assert continue_run(admin, run, input={"kind": "pack"}).status_code == 204

    [task] = admin.get("/tasks/poll/batch/pack").json()
    assert (task["workflowInstanceId"], task["inputData"]) == (run, {"kind": "pack"})


def test_a_bare_name_reads_no_value_of_the_server(author):
    assert (
        author.post("/metadata/taskdefs", [{"name": "team-a-work", "inputTemplate": {"r": "${REGION}"}}]).status_code
        == 200
    )
    author.post("/metadata/workflow", definition(step("SIMPLE", "team-a-work")))

    assert attempts_of(start(author))[0].input == {"r": "${REGION}"}


SPIES = {
    "a masked value": "(() => { throw new Error(${workflow.input.number}) })()",
    "the masked value of a task": "(() => { throw new Error(JSON.stringify(${before.input})) })()",
    "an environment value": "(() => { throw new Error(${workflow.env.REGION}) })()",
    "a computed environment value": "(() => { throw new Error(${workflow.${workflow.input.part}.REGION}) })()",
}


@pytest.mark.parametrize("case", SPIES)
def test_a_condition_reads_what_the_pages_of_the_run_show(author, admin, case):
    before = step("SIMPLE", "team-a-before", number="${workflow.input.number}") | {"taskReferenceName": "before"}
    admin.post("/metadata/workflow", definition(before, step("SIMPLE", "team-a-work"), maskedFields=["number"]))
    at_work = {"taskReferenceName": "work", "condition": SPIES[case]}
    run = start(admin, input={"number": "4711-0815", "part": "env"})
    assert author.post(f"/debug/runs/{run}/breakpoints", at_work).status_code == 200

    [task] = admin.get("/tasks/poll/batch/team-a-before").json()
    admin.post("/tasks", {"taskId": task["taskId"], "workflowInstanceId": run, "status": "COMPLETED"})

    [stop] = author.get(f"/debug/runs/{run}").json()["stops"]
    assert "could not be evaluated: Error" in stop["sentence"]
    assert not {text for text in ("4711-0815", "eu-central") if text in stop["sentence"]}
