"""UPDATE_TASK, GET_WORKFLOW and TERMINATE_WORKFLOW: steps that read and change runs by their ids."""

import pytest

from conductor_app.runs.models import Run
from conductor_app.system_tasks.registry import run_built_in_workers
from tests.access.users import api_client_of, create_application, grant_access
from tests.api_fixtures import Api
from tests.builders import definition, fork, policy, simple, step, wait
from tests.scenario import RunView, Scenario, register_definitions, run_commit_hooks

pytestmark = pytest.mark.django_db
UPDATE, GET, TERMINATE = "UPDATE_TASK", "GET_WORKFLOW", "TERMINATE_WORKFLOW"
DONE = {"taskStatus": "COMPLETED"}


def other(type, inputs, ref="act", **fields):
    return {**step(ref, inputs=inputs, **fields), "type": type}


def act(clock, type, inputs, **fields):
    """Start a run with one step of this type, and execute its task."""
    scenario = Scenario(clock, other(type, inputs, **fields), name="acting")
    with run_commit_hooks():
        run_built_in_workers()
    return scenario


@pytest.fixture
def waiting(clock):
    """Return a run that waits."""
    return Scenario(clock, wait("approve"), name="waiting")


@pytest.mark.parametrize("named", ["reference", "id"])
def test_update_task_completes_a_task_of_another_run(clock, waiting, named):
    attempt = waiting.task("approve")
    names = {"taskId": attempt.id} if named == "id" else {"workflowId": waiting.id, "taskRefName": "approve"}

    scenario = act(clock, UPDATE, {**names, **DONE, "taskOutput": {"by": "ann"}})

    assert (waiting.status, waiting.task("approve").output) == ("COMPLETED", {"by": "ann"})
    assert scenario.task("act").output == {"workflowId": waiting.id, "taskId": attempt.id, "taskOutput": {"by": "ann"}}
    assert scenario.status == "COMPLETED"


@pytest.mark.parametrize(("merges", "output"), [(True, {"a": 1, "b": 3, "c": 4}), (False, {"b": 3, "c": 4})])
def test_update_task_replaces_the_output_or_merges_into_it(clock, waiting, merges, output):
    waiting.reports("approve", "IN_PROGRESS", a=1, b=2)
    names = {"workflowId": waiting.id, "taskRefName": "approve", **DONE}

    act(clock, UPDATE, {**names, "taskOutput": {"b": 3, "c": 4}, "mergeOutput": merges})

    assert waiting.task("approve").output == output


def test_update_task_fails_a_task_and_says_who_did(clock, waiting):
    names = {"workflowId": waiting.id, "taskRefName": "approve"}

    scenario = act(clock, UPDATE, {**names, "taskStatus": "FAILED_WITH_TERMINAL_ERROR"})

    assert waiting.statuses == {"approve": "FAILED_WITH_TERMINAL_ERROR"}
    assert waiting.task("approve").reason == f"Set by workflow acting {scenario.id}."


def test_update_task_ends_the_wait_of_another_branch(clock):
    inputs = {"workflowId": "${workflow.workflowId}", "taskRefName": "approve", **DONE}
    scenario = Scenario(clock, *fork([wait("approve")], [other(UPDATE, inputs)]))

    with run_commit_hooks():
        run_built_in_workers()

    assert scenario.status == "COMPLETED"


def test_update_task_is_done_if_the_task_has_ended_like_that(clock, waiting):
    waiting.reports("approve")

    assert act(clock, UPDATE, {"workflowId": waiting.id, "taskRefName": "approve", **DONE}).status == "COMPLETED"


def test_update_task_fails_if_the_task_has_ended_otherwise(clock, waiting):
    waiting.terminate()

    scenario = act(clock, UPDATE, {"workflowId": waiting.id, "taskRefName": "approve", **DONE})

    assert scenario.statuses == {"act": "FAILED_WITH_TERMINAL_ERROR"}
    assert "has already ended with status CANCELED" in scenario.task("act").reason


def test_update_task_is_tried_again_until_the_other_run_has_the_task(clock):
    later = Scenario(clock, step("first"), wait("approve"), name="waiting")
    names = {"workflowId": later.id, "taskRefName": "approve"}
    scenario = act(clock, UPDATE, {**names, **DONE}, policy=policy(retries=1, delay_seconds=5))
    assert scenario.attempts("act")[0] == "FAILED"
    later.worker("first").completes()

    scenario.later(5)
    with run_commit_hooks():
        run_built_in_workers()

    assert (scenario.status, later.status) == ("COMPLETED", "COMPLETED")


