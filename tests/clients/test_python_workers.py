"""The Python SDK's whole worker loop, unchanged."""

import os
from threading import Barrier, Event

import pytest
from conductor.client.automator import task_runner
from conductor.client.automator.lease_tracker import LeaseManager
from conductor.client.automator.task_handler import TaskHandler
from conductor.client.configuration.configuration import Configuration
from conductor.client.context.task_context import TaskInProgress, get_task_context
from conductor.client.http.models.task import Task
from conductor.client.http.models.task_def import TaskDef
from conductor.client.http.models.task_result import TaskResult
from conductor.client.orkes.orkes_schema_client import OrkesSchemaClient
from conductor.client.worker.exception import NonRetryableException

from conductor_app.testing import Server
from tests.clients import importable_workers as handled
from tests.clients.importable_workers import nothing
from tests.clients.shop_workflow import Shop, result_of, serve_tasks, worker
from tests.clients.wait_until import eventually


@pytest.fixture
def configuration(conductor_server: Server) -> Configuration:
    """Return the SDK's configuration for a server of the test kit."""
    return conductor_server.configuration


def test_a_function_receives_the_task_input_and_returns_its_output(shop: Shop, conductor_server: Server):
    def cut(size: int, customer: dict) -> dict:
        return {"pieces": size * 2, "for": customer["name"]}

    shop.define("cut")
    conductor_server.work(cut=cut)

    run = shop.wait_for_end(shop.start(input={"size": 21, "customer": {"name": "Ida"}}))

    assert run.status == "COMPLETED"
    assert run.tasks[0].output_data == {"pieces": 42, "for": "Ida"}


def test_a_worker_can_receive_the_task_and_return_a_result(shop: Shop, conductor_server: Server):
    def cut(task: Task) -> TaskResult:
        return result_of(task, "COMPLETED", output_data={"attempt": task.retry_count, "seq": task.seq})

    shop.define("cut")
    conductor_server.work(cut=cut)

    run = shop.wait_for_end(shop.start())

    assert run.tasks[0].output_data == {"attempt": 0, "seq": 1}


def test_a_coroutine_can_be_a_worker(shop: Shop, conductor_server: Server):
    async def sew(size: int) -> dict:
        return {"seams": size * 3}

    shop.define("sew")
    conductor_server.work(sew=sew)

    run = shop.wait_for_end(shop.start(input={"size": 2}))

    assert run.tasks[0].output_data == {"seams": 6}


def test_a_worker_with_three_threads_executes_three_tasks_at_once(shop: Shop, configuration):
    meeting = Barrier(3)
    shop.define("cut")
    run_ids = [shop.start() for _ in range(3)]

    with serve_tasks(configuration, worker("cut", lambda: {"place": meeting.wait(timeout=15)}, thread_count=3)):
        runs = [shop.wait_for_end(run_id) for run_id in run_ids]

    assert {run.tasks[0].output_data["place"] for run in runs} == {0, 1, 2}


def test_an_attempt_that_raises_is_retried_and_records_its_reason_and_stack(shop: Shop, conductor_server: Server):
    def cut() -> dict:
        if get_task_context().get_retry_count() == 0:
            raise ConnectionError("the saw is stuck")
        return {"pieces": 1}

    shop.policy("cut", retry_count=1)
    shop.define("cut")
    conductor_server.work(cut=cut)

    run = shop.wait_for_end(shop.start())

    first, second = run.tasks
    assert (first.status, first.reason_for_incompletion, first.retried) == ("FAILED", "the saw is stuck", True)
    assert (second.status, second.retry_count, second.retried_task_id) == ("COMPLETED", 1, first.task_id)
    assert "ConnectionError" in shop.tasks.get_task_logs(first.task_id)[0].log


def test_a_terminal_error_is_not_retried(shop: Shop, conductor_server: Server):
    def cut() -> dict:
        raise NonRetryableException("no such wood")

    shop.policy("cut", retry_count=3)
    shop.define("cut")
    conductor_server.work(cut=cut)

    run = shop.wait_for_end(shop.start())

    assert run.status == "FAILED"
    assert [task.status for task in run.tasks] == ["FAILED_WITH_TERMINAL_ERROR"]
    assert run.tasks[0].reason_for_incompletion == "no such wood"


def test_a_worker_in_progress_is_called_again_and_its_logs_are_stored(shop: Shop, conductor_server: Server):
    def cut() -> dict | TaskInProgress:
        context = get_task_context()
        context.add_log(f"call {context.get_poll_count()}")
        if context.get_poll_count() < 3:
            return TaskInProgress(callback_after_seconds=0, output={"done": "a part"})
        return {"done": "all"}

    shop.define("cut")
    conductor_server.work(cut=cut)

    run = shop.wait_for_end(shop.start())

    assert run.tasks[0].output_data == {"done": "all"}
    assert [line.log for line in shop.tasks.get_task_logs(run.tasks[0].task_id)] == ["call 1", "call 2", "call 3"]


