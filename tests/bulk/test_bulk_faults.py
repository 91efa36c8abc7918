"""Faults of the moment during a bulk operation: its items wait, and none is refused."""

from contextlib import suppress
from types import SimpleNamespace

import pytest
from django.db import OperationalError

from conductor_app.bulk import commands as bulk_commands
from conductor_app.bulk import commands as bulk_runs
from conductor_app.bulk import executor
from conductor_app.bulk import executor as bulk_executor
from conductor_app.bulk.commands import BulkRequest
from conductor_app.bulk.models import BulkItem, BulkOperation
from conductor_app.core.errors import Busy
from tests.builders import step
from tests.scenario import ACTOR, Scenario, run_commit_hooks

pytestmark = pytest.mark.django_db(transaction=True)


def failed_runs(clock, count: int) -> list[Scenario]:
    """Return failed runs, oldest first."""
    first = Scenario(clock, step("pay"))
    runs = [first, *(first.starts("order") for _ in range(count - 1))]
    for _ in runs:
        first.worker("pay").fails()
    return runs


def begin_retry(**request) -> BulkOperation:
    selection = {"definition": "order", "status": ["FAILED"]}
    asked = {"action": "retry", "selection": selection, "rate": 10.0, "canary_size": 0, **request}
    return BulkOperation.objects.get(pk=bulk_commands.start(BulkRequest(**asked), ACTOR))


def advance(clock, seconds: float) -> None:
    clock.advance(seconds=seconds)
    with run_commit_hooks():
        bulk_executor.run_due_operations()


def answers(operation: BulkOperation) -> list[tuple[str, str]]:
    return list(operation.items.order_by("number").values_list("outcome", "answer"))


@pytest.mark.parametrize("kind", ["OperationalError", "InternalError", "Busy", "MemoryError"])
def test_an_operation_completes_whatever_call_fails(faults, clock, kind):
    for fault in faults.at_each_call(kind):
        [run] = failed_runs(clock, 1)
        operation = begin_retry()
        # The job of bulk operations logs the error.
        with fault, suppress(Exception):
            for _ in range(3):
                advance(clock, 1)
        for _ in range(5):
            advance(clock, 61)

        operation.refresh_from_db()
        assert (run.status, operation.state, operation.refused) == ("RUNNING", "DONE", 0), str(fault)
        run.terminate()


@pytest.fixture
def busy_runs(monkeypatch):
    """Return the ids of runs that other processes change without end."""
    ids, action_of = set(), executor.bulk_action_of

    def with_busy_runs(row):
        apply = action_of(row)

        def apply_if_free(run_id, record):
            if run_id in ids:
                raise Busy
            apply(run_id, record)

        return apply_if_free

    monkeypatch.setattr(executor, "bulk_action_of", with_busy_runs)
    return ids


def test_an_item_that_meets_a_fault_waits_behind_the_others(clock, busy_runs):
    runs = failed_runs(clock, 3)
    busy_runs.add(runs[0].id)
    operation = begin_retry()

    for _ in range(8):
        advance(clock, 1)

    why = "Not done yet: The run is being changed concurrently. Try again later."
    assert answers(operation) == [("DONE", ""), ("DONE", ""), ("WAITING", why)]
    busy_runs.clear()
    advance(clock, 61)
    assert answers(operation)[-1] == ("DONE", "")


def test_an_operation_is_put_off_with_growing_delays(clock, busy_runs):
    [run] = failed_runs(clock, 1)
    busy_runs.add(run.id)
    operation, delays = begin_retry(), []
    for _ in range(10):
        advance(clock, 61)
        operation.refresh_from_db()
        delays.append((operation.due_at - clock.now()) / 1000)

    assert delays[-8:] == [2, 4, 8, 16, 32, 60, 60, 60]


def test_a_request_for_many_runs_says_which_of_them_met_a_fault():
    def command(id):
        if id == "b":
            raise OperationalError("canceling statement due to statement timeout")

    results = bulk_runs.apply_to_each(["a", "b", "c"], command)

    assert results.done == ["a", "c"]
    assert results.errors == {"b": "The database did not respond. Send the request again."}


@pytest.mark.parametrize("error", [Busy(), OperationalError("the connection is closed")])
def test_a_fault_is_no_result_of_an_item(error):
    def apply(run_id, record):
        raise error

    with pytest.raises(type(error)):
        executor._process_item(SimpleNamespace(pk="1", state="WORKING"), 1, "r", apply)
    assert not BulkItem.objects.exists()
