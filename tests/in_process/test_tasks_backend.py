"""The contract of Django's tasks framework, with the engine as its backend and the worker process as its worker."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from importlib import import_module

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, transaction
from django.test import TestCase
from django.test.utils import CaptureQueriesContext

import conductor_app
from conductor_app.in_process import tasks as declared
from conductor_app.in_process.framework import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from conductor_app.in_process.tasks_backend import ConductorBackend
from conductor_app.in_process.worker import WorkerProcess
from conductor_app.management.commands.conductor_worker import select_tasks
from conductor_app.processes.sweeps import sweep_once
from conductor_app.runs.models import Run
from conductor_app.tasks.commands.claims import claim_now
from tests.builders import simple
from tests.scenario import define_workflow

pytestmark = pytest.mark.django_db(transaction=True)
BACKEND = "conductor_app.in_process.tasks_backend.ConductorBackend"
READY, RUNNING = TaskResultStatus.READY, TaskResultStatus.RUNNING
FAILED, SUCCESSFUL = TaskResultStatus.FAILED, TaskResultStatus.SUCCESSFUL


@pytest.fixture(autouse=True)
def backend(clock, monkeypatch, settings):
    monkeypatch.setattr(declared._registered, "value", {})
    settings.TASKS = {
        "default": {"BACKEND": BACKEND, "QUEUES": ["default", "emails"]},
        "any": {"BACKEND": BACKEND, "QUEUES": []},
    }
    return task_backends["default"]


@pytest.fixture
def tasks(backend):
    """Return the module with the tasks, whose backend is the one of these tests."""
    module = import_module("tests.in_process.framework_tasks")
    module.seen.clear()
    return module


def worker(*queues: str) -> WorkerProcess:
    return WorkerProcess(select_tasks(list(queues)), threads=1)


def executed(result):
    """Execute all due tasks, and return the result as it is then."""
    worker().run_until_idle()
    result.refresh()
    return result


def test_an_enqueued_task_is_ready(tasks, clock):
    result = tasks.noop.enqueue(1, two=[3])

    assert (result.status, result.is_finished, result.attempts) == (READY, False, 0)
    assert (result.args, result.kwargs, result.task, result.backend) == ([1], {"two": [3]}, tasks.noop, "default")
    assert result.enqueued_at == datetime.fromtimestamp(clock.now() / 1000, UTC)
    assert result.started_at is result.last_attempted_at is result.finished_at is None
    with pytest.raises(ValueError, match="has not finished"):
        _ = result.return_value
    assert tasks.noop.get_result(result.id) == result


def test_an_executed_task_is_successful(tasks, clock):
    result = tasks.noop.enqueue(1, two=[3])
    clock.advance(seconds=5)
    executed(result)

    assert tasks.seen == [((1,), {"two": [3]})]
    assert (result.status, result.is_finished, result.return_value, result.errors) == (SUCCESSFUL, True, None, [])
    assert result.started_at == result.last_attempted_at == result.enqueued_at + timedelta(seconds=5)
    assert result.finished_at >= result.started_at and result.attempts == 1 and ":" in result.worker_ids[0]


@pytest.mark.parametrize("status", ["claimed", "terminated"])
def test_the_status_of_a_task_is_that_of_its_run(tasks, status):
    result = tasks.noop.enqueue()
    claim_now("django_tasks.default", "w", 1)
    if status == "terminated":
        conductor_app.terminate(result.id, reason="no longer needed")
    result.refresh()

    assert (result.status, result.worker_ids) == (RUNNING if status == "claimed" else FAILED, ["w"])
    assert [error.exception_class for error in result.errors] == [asyncio.CancelledError] * (status == "terminated")


def test_an_asynchronous_task_is_executed(tasks):
    assert executed(tasks.double.enqueue(21)).return_value == 42


def test_arguments_and_return_values_are_json(tasks):
    assert executed(tasks.describe.enqueue([{"a": None}])).return_value == {"given": [{"a": None}], "pair": [1, 2]}
    with pytest.raises(TypeError):
        tasks.noop.enqueue(datetime.now())
    assert Run.objects.count() == 1

    result = executed(tasks.returns_a_function.enqueue())
    assert result.status == FAILED and result.errors[0].exception_class is TypeError


def test_tasks_are_enqueued_and_read_in_asynchronous_code(tasks):
    async def enqueue():
        result = await tasks.double.aenqueue(1)
        await result.arefresh()
        return await tasks.double.aget_result(result.id)

    assert asyncio.run(enqueue()).status == READY


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_task_whose_function_raises_an_exception_fails(tasks, kind, caplog):
    result = executed(tasks.fails.enqueue(kind=kind.__name__))

    [error] = result.errors
    assert (result.status, error.exception_class, result.attempts) == (FAILED, kind, 1)
    assert error.traceback.endswith(f"{kind.__name__}: no\n") and result.finished_at >= result.started_at
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value
    assert conductor_app.get_run(result.id).reason.endswith(f"'{kind.__name__}: no'")
    logged = [each for each in caplog.records if each.levelno == logging.ERROR and result.id in each.getMessage()]
    assert [each.exc_info[0] for each in logged] == [kind]


def test_a_task_is_retried(tasks, clock):
    result = tasks.fails_at_first.enqueue(3)
    for number in (1, 2):
        executed(result)
        assert (result.status, result.attempts, len(result.errors)) == (READY, number, number)
        clock.advance(seconds=4)
    executed(result)

    assert (result.status, result.return_value, result.attempts) == (SUCCESSFUL, 3, 3)
    assert [error.exception_class for error in result.errors] == [ConnectionError] * 2
    assert "attempt 1" in result.errors[0].traceback and "attempt 2" in result.errors[1].traceback


def test_a_task_fails_after_its_last_retry(tasks, clock):
    result = tasks.fails_at_first.enqueue(9)
    for _ in range(4):
        executed(result)
        clock.advance(seconds=4)

    assert (result.status, result.attempts, len(result.errors)) == (FAILED, 3, 3)


@pytest.mark.parametrize(("restarts", "status"), [(3, SUCCESSFUL), (0, FAILED)])
def test_a_task_whose_process_has_ended_is_executed_again(tasks, settings, clock, restarts, status):
    settings.TASKS = {"default": {"BACKEND": BACKEND, "OPTIONS": {"restarts": restarts, "lease_seconds": 10}}}
    result = tasks.noop.enqueue()
    claim_now("django_tasks.default", "lost", 1)
    clock.advance(seconds=11)
    sweep_once()
    clock.advance(seconds=5)
    executed(result)

    assert (result.status, result.worker_ids[0], len(tasks.seen)) == (status, "lost", min(restarts, 1))
    assert [error.exception_class for error in result.errors] == [TimeoutError]


def test_a_function_gets_the_context_of_its_attempt(tasks):
    result = executed(tasks.attempts.enqueue(fails=True))

    assert tasks.seen == [(1, result.id, RUNNING, 0), (2, result.id, RUNNING, 1)] and result.return_value == 2


def test_a_task_exists_if_and_only_if_the_transaction_commits(tasks):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        undone = tasks.noop.enqueue()
        raise ZeroDivisionError
    with transaction.atomic():
        result = tasks.noop.enqueue()

    with pytest.raises(TaskResultDoesNotExist):
        tasks.noop.get_result(undone.id)
    assert executed(result).status == SUCCESSFUL and len(tasks.seen) == 1


def test_a_task_costs_few_statements(tasks):
    tasks.noop.enqueue(0)
    with CaptureQueriesContext(connection) as enqueued:
        tasks.noop.enqueue(1)
    tasks.noop.enqueue(2)
    process = worker("django_tasks.default")
    with CaptureQueriesContext(connection) as executed_three:
        process.run_until_idle()
    assert len(tasks.seen) == 3
    for number in range(5):
        tasks.noop.enqueue(number)
    with CaptureQueriesContext(connection) as executed_five:
        process.run_until_idle()

    rows = [each["sql"].split()[2].strip('"') for each in enqueued if each["sql"].startswith("INSERT")]
    assert rows == [f"conductor_{name}" for name in ("run", "attempt", "task", "historyentry")]
    assert [each["sql"] for each in enqueued if each["sql"].startswith(("SELECT", "UPDATE"))] == []
    assert len(executed_five) - len(executed_three) <= 2 * 13


def test_a_definition_that_a_flush_has_deleted_is_stored_again(tasks):
    tasks.noop.enqueue(1)
    call_command("flush", interactive=False, verbosity=0)

    assert executed(tasks.noop.enqueue(2)).status == SUCCESSFUL


def test_a_definition_that_a_test_case_rolls_back_is_stored_again(tasks):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        with TestCase.captureOnCommitCallbacks(execute=True):
            tasks.noop.enqueue(1)
        raise ZeroDivisionError

    assert executed(tasks.noop.enqueue(2)).status == SUCCESSFUL


def test_the_effects_of_an_atomic_task_and_its_result_are_one_transaction(tasks):
    done, failed = tasks.create_group.enqueue("a"), tasks.create_group.enqueue("b", fails=True)
    executed(done), executed(failed)

    assert (done.status, failed.status) == (SUCCESSFUL, FAILED)
    assert [group.name for group in Group.objects.filter(name__in="ab")] == ["a"]
    assert tasks.seen == [(("a",), {})]


def test_a_task_is_not_executed_before_its_time(tasks, clock):
    at = datetime.fromtimestamp(clock.now() / 1000, UTC) + timedelta(hours=1)
    result = tasks.noop.using(run_after=at).enqueue()
    assert executed(result).status == READY
    assert tasks.noop.get_result(result.id).task == tasks.noop.using(run_after=at)

    clock.advance(seconds=3601)
    sweep_once()
    executed(result)

    assert result.status == SUCCESSFUL and result.started_at >= at > result.enqueued_at


def test_tasks_are_executed_in_the_order_of_their_priorities(tasks):
    for priority in (-100, 0, 100, 50):
        tasks.noop.using(priority=priority).enqueue(priority)
    worker().run_until_idle()

    assert [args for args, _ in tasks.seen] == [(100,), (50,), (0,), (-100,)]


def test_a_worker_serves_the_queues_that_it_is_started_for(tasks):
    email, other = tasks.noop.using(queue_name="emails").enqueue(), tasks.noop.enqueue()
    worker("django_tasks.emails").run_until_idle()
    email.refresh(), other.refresh()

    assert (email.status, email.task.queue_name, other.status) == (SUCCESSFUL, "emails", READY)


def test_a_backend_without_a_list_of_queues_accepts_any(tasks):
    result = tasks.noop.using(backend="any", queue_name="new").enqueue()
    assert executed(result).status == READY
    worker("django_tasks.new").run_until_idle()
    result.refresh()

    assert result.status == SUCCESSFUL and result.task.backend == "any"


def test_a_worker_serves_its_queues_although_another_backend_cannot_be_imported(tasks, settings):
    settings.TASKS = {"default": {"BACKEND": BACKEND}, "other": {"BACKEND": "does.not.exist"}}

    assert executed(tasks.noop.enqueue()).status == SUCCESSFUL


def test_a_queue_that_no_backend_has_is_an_error(settings):
    settings.TASKS = {"default": {"BACKEND": BACKEND}}

    with pytest.raises(CommandError, match=r"serves django_tasks\.new\. The functions serve: django_tasks\.default"):
        select_tasks(["django_tasks.new"])


@pytest.mark.parametrize("id", ["123", "0" * 80, None])
def test_an_unknown_result_does_not_exist(backend, id):
    if id is None:
        define_workflow("other", simple("a"))
        id = conductor_app.start_workflow("other")

    with pytest.raises(TaskResultDoesNotExist):
        backend.get_result(id)


@pytest.mark.parametrize("path", ["subprocess.check_output", "tests.in_process.framework_tasks.removed"])
def test_a_path_that_is_not_a_task_is_never_called(tasks, path, clock):
    definition = Run.objects.get(pk=tasks.noop.enqueue().id).resolved_definition.document
    values = {"function": path, "args": [["true"]], "kwargs": {}, "backend": "default", "queue_name": "default"}
    run_id = conductor_app.start_workflow("x", {**values, "run_after": None}, definition=definition)
    for _ in range(5):
        worker().run_until_idle()
        clock.advance(seconds=5)

    assert conductor_app.get_run(run_id).status == "FAILED"


def test_the_signals_of_the_framework_are_sent(tasks, caplog):
    sent = []

    def receive(signal, sender, task_result, **_):
        assert sender is ConductorBackend
        sent.append((name_of[signal], task_result.id, task_result.status))

    name_of = {task_enqueued: "enqueued", task_started: "started", task_finished: "finished"}
    for signal in name_of:
        signal.connect(receive)
    try:
        done, failed = executed(tasks.noop.enqueue()), executed(tasks.fails.enqueue())
    finally:
        for signal in name_of:
            signal.disconnect(receive)

    assert sent == [
        (name, id, status)
        for id, last in ((done.id, SUCCESSFUL), (failed.id, FAILED))
        for name, status in (("enqueued", READY), ("started", RUNNING), ("finished", last))
    ]


def test_invalid_tasks_are_refused(tasks, settings):
    far = datetime.now(UTC) + timedelta(days=400)
    with pytest.raises(InvalidTask, match="at most 366 days ahead"):
        tasks.noop.using(run_after=far)
    with pytest.raises(InvalidTask, match="must not be asynchronous"):
        tasks.task(atomic=True)(tasks.double.func)
    with pytest.raises(InvalidTask, match="`retries` of the task noop must be a whole number"):
        tasks.task(retries=-1)(tasks.noop.func)
    with pytest.raises(InvalidTask, match="module level"):
        tasks.task(lambda: None)
    with pytest.raises(InvalidTask, match="Queue 'other' is not valid"):
        tasks.noop.using(queue_name="other")
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": ["emails"]}}
    with pytest.raises(InvalidTask, match="Queue 'default' is not valid"):
        tasks.noop.enqueue()


def test_invalid_options_of_a_backend_are_reported(settings):
    assert list(task_backends["default"].check()) == []
    settings.TASKS = {"default": {"BACKEND": BACKEND, "OPTIONS": {"retry": 1, "retries": "2"}}}

    unknown, wrong = task_backends["default"].check()

    assert (unknown.id, wrong.id) == ("conductor.E006", "conductor.E006")
    assert unknown.msg == "TASKS['default'] has unknown OPTIONS: retry." and "`retries`" in wrong.msg