def test_a_worker_of_a_domain_receives_the_tasks_of_its_domain(shop: Shop, configuration):
    shop.define("cut")
    everywhere = shop.start()
    in_europe = shop.start(task_to_domain={"cut": "eu"})

    with serve_tasks(configuration, worker("cut", nothing, domain="eu", worker_id="in Europe")):
        run = shop.wait_for_end(in_europe)

    assert (run.tasks[0].domain, run.tasks[0].worker_id) == ("eu", "in Europe")
    assert shop.show(everywhere).tasks[0].status == "SCHEDULED"


def test_a_worker_that_exceeds_its_lease_extends_it(shop: Shop, configuration, monkeypatch):
    impatient = LeaseManager(check_interval=0.1)
    monkeypatch.setattr(task_runner.LeaseManager, "get_instance", lambda: impatient)
    shop.policy("cut", response_timeout_seconds=3, timeout_seconds=0)
    shop.define("cut")
    run_id = shop.start()

    with serve_tasks(configuration, worker("cut", lambda: {"rang": Event().wait(3.5)}, lease_extend_enabled=True)):
        run = shop.wait_for_end(run_id)

    impatient.shutdown()
    assert [task.status for task in run.tasks] == ["COMPLETED"]


def test_a_silent_worker_loses_its_lease(shop: Shop, conductor_server: Server):
    shop.policy("cut", response_timeout_seconds=60, timeout_seconds=0)
    shop.define("cut")
    run_id = shop.start()

    lost = shop.take("cut")
    conductor_server.advance("61s")

    again = shop.take("cut")
    assert again.retried_task_id == lost.task_id
    assert [task.status for task in shop.show(run_id).tasks] == ["TIMED_OUT", "IN_PROGRESS"]


@pytest.mark.parametrize("is_known", [False, True], ids=["a new one", "one that is known"])
def test_a_worker_registers_its_task_definition(shop: Shop, configuration, is_known):
    if is_known:
        shop.policy("cut", retry_count=1)
    definition = TaskDef(name="cut", retry_count=7, retry_logic="LINEAR_BACKOFF", response_timeout_seconds=30)

    with serve_tasks(configuration, worker("cut", nothing, register_task_def=True, task_def_template=definition)):
        eventually(lambda: any(kept.retry_count == 7 for kept in shop.metadata.get_all_task_defs()))

    assert shop.metadata.get_task_def("cut").retry_logic == "LINEAR_BACKOFF"


def test_a_worker_without_overwrite_does_not_change_an_existing_definition(shop: Shop, configuration):
    shop.policy("cut", retry_count=1)
    shop.define("cut")
    definition = TaskDef(name="cut", retry_count=7)
    options = {"register_task_def": True, "task_def_template": definition, "overwrite_task_def": False}

    with serve_tasks(configuration, worker("cut", nothing, **options)):
        shop.wait_for_end(shop.start())

    assert shop.metadata.get_task_def("cut").retry_count == 1


def test_a_worker_registers_the_schemas_of_its_function(shop: Shop, configuration):
    def cut(size: int) -> dict:
        return {"pieces": size}

    shop.define("cut")
    with serve_tasks(configuration, worker("cut", cut, register_task_def=True, register_schema=True)):
        run = shop.wait_for_end(shop.start(input={"size": 1}))

    definition = shop.metadata.get_task_def("cut")
    kept = OrkesSchemaClient(configuration).get_schema("cut_input", 1)
    assert run.status == "COMPLETED"
    assert definition.input_schema.name == "cut_input"
    assert kept.data["properties"]["size"]["type"] == "integer"


def test_the_task_handler_runs_functions_and_coroutines_in_their_own_processes(shop: Shop, configuration):
    shop.define("cut", "sew")
    run_id = shop.start(input={"size": 4})
    workers = [worker("cut", handled.cut), worker("sew", handled.sew)]

    with TaskHandler(workers, configuration, scan_for_annotated_workers=False) as handler:
        handler.start_processes()
        run = shop.wait_for_end(run_id)
        assert handler.is_healthy()
        assert {each["worker"] for each in handler.get_worker_process_status()} == {"cut", "sew"}
        handler.stop_processes()
        handler.join_processes()

    cut, sewn = (task.output_data for task in run.tasks)
    assert (cut["pieces"], sewn["seams"]) == (8, 12)
    assert len({cut["pid"], sewn["pid"], os.getpid()}) == 3
