"""How the functions of a project execute tasks: arguments, results, failures, transactions, leases and cancellation."""

import asyncio
from functools import partial
from threading import Event
from time import monotonic

import pytest
from django.contrib.auth.models import Group
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext

import conductor_app
from conductor_app import TaskContext, TaskFailed, TaskPostponed, worker_task
from conductor_app.access.commands.secrets import put_secret
from conductor_app.access.secrets import clear_secret_cache
from conductor_app.db.transient_errors import discard_broken_connection
from conductor_app.definitions.models import TaskDefinition
from conductor_app.in_process import tasks as declared
from conductor_app.in_process import worker as worker_module
from conductor_app.in_process.worker import LeaseKeeper, WorkerProcess
from conductor_app.management.commands.conductor_worker import save_missing_definitions
from conductor_app.processes.sweeps import handle_due_timers
from conductor_app.runs.models import Attempt, Run, TaskLog
from conductor_app.system_tasks.cancellation import CANCELLATIONS, Cancellation
from conductor_app.tasks.commands.claims import claim_now
from tests.builders import simple
from tests.scenario import define_workflow

pytestmark = pytest.mark.django_db(transaction=True)
INPUT = {"inputParameters": {"amount": "${workflow.input.amount}", "extra": 1}}


@pytest.fixture(autouse=True)
def order(clock, monkeypatch):
    monkeypatch.setattr(declared._registered, "value", {})


def process() -> WorkerProcess:
    """Return a worker process for all functions, whose definitions it has stored, and define the workflow `order`."""
    found = declared.find_tasks()
    save_missing_definitions(found)
    define_workflow("order", simple("charge", **INPUT))
    return WorkerProcess(found, threads=1)


def execute(amount: object = 5) -> conductor_app.WorkflowRun:
    """Start a workflow with the task `charge`, execute the due tasks, and return the run."""
    worker = process()
    run_id = conductor_app.start_workflow("order", {"amount": amount})
    worker.run_until_idle()
    return conductor_app.get_run(run_id, with_tasks=True)


def test_a_function_gets_its_input_by_name_and_returns_its_output():
    @worker_task("charge")
    def charge(amount, currency="CHF"):
        return {"charged": f"{amount} {currency}"}

    run = execute()

    assert run.is_completed and run.task("charge").output == {"charged": "5 CHF"}
    assert charge(1, currency="EUR") == {"charged": "1 EUR"}


@pytest.mark.parametrize(("value", "output"), [(None, {}), (7, {"result": 7}), ([1], {"result": [1]})])
def test_other_values_become_an_output(value, output):
    worker_task("charge")(lambda: value)

    assert execute().task("charge").output == output


def test_a_function_gets_its_context_and_all_input():
    seen = []

    @worker_task("charge")
    def charge(context: TaskContext, **input):
        context.log("charging")
        seen.append((context.workflow, context.step, context.attempt, input == context.input, input))

    execute()

    assert seen == [("order", "charge", 1, True, {"amount": 5, "extra": 1})]
    assert TaskLog.objects.get().line == "charging"


def test_an_asynchronous_function_is_executed():
    @worker_task("charge")
    async def charge(amount):
        await asyncio.sleep(0)
        return amount * 2

    assert execute().task("charge").output == {"result": 10}


def test_a_missing_value_fails_the_task_without_a_retry():
    worker_task("charge")(lambda price: price)

    run = execute()

    assert run.status == "FAILED" and run.task("charge").reason.startswith(
        "The input lacks what the task charge requires: price"
    )


def test_an_exception_fails_the_task_which_is_retried(clock):
    attempts = []

    @worker_task("charge", retries=1, retry_seconds=2)
    def charge(context: TaskContext):
        attempts.append(context.attempt)
        raise ConnectionError("the bank is closed")

    worker = process()
    run_id = conductor_app.start_workflow("order")
    worker.run_until_idle()
    assert attempts == [1] and conductor_app.get_run(run_id).is_open
    clock.advance(seconds=2)
    worker.run_until_idle()

    assert len(attempts) == 2 and conductor_app.get_run(run_id).status == "FAILED"
    first = Attempt.objects.order_by("seq").first()
    assert first.reason == "ConnectionError: the bank is closed"
    assert "in charge" in TaskLog.objects.filter(attempt_id=first.pk).get().line


def test_a_task_fails_for_good_if_its_function_says_so():
    @worker_task("charge")
    def charge():
        raise TaskFailed("the card is stolen", output={"card": 1})

    run = execute()

    task = run.task("charge")
    assert (run.status, task.reason, task.output) == ("FAILED", "the card is stolen", {"card": 1})
    assert Attempt.objects.count() == 1