def test_get_workflow_returns_the_run_without_its_tasks(clock, waiting):
    found = act(clock, GET, {"id": waiting.id}).task("act").output

    assert (found["workflowId"], found["workflowName"], found["status"]) == (waiting.id, "waiting", "RUNNING")
    assert (found["tasks"], found.get("workflowDefinition")) == ([], None)


def test_get_workflow_returns_the_tasks_too(clock, waiting):
    found = act(clock, GET, {"id": waiting.id, "includeTasks": True}).task("act").output

    assert [task["referenceTaskName"] for task in found["tasks"]] == ["approve"]


def test_get_workflow_shows_no_masked_value(clock):
    other_run = Scenario(clock, wait("approve"), input={"card": "4111"}, maskedFields=["card"], name="waiting")

    assert act(clock, GET, {"id": other_run.id}).task("act").output["input"] == {"card": "***"}


def test_get_workflow_reads_a_payload_from_its_storage(clock, settings):
    settings.CONDUCTOR_WORKFLOW_PAYLOAD_SOFT_BYTES = 2000
    other_run = Scenario(clock, wait("approve"), input={"text": "x" * 3000}, name="waiting")
    assert other_run.row.input_path

    found = act(clock, GET, {"id": other_run.id}).task("act").output

    assert (found["input"], found.get("externalInputPayloadStoragePath")) == ({"text": "x" * 3000}, None)


def test_terminate_workflow_ends_runs_with_a_reason(clock, waiting):
    second = waiting.starts("waiting")
    ended = waiting.starts("waiting")
    ended.reports("approve")

    scenario = act(clock, TERMINATE, {"workflowId": [waiting.id, second.id, ended.id], "terminationReason": "Sold out"})

    assert [run.status for run in (waiting, second, ended)] == ["TERMINATED", "TERMINATED", "COMPLETED"]
    assert waiting.reason == "Sold out"
    assert scenario.task("act").output == {"terminatedWorkflows": [waiting.id, second.id]}


@pytest.mark.parametrize(("triggers", "count"), [(True, 1), (False, 0)])
def test_terminate_workflow_starts_the_failure_workflow_if_it_says_so(clock, triggers, count):
    register_definitions(definition(wait("undo"), name="undoing"))
    failing = Scenario(clock, wait("approve"), name="waiting", failureWorkflow="undoing")

    act(clock, TERMINATE, {"workflowId": failing.id, "triggerFailureWorkflow": triggers})

    assert Run.objects.filter(name="undoing").count() == count


def test_terminate_workflow_accepts_a_list_that_an_expression_gives(clock, waiting):
    inputs = {"workflowId": ["${workflow.input.ids}"]}
    scenario = Scenario(clock, other(TERMINATE, inputs), name="acting", input={"ids": [waiting.id, waiting.id]})
    with run_commit_hooks():
        run_built_in_workers()

    assert scenario.task("act").output == {"terminatedWorkflows": [waiting.id]}


def test_terminate_workflow_ends_no_run_if_one_is_unknown(clock, waiting):
    scenario = act(clock, TERMINATE, {"workflowId": [waiting.id, "unknown"]})

    assert (scenario.statuses, waiting.status) == ({"act": "FAILED_WITH_TERMINAL_ERROR"}, "RUNNING")
    assert scenario.task("act").reason == "No such workflow found by id: unknown"


def test_terminate_workflow_ends_its_own_run(clock, waiting):
    inputs = {"workflowId": ["${workflow.workflowId}", waiting.id]}

    assert (act(clock, TERMINATE, inputs).status, waiting.status) == ("TERMINATED", "TERMINATED")


