"""Standalone tasks on the operators' pages: search, display, actions, and their place in queues."""

import pytest
from django.urls import reverse

from conductor_app.access.models import AuditEntry
from conductor_app.runs.models import Attempt, Task
from conductor_app.site.admin import MODEL_ADMINS
from conductor_app.taskcluster.commands import tasks as claims
from conductor_app.taskcluster.commands import tasks as task_commands
from conductor_app.web.links import queue_address, standalone_task_address, task_group_address
from tests.taskcluster.conftest import new_id
from tests.taskcluster.test_groups_parallel import LINUX, create

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def task_ids(db, clock, monkeypatch):
    """Return the ids of three tasks: one claimed, one failed, and one that depends on the first."""
    monkeypatch.setattr(claims, "CLAIM_WAIT_SECONDS", 0.0)
    create(clock, name="pending")
    create(clock, name="claimed")
    held, done = claims.claim_tasks(LINUX, "here", "w1", 2)
    task_commands.report_task(done.standalone.id, 0, "failed")
    waiting = create(clock, name=HOSTILE, requires=(done.standalone.id,), definition={"payload": HOSTILE})
    return held.standalone.id, done.standalone.id, waiting


def page(client, address: str) -> str:
    reply = client.get(address)
    assert reply.status_code == 200, address
    return reply.content.decode()


def test_every_list_and_queue_page_displays_standalone_tasks(task_ids, operator):
    ours = [model for model in MODEL_ADMINS if model._meta.app_label == "conductor"]
    lists = [reverse(f"admin:conductor_{model._meta.model_name}_changelist") for model in ours]
    pages = [reverse(f"admin:{name}") for name in ("queues", "workers", "system", "search")]
    attempt = Attempt.objects.filter(task_id=task_ids[0]).get().pk

    for address in ["/admin/", *lists, *pages, queue_address(LINUX), f"/admin/search/?q={task_ids[0]}"]:
        assert operator.get(address, follow=True).status_code == 200, address
    assert operator.get(f"/admin/why-waiting/{attempt}/").status_code == 404


def test_the_list_of_tasks_is_that_of_their_groups(operator):
    assert operator.get("/admin/conductor/standalonetask/")["Location"] == "/admin/conductor/taskgroup/"


def test_the_palette_leads_to_tasks_and_groups_by_their_ids(task_ids, operator):
    held = task_ids[0]

    hits = page(operator, f"/admin/search/hits/?q={held}")

    assert standalone_task_address(held) in hits
    assert task_group_address(held) in hits
    assert standalone_task_address(held) not in page(operator, f"/admin/search/hits/?q={held[:12]}")


def test_the_audit_leads_to_their_pages(task_ids, operator):
    operator.post(standalone_task_address(task_ids[0]), {"do": "cancel"})
    operator.post(task_group_address(task_ids[0]), {"do": "seal"})

    audit = page(operator, "/admin/conductor/auditentry/")
    assert standalone_task_address(task_ids[0]) in audit
    assert task_group_address(task_ids[0]) in audit


def test_its_page_displays_resolution_dependencies_and_messages(task_ids, viewer):
    _, done, waiting = task_ids

    assert "here/w1" in page(viewer, standalone_task_address(done))
    assert "task-failed" in page(viewer, standalone_task_address(done))
    shown = page(viewer, standalone_task_address(waiting))
    assert standalone_task_address(done) in shown
    assert HOSTILE not in shown
    assert 'name="do"' not in shown


def test_an_operator_acts_on_it_and_the_audit_records_the_reason(task_ids, operator):
    held, done, waiting = task_ids

    for id, verb in ((waiting, "schedule"), (done, "rerun"), (held, "cancel")):
        reply = operator.post(standalone_task_address(id), {"do": verb, "reason": "because"})
        assert reply.status_code == 302

    assert [Task.objects.get(pk=id).status for id in (waiting, done, held)] == ["ACTIVE", "ACTIVE", "CANCELED"]
    entries = AuditEntry.objects.filter(object_type="task").order_by("id")
    assert [(e.action, e.object_id, e.actor, e.reason) for e in entries] == [
        ("schedule", waiting, "olga", "because"),
        ("rerun", done, "olga", "because"),
        ("cancel", held, "olga", "because"),
    ]


def test_a_rejected_action_is_reported_and_not_audited(task_ids, operator, clock):
    clock.advance(seconds=4000)

    reply = operator.post(standalone_task_address(task_ids[0]), {"do": "cancel"}, follow=True)

    assert "The deadline of task" in reply.content.decode()
    assert not AuditEntry.objects.filter(object_type="task").exists()


def test_a_viewer_cannot_act(task_ids, viewer):
    assert viewer.post(standalone_task_address(task_ids[0]), {"do": "cancel"}).status_code == 403
    assert Task.objects.get(pk=task_ids[0]).status == "ACTIVE"


def test_an_unknown_task_is_not_found(task_ids, operator):
    assert operator.get(standalone_task_address(new_id())).status_code == 404