def test_a_postponed_task_waits_in_its_queue(clock):
    ready = []

    @worker_task("charge")
    def charge():
        if not ready:
            raise TaskPostponed(30, "The bank opens soon.")

    worker = process()
    run_id = conductor_app.start_workflow("order")
    worker.run_until_idle()
    ready.append(True)
    assert worker.run_until_idle() == 0 and conductor_app.get_run(run_id).is_open
    clock.advance(seconds=30)
    assert worker.run_until_idle() == 1

    assert conductor_app.get_run(run_id).is_completed and Attempt.objects.count() == 1


def test_an_output_that_is_not_json_fails_the_task_for_good():
    worker_task("charge")(lambda: {"a": {1}})

    run = execute()

    assert run.status == "FAILED" and "is not JSON" in run.task("charge").reason


def test_an_atomic_function_and_its_report_are_one_transaction():
    in_transaction = []

    @worker_task("charge", atomic=True)
    def charge():
        Group.objects.create(name="charged")
        in_transaction.append(transaction.get_connection().in_atomic_block)
        conductor_app.start_workflow("order", {"amount": 0}, idempotency_key="next", if_exists="return")

    run = execute()

    assert run.is_completed and in_transaction[0] and Group.objects.filter(name="charged").count() == 1


def test_a_failed_atomic_function_leaves_nothing():
    @worker_task("charge", atomic=True, retries=0)
    def charge():
        Group.objects.create(name="charged")
        conductor_app.start_workflow("order")
        raise ValueError("declined")

    run = execute()

    assert run.status == "FAILED" and run.task("charge").reason == "ValueError: declined"
    assert not Group.objects.filter(name="charged").exists() and Attempt.objects.count() == 1


def test_a_function_that_rolls_its_transaction_back_fails():
    @worker_task("charge", atomic=True, retries=0)
    def charge():
        transaction.set_rollback(True)

    assert "to be rolled back" in execute().task("charge").reason


@pytest.mark.parametrize("output", [{"a": "x" * 2000}, {"b": 1}])
def test_an_atomic_function_whose_output_is_refused_leaves_nothing(output, settings):
    settings.CONDUCTOR_TASK_PAYLOAD_MAX_BYTES = 1000

    @worker_task("charge", atomic=True)
    def charge():
        Group.objects.create(name="charged")
        return output

    worker = process()
    schema = {"type": "object", "required": ["a"]}
    definition = {**declared.find_tasks()["charge"].definition, "enforceSchema": True}
    definition["outputSchema"] = {"name": "out", "version": 1, "type": "JSON", "data": schema}
    define_workflow("order", simple("charge", taskDefinition=definition, **INPUT))
    run_id = conductor_app.start_workflow("order")
    worker.run_until_idle()

    run = conductor_app.get_run(run_id, with_tasks=True)
    assert run.status == "FAILED" and not Group.objects.filter(name="charged").exists()


def test_an_atomic_function_whose_task_was_given_to_another_worker_leaves_nothing(clock):
    @worker_task("charge", atomic=True, lease_seconds=10)
    def charge():
        Group.objects.create(name="charged")

    worker = process()
    run_id = conductor_app.start_workflow("order")
    [attempt] = claim_now("charge", worker.name, 1)
    conductor_app.terminate(run_id)
    worker.execute(attempt)

    assert not Group.objects.filter(name="charged").exists()
    assert conductor_app.get_run(run_id).status == "TERMINATED"


def test_a_lease_is_extended_while_its_function_is_executed(clock):
    worker_task("charge", lease_seconds=30)(lambda: None)
    worker, keeper = process(), LeaseKeeper("me")
    conductor_app.start_workflow("order")
    [attempt] = claim_now("charge", "me", 1)
    cancellation = Cancellation()

    with keeper.keeping(attempt, cancellation):
        clock.advance(seconds=20)
        keeper.renew_due(monotonic() + 5)
        before = Attempt.objects.get(pk=attempt.id).lease_ends_at
        keeper.renew_due(monotonic() + 15)

        assert before == clock.now() + 10_000
        assert Attempt.objects.get(pk=attempt.id).lease_ends_at == clock.now() + 30_000
        assert not cancellation.is_canceled
        conductor_app.terminate(attempt.run_id)
        keeper.renew_due(monotonic() + 60)
    assert cancellation.is_canceled and worker.name


def test_a_function_sees_that_its_task_was_canceled():
    begun, seen = Event(), []

    @worker_task("charge")
    def charge(context: TaskContext):
        conductor_app.terminate(context.run_id)
        begun.set()
        while not context.is_canceled:
            CANCELLATIONS.value.look()
        seen.append(True)
        return {"late": True}

    run = execute()

    assert begun.is_set() and seen == [True]
    assert run.status == "TERMINATED" and run.task("charge").output == {}


