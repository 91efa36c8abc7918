"""The Python SDK's workflow client: start, fetch, terminate and resume."""

import pytest
from conductor.client.http.models.rerun_workflow_request import RerunWorkflowRequest
from conductor.client.http.models.start_workflow_request import StartWorkflowRequest
from conductor.client.http.rest import ApiException
from conductor.client.workflow.task.sub_workflow_task import SubWorkflowTask

from tests.clients.shop_workflow import Shop


def test_a_workflow_is_started_by_its_name(shop: Shop):
    shop.define("cut")

    run_id = shop.workflows.start_workflow_by_name("order", {"size": 2}, version=1, correlationId="A-1", priority=7)

    run = shop.show(run_id)
    assert (run.workflow_name, run.workflow_version, run.correlation_id, run.priority) == ("order", 1, "A-1", 7)
    assert (run.status, run.input) == ("RUNNING", {"size": 2})


def test_a_workflow_is_started_by_a_request(shop: Shop):
    shop.define("cut")
    request = StartWorkflowRequest(
        name="order", version=1, input={"size": 2}, correlation_id="A-1", priority=7, task_to_domain={"cut": "eu"}
    )

    run = shop.show(shop.workflows.start_workflow(request))

    assert (run.correlation_id, run.priority, run.task_to_domain) == ("A-1", 7, {"cut": "eu"})
    assert run.tasks[0].domain == "eu"


def test_an_unregistered_workflow_is_started_with_its_definition(shop: Shop):
    workflow = shop.written("cut", name="one_off")

    run = shop.show(workflow.start_workflow_with_input({"size": 2}, correlation_id="A-1"))

    assert (run.workflow_name, run.status, run.input) == ("one_off", "RUNNING", {"size": 2})
    assert run.workflow_definition.tasks[0].task_reference_name == "cut_ref"


def test_a_strategy_without_a_key_does_not_prevent_a_second_start(shop: Shop):
    workflow = shop.written("cut")

    # The SDK sends idempotencyStrategy FAIL with every start, also where no key was given (api §3.9).
    assert workflow.start_workflow_with_input({}) != workflow.start_workflow_with_input({})


def test_several_workflows_are_started_in_one_request(shop: Shop, executor):
    shop.define("cut")

    run_ids = executor.start_workflows(*(StartWorkflowRequest(name="order") for _ in range(3)))

    assert len(set(run_ids)) == 3
    assert {shop.show(run_id).status for run_id in run_ids} == {"RUNNING"}


@pytest.mark.parametrize("name, version", [("nobody", None), ("order", 9)], ids=["name", "version"])
def test_a_workflow_that_does_not_exist_is_not_started(shop: Shop, name, version):
    shop.define("cut")

    with pytest.raises(ApiException) as refused:
        shop.workflows.start_workflow(StartWorkflowRequest(name=name, version=version))

    assert refused.value.status == 404
    assert name in refused.value.message


def test_a_workflow_is_shown_with_its_tasks(shop: Shop):
    shop.define("cut", "sew")
    run_id = shop.start(input={"size": 2})
    shop.report(shop.take("cut"), output_data={"pieces": 4})

    cut, sew = shop.show(run_id).tasks

    assert (cut.task_def_name, cut.reference_task_name, cut.status, cut.seq) == ("cut", "cut_ref", "COMPLETED", 1)
    assert (cut.input_data["size"], cut.output_data, cut.worker_id) == (2, {"pieces": 4}, "tester")
    assert (sew.task_def_name, sew.status, sew.poll_count) == ("sew", "SCHEDULED", 0)
    assert 0 < cut.scheduled_time <= cut.start_time <= cut.end_time


def test_a_workflow_is_shown_without_its_tasks(shop: Shop):
    shop.define("cut")
    run_id = shop.start()

    # The workflow client does not send include_tasks=False, so the reply contains the tasks (api §8.3).
    show = shop.workflows.workflowResourceApi.get_execution_status

    assert show(run_id, include_tasks=False).tasks == []
    assert len(shop.workflows.get_workflow(run_id, include_tasks=False).tasks) == 1


