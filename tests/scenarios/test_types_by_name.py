"""The name of a task decides its type, in DYNAMIC steps, SIMPLE steps and branches of a dynamic fork."""

import pytest

from conductor_app.runs.documents.tasks import task_document
from conductor_app.runs.models import Task
from conductor_app.system_tasks.registry import run_built_in_workers
from tests.builders import definition, dynamic, dynamic_fork, noop, policy, simple
from tests.recording_web_server import json_answer, running_web_server
from tests.scenario import Scenario, run_commit_hooks

CHILD = definition(noop("only"), name="child")
INPUTS = {
    "INLINE": {"evaluatorType": "javascript", "expression": "6 * 7"},
    "LAMBDA": {"scriptExpression": "return 6 * 7;"},
    "JSON_JQ_TRANSFORM": {"queryExpression": ".a", "a": 42},
    "SET_VARIABLE": {"a": 1},
    "NOOP": {},
    "START_WORKFLOW": {"startWorkflow": {"name": "child"}},
    "SUB_WORKFLOW": {"subWorkflowName": "child", "workflowInput": {"a": 1}},
    "TERMINATE": {"terminationStatus": "COMPLETED"},
    "EVENT": {"sink": "conductor"},
}
HELD = {"WAIT": {"duration": "5 seconds"}, "HUMAN": {}, "YIELD": {}, "WAIT_FOR_WEBHOOK": {"matches": {"$['a']": "b"}}}
RESERVED = ["JOIN", "EXCLUSIVE_JOIN", "FORK", "FORK_JOIN", "FORK_JOIN_DYNAMIC", "DO_WHILE", "SWITCH", "DECISION"]
FORMS = ["DYNAMIC", "SIMPLE", "fork", "list"]


def steps_of(form, name, inputs):
    """Return steps with a task of this name, whose reference is also returned."""
    if form == "DYNAMIC":
        return [dynamic("it", name, inputs=inputs)], "it"
    if form == "SIMPLE":
        return [simple("it", name, inputs=inputs)], "it"
    if form == "fork":
        given = {"forkTaskName": name, "forkTaskInputs": [inputs]}
        return dynamic_fork(dynamicForkTasksParam=None, dynamicForkTasksInputParamName=None, inputs=given), f"_{name}_0"
    given = {"tasks": [simple("it", name)], "given": {"it": inputs}}
    fields = {"dynamicForkTasksParam": "tasks", "dynamicForkTasksInputParamName": "given"}
    return dynamic_fork(inputs=given, **fields), "it"


def scenario_of(clock, form, name, inputs, **fields):
    steps, ref = steps_of(form, name, inputs)
    return Scenario(clock, *steps, others=[CHILD], **fields), ref


def wire_task_of(scenario, ref):
    return task_document(scenario.task(ref))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", INPUTS)
def test_a_type_that_the_engine_executes_runs_by_its_name(clock, form, name):
    scenario, ref = scenario_of(clock, form, name, INPUTS[name])

    assert scenario.status == "COMPLETED"
    task = wire_task_of(scenario, ref)
    assert (task["taskType"], task["taskDefName"], task["workflowTask"]["name"]) == (name, name, name)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", HELD)
def test_a_type_that_waits_is_held_by_the_engine_and_not_by_a_queue(clock, form, name):
    scenario, ref = scenario_of(clock, form, name, HELD[name])

    assert (scenario.statuses[ref], scenario.task(ref).queue) == ("IN_PROGRESS", "")
    assert wire_task_of(scenario, ref)["taskType"] == name
    scenario.later(5)
    if name != "WAIT":
        assert scenario.reports(ref)
    assert scenario.status == "COMPLETED"


@pytest.mark.parametrize("form", FORMS)
def test_an_http_task_runs_by_its_name(clock, settings, form):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    with running_web_server() as server:
        server.answers["/a"] = json_answer({"n": 1})
        scenario, ref = scenario_of(clock, form, "HTTP", {"uri": f"{server.url}/a", "method": "GET"})
        with run_commit_hooks():
            run_built_in_workers()

    assert (scenario.status, wire_task_of(scenario, ref)["taskType"]) == ("COMPLETED", "HTTP")
    assert scenario.task(ref).output["response"]["body"] == {"n": 1}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", RESERVED)