def test_an_asynchronous_function_is_canceled():
    ended = []

    @worker_task("charge")
    async def charge(context: TaskContext):
        await asyncio.to_thread(terminate, context.run_id)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append(True)
            raise

    def terminate(run_id):
        try:
            conductor_app.terminate(run_id)
        finally:
            connections.close_all()

    assert execute().status == "TERMINATED" and ended == [True]


def test_a_stopped_process_returns_its_task_to_the_queue():
    begun, may_end = Event(), Event()

    @worker_task("charge")
    def charge():
        begun.set()
        assert may_end.wait(60)

    worker = process()
    run_id = conductor_app.start_workflow("order")
    worker.start()
    assert begun.wait(60)
    assert worker.stop(grace_seconds=0) == 1

    assert conductor_app.get_run(run_id, with_tasks=True).task("charge").status == "SCHEDULED"
    may_end.set()
    for thread in worker._threads:
        thread.join(60)


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize("kind", ["OperationalError", "InterfaceError"])
def test_an_error_of_the_moment_loses_no_task(faults, clock, monkeypatch, kind, atomic):
    monkeypatch.setattr(worker_module, "RETRY_SECONDS", 0.0)

    @worker_task("charge", atomic=atomic, retry_seconds=0, lease_seconds=10)
    def charge(key):
        return {"length": len(key)}

    worker = process()
    define_workflow("order", simple("charge", inputParameters={"key": "${workflow.secrets.key}"}))
    put_secret("key", "a long secret", "ann")
    for fault in faults.at_each_call(kind):
        run_id = conductor_app.start_workflow("order")
        claimed = claim_now("charge", worker.name, 1)
        clear_secret_cache()
        with fault:
            worker.execute(claimed[0])
        discard_broken_connection()
        clock.advance(seconds=11)
        handle_due_timers(100)
        worker.run_until_idle()

        assert conductor_app.get_run(run_id).output == {"length": 13}, str(fault)


@pytest.mark.parametrize("atomic", [False, True])
def test_the_report_of_a_task_claims_the_next_one(atomic):
    seen = []
    worker_task("charge", atomic=atomic)(lambda amount: seen.append(amount))
    worker = process()
    for amount in range(4):
        conductor_app.start_workflow("order", {"amount": amount})

    with CaptureQueriesContext(connection) as found:
        assert worker.run_until_idle() == 4

    assert sorted(seen) == [0, 1, 2, 3] and Run.objects.filter(status="COMPLETED").count() == 4
    # Before the first task, and after the last one.
    assert sum("WITH RECURSIVE p(queue" in query["sql"] for query in found.captured_queries) == 2


@pytest.mark.parametrize("atomic", [False, True])
def test_the_report_of_a_task_claims_the_task_of_the_next_step(atomic):
    seen = []
    for name in ("charge", "pack", "ship"):
        worker_task(name, atomic=atomic)(lambda name=name: seen.append(name))
    worker = process()
    define_workflow("order", simple("charge"), simple("pack"), simple("ship"))
    for _ in "ab":
        conductor_app.start_workflow("order")

    with CaptureQueriesContext(connection) as found:
        assert worker.run_until_idle() == 6

    assert seen == ["charge", "pack", "ship"] * 2
    assert sum("WITH RECURSIVE p(queue" in query["sql"] for query in found.captured_queries) == 2