def test_a_status_contains_output_and_variables_on_request(shop: Shop):
    workflow = shop.written("cut").output_parameter("pieces", "${cut_ref.output.pieces}").variables({"total": 3})
    workflow.register(overwrite=True)
    run_id = shop.start(correlation_id="A-1")
    shop.report(shop.take("cut"), output_data={"pieces": 4})

    short = shop.workflows.get_workflow_status(run_id)
    whole = shop.workflows.get_workflow_status(run_id, include_output=True, include_variables=True)

    assert (short.status, short.correlation_id, short.output) == ("COMPLETED", "A-1", None)
    assert (whole.output, whole.variables) == ({"pieces": 4}, {"total": 3})


def test_a_paused_workflow_schedules_no_tasks_until_it_is_resumed(shop: Shop):
    shop.define("cut", "sew")
    run_id = shop.start()
    task = shop.take("cut")

    shop.workflows.pause_workflow(run_id)
    shop.report(task)
    held = shop.show(run_id)
    shop.workflows.resume_workflow(run_id)

    assert (held.status, len(held.tasks)) == ("PAUSED", 1)
    assert shop.show(run_id).status == "RUNNING"
    assert shop.take("sew").workflow_instance_id == run_id


def test_a_terminated_workflow_has_a_reason(shop: Shop):
    shop.define("cut")
    run_id = shop.start()

    shop.workflows.terminate_workflow(run_id, reason="The customer changed her mind")

    run = shop.show(run_id)
    assert (run.status, run.reason_for_incompletion) == ("TERMINATED", "The customer changed her mind")
    assert run.tasks[0].status == "CANCELED"


def test_a_failed_workflow_is_retried_where_it_failed(shop: Shop):
    shop.policy("sew", retry_count=0)
    shop.define("cut", "sew")
    run_id = shop.start()
    shop.report(shop.take("cut"))
    shop.report(shop.take("sew"), "FAILED", reason_for_incompletion="no thread")
    assert shop.show(run_id).status == "FAILED"

    shop.workflows.retry_workflow(run_id)
    shop.report(shop.take("sew"))

    run = shop.wait_for_end(run_id)
    assert [(task.task_def_name, task.status) for task in run.tasks] == [
        ("cut", "COMPLETED"), ("sew", "FAILED"), ("sew", "COMPLETED"),
    ]  # fmt: skip


def test_a_workflow_is_rerun_from_a_task_in_its_middle(shop: Shop):
    shop.define("cut", "sew", "fold")
    run_id = shop.start(input={"size": 2})
    for task_type in ("cut", "sew", "fold"):
        shop.report(shop.take(task_type))
    sewn = shop.wait_for_end(run_id).tasks[1].task_id
    request = RerunWorkflowRequest(
        re_run_from_task_id=sewn, task_input={"thread": "red"}, workflow_input={"size": 3}, correlation_id="again"
    )

    assert shop.workflows.rerun_workflow(run_id, request) == run_id

    run = shop.show(run_id)
    assert (run.status, run.input, run.correlation_id) == ("RUNNING", {"size": 3}, "again")
    assert [(task.task_def_name, task.status) for task in run.tasks] == [("cut", "COMPLETED"), ("sew", "SCHEDULED")]
    again = shop.take("sew")
    assert (again.input_data, again.retry_count) == ({"thread": "red"}, 0)
    shop.report(again)
    shop.report(shop.take("fold"))
    assert shop.wait_for_end(run_id).status == "COMPLETED"


@pytest.mark.parametrize("latest", [None, True])
def test_a_workflow_is_restarted(shop: Shop, latest):
    shop.define("cut")
    run_id = shop.start()
    shop.report(shop.take("cut"))
    shop.wait_for_end(run_id)

    shop.workflows.restart_workflow(run_id, use_latest_def=latest)

    run = shop.show(run_id)
    assert (run.status, [task.status for task in run.tasks]) == ("RUNNING", ["SCHEDULED"])
    shop.report(shop.take("cut"))
    assert shop.wait_for_end(run_id).status == "COMPLETED"


