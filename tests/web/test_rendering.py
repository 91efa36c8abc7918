"""The cost of a reply: statements and time do not grow with the size of the reply."""

import pytest

from conductor_app.runs.documents.workflows import run_document
from conductor_app.runs.models import Attempt, Run, Task
from tests.builders import simple, step_of
from tests.runs.test_statements import Counted


def statements(call):
    with Counted() as counted:
        call()
    return counted.count


def many_tasks(run_id, count):
    """Create the rows that a long loop leaves."""
    now, first = 1_803_902_400_000, Attempt.objects.get(run_id=run_id)
    ids = [f"{number:036}" for number in range(count)]
    Task.objects.bulk_create(
        Task(id=id, run_id=run_id, ref="pay", iteration_path=str(number + 1), name="pay", type="SIMPLE",
             status="COMPLETED",
             seq=number + 2, created_at=now, attempt_id=id)
        for number, id in enumerate(ids)
    )  # fmt: skip
    Attempt.objects.bulk_create(
        Attempt(id=id, run_id=run_id, task_id=id, seq=number + 2, status="COMPLETED", name="pay", scheduled_at=now,
                visible_at=now, pending_since=now, started_at=now, ended_at=now, input=first.input,
                output={"paid": True})
        for number, id in enumerate(ids)
    )  # fmt: skip


def test_a_workflow_is_read_in_few_statements_whatever_the_number_of_its_tasks(api):
    api.define(simple("pay"))
    workflow_id = api.start()
    api.workflow(workflow_id)
    few = statements(lambda: api.workflow(workflow_id))
    many_tasks(workflow_id, 50)

    assert statements(lambda: api.workflow(workflow_id)) == few < 4


@pytest.mark.slow
def test_ten_thousand_tasks_are_shown(api):
    api.define(simple("pay", inputParameters={"total": "${workflow.input.total}"}))
    workflow_id = api.start(input={"total": 7})
    many_tasks(workflow_id, 10_000)

    workflow = api.workflow(workflow_id)

    last = workflow["tasks"][-1]
    assert (len(workflow["tasks"]), last["referenceTaskName"], last["iteration"]) == (10_001, "pay__10000", 10_000)
    assert (last["status"], last["loopOverTask"], last["outputData"]) == ("COMPLETED", True, {"paid": True})


def test_a_task_is_polled_and_shown_with_few_statements(api):
    api.define(simple("pay"))
    api.start()
    [task] = api.poll("pay")

    assert statements(lambda: api.get(f"/tasks/{task['taskId']}")) == 1


def test_a_run_as_plain_values_equals_its_json(api):
    fork = step_of(
        "FORK_JOIN_DYNAMIC",
        "fork",
        dynamicForkTasksParam="tasks",
        dynamicForkTasksInputParamName="inputs",
        inputParameters={"tasks": "${workflow.input.tasks}", "inputs": {}},
    )
    api.define(fork, step_of("JOIN", "join"), simple("ship"))
    workflow_id = api.start(input={"tasks": [simple("pay"), simple("bill")]})
    api.report(api.poll("pay")[0], "FAILED", reasonForIncompletion="no funds")

    assert run_document(Run.objects.get(pk=workflow_id), with_tasks=True) == api.workflow(workflow_id)
