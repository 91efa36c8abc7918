"""The worker of `examples/cancelable_worker.py`, in the loop of the Python SDK."""

from conductor.client.http.models.task_result import TaskResult

from examples import cancelable_worker
from tests.clients.shop_workflow import Shop, result_of, serve_tasks, worker
from tests.clients.wait_until import eventually


def test_a_worker_stops_when_its_workflow_is_terminated(shop: Shop, configuration, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SERVER_URL", configuration.host)
    results: list[dict] = []

    def render(size: int) -> dict:
        results.append(cancelable_worker.render(size))
        return results[0]

    shop.define("render")
    run_id = shop.start(input={"size": 1_000_000})

    with serve_tasks(configuration, worker("render", render)):
        eventually(lambda: shop.show(run_id).tasks[0].status == "IN_PROGRESS")
        shop.workflows.terminate_workflow(run_id, reason="no longer needed")
        [result] = eventually(lambda: results)

    assert result["stopped"]
    assert [task.status for task in shop.show(run_id).tasks] == ["CANCELED"]


def test_a_worker_that_is_not_canceled_returns_its_result(shop: Shop, configuration, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SERVER_URL", configuration.host)

    def render(size: int) -> dict:
        return cancelable_worker.render(size)

    shop.define("render")
    run_id = shop.start(input={"size": 2})

    with serve_tasks(configuration, worker("render", render)):
        run = shop.wait_for_end(run_id)

    assert run.tasks[0].output_data == {"frames": 2}


def test_the_clients_of_the_sdk_read_the_reply_to_a_late_report(shop: Shop, tasks):
    shop.define("cut")
    run_id = shop.start()
    task = shop.take("cut")
    shop.workflows.terminate_workflow(run_id)
    late = result_of(task)
    late.swagger_types = {**TaskResult.swagger_types, "supports_cancellation": "bool"}
    late.attribute_map = {**TaskResult.attribute_map, "supports_cancellation": "supportsCancellation"}
    late.supports_cancellation = True

    text, reply = tasks.update_task(late), tasks.taskResourceApi.update_task_v2(late)

    assert "CANCELED" in text
    assert (reply.task_id, reply.status) == (task.task_id, "CANCELED")
