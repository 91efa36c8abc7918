"""Bulk operations: a canary first, then all runs at a limited rate; pause, resume, stop; the result of each run."""

import time

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.bulk import commands as bulk_commands
from conductor_app.bulk import executor
from conductor_app.bulk import executor as bulk_executor
from conductor_app.bulk.commands import BulkRequest, bulk_action_of
from conductor_app.bulk.models import BulkItem, BulkOperation
from conductor_app.core.errors import Conflict, Invalid, NotAllowedInState, NotFound
from conductor_app.failures import commands as failure_groups
from conductor_app.failures.models import FailureGroup
from conductor_app.runs.commands import control
from conductor_app.runs.models import Run, RunLabel
from tests.builders import step
from tests.scenario import ACTOR, Scenario, run_commit_hooks

pytestmark = pytest.mark.django_db

FAILED = {"definition": "order", "status": ["FAILED"]}


def failed(clock, count: int, reason: str = "no luck") -> Scenario:
    """Create `count` failed runs and return them, oldest first."""
    scenario = Scenario(clock, step("pay"))
    for _ in range(count - 1):
        clock.advance(seconds=0.01)
        scenario.starts("order")
    for _ in range(count):
        scenario.worker("pay").fails(reason)
    return scenario


def start_operation(**asked) -> str:
    return bulk_commands.start(BulkRequest(**{"action": "retry", "selection": FAILED, "rate": 10.0, **asked}), ACTOR)


def row(id: str) -> BulkOperation:
    return BulkOperation.objects.get(pk=id)


def passes(clock, seconds: float) -> None:
    """Time in which the engine looks twice a second."""
    for _ in range(round(seconds * 2)):
        with run_commit_hooks():
            bulk_executor.run_due_operations()
        clock.advance(seconds=0.5)


def outcomes(id: str) -> list[str]:
    return list(BulkItem.objects.filter(operation=id).order_by("number").values_list("outcome", flat=True))


def running() -> int:
    return Run.objects.filter(status="RUNNING").count()


def test_all_runs_of_a_selection_are_retried(clock):
    failed(clock, 5)
    id = start_operation(reason="the gateway is back")

    passes(clock, 2)

    assert (row(id).state, row(id).total, row(id).done) == ("DONE", 5, 5)
    assert running() == 5
    entry = AuditEntry.objects.filter(object_type="run", action="retry").first()
    assert entry.actor == ACTOR and entry.reason == f"the gateway is back (bulk operation {id})"


def test_the_rate_limits_the_started_items(clock):
    failed(clock, 12)
    id = start_operation(rate=4.0)
    with run_commit_hooks():
        bulk_executor.run_due_operations()
        bulk_executor.run_due_operations()
    counts = [running()]

    for _ in range(3):
        clock.advance(seconds=1)
        with run_commit_hooks():
            bulk_executor.run_due_operations()
        counts.append(running())

    assert counts == [1, 5, 9, 12]
    assert row(id).state == "DONE"


def test_an_unused_rate_is_not_accumulated(clock):
    failed(clock, 40)
    id = start_operation(rate=4.0)
    passes(clock, 0.5)
    clock.advance(seconds=60)

    with run_commit_hooks():
        bulk_executor.run_due_operations()

    assert row(id).done <= 8


def test_an_operation_continues_at_its_rate_between_jobs(clock, monkeypatch):
    failed(clock, 40)
    id = start_operation(rate=50.0)
    monkeypatch.setattr(time, "sleep", lambda seconds: clock.advance(seconds=seconds))
    until = clock.now() + 500

    with run_commit_hooks():
        bulk_executor.run_operations_until(until, wait_ms=500)

    assert clock.now() - until <= 100
    assert 25 <= row(id).done <= 30


def test_a_stopping_process_handles_no_further_items(clock):
    failed(clock, 3)
    id = start_operation(rate=1000.0)

    with run_commit_hooks():
        bulk_executor.run_operations_until(clock.now() + 500, wait_ms=500, is_stopping=lambda: True)

    assert row(id).done == 0


