"""Tasks that wait for others (taskcluster §2.3)."""

import pytest

from conductor_app.runs.models import PulseMessage
from conductor_app.taskcluster.models import Dependency

from .conftest import HOUR, new_id, refusal_code


def test_a_task_waits_for_its_dependencies(queue):
    first = queue.create()
    second = queue.create(dependencies=[first])
    assert queue.state(second) == "unscheduled"

    queue.claim_and_report(first)

    assert queue.runs(second) == [("pending", "scheduled", None)]


def test_it_waits_for_all_of_them(queue):
    one, other = queue.create(), queue.create()
    last = queue.create(dependencies=[one, other])

    queue.claim_and_report(one)
    assert queue.state(last) == "unscheduled"
    queue.claim_and_report(other)

    assert queue.state(last) == "pending"


@pytest.mark.parametrize("how", ["failed", "malformed-payload"])
def test_all_completed_waits_and_all_resolved_starts_after_a_failure(queue, how):
    first = queue.create()
    needs_success = queue.create(dependencies=[first])
    needs_an_end = queue.create(dependencies=[first], requires="all-resolved")

    queue.claim_and_report(first, how)

    assert (queue.state(needs_success), queue.state(needs_an_end)) == ("unscheduled", "pending")


def test_a_canceled_dependency_is_an_end_too(queue):
    first = queue.create()
    needs_success = queue.create(dependencies=[first])
    needs_an_end = queue.create(dependencies=[first], requires="all-resolved")

    queue.post(f"/task/{first}/cancel")

    assert (queue.state(needs_success), queue.state(needs_an_end)) == ("unscheduled", "pending")


def test_a_rerun_dependency_that_succeeds_starts_its_dependents(queue):
    first = queue.create()
    second = queue.create(dependencies=[first])
    queue.claim_and_report(first, "failed")

    queue.post(f"/task/{first}/rerun")
    queue.claim_and_report(first)

    assert queue.state(second) == "pending"


def test_an_exception_that_is_retried_is_no_end(queue):
    first = queue.create(retries=1)
    second = queue.create(dependencies=[first], requires="all-resolved")

    queue.claim_and_report(first, "worker-shutdown")
    queue.later(1)
    assert queue.state(second) == "unscheduled"
    queue.report(first, 0, "worker-shutdown")
    assert queue.state(second) == "unscheduled"
    queue.claim_and_report(first, "worker-shutdown")

    assert queue.state(second) == "pending"


def test_a_satisfied_dependency_stays_satisfied(queue):
    one, other = queue.create(), queue.create()
    last = queue.create(dependencies=[one, other])
    queue.claim_and_report(one)
    queue.post(f"/task/{one}/rerun")

    queue.claim_and_report(other)

    assert queue.state(last) == "pending"


def test_a_dependency_completed_before_creation_is_satisfied(queue):
    first = queue.create()
    queue.claim_and_report(first)

    reply = queue.request_creation(new_id(), dependencies=[first])

    assert reply.json()["status"]["state"] == "pending"


def test_a_task_that_depends_on_itself_waits_until_it_is_scheduled(queue):
    other, id = queue.create(), new_id()
    queue.create(id, dependencies=[id, other])
    queue.claim_and_report(other)
    assert queue.state(id) == "unscheduled"

    assert queue.post(f"/task/{id}/schedule").json()["status"]["state"] == "pending"
    assert queue.post(f"/task/{id}/schedule").json()["status"] == queue.status(id)


def test_an_unknown_dependency_is_rejected_and_the_task_is_not_created(queue):
    id = new_id()

    assert refusal_code(queue.request_creation(id, dependencies=[new_id()])) == (400, "InputError")
    assert queue.get(f"/task/{id}").status_code == 404
    assert queue.message_names() == []


def test_a_dependency_that_ends_before_the_deadline_is_refused(queue):
    first = queue.create(expires=queue.at(HOUR))

    assert refusal_code(queue.request_creation(new_id(), dependencies=[first], deadline=queue.at(2 * HOUR))) == (
        400,
        "InputError",
    )


def test_many_dependents_of_one_task_all_start(queue):
    first = queue.create()
    dependents = [queue.create(dependencies=[first]) for _ in range(60)]

    queue.claim_and_report(first)
    queue.later(0)

    assert {queue.state(id) for id in dependents} == {"pending"}
    assert not Dependency.objects.filter(is_satisfied=False).exists()


def test_dependents_of_a_task_are_listed(queue):
    first = queue.create()
    dependents = sorted(queue.create(dependencies=[first]) for _ in range(3))

    page = queue.get(f"/task/{first}/dependents", limit=2).json()
    rest = queue.get(f"/task/{first}/dependents", continuationToken=page["continuationToken"]).json()

    assert page["taskId"] == first
    assert [each["status"]["taskId"] for each in page["tasks"] + rest["tasks"]] == dependents
    assert "continuationToken" not in rest
    assert queue.get(f"/task/{new_id()}/dependents").status_code == 404


def test_the_last_task_resolves_its_group(queue):
    group = new_id()
    one, other = queue.create(taskGroupId=group), queue.create(taskGroupId=group)

    queue.claim_and_report(one)
    assert "task-group-resolved" not in queue.message_names()
    queue.claim_and_report(other, "failed")

    [message_names] = PulseMessage.objects.filter(name="task-group-resolved")
    assert (message_names.payload["taskGroupId"], message_names.key) == (group, f"primary.{group}.-._")