def test_a_type_with_steps_inside_or_a_join_fails_by_its_name_and_says_why(clock, form, name):
    scenario, ref = scenario_of(clock, form, name, {})

    assert (scenario.status, scenario.statuses[ref]) == ("FAILED", "FAILED_WITH_TERMINAL_ERROR")
    assert f"The task {name} cannot be executed by name" in scenario.task(ref).reason


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["pack", "SIMPLE", "DYNAMIC", "USER_DEFINED"])
def test_every_other_name_is_a_task_for_workers(clock, form, name):
    scenario, ref = scenario_of(clock, form, name, {"a": 1})

    assert (wire_task_of(scenario, ref)["taskType"], scenario.task(ref).queue) == (name, name)
    assert scenario.worker(name).completes()
    assert scenario.status == "COMPLETED"


@pytest.mark.parametrize("form", FORMS)
def test_the_child_of_a_sub_workflow_by_name_gets_the_workflow_input(clock, form):
    scenario, ref = scenario_of(clock, form, "SUB_WORKFLOW", INPUTS["SUB_WORKFLOW"])

    assert scenario.child(ref).row.input == {"a": 1}
    assert scenario.task(ref).input["subWorkflowName"] == "child"


def test_a_sub_workflow_by_name_without_a_workflow_fails_and_says_why(clock):
    scenario, ref = scenario_of(clock, "DYNAMIC", "SUB_WORKFLOW", {})

    assert "must be the name of a workflow, not null" in scenario.task(ref).reason


def test_an_inline_definition_of_a_sub_workflow_by_name_runs(clock):
    given = {"subWorkflowDefinition": definition(noop("inner"), name="written")}
    scenario, ref = scenario_of(clock, "SIMPLE", "SUB_WORKFLOW", given)

    assert (scenario.status, scenario.child(ref).row.name) == ("COMPLETED", "written")


def test_a_dynamic_step_that_names_terminate_ends_the_run(clock):
    ending = dynamic("it", "TERMINATE", inputs={"terminationStatus": "FAILED", "terminationReason": "no stock"})
    scenario = Scenario(clock, ending, noop("never"))

    assert (scenario.status, scenario.reason, list(scenario.statuses)) == ("FAILED", "no stock", ["it"])


def test_a_rerun_of_a_dynamic_step_names_its_task_again(clock):
    scenario = Scenario(clock, dynamic("it", "${workflow.input.what}"), input={"what": "pack"})
    scenario.worker("pack").completes()

    scenario.rerun("it", input={"what": "NOOP"})

    assert (scenario.status, wire_task_of(scenario, "it")["taskType"]) == ("COMPLETED", "NOOP")


def test_a_retry_of_a_dynamic_step_keeps_its_task(clock):
    scenario = Scenario(clock, dynamic("it", "pack", policy=policy(retries=1)))
    scenario.worker("pack").fails()

    assert scenario.queue("pack") == ["it, attempt 2"]
    assert wire_task_of(scenario, "it")["taskType"] == "pack"


def test_an_upgrade_keeps_the_task_that_a_dynamic_step_has_named(clock):
    scenario = Scenario(clock, dynamic("it", "HUMAN"))

    scenario.upgrade(dynamic("it", "HUMAN"), noop("after"))

    assert scenario.reports("it")
    assert (scenario.status, list(scenario.statuses)) == ("COMPLETED", ["it", "after"])


def test_a_dynamic_task_of_a_former_version_shows_the_name_of_its_task(clock):
    scenario = Scenario(clock, dynamic("it", "pack"))
    Task.objects.update(type="DYNAMIC", step_state={"type": "pack", "name": "pack"})

    assert wire_task_of(scenario, "it")["taskType"] == "pack"
    assert scenario.worker("pack").completes()
    assert scenario.status == "COMPLETED"


def test_a_built_in_worker_executes_a_task_of_its_queue_whatever_the_type_of_its_step_is(clock):
    scenario = Scenario(clock, dynamic("it", "KAFKA_PUBLISH", policy=policy(retries=0)))
    Task.objects.update(type="SIMPLE", step_state={})

    with run_commit_hooks():
        run_built_in_workers()

    assert scenario.status == "FAILED"
    assert "KeyError" not in scenario.task("it").reason