def test_an_item_stopped_or_withdrawn_during_its_action_is_rolled_back(clock):
    failed(clock, 4)
    id = start_operation(rate=1.0)
    passes(clock, 1)
    seen, items = row(id), list(BulkItem.objects.filter(operation=id, outcome="WAITING").values_list("pk", "run_id"))

    bulk_commands.withdraw(id, [items[0][1]], ACTOR)
    assert executor._process_item(seen, *items[0], bulk_action_of(seen))
    bulk_commands.stop(id, ACTOR)
    assert not executor._process_item(seen, *items[1], bulk_action_of(seen))

    assert running() == row(id).done
    assert (row(id).withdrawn, row(id).remaining_count) == (1, 3 - row(id).done)


def test_a_canary_runs_and_is_watched_before_the_other_items(clock):
    scenario = failed(clock, 6)
    id = start_operation(canary_size=2, canary_share=100)
    passes(clock, 3)
    assert (row(id).state, running()) == ("WATCHING", 2)

    scenario.worker("pay").completes()
    scenario.worker("pay").completes()
    passes(clock, 3)

    assert (row(id).state, row(id).done) == ("DONE", 6)
    assert row(id).verdict == "2 of 2 runs of the canary succeeded: 100 %; 100 % are required."


def test_a_failed_canary_pauses_the_operation_until_a_user_resumes_it(clock):
    scenario = failed(clock, 6)
    id = start_operation(canary_size=2, canary_share=80)
    passes(clock, 3)
    scenario.worker("pay").completes()
    scenario.worker("pay").fails()
    passes(clock, 2)
    assert row(id).state == "PAUSED"
    assert row(id).verdict.startswith("1 of 2 runs of the canary succeeded: 50 %")
    assert row(id).remaining_count == 4

    bulk_commands.resume(id, ACTOR, "that one is known")
    passes(clock, 2)

    assert (row(id).state, row(id).done) == ("DONE", 6)


def test_a_canary_whose_runs_have_not_ended_in_time_pauses_the_operation(clock):
    failed(clock, 3)
    id = start_operation(canary_size=1)
    passes(clock, 2)
    assert row(id).state == "WATCHING"

    clock.advance(seconds=60)
    passes(clock, 2)
    assert (row(id).state, row(id).remaining_count) == ("PAUSED", 2)
    assert row(id).verdict.startswith("0 of 1 runs of the canary succeeded: 0 %")
    assert row(id).verdict.endswith("Still running after 60 seconds: 1.")

    bulk_commands.resume(id, ACTOR, "it waits for a person")
    passes(clock, 2)

    assert row(id).state == "DONE"


def test_an_operation_can_be_paused_resumed_and_stopped(clock):
    failed(clock, 30)
    id = start_operation(rate=10.0)
    passes(clock, 1.5)
    bulk_commands.pause(id, ACTOR, "a look")
    done = row(id).done
    assert 0 < done < 30
    passes(clock, 2)
    assert row(id).done == done

    bulk_commands.resume(id, ACTOR)
    passes(clock, 1)
    assert row(id).done > done
    bulk_commands.stop(id, ACTOR, "enough")
    done = row(id).done
    passes(clock, 2)

    assert (row(id).state, row(id).done, row(id).remaining_count) == ("STOPPED", done, 30 - done)
    assert outcomes(id).count("DONE") == done == running()
    acts = AuditEntry.objects.filter(object_type="bulk operation").order_by("id").values_list("action", flat=True)
    assert list(acts) == ["start", "pause", "resume", "stop"]
    with pytest.raises(NotAllowedInState):
        bulk_commands.pause(id, ACTOR)
    with pytest.raises(Conflict):
        bulk_commands.resume(id, ACTOR)


