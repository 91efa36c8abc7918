"""Authors use what the server has; names that come from data are limited by the rights of the starter of the run."""

import pytest

from conductor_app.definitions.models import WorkflowDefinition
from conductor_app.runs.models import Attempt, Run
from conductor_app.schedules.models import Schedule
from tests.access.users import api_client_of, create_application, grant_access
from tests.builders import simple
from tests.scenario import run_commit_hooks

ALL = ("CREATE", "READ", "UPDATE", "EXECUTE", "DELETE")


@pytest.fixture(autouse=True)
def required_logins(with_logins, clock, monkeypatch, settings):
    monkeypatch.setenv("CONDUCTOR_SECRET_PAYROLL", "4711")
    monkeypatch.setenv("CONDUCTOR_ENV_REGION", "eu")
    settings.CONDUCTOR_SQL_TASK_CONNECTIONS = {"billing": "sqlite:////dev/null"}


@pytest.fixture
def admin():
    return api_client_of(create_application("root", "ADMIN"))


@pytest.fixture
def team_b(admin):
    """Register a workflow of another team."""
    return admin.define(simple("pay"), name="team-b-payroll")


@pytest.fixture
def team():
    """Return the application of a team that may do everything with its own definitions."""
    made = create_application("team-a")
    for target in ("WORKFLOW_DEF", "TASK_DEF"):
        grant_access(made, target, "team-a*", *ALL)
    return made


@pytest.fixture
def author(team):
    return api_client_of(team)


def inputs(**values):
    return simple("team-a-work", inputParameters=values)


def sub_workflow(**param):
    return {"name": "child", "taskReferenceName": "child", "type": "SUB_WORKFLOW", "subWorkflowParam": param}


def definition(*tasks, **fields):
    return {"name": "team-a-flow", "version": 1, "schemaVersion": 2, "tasks": list(tasks), **fields}


USED = {
    "a secret": definition(inputs(s="x ${workflow.secrets.PAYROLL}")),
    "a value": definition(inputs(region="${workflow.env.REGION}")),
    "a database": definition(
        {
            "name": "sql",
            "taskReferenceName": "sql",
            "type": "JDBC",
            "inputParameters": {"connectionId": "billing", "statement": "SELECT 1", "type": "SELECT"},
        }
    ),
    "a workflow": definition(sub_workflow(name="team-b-payroll")),
    "a failure workflow": definition(inputs(), failureWorkflow="team-b-payroll"),
}


@pytest.mark.parametrize("case", USED)
def test_an_author_uses_what_the_server_has(author, team_b, case):
    document = USED[case]

    for reply in (
        author.post("/metadata/workflow", document),
        author.post("/workflow", {"name": document["name"], "workflowDef": document}),
        author.post("/workflow/test", {"name": document["name"], "workflowDef": document}),
    ):
        assert reply.status_code == 200, reply.content


def test_only_who_may_save_a_name_writes_its_definition(author):
    document = {**definition(inputs()), "name": "team-b-flow"}

    for reply in (
        author.post("/metadata/workflow", document),
        author.put("/metadata/workflow", [document]),
        author.post("/metadata/taskdefs", [{"name": "team-b-flow"}]),
        author.post("/workflow", {"name": "team-b-flow", "workflowDef": document}),
    ):
        assert reply.status_code == 403
    assert not WorkflowDefinition.objects.exists()


def test_a_starter_needs_no_permission_on_what_the_author_has_named(admin, team_b, clock):
    admin.post("/metadata/workflow", definition(sub_workflow(name="team-b-payroll")))
    starter = create_application("starter")
    grant_access(starter, "WORKFLOW_DEF", "team-a-flow", "EXECUTE")

    with run_commit_hooks():
        assert api_client_of(starter).post("/workflow/team-a-flow", {}).status_code == 200

    assert Run.objects.filter(name="team-b-payroll").count() == 1


START = {"name": "start", "taskReferenceName": "start", "type": "START_WORKFLOW"}
FORK = [
    {
        "name": "fork",
        "taskReferenceName": "fork",
        "type": "FORK_JOIN_DYNAMIC",
        "dynamicForkTasksParam": "tasks",
        "dynamicForkTasksInputParamName": "given",
        "inputParameters": {"tasks": "${workflow.input.tasks}", "given": {}},
    },
    {"name": "join", "taskReferenceName": "join", "type": "JOIN"},
]
CHILD = {"name": "any", "version": 1, "schemaVersion": 2, "tasks": [sub_workflow(name="team-b-payroll")]}
NAMED_BY_INPUT = {
    "name": "any",
    "taskReferenceName": "any",
    "type": "DYNAMIC",
    "dynamicTaskNameParam": "type",
    "inputParameters": {
        "type": "${workflow.input.name}",
        "subWorkflowName": "team-b-payroll",
        "startWorkflow": {"name": "team-b-payroll"},
    },
}
COMPUTED = {
    "the name of a sub-workflow": (
        definition(sub_workflow(name="${workflow.input.name}")),
        {"name": "team-b-payroll"},
    ),
    "the name of a started workflow": (
        definition({**START, "inputParameters": {"startWorkflow": {"name": "${workflow.input.name}"}}}),
        {"name": "team-b-payroll"},
    ),
    "a sub-workflow that a dynamic step names": (definition(NAMED_BY_INPUT), {"name": "SUB_WORKFLOW"}),
    "a started workflow that a dynamic step names": (definition(NAMED_BY_INPUT), {"name": "START_WORKFLOW"}),
    "a start request": (
        definition({**START, "inputParameters": {"startWorkflow": "${workflow.input.request}"}}),
        {"request": {"name": "team-b-payroll"}},
    ),
    "an inline definition": (
        definition(sub_workflow(name="any", workflowDefinition="${workflow.input.definition}")),
        {"definition": CHILD},
    ),
    "a task of a dynamic fork": (definition(*FORK), {"tasks": [sub_workflow(name="team-b-payroll")]}),
    "a failure workflow": (
        definition(
            {
                "name": "end",
                "taskReferenceName": "end",
                "type": "TERMINATE",
                "inputParameters": {"terminationStatus": "FAILED"},
            },
            failureWorkflow="${workflow.input.name}",
        ),
        {"name": "team-b-payroll"},
    ),
}


