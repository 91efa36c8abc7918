"""Standalone tasks appear in failures, queue counts, worker lists and the audit log like other tasks."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.failures import commands as failure_groups
from conductor_app.failures.models import Failure, FailureGroup
from conductor_app.failures.queries import failure_detail
from conductor_app.taskcluster.commands import artifacts as expiry
from conductor_app.taskcluster.commands import tasks as claims
from conductor_app.tasks.models import MinuteCount
from conductor_app.tasks.queries.workers import workforce
from conductor_app.utils.formatting import TimeRange
from tests.page_text import html, page_text
from tests.runs.test_statements import Counted
from tests.taskcluster.conftest import LINUX, Queue


@pytest.fixture
def queue(db, clock, monkeypatch) -> Queue:
    monkeypatch.setattr(claims, "CLAIM_WAIT_SECONDS", 0.0)
    return Queue(clock)


def create_named(queue: Queue, name: str, **fields) -> str:
    metadata = {"name": name, "description": "", "owner": "me@example.org", "source": "https://example.org/"}
    return queue.create(metadata=metadata, **fields)


def groups() -> dict[tuple[str, str], int]:
    failure_groups.group_failures(1000)
    return {(group.ref, group.message): group.count for group in FailureGroup.objects.not_merged()}


def test_tasks_that_differ_by_numbers_fail_alike_in_their_queue(queue):
    for number in (1, 2):
        queue.claim_and_report(create_named(queue, f"test part {number}"), "failed")
    queue.claim_and_report(create_named(queue, "test part 3"), "malformed-payload")
    queue.claim_and_report(create_named(queue, "test part 4"))

    assert groups() == {("test part <n>", "failed"): 2, ("test part <n>", "malformed-payload"): 1}
    assert set(FailureGroup.objects.values_list("definition", flat=True)) == {LINUX}


def test_each_failed_attempt_is_counted_with_its_worker(queue):
    id = create_named(queue, "flaky", retries=1)
    queue.claim_and_report(id, "intermittent-task")
    queue.claim_specific_task(id)
    queue.later(1201)
    queue.later(3600)

    assert groups() == {("flaky", "intermittent-task"): 1, ("flaky", "claim-expired"): 1}
    assert set(Failure.objects.values_list("task_id", "queue", "worker")) == {(id, LINUX, "here/w1")}


def test_a_missed_deadline_is_a_failure_and_a_cancelation_is_not(queue):
    waits = create_named(queue, "late", dependencies=[create_named(queue, "first")])
    stopped = create_named(queue, "stopped")
    queue.post(f"/task/{stopped}/cancel")
    queue.later(3661)

    assert groups() == {("late", "deadline-exceeded"): 1, ("first", "deadline-exceeded"): 1}
    assert Failure.objects.get(ref="late").task_id == waits


def test_a_failure_is_one_statement_more(queue):
    one, other = queue.create(), queue.create()
    for id in (one, other):
        queue.claim_specific_task(id)

    with Counted() as well:
        queue.report(one, 0, "completed")
    with Counted() as badly:
        queue.report(other, 0, "failed")

    assert badly.count == well.count + 1


def test_the_page_of_the_group_leads_to_the_tasks(queue, admin_client):
    id = create_named(queue, "build")
    queue.claim_and_report(id, "failed")
    groups()
    [group] = FailureGroup.objects.all()

    answer = admin_client.get(f"/admin/failures/{group.pk}/")
    shown = page_text(answer)

    assert id in html(answer)
    assert "Tasks affected" in shown
    assert failure_detail(group, TimeRange.aligned("24h", queue.clock.now())).runs == 1


def test_failures_are_deleted_with_their_task(queue):
    queue.claim_and_report(create_named(queue, "build"), "failed")

    [(id,)] = Failure.objects.values_list("task_id")
    expiry.delete_task(id)

    assert not Failure.objects.exists()


def test_attempts_are_counted_per_queue_and_worker(queue, clock):
    good, bad = queue.create(), queue.create()
    queue.claim(tasks=2)
    clock.advance(seconds=10)
    queue.report(good, 0, "completed")
    queue.report(bad, 0, "failed")
    clock.advance(seconds=6)
    queue.create()

    fields = ("scheduled", "started", "done", "failed", "busy_ms")
    assert MinuteCount.objects.values_list(*fields).get(kind=MinuteCount.QUEUE, name=LINUX) == (3, 2, 1, 1, 20_000)
    [worker] = workforce(clock.now()).workers
    assert (worker.name, worker.done, worker.failed, worker.mean_ms) == ("here/w1", 1, 1, 10_000)


def test_the_audit_log_names_the_client_of_an_action(queue):
    id = queue.create()
    for verb in ("cancel", "rerun"):
        queue.post(f"/task/{id}/{verb}")
    queue.post(f"/task/{id}/priority", {"newPriority": "high"})

    entries = AuditEntry.objects.filter(object_type="task", object_id=id).order_by("id")
    assert [(entry.actor, entry.action) for entry in entries] == [("anonymous", "cancel"), ("anonymous", "rerun")]