def test_a_refused_item_does_not_block_others_and_can_be_retried(clock):
    scenario = failed(clock, 3)
    id = start_operation()
    with run_commit_hooks():
        bulk_executor.run_due_operations()
    scenario.retry()
    passes(clock, 2)
    refused = BulkItem.objects.get(operation=id, outcome="REFUSED")
    assert refused.run_id == scenario.id
    assert "Only a failed, timed-out or terminated workflow can be retried" in refused.answer
    assert (row(id).state, row(id).done, row(id).refused) == ("DONE", 2, 1)

    scenario.terminate()
    again = bulk_commands.retry_refused(id, ACTOR)
    passes(clock, 2)

    assert outcomes(again) == ["DONE"]
    with pytest.raises(Conflict):
        bulk_commands.retry_refused(again, ACTOR)


def test_runs_can_be_excluded_before_and_withdrawn_during_an_operation(clock):
    scenario = failed(clock, 4)
    ids = list(Run.objects.order_by("id").values_list("pk", flat=True))
    id = start_operation(excluded=[scenario.id], rate=0.5)
    with run_commit_hooks():
        bulk_executor.run_due_operations()

    assert bulk_commands.withdraw(id, [ids[-1], "nobody"], ACTOR) == 1
    passes(clock, 10)

    assert outcomes(id) == ["DONE", "DONE", "WITHDRAWN"]
    assert (row(id).state, row(id).remaining_count) == ("DONE", 0)
    assert scenario.status == "FAILED"


def test_runs_are_gathered_in_batches_and_those_that_fail_later_are_not_among_them(clock, monkeypatch):
    monkeypatch.setattr(executor, "BATCH", 2)
    monkeypatch.setattr(executor, "BATCHES_A_PASS", 2)
    failed(clock, 7)
    id = start_operation()
    with run_commit_hooks():
        bulk_executor.run_due_operations()
    assert (row(id).state, row(id).total) == ("GATHERING", 4)

    passes(clock, 3)

    assert (row(id).state, row(id).total, row(id).done) == ("DONE", 7, 7)


def test_a_selection_without_runs_ends_immediately(clock):
    failed(clock, 1)
    id = start_operation(selection={"definition": "nothing"})

    passes(clock, 1)

    assert (row(id).state, row(id).verdict) == ("DONE", "No runs match the selection.")


def test_a_group_of_failures_is_retried_as_one(clock):
    scenario = failed(clock, 2, "502 from gateway")
    scenario.starts("order")
    scenario.worker("pay").fails("no funds")
    failure_groups.group_failures(100)
    group = FailureGroup.objects.get(message="502 from gateway")

    id = start_operation(selection={"failure_group": group.pk})
    passes(clock, 2)

    assert row(id).done == 2
    assert Run.objects.filter(status="FAILED").count() == 1


def test_a_process_that_died_leaves_its_operation_to_the_next(clock):
    failed(clock, 1)
    id = start_operation()
    BulkOperation.objects.filter(pk=id).update(held_until=clock.now() + executor.CLAIM_MS)
    passes(clock, 2)
    assert row(id).total == 0

    clock.advance(seconds=60)
    passes(clock, 1)

    assert row(id).state == "DONE"


def test_runs_are_terminated_paused_and_resumed_too(clock):
    scenario = Scenario(clock, step("pay"))
    scenario.starts("order")
    for action, status in (("pause", "PAUSED"), ("resume", "RUNNING"), ("terminate", "TERMINATED")):
        id = start_operation(action=action, selection={"definition": "order"}, canary_size=1, reason="because")
        passes(clock, 2)
        assert row(id).state == "DONE", row(id).verdict
        assert set(Run.objects.values_list("status", flat=True)) == {status}
    assert scenario.reason.startswith("because (bulk operation")


@pytest.mark.parametrize(
    "asked",
    [
        {"action": "dance"},
        {"rate": 0},
        {"rate": 1e9},
        {"canary_share": 101},
        {"canary_size": -1},
        {"selection": {"colour": "red"}},
        {"selection": {"status": ["ODD"]}},
        {"selection": {"version": "one"}},
        {"selection": {"ids": [str(number) for number in range(2000)]}},
        {"excluded": [str(number) for number in range(2000)]},
    ],
    ids=str,
)
def test_invalid_parameters_are_refused(clock, asked):
    with pytest.raises(Invalid):
        start_operation(**asked)

    assert not BulkOperation.objects.exists()


