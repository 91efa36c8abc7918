"""The test kit: the time of a server that a test skips."""

from datetime import timedelta

from conductor.client.worker.worker_task import worker_task

from conductor_app.testing import Server

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