def test_an_atomic_function_that_is_rolled_back_claims_with_the_report_of_its_failure():
    worker_task("charge", atomic=True, retries=0)(lambda amount: 1 // amount)
    worker = process()
    for amount in (0, 1, 0, 1):
        conductor_app.start_workflow("order", {"amount": amount})

    assert worker.run_until_idle() == 4
    assert sorted(Run.objects.values_list("status", flat=True)) == ["COMPLETED", "COMPLETED", "FAILED", "FAILED"]
    assert {attempt.poll_count for attempt in Attempt.objects.all()} == {1}


def test_a_thread_serves_its_queues_in_turn(monkeypatch):
    monkeypatch.setattr(worker_module, "MOST_IN_A_ROW", 2)
    seen = []
    worker_task("charge")(lambda: seen.append("charge"))
    worker_task("ship")(lambda: seen.append("ship"))
    worker = process()
    define_workflow("shipment", simple("ship"))
    for name in ["order"] * 4 + ["shipment"] * 4:
        conductor_app.start_workflow(name)
    worker.run_until_idle()

    assert seen == ["charge", "charge", "ship", "ship"] * 2


def test_a_process_that_stops_claims_nothing_with_its_last_report():
    worker_task("charge")(lambda: worker.stopping.set())
    worker = process()
    ids = [conductor_app.start_workflow("order") for _ in "ab"]
    worker._execute_in_a_row(claim_now("charge", worker.name, 1)[0])

    assert sorted(conductor_app.get_run(id).status for id in ids) == ["COMPLETED", "RUNNING"]
    assert not Attempt.objects.filter(status="LEASED").exists()


def test_a_process_without_tasks_wakes_up_for_a_new_one():
    done = Event()
    worker_task("charge")(done.set)
    worker = process()
    worker.start()

    run_id = conductor_app.start_workflow("order")

    assert done.wait(60) and conductor_app.wait_for(run_id).is_completed
    assert worker.stop(grace_seconds=60) == 0


def test_missing_definitions_are_created_and_others_stay():
    @worker_task("charge", retries=7, retry_seconds=8, lease_seconds=9, timeout_seconds=10)
    def charge():
        """Charge the customer.

        In detail.
        """

    process()
    document = TaskDefinition.objects.get(name="charge").document
    assert (document["retryCount"], document["retryDelaySeconds"]) == (7, 8)
    assert (document["responseTimeoutSeconds"], document["timeoutSeconds"]) == (9, 10)
    assert document["description"] == "Charge the customer."
    worker_task("charge", retries=1)(charge)
    process()

    assert TaskDefinition.objects.get(name="charge").document["retryCount"] == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "a:b"}, "no colon"),
        ({"name": ""}, "1 to 255 characters"),
        ({"name": "a", "retries": -1}, "`retries` of the task a must be a whole number of at least 0"),
        ({"name": "a", "lease_seconds": 0}, "`lease_seconds` of the task a must be a whole number of at least 1"),
        ({"name": "a", "timeout_seconds": 5}, "must not exceed `timeout_seconds`"),
    ],
)
def test_an_invalid_declaration_is_a_clear_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        worker_task(**arguments)


def test_functions_that_cannot_be_called_by_name_are_refused():
    async def atomic():
        """Do nothing."""

    with pytest.raises(TypeError, match="its function must not be asynchronous"):
        worker_task("a", atomic=True)(atomic)
    with pytest.raises(TypeError, match="cannot pass the parameter args by name"):
        worker_task("a")(lambda *args: None)
    worker_task("a")(atomic)
    with pytest.raises(ValueError, match="have two functions"):
        worker_task("a")(test_an_invalid_declaration_is_a_clear_error)


class Cashier:
    """Charges in a currency."""

    def __init__(self, currency):
        self.currency = currency

    def charge(self, amount, task: TaskContext):
        return {"charged": f"{amount} {self.currency}", "step": task.step}

    async def acharge(self, amount):
        return await asyncio.sleep(0, {"charged": amount})

    @staticmethod
    def free(amount):
        return {"charged": 0}

    def __call__(self, amount, task: TaskContext):
        return self.charge(amount, task)


CHARGED = {"charged": "5 CHF", "step": "charge"}


@pytest.mark.parametrize(
    ("function", "output"),
    [
        (Cashier("CHF").charge, CHARGED),
        (Cashier("CHF"), CHARGED),
        (partial(Cashier.charge, Cashier("CHF")), CHARGED),
        (partial(Cashier("EUR").charge, amount=1), {"charged": "5 EUR", "step": "charge"}),
        (Cashier("CHF").acharge, {"charged": 5}),
        (partial(Cashier("CHF").acharge), {"charged": 5}),
        (Cashier.__dict__["free"], {"charged": 0}),
        (lambda amount: {"charged": amount}, {"charged": 5}),
    ],
)
def test_methods_partials_and_objects_execute_tasks(function, output):
    worker_task("charge")(function)

    assert execute().task("charge").output == output


def yields(amount):
    yield amount


async def yields_later(amount):
    yield amount


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (Cashier.charge, "Cashier.charge is a method"),
        (Cashier, "needs a function"),
        (classmethod(yields), "needs a function"),
        ("charge", "needs a function"),
        (yields, "must return its output"),
        (yields_later, "must return its output"),
        (partial(yields), "must return its output"),
        (dict.fromkeys, "by name"),
        (min, "are unknown"),
    ],
)
def test_what_cannot_execute_a_task_is_refused_at_once(function, message):
    with pytest.raises(TypeError, match=message):
        worker_task("charge")(function)


def test_two_lambdas_of_a_name_are_refused():
    worker_task("charge")(lambda: 1)

    with pytest.raises(ValueError, match="have two functions"):
        worker_task("charge")(lambda: 2)
