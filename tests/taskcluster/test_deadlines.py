"""Deadlines and the end of a task's life (taskcluster §2.5, §3)."""

from django.core.management import call_command

from conductor_app.runs.models import Attempt, PulseMessage, Task
from conductor_app.taskcluster.models import Dependency, TaskGroup

from .conftest import HOUR, new_id, printed_messages, refusal_code

DEADLINE = ("exception", "scheduled", "deadline-exceeded")


def test_a_pending_task_ends_a_minute_after_its_deadline(queue):
    id = queue.create(deadline=queue.at(HOUR))

    queue.later(HOUR + 59)
    assert queue.state(id) == "pending"
    queue.later(1)

    assert queue.runs(id) == [DEADLINE]
    assert queue.message_names(id)[2:] == ["task-exception"]


def test_a_pending_task_is_not_claimed_by_its_id_after_its_deadline(queue):
    id = queue.create(deadline=queue.at(HOUR))
    queue.clock.advance(seconds=HOUR + 1)

    reply = queue.claim_specific_task(id)

    assert reply.status_code == 409 and "deadline" in reply.json()["message"]


def test_the_delay_is_a_setting(queue, settings):
    settings.CONDUCTOR_TASKCLUSTER_DEADLINE_DELAY = 0
    id = queue.create(deadline=queue.at(HOUR))

    queue.later(HOUR)

    assert queue.runs(id) == [DEADLINE]


def test_an_unscheduled_task_ends_with_a_run_that_states_the_reason(queue):
    id = queue.create(dependencies=[queue.create(deadline=queue.at(5 * HOUR))])

    queue.later(HOUR + 60)

    assert queue.runs(id) == [("exception", "exception", "deadline-exceeded")]


def test_a_running_task_ends_at_its_deadline_despite_its_lease(queue):
    id = queue.create(deadline=queue.at(60))
    queue.claim_specific_task(id)

    queue.later(120)

    assert queue.runs(id) == [DEADLINE]
    assert "workerId" not in printed_messages(id, "task-exception")[-1]["payload"]
    assert refusal_code(queue.report(id, 0, "completed")) == (409, "RequestConflict")


def test_a_lease_that_expires_after_the_deadline_is_ignored(queue, settings):
    settings.CONDUCTOR_TASKCLUSTER_DEADLINE_DELAY = 600
    id = queue.create(deadline=queue.at(60))
    queue.later(59)
    queue.claim_specific_task(id)

    queue.later(1200)

    assert queue.runs(id) == [DEADLINE]


def test_a_report_between_the_deadline_and_its_sweep_counts(queue):
    done, lost = (queue.create(deadline=queue.at(60)) for _ in range(2))
    queue.claim_specific_task(done)
    queue.claim_specific_task(lost)
    queue.clock.advance(seconds=70)

    queue.report(done, 0, "completed")
    queue.report(lost, 0, "worker-shutdown")

    assert queue.state(done) == "completed"
    assert queue.state(lost) == "pending"
    assert queue.claim() == []
    queue.later(60)
    assert queue.runs(lost)[-1] == ("exception", "retry", "deadline-exceeded")
    assert queue.state(done) == "completed"


def test_dependents_of_an_expired_task_are_resolved(queue):
    first = queue.create()
    second = queue.create(dependencies=[first], requires="all-resolved", deadline=queue.at(5 * HOUR))

    queue.later(HOUR + 60)

    assert queue.state(second) == "pending"


def test_an_expired_task_is_deleted_with_all_that_belongs_to_it(queue):
    first = queue.create(expires=queue.at(HOUR))
    kept = queue.create(expires=queue.at(9 * HOUR))
    gone = queue.create(dependencies=[kept], expires=queue.at(HOUR))
    queue.claim_specific_task(first)

    queue.later(HOUR + 1800)
    call_command("expire", verbosity=0)
    assert queue.get(f"/task/{first}").status_code == 200
    queue.later(1)
    call_command("expire", verbosity=0)

    assert [queue.get(f"/task/{id}").status_code for id in (first, gone, kept)] == [404, 404, 200]
    assert list(Task.objects.values_list("pk", flat=True)) == [kept]
    assert set(Attempt.objects.values_list("task_id", flat=True)) == {kept}
    assert not Dependency.objects.exists()
    assert set(PulseMessage.objects.exclude(task_id="").values_list("task_id", flat=True)) == {kept}


def test_an_expired_group_may_be_another_schedulers(queue):
    group = new_id()
    queue.create(taskGroupId=group, schedulerId="one", expires=queue.at(HOUR))

    queue.later(3 * HOUR)
    call_command("expire", verbosity=0)

    assert not TaskGroup.objects.exists()
    queue.create(taskGroupId=group, schedulerId="two")
