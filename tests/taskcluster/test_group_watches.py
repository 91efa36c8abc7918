"""Group subscriptions: one mail when a task group reaches the requested state."""

import pytest
from django.core import mail
from django.urls import reverse

from conductor_app.core.errors import Conflict, Invalid
from conductor_app.events.workers.publisher import publish_due_events
from conductor_app.taskcluster.commands import artifacts as expiry
from conductor_app.taskcluster.commands import groups as watches
from conductor_app.taskcluster.commands import tasks as claims
from conductor_app.taskcluster.commands import tasks as task_actions
from conductor_app.taskcluster.commands import tasks as task_commands
from conductor_app.taskcluster.models import GroupWatch

from .test_groups_parallel import LINUX, create

ANN = "ann@example.org"


@pytest.fixture
def group(db, clock, monkeypatch) -> str:
    """Create a group of two tasks that can both be claimed."""
    monkeypatch.setattr(claims, "CLAIM_WAIT_SECONDS", 0.0)
    first = create(clock, name="first")
    clock.advance(seconds=1)
    create(clock, name="second", group_id=first)
    return first


def done(how: str) -> None:
    [claim] = claims.claim_tasks(LINUX, "here", "w1", 1)
    task_commands.report_task(claim.standalone.id, 0, how)


def told() -> list[str]:
    """Run the job and return the mails that it sent."""
    mail.outbox.clear()
    watches.check_watched_groups(10)
    publish_due_events()
    return [message.subject for message in mail.outbox]


def test_the_end_of_a_group_is_notified_one_time(group):
    watches.watch_group(group, "resolved", ANN, "olga")
    done("failed")
    assert told() == []

    done("completed")
    assert told() == [f"Conductor: All 2 tasks of task group {group} are resolved; 1 of them were not successful."]
    assert told() == []


def test_the_first_failure_of_a_group_is_notified(group):
    watches.watch_group(group, "failed", ANN, "olga")
    done("completed")
    assert told() == []

    done("failed")
    assert told() == [f"Conductor: In task group {group}, task second was not successful: FAILED."]


def test_past_and_invalid_events_are_refused(group):
    done("failed")

    with pytest.raises(Conflict):
        watches.watch_group(group, "failed", ANN, "olga")
    with pytest.raises(Invalid):
        watches.watch_group(group, "started", ANN, "olga")
    with pytest.raises(Invalid):
        watches.watch_group(group, "resolved", "no address", "olga")


def test_an_operator_adds_and_removes_a_watch_on_the_page(group, client, django_user_model):
    client.force_login(django_user_model.objects.create_superuser("olga", email=ANN, password="x"))
    do, there = (reverse(f"admin:{name}", args=[group]) for name in ("group_do", "conductor_taskgroup_change"))

    client.post(do, {"do": "watch", "event": "failed", "mail": ANN})
    assert f"{ANN} is notified of the first failure" in client.get(there).content.decode()
    [row] = GroupWatch.objects.all()
    client.post(do, {"do": "unwatch", "watch": str(row.pk)})
    assert not GroupWatch.objects.exists()


def test_a_watch_is_deleted_with_its_group(group, clock):
    watches.watch_group(group, "resolved", ANN, "olga")
    task_actions.apply_action("cancel", group, "olga")
    clock.advance(seconds=100 * 86_400)

    expiry.delete_expired_tasks(10)

    assert not GroupWatch.objects.exists()