def test_there_is_no_such_operation(clock):
    for command in (bulk_commands.pause, bulk_commands.resume, bulk_commands.stop, bulk_commands.retry_refused):
        with pytest.raises(NotFound):
            command("nobody", ACTOR)


@pytest.mark.parametrize(
    ("limit", "waits"),
    [(0, False), (3, True), (4, False)],
)
def test_the_number_of_runs_determines_which_operations_need_approval(clock, settings, limit, waits):
    failed(clock, 3)
    settings.CONDUCTOR_BULK_APPROVAL_FROM = limit
    id = start_operation()

    passes(clock, 2)

    assert row(id).is_waiting_for_approval is waits
    assert running() == (0 if waits else 3)


def test_an_approved_operation_starts_and_the_audit_log_has_both_users(clock, settings):
    settings.CONDUCTOR_BULK_APPROVAL_FROM = 1
    failed(clock, 2)
    id = start_operation()

    with pytest.raises(Conflict, match="Another person"):
        bulk_commands.approve(id, ACTOR)
    with pytest.raises(Conflict, match="waits for the approval"):
        bulk_commands.resume(id, "ben")
    bulk_commands.approve(id, "ben", "I have looked.")
    passes(clock, 2)

    assert (row(id).state, row(id).approved_by, running()) == ("DONE", "ben", 2)
    said = AuditEntry.objects.filter(object_type="bulk operation", object_id=id).order_by("id")
    assert [(entry.actor, entry.action) for entry in said] == [(ACTOR, "start"), ("ben", "approve")]
    with pytest.raises(Conflict, match="does not wait"):
        bulk_commands.approve(id, "ben")


def test_an_operation_pending_approval_can_be_declined(clock, settings):
    settings.CONDUCTOR_BULK_APPROVAL_FROM = 1
    failed(clock, 1)
    id = start_operation()

    bulk_commands.stop(id, "ben", "Not today.")

    assert (row(id).state, row(id).is_waiting_for_approval) == ("STOPPED", False)


def test_labels_are_added_to_and_removed_from_many_runs(clock):
    failed(clock, 3)
    first = Run.objects.order_by("pk").first()
    control.add_labels(first.pk, [f"old {number}" for number in range(control.MAX_LABELS)], ACTOR)

    put_on = start_operation(action="label", labels=["gateway", "may"], reason="the outage")
    passes(clock, 2)

    assert outcomes(put_on) == ["REFUSED", "DONE", "DONE"], "one that bears as many as it may is told so"
    assert Run.objects.filter(labels__name="gateway").count() == 2
    entry = AuditEntry.objects.filter(action="add labels", reason__contains=put_on).first()
    assert entry.reason.startswith("the outage") and entry.facts == {"labels": ["gateway", "may"]}

    start_operation(action="unlabel", selection={"label": "gateway"}, labels=["gateway"])
    passes(clock, 2)
    assert set(RunLabel.objects.exclude(name__startswith="old").values_list("name", flat=True)) == {"may"}


@pytest.mark.parametrize("names", [[], ["a,b"], ["x" * 300]], ids=["none", "a comma", "too long"])
def test_an_invalid_label_is_refused_before_the_start(clock, names):
    failed(clock, 1)

    with pytest.raises(Invalid):
        start_operation(action="label", labels=names)
    assert not BulkOperation.objects.exists()


def test_refused_label_changes_are_retried_with_the_same_labels(clock):
    failed(clock, 1)
    run = Run.objects.get()
    control.add_labels(run.pk, [f"old {number}" for number in range(control.MAX_LABELS)], ACTOR)
    id = start_operation(action="label", labels=["late"])
    passes(clock, 2)
    control.remove_labels(run.pk, ["old 0"], ACTOR)

    bulk_commands.retry_refused(id, ACTOR)
    passes(clock, 2)

    assert run.labels.filter(name="late").exists()