def test_a_parent_workflow_continues_when_its_child_is_retried(shop: Shop):
    shop.policy("sew", retry_count=0)
    shop.define("cut", "sew", name="tailor")
    above = shop.written(name="order")
    above >> SubWorkflowTask("tailored", "tailor")
    above.register(overwrite=True)
    run_id = shop.start()
    shop.report(shop.take("cut"))
    shop.report(shop.take("sew"), "FAILED")
    assert shop.wait_for_end(run_id).status == "FAILED"

    shop.workflows.retry_workflow(run_id, resume_subworkflow_tasks=True)
    shop.report(shop.take("sew"))

    run = shop.wait_for_end(run_id)
    assert [(task.status, task.retry_count) for task in run.tasks] == [("COMPLETED", 0)]


def test_a_failed_workflow_starts_its_failure_workflow(shop: Shop):
    shop.policy("cut", retry_count=0)
    shop.define("put_back", name="undo")
    shop.define("cut", failure_workflow="undo")
    run_id = shop.start(input={"size": 2})

    shop.report(shop.take("cut"), "FAILED", reason_for_incompletion="no saw")
    undoing = shop.show(shop.take("put_back").workflow_instance_id)

    assert shop.show(run_id).output["conductor.failure_workflow"] == undoing.workflow_id
    assert (undoing.input["size"], undoing.input["workflowId"]) == (2, run_id)
    assert "no saw" in undoing.input["reason"]


@pytest.mark.parametrize("is_ended", [True, False], ids=["that has ended", "that is open"])
def test_a_workflow_is_removed(shop: Shop, is_ended):
    shop.define("cut")
    run_id = shop.start()
    if is_ended:
        shop.workflows.terminate_workflow(run_id)

    shop.workflows.delete_workflow(run_id, archive_workflow=is_ended)

    with pytest.raises(ApiException) as gone:
        shop.show(run_id)
    assert (gone.value.status, gone.value.message) == (404, f"No such workflow found by id: {run_id}")


def test_an_open_workflow_is_not_archived(shop: Shop):
    shop.define("cut")
    run_id = shop.start()

    with pytest.raises(ApiException) as refused:
        shop.workflows.remove_workflow(run_id)

    assert refused.value.status == 400
    assert shop.show(run_id).status == "RUNNING"


def test_workflows_are_found_by_correlation_id(shop: Shop):
    shop.define("cut")
    open_one, ended = (shop.start(correlation_id="A-1") for _ in range(2))
    shop.workflows.terminate_workflow(ended)

    running = shop.workflows.get_by_correlation_ids("order", ["A-1", "A-2"], include_tasks=True)
    every = shop.workflows.get_by_correlation_ids("order", ["A-1"], include_completed=True)

    assert [run.workflow_id for run in running["A-1"]] == [open_one]
    assert running["A-2"] == []
    assert [run.workflow_id for run in every["A-1"]] == [open_one, ended]


@pytest.mark.parametrize(
    "ask, status",
    [
        (lambda client, run_id: client.resume_workflow(run_id), 409),
        (lambda client, run_id: client.retry_workflow(run_id), 404),
        (lambda client, run_id: client.restart_workflow(run_id), 409),
        (lambda client, run_id: client.rerun_workflow(run_id, RerunWorkflowRequest()), 409),
        (lambda client, run_id: client.get_workflow_status("nothing"), 404),
        (lambda client, run_id: client.pause_workflow("nothing"), 404),
        (lambda client, run_id: client.terminate_workflow("nothing"), 404),
    ],
    ids=[
        "resume what runs",
        "retry what runs",
        "restart what runs",
        "rerun what runs",
        "status of nothing",
        "pause nothing",
        "terminate nothing",
    ],
)
def test_impossible_actions_are_rejected_with_the_expected_status(shop: Shop, ask, status):
    shop.define("cut")
    run_id = shop.start()

    with pytest.raises(ApiException) as refused:
        ask(shop.workflows, run_id)

    assert refused.value.status == status
    assert refused.value.message