@pytest.mark.parametrize("case", COMPUTED)
def test_a_workflow_that_data_names_requires_the_permission_of_the_starter(admin, team_b, case):
    document, given = COMPUTED[case]
    admin.post("/metadata/workflow", document)
    starter = create_application("starter")
    grant_access(starter, "WORKFLOW_DEF", "team-a-flow", "EXECUTE")
    started = Run.objects.filter(name="team-b-payroll")

    with run_commit_hooks():
        reply = api_client_of(starter).post("/workflow/team-a-flow", given)
    assert (reply.status_code, started.count()) == (200, 0)
    assert "starter lacks the permission EXECUTE on WORKFLOW_DEF 'team-b-payroll'" in all_reasons()

    grant_access(starter, "WORKFLOW_DEF", "team-b-payroll", "EXECUTE")
    with run_commit_hooks():
        api_client_of(starter).post("/workflow/team-a-flow", given)
    assert started.count() == 1


def all_reasons():
    runs = Run.objects.values_list("reason", "output")
    return f"{list(runs)} {list(Attempt.objects.values_list('reason', flat=True))}"


def test_a_database_that_data_names_requires_the_permission_of_the_starter(admin):
    sql = {"connectionId": "${workflow.input.db}", "statement": "SELECT 1", "type": "SELECT"}
    admin.post(
        "/metadata/workflow",
        definition({"name": "sql", "taskReferenceName": "sql", "type": "JDBC", "inputParameters": sql}),
    )
    starter = create_application("starter")
    grant_access(starter, "WORKFLOW_DEF", "team-a-flow", "EXECUTE")

    api_client_of(starter).post("/workflow/team-a-flow", {"db": "billing"})

    assert "starter lacks the permission EXECUTE on INTEGRATION 'billing'" in all_reasons()


def test_data_reads_environment_values_and_no_secrets(admin):
    admin.post("/metadata/workflow", definition(*FORK))
    starter = create_application("starter")
    grant_access(starter, "WORKFLOW_DEF", "team-a-flow", "EXECUTE")
    given = {"tasks": [inputs(region="${workflow.env.REGION}", secret="${workflow.secrets.PAYROLL}")]}

    api_client_of(starter).post("/workflow/team-a-flow", given)

    worker = create_application("worker", "WORKER")
    [task] = api_client_of(worker).get("/tasks/poll/batch/team-a-work").json()
    assert task["inputData"] == {"region": "eu", "secret": "${workflow.secrets.PAYROLL}"}


def test_children_inherit_the_permissions_of_the_starter(admin, team_b):
    inner = {**definition(sub_workflow(name="${workflow.input.name}")), "name": "team-a-inner"}
    admin.post("/metadata/workflow", inner)
    outer = definition({**sub_workflow(name="team-a-inner"), "inputParameters": {"name": "${workflow.input.name}"}})
    admin.post("/metadata/workflow", outer)
    starter = create_application("starter")
    grant_access(starter, "WORKFLOW_DEF", "team-a-flow", "EXECUTE")

    with run_commit_hooks():
        api_client_of(starter).post("/workflow/team-a-flow", {"name": "team-b-payroll"})

    assert not Run.objects.filter(name="team-b-payroll").exists()
    assert set(Run.objects.values_list("starter_id", flat=True)) == {starter.user_id}


def test_a_signal_to_a_parent_does_not_reach_a_child_that_the_sender_may_not_control(admin, author, team):
    wait = {"name": "wait", "taskReferenceName": "approve", "type": "WAIT", "inputParameters": {}}
    admin.define(wait, name="team-b-approve")
    admin.post("/metadata/workflow", definition(sub_workflow(name="team-b-approve")))
    with run_commit_hooks():
        run_id = author.post("/workflow/team-a-flow", {}).content.decode()
    child = Run.objects.get(name="team-b-approve")
    assert author.post(f"/tasks/{child.id}/COMPLETED/signal", {"approved": True}).status_code == 403

    author.post(f"/tasks/{run_id}/COMPLETED/signal", {"approved": True})
    child.refresh_from_db()
    assert child.status == "RUNNING"

    grant_access(team, "WORKFLOW_DEF", "team-b-approve", "EXECUTE")
    author.post(f"/tasks/{run_id}/COMPLETED/signal", {"approved": True})
    child.refresh_from_db()
    assert child.status == "COMPLETED"


def test_a_server_without_logins_limits_nothing(settings, team_b):
    settings.CONDUCTOR_API_ACCESS = "open"
    from tests.api_fixtures import Api

    api = Api()
    assert api.post("/metadata/workflow", USED["a secret"]).status_code == 200
    api.post("/workflow/team-a-flow", {})

    assert Run.objects.get(name="team-a-flow").starter_id == 0
    assert not Schedule.objects.exists()