INVALID = {
    "an unknown status": (UPDATE, {"taskId": "t", "taskStatus": "CANCELED"}, "`taskStatus` must be one of"),
    "an output that is a list": (UPDATE, {"taskId": "t", **DONE, "taskOutput": [1]}, "`taskOutput` must be an object"),
    "a reference without a workflow": (UPDATE, {"taskRefName": "t", **DONE}, "requires `taskId`, or `workflowId`"),
    "an empty id": (GET, {"id": ""}, "requires `id`"),
    "an unknown id": (GET, {"id": "unknown"}, "No such workflow found by id: unknown"),
    "a NUL in an id": (GET, {"id": "a\0b"}, "No such workflow found by id"),
    "no ids": (TERMINATE, {"workflowId": []}, "must be a list of ids"),
    "a number as an id": (TERMINATE, {"workflowId": [1]}, "must be a list of ids"),
    "an object as an id": (TERMINATE, {"workflowId": [{}]}, "must be a list of ids"),
    "too many ids": (TERMINATE, {"workflowId": [f"r{n}" for n in range(1_001)]}, "at most 1000 ids"),
}


@pytest.mark.parametrize("case", INVALID)
def test_an_invalid_input_fails_the_task_with_the_reason(clock, case):
    type, inputs, reason = INVALID[case]

    scenario = act(clock, type, inputs)

    assert scenario.statuses == {"act": "FAILED_WITH_TERMINAL_ERROR"}
    assert reason in scenario.task("act").reason


def test_the_value_of_a_secret_reaches_no_other_run(clock, waiting, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_PAYROLL", "4711")
    names = {"workflowId": waiting.id, "taskRefName": "approve", **DONE}

    act(clock, UPDATE, {**names, "taskOutput": {"key": "${workflow.secrets.PAYROLL}"}})

    assert "4711" not in str(waiting.task("approve").output)


def test_a_simulation_takes_the_result_from_its_request_and_changes_no_run(clock, waiting):
    document = definition(other(TERMINATE, {"workflowId": waiting.id}), name="acting")
    results = {"act": [{"status": "COMPLETED", "output": {"terminatedWorkflows": ["another"]}}]}

    reply = Api().post("/workflow/test", {"name": "acting", "workflowDef": document, "taskRefToMockOutput": results})

    [task] = reply.json()["tasks"]
    assert (task["status"], task["outputData"]) == ("COMPLETED", {"terminatedWorkflows": ["another"]})
    assert waiting.status == "RUNNING"


@pytest.fixture
def teams(with_logins, clock):
    """Return the clients of an administrator, and of a team that may do everything with its own workflows."""
    team = create_application("team-a")
    grant_access(team, "WORKFLOW_DEF", "team-a*", "CREATE", "READ", "UPDATE", "EXECUTE")
    return api_client_of(create_application("root", "ADMIN")), api_client_of(team)


OWN = {"workflowId": "${workflow.input.id}", "taskRefName": "approve", **DONE}
ACTIONS = {UPDATE: OWN, GET: {"id": "${workflow.input.id}"}, TERMINATE: {"workflowId": "${workflow.input.id}"}}
WAIT = {"name": "approve", "taskReferenceName": "approve", "type": "WAIT"}


def start_acting(client, type, id):
    client.define({**simple("act"), "type": type, "inputParameters": ACTIONS[type]}, name="team-a-flow")
    with run_commit_hooks():
        run = RunView(client.start("team-a-flow", input={"id": id}))
    with run_commit_hooks():
        run_built_in_workers()
    return run


@pytest.mark.parametrize("type", ACTIONS)
def test_an_id_from_data_requires_the_permission_of_the_starter(teams, type):
    admin, team = teams
    admin.define(WAIT, name="team-b-flow")
    foreign = RunView(admin.start("team-b-flow"))

    run = start_acting(team, type, foreign.id)

    assert (run.statuses, foreign.status) == ({"act": "FAILED_WITH_TERMINAL_ERROR"}, "RUNNING")
    assert "team-a lacks the permission on this run" in run.task("act").reason
    assert "team-b" not in run.task("act").reason


@pytest.mark.parametrize("type", ACTIONS)
def test_a_starter_acts_on_the_runs_that_it_has_permissions_on(teams, type):
    _, team = teams
    team.define(WAIT, name="team-a-other")

    assert start_acting(team, type, team.start("team-a-other")).status == "COMPLETED"


def test_the_tasks_of_a_run_may_read_it_whoever_has_started_it(teams):
    admin, _ = teams
    admin.define({**simple("act"), "type": GET, "inputParameters": {"id": "${workflow.workflowId}"}})
    starter = create_application("starter")
    grant_access(starter, "WORKFLOW_DEF", "order", "EXECUTE")

    with run_commit_hooks():
        run = RunView(api_client_of(starter).start())
    with run_commit_hooks():
        run_built_in_workers()

    assert run.status == "COMPLETED"
