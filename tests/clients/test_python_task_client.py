"""The Python SDK's task client: poll, report, logs, queues and pollers."""

import json

import pytest
from conductor.client.http.models.task_exec_log import TaskExecLog
from conductor.client.http.rest import ApiException

from tests.clients.shop_workflow import Shop, result_of


def test_a_polled_task_has_every_field_that_a_worker_needs(shop: Shop):
    shop.policy("cut", response_timeout_seconds=20)
    shop.define("cut")
    run_id = shop.start(input={"size": 2}, correlation_id="A-1", priority=5)

    task = shop.tasks.poll_task("cut", worker_id="tester")

    assert (task.workflow_instance_id, task.workflow_type, task.correlation_id) == (run_id, "order", "A-1")
    assert (task.task_type, task.task_def_name, task.reference_task_name) == ("cut", "cut", "cut_ref")
    assert (task.status, task.poll_count, task.retry_count, task.worker_id) == ("IN_PROGRESS", 1, 0, "tester")
    assert (task.input_data["size"], task.response_timeout_seconds, task.workflow_priority) == (2, 20, 5)


def test_a_poll_without_tasks_returns_none(shop: Shop):
    # The SDK's return value for the 204 that it expects here.
    assert shop.tasks.poll_task("cut").task_id is None
    assert shop.tasks.batch_poll_tasks("cut", count=5, timeout_in_millisecond=10) == []


def test_a_batch_contains_at_most_the_requested_tasks(shop: Shop):
    shop.define("cut")
    run_ids = [shop.start() for _ in range(3)]

    first = shop.tasks.batch_poll_tasks("cut", worker_id="tester", count=2, timeout_in_millisecond=100)
    rest = shop.tasks.batch_poll_tasks("cut", worker_id="tester", count=2, timeout_in_millisecond=100)

    assert [task.workflow_instance_id for task in first + rest] == run_ids
    assert len(first) == 2


def test_a_report_is_answered_with_the_tasks_id(shop: Shop):
    shop.define("cut")
    run_id = shop.start()
    task = shop.take("cut")

    assert shop.report(task, output_data={"pieces": 4}) == task.task_id

    kept = shop.tasks.get_task(task.task_id)
    assert (kept.status, kept.output_data) == ("COMPLETED", {"pieces": 4})
    assert shop.show(run_id).status == "COMPLETED"


def test_a_repeated_or_late_report_changes_nothing(shop: Shop):
    shop.define("cut")
    run_id = shop.start()
    task = shop.take("cut")
    shop.report(task, output_data={"pieces": 4})

    assert shop.report(task, "FAILED", output_data={"pieces": 0}) == task.task_id

    assert shop.show(run_id).status == "COMPLETED"
    assert shop.tasks.get_task(task.task_id).output_data == {"pieces": 4}


def test_a_report_brings_the_next_task_of_the_same_queue(shop: Shop):
    shop.define("cut")
    first, second = shop.start(), shop.start()
    report = shop.tasks.taskResourceApi.update_task_v2

    following = report(body=result_of(shop.take("cut")))
    last = report(body=result_of(following))

    assert (following.workflow_instance_id, following.status) == (second, "IN_PROGRESS")
    assert last is None
    assert {shop.show(run_id).status for run_id in (first, second)} == {"COMPLETED"}


def test_a_task_is_reported_by_its_reference(shop: Shop):
    shop.define("cut")
    run_id = shop.start()

    task_id = shop.tasks.update_task_by_ref_name(run_id, "cut_ref", "COMPLETED", {"pieces": 4})

    task = shop.show(run_id).tasks[0]
    assert (task.task_id, task.status, task.output_data) == (task_id, "COMPLETED", {"result": {"pieces": 4}})


def test_a_task_is_reported_by_its_reference_and_the_workflow_is_returned(shop: Shop):
    shop.define("cut", "sew")
    run_id = shop.start()

    run = shop.tasks.update_task_sync(run_id, "cut_ref", "COMPLETED", {"pieces": 4})

    assert (run.workflow_id, [task.status for task in run.tasks]) == (run_id, ["COMPLETED", "SCHEDULED"])
    assert run.tasks[0].output_data == {"pieces": 4}


@pytest.mark.parametrize("line", ["cut 4 pieces", "été €", "1234", '{"size": 4}'])
def test_a_line_that_is_logged_is_returned(shop: Shop, line):
    shop.define("cut")
    shop.start()
    task = shop.take("cut")

    shop.tasks.add_task_log(task.task_id, line)

    (kept,) = shop.tasks.get_task_logs(task.task_id)
    assert (kept.task_id, kept.created_time > 0) == (task.task_id, True)
    # The SDK sends a line as JSON without quotes, and the server stores it unchanged (api §8.3).
    assert kept.log == json.dumps(line)[1:-1]


def test_a_task_without_logs_has_none(shop: Shop):
    assert not shop.tasks.get_task_logs("01a1fc93-68b0-7d9b-855f-a04d144419d3")


def test_a_report_may_carry_logs(shop: Shop):
    shop.define("cut")
    shop.start()
    task = shop.take("cut")

    shop.report(task, logs=[TaskExecLog(log=f"line {number}", created_time=1_700_000_000_000) for number in range(2)])

    assert [kept.log for kept in shop.tasks.get_task_logs(task.task_id)] == ["line 0", "line 1"]


def test_a_queue_reports_its_size(shop: Shop):
    shop.define("cut")
    for _ in range(3):
        shop.start()
    shop.take("cut")

    assert shop.tasks.get_queue_size_for_task("cut") == 2
    assert shop.tasks.get_queue_size_for_task("sew") == 0
    assert shop.tasks.taskResourceApi.all() == {"cut": 2}


def test_a_poll_is_recorded_even_without_tasks(shop: Shop):
    shop.tasks.poll_task("cut", worker_id="tester", domain="eu")

    (seen,) = shop.tasks.get_task_poll_data("cut")

    assert (seen.queue_name, seen.domain, seen.worker_id) == ("cut", "eu", "tester")
    assert seen.last_poll_time > 0


def test_an_unknown_task_is_not_found(shop: Shop):
    with pytest.raises(ApiException) as missing:
        shop.tasks.get_task("nothing")

    assert (missing.value.status, missing.value.message) == (404, "Task not found for taskId: nothing")
