"""The test kit: the time of a server that a test skips."""

from datetime import timedelta

import pytest
from conductor.client.worker.worker_task import worker_task

from conductor_app.testing import RunNotEnded, Server, TestKitError

calls: list[str] = []


@worker_task(task_definition_name="charge")
def charge(order: str) -> dict:
    calls.append(order)
    if len(calls) < 4:
        raise ConnectionError("the bank does not respond")
    return {"receipt": f"R-{order}"}


def define_order(server: Server) -> None:
    steps = [
        {"name": "charge", "taskReferenceName": "charge", "type": "SIMPLE",
         "inputParameters": {"order": "${workflow.input.order}"}},
        {"name": "a_day", "taskReferenceName": "a_day", "type": "WAIT", "inputParameters": {"duration": "1 day"}},
        {"name": "ship", "taskReferenceName": "ship", "type": "SIMPLE"},
    ]  # fmt: skip
    server.api.post("metadata", "taskdefs", body=[{"name": "charge", "retryCount": 3, "retryDelaySeconds": 60}])
    server.api.post("metadata", "workflow", body={
        "name": "order", "version": 1, "tasks": steps, "outputParameters": {"receipt": "${charge.output.receipt}"},
    })  # fmt: skip


def test_three_retries_and_a_wait_of_a_day_take_no_time(conductor_server: Server):
    calls.clear()
    define_order(conductor_server)
    conductor_server.work(charge, ship=lambda: {"shipped": True})
    began = conductor_server.now()

    run = conductor_server.run("order", {"order": "A-1"}).assert_completed()

    assert run.output == {"receipt": "R-A-1"}
    assert [each.status for each in run.attempts("charge")] == ["FAILED", "FAILED", "FAILED", "COMPLETED"]
    assert conductor_server.now() - began > timedelta(days=1, minutes=3)


def define(server: Server, name: str, *steps: dict, **fields: object) -> None:
    document = {"name": name, "version": 1, "schemaVersion": 2, "tasks": list(steps), **fields}
    server.api.post("metadata", "workflow", body=document)


def step(kind: str, name: str, **fields: object) -> dict:
    return {"name": name, "taskReferenceName": name, "type": kind, **fields}


def test_only_the_time_that_a_test_advances_passes(conductor_server: Server):
    define(conductor_server, "timer", step("WAIT", "rest", inputParameters={"duration": "2 hours"}))
    run = conductor_server.start("timer")
    run.wait_for_task("rest")

    conductor_server.advance("1h 59m")
    assert not run.refresh().has_ended

    conductor_server.advance(timedelta(minutes=2))
    run.refresh().assert_completed()


def test_a_schedule_fires_at_each_of_its_times(conductor_server: Server):
    define(conductor_server, "report", step("SET_VARIABLE", "note", inputParameters={"done": True}))
    conductor_server.api.post("scheduler", "schedules", body={
        "name": "hourly", "cronExpression": "0 0 * * * *", "startWorkflowRequest": {"name": "report", "version": 1},
    })  # fmt: skip

    conductor_server.advance("1d")

    found = conductor_server.api.get("workflow", "search", query="workflowType = report")
    assert found["totalHits"] == 24


def test_a_task_of_a_worker_that_has_stopped_is_done_by_the_next_one(conductor_server: Server):
    task = {"name": "pay", "retryCount": 1, "retryDelaySeconds": 10, "responseTimeoutSeconds": 60}
    conductor_server.api.post("metadata", "taskdefs", body=[task])
    define(conductor_server, "lost", step("SIMPLE", "pay"))
    run = conductor_server.start("lost")
    run.wait_for_task("pay")
    assert conductor_server.api.get("tasks", "poll", "batch", "pay", workerid="dead", count=1, timeout=0)

    conductor_server.advance("61s")
    conductor_server.work(pay=lambda: {"paid": True})
    run.wait().assert_completed()

    assert [each.status for each in run.attempts("pay")] == ["TIMED_OUT", "COMPLETED"]


def test_a_step_for_a_person_is_completed_by_the_test(conductor_server: Server):
    define(conductor_server, "approval", step("HUMAN", "approve"), outputParameters={"by": "${approve.output.by}"})
    run = conductor_server.start("approval")

    run.wait_for_task("approve")
    run.complete("approve", {"by": "Ann"}).wait()

    assert run.assert_completed().output == {"by": "Ann"}


def test_a_run_that_cannot_end_says_which_worker_is_missing(conductor_server: Server):
    define(conductor_server, "stuck", step("SIMPLE", "pack"))

    with pytest.raises(RunNotEnded) as refusal:
        conductor_server.run("stuck")

    assert "No worker of this test does 'pack': start one by server.work" in str(refusal.value)
    assert "pack" in refusal.value.args[0].splitlines()[-1]


def test_a_failed_assertion_has_the_cause_and_the_timeline(conductor_server: Server):
    conductor_server.api.post("metadata", "taskdefs", body=[{"name": "break", "retryCount": 0}])
    define(conductor_server, "broken", step("SIMPLE", "break"))

    def refuse() -> dict:
        raise ValueError("no such account")

    conductor_server.work(**{"break": refuse})
    run = conductor_server.run("broken")

    run.assert_failed("no such account")
    with pytest.raises(AssertionError, match=r"The run is FAILED, not COMPLETED.[\s\S]+no such account[\s\S]+break"):
        run.assert_completed()


@pytest.mark.parametrize("given", ["soon", "", "5 minutes ago", "-1s"])
def test_what_is_no_duration_is_refused(conductor_server: Server, given: str):
    with pytest.raises(ValueError, match="is not a duration"):
        conductor_server.advance(given)


def test_an_invalid_definition_of_a_folder_is_named_with_its_file(conductor_server: Server, tmp_path):
    (tmp_path / "wrong.json").write_text('{"name": "wrong", "tasks": [{"name": "a", "type": "SIMPLE"}]}')

    with pytest.raises(TestKitError, match=r"cannot be saved:\n.*wrong\.json"):
        conductor_server.load(tmp_path)
