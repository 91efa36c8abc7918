"""What the Python API does within the caller's transaction exists if and only if that transaction commits."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Event
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.db import connections, transaction
from django.db.transaction import TransactionManagementError

import conductor_app
from conductor_app import notifications
from conductor_app.core.errors import Conflict, Invalid, NotFound
from conductor_app.definitions.models import ResolvedDefinition
from conductor_app.runs.models import Attempt, HistoryEntry, Message, Run, Task
from conductor_app.tasks.commands.claims import claim_tasks
from tests.builders import inline, simple, sub_workflow, wait
from tests.scenario import claim_and_report, define_workflow

pytestmark = pytest.mark.django_db(transaction=True)
TABLES = (Run, Task, Attempt, HistoryEntry, Message, ResolvedDefinition)


class Undone(Exception):
    """Rolls a transaction back."""


@pytest.fixture(autouse=True)
def order(clock):
    define_workflow("order", simple("charge"))


def in_other_thread(call):
    """Call a function in a thread with a connection of its own."""

    def run():
        try:
            return call()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(run).result()


def rows():
    return {table.__name__: table.objects.count() for table in TABLES}


def test_a_workflow_exists_after_the_commit_of_its_transaction():
    with transaction.atomic():
        group = Group.objects.create(name="order 7")
        run_id = conductor_app.start_workflow("order", {"order": group.pk}, by="shop")
        assert Run.objects.filter(pk=run_id).exists()
        assert in_other_thread(Run.objects.count) == 0

    run = conductor_app.get_run(run_id, with_tasks=True)
    assert (run.status, run.input, run.started_by) == ("RUNNING", {"order": group.pk}, "shop")
    assert run.tasks == (run.task("charge"),) and run.task("charge").status == "SCHEDULED"
    with pytest.raises(KeyError):
        run.task("ship")
    assert [attempt.run_id for attempt in claim_tasks("charge", worker="w", wait_ms=0)] == [run_id]


def test_nothing_of_a_workflow_exists_after_a_rollback():
    before = rows()

    with pytest.raises(Undone), transaction.atomic():
        Group.objects.create(name="order 7")
        run_id = conductor_app.start_workflow("order")
        raise Undone

    assert rows() == before and not Group.objects.filter(name="order 7").exists()
    assert claim_tasks("charge", worker="w", wait_ms=0) == []
    with pytest.raises(NotFound):
        conductor_app.get_run(run_id)


def test_a_definition_that_was_first_used_in_a_rolled_back_transaction_is_usable_afterwards():
    with pytest.raises(Undone), transaction.atomic():
        conductor_app.start_workflow("order")
        raise Undone

    run_id = conductor_app.start_workflow("order")

    assert ResolvedDefinition.objects.filter(pk=Run.objects.get(pk=run_id).resolved_definition_id).exists()
    claim_and_report("charge")
    assert conductor_app.get_run(run_id).is_completed


def test_workers_learn_of_a_workflow_after_the_commit():
    with notifications.subscribe("charge") as waiter:
        with transaction.atomic():
            conductor_app.start_workflow("order")
            assert not waiter.wait(0)
        assert waiter.wait(0)


def test_workers_do_not_learn_of_a_workflow_that_was_rolled_back():
    with notifications.subscribe("charge") as waiter:
        with pytest.raises(Undone), transaction.atomic():
            conductor_app.start_workflow("order")
            raise Undone
        assert not waiter.wait(0)


def test_a_savepoint_undoes_its_starts_only():
    with transaction.atomic():
        kept = conductor_app.start_workflow("order")
        with pytest.raises(Undone), transaction.atomic():
            conductor_app.start_workflow("order")
            raise Undone

    assert list(Run.objects.values_list("pk", flat=True)) == [kept]
    assert len(claim_tasks("charge", worker="w", count=9, wait_ms=0)) == 1


def test_many_starts_in_one_transaction_are_one_commit():
    with transaction.atomic():
        ids = [conductor_app.start_workflow("order", {"number": number}) for number in range(20)]
        assert in_other_thread(Run.objects.count) == 0

    assert [conductor_app.get_run(id).input["number"] for id in ids] == list(range(20))


def test_an_error_of_a_start_leaves_the_transaction_usable():
    with transaction.atomic():
        Group.objects.create(name="kept")
        with pytest.raises(NotFound, match="No such workflow found by name: nothing"):
            conductor_app.start_workflow("nothing")
        first = conductor_app.start_workflow("order", idempotency_key="7")
        with pytest.raises(Conflict, match=f"used before, for run {first}"):
            conductor_app.start_workflow("order", idempotency_key="7")
        assert conductor_app.start_workflow("order", idempotency_key="7", if_exists="return") == first

    assert Run.objects.count() == 1 and Group.objects.filter(name="kept").exists()


def test_a_key_is_free_again_after_a_rollback():
    with pytest.raises(Undone), transaction.atomic():
        conductor_app.start_workflow("order", idempotency_key="7")
        raise Undone

    assert Run.objects.filter(pk=conductor_app.start_workflow("order", idempotency_key="7")).exists()


def test_of_two_transactions_with_one_key_the_second_returns_the_run_of_the_first():
    has_started, may_commit = Event(), Event()

    def start_first():
        with transaction.atomic():
            id = conductor_app.start_workflow("order", idempotency_key="7")
            has_started.set()
            assert may_commit.wait(60)
            return id

    def start_second():
        assert has_started.wait(60)
        with transaction.atomic():
            Group.objects.create(name="second")
            return conductor_app.start_workflow("order", idempotency_key="7", if_exists="return")

    with ThreadPoolExecutor(2) as threads:
        results = [threads.submit(in_other_thread, call) for call in (start_first, start_second)]
        assert has_started.wait(60)
        may_commit.set()
        first, second = (result.result() for result in results)

    assert first == second and Run.objects.count() == 1 and Group.objects.filter(name="second").exists()


def test_scripts_of_the_first_steps_are_evaluated_within_the_transaction():
    squares = "(function () { var a = []; for (var i = 0; i < 3; i++) a.push(i * i); return a; })()"
    define_workflow("scripted", inline("compute", squares))

    with transaction.atomic():
        run_id = conductor_app.start_workflow("scripted")
        assert in_other_thread(Run.objects.count) == 0

    assert conductor_app.get_run(run_id, with_tasks=True).tasks[0].output["result"] == [0, 1, 4]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda id: conductor_app.pause(id, reason="stock"), "PAUSED"),
        (lambda id: conductor_app.terminate(id, reason="stock"), "TERMINATED"),
    ],
)
def test_a_change_of_a_workflow_is_part_of_the_transaction(change, status):
    run_id = conductor_app.start_workflow("order")

    with pytest.raises(Undone), transaction.atomic():
        change(run_id)
        assert conductor_app.get_run(run_id).status == status
        raise Undone
    assert conductor_app.get_run(run_id).status == "RUNNING"

    with transaction.atomic():
        change(run_id)
    assert conductor_app.get_run(run_id).status == status


def test_messages_to_other_workflows_are_delivered_after_the_commit():
    define_workflow("parent", sub_workflow("child", "order"))
    parent = conductor_app.start_workflow("parent")
    child = Run.objects.get(parent_id=parent).pk

    with pytest.raises(Undone), transaction.atomic():
        conductor_app.terminate(parent)
        raise Undone
    assert conductor_app.get_run(child).status == "RUNNING"

    with transaction.atomic():
        conductor_app.terminate(parent)
        assert conductor_app.get_run(child).status == "RUNNING"
    assert conductor_app.get_run(child).status == "TERMINATED"


def test_a_signal_completes_the_task_that_waits():
    define_workflow("approval", wait("ask"), simple("charge"))
    run_id = conductor_app.start_workflow("approval")

    with transaction.atomic():
        conductor_app.signal(run_id, {"approved": True, "at": datetime(2027, 3, 1, tzinfo=UTC)}, by="ann")

    ask, charge = conductor_app.get_run(run_id, with_tasks=True).tasks
    assert ask.output == {"approved": True, "at": "2027-03-01T00:00:00Z"} and charge.status == "SCHEDULED"
    with pytest.raises(Conflict, match=r"No task of workflow .* waits for a signal"):
        conductor_app.signal(run_id)
    with pytest.raises(Conflict, match=r"The task ask of workflow .* has ended"):
        conductor_app.signal(run_id, step="ask")
    with pytest.raises(NotFound):
        conductor_app.signal(run_id, step="other")


def test_a_failed_workflow_is_retried_and_rerun():
    run_id = conductor_app.start_workflow("order", {"amount": 1})
    claim_and_report("charge", "FAILED_FOR_GOOD", reason="declined")
    assert conductor_app.get_run(run_id).status == "FAILED"

    conductor_app.retry(run_id, reason="another card")
    assert conductor_app.get_run(run_id).is_open
    claim_and_report("charge", output={"receipt": 1})
    assert conductor_app.wait_for(run_id).is_completed

    conductor_app.rerun(run_id, step="charge", task_input={"amount": 2})
    assert conductor_app.get_run(run_id, with_tasks=True).tasks[0].input == {"amount": 2}
    with pytest.raises(NotFound, match="has no task of the step 'ship'"):
        conductor_app.rerun(run_id, step="ship")


def test_a_paused_workflow_is_resumed():
    run_id = conductor_app.start_workflow("order")
    conductor_app.pause(run_id)

    conductor_app.resume(run_id)

    assert conductor_app.get_run(run_id).status == "RUNNING"
    with pytest.raises(Conflict):
        conductor_app.resume(run_id)


def test_a_wait_ends_with_the_workflow():
    run_id = conductor_app.start_workflow("order")

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(in_other_thread, lambda: conductor_app.wait_for(run_id, timeout=60))
        claim_and_report("charge", output={"receipt": 1})

        assert waiting.result().is_completed


def test_a_wait_that_is_too_long_or_within_a_transaction_is_an_error():
    run_id = conductor_app.start_workflow("order")

    with pytest.raises(TimeoutError, match="has not ended within 0 s"):
        conductor_app.wait_for(run_id, timeout=0)
    with transaction.atomic(), pytest.raises(TransactionManagementError, match="wait after the commit"):
        conductor_app.wait_for(run_id)


def test_a_connection_without_autocommit_is_refused_outside_of_atomic():
    transaction.set_autocommit(False)
    try:
        with pytest.raises(TransactionManagementError, match="Autocommit is off"):
            conductor_app.start_workflow("order")
    finally:
        transaction.set_autocommit(True)

    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input": {"a": {1}}}, "`input` is not JSON: Object of type set is not JSON serializable"),
        ({"input": [1]}, "`input` must be a dictionary \\(got list\\)"),
        ({"input": {"a": float("nan")}}, "`input` is not JSON"),
        ({"priority": 100}, "`priority` must be from 0 to 99"),
        ({"if_exists": "ignore"}, "`if_exists` must be one of: fail, return, fail_if_open"),
        ({"correlation_id": "a\0"}, "`correlation_id` must have at most 512 characters, and no NUL"),
        ({"labels": ["a,b"]}, "A label must have"),
    ],
)
def test_an_invalid_argument_is_a_clear_error(arguments, message):
    with pytest.raises(Invalid, match=message):
        conductor_app.start_workflow("order", **arguments)


def test_every_option_of_a_start_is_stored(clock):
    at = datetime.fromtimestamp(clock.now() / 1000, UTC) + timedelta(hours=1)
    owner = UUID("12345678123456781234567812345678")

    run_id = conductor_app.start_workflow(
        "order", {"owner": owner}, version=1, correlation_id="c", priority=9, labels=["vip"], starts_at=at
    )

    run = conductor_app.get_run(run_id)
    assert (run.input, run.correlation_id, run.priority) == ({"owner": str(owner)}, "c", 9)
    assert (run.labels, run.created_at, run.version) == (("vip",), at, 1)


def test_an_inline_definition_is_executed_without_being_stored():
    document = {"name": "once", "version": 1, "tasks": [simple("charge")]}

    run_id = conductor_app.start_workflow("once", definition=document)

    assert conductor_app.get_run(run_id).name == "once"
    with pytest.raises(NotFound):
        conductor_app.start_workflow("once")
