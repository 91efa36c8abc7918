"""Human tasks by assignee: claim, reassign, release, comment, and answer several at once."""

import pytest
from django.contrib.auth.models import Group, User

from conductor_app.access.models import AuditEntry
from conductor_app.human_tasks import commands as human_tasks
from conductor_app.human_tasks.models import HumanTask
from tests.builders import human
from tests.page_text import html, page_text
from tests.scenario import define_workflow, newest_attempt_of, reload_run, start_run

INBOX = "/admin/human-tasks/"


def ask(**said):
    return human("approve", inputParameters={"__humanTaskDefinition": said})


def assignment(who, minutes=0, kind="CONDUCTOR_USER"):
    return {"assignee": {"userType": kind, "user": who}, "slaMinutes": minutes}


@pytest.fixture
def waiting_run(clock, db):
    first, then = assignment("olga", 30), assignment("sales", 60, "CONDUCTOR_GROUP")
    define_workflow(
        "order", ask(displayName="Approve the order", question="Is the customer known?", assignments=[first, then])
    )
    return start_run("order", correlation_id="order-4711")


def task_of(run):
    return f"{INBOX}{newest_attempt_of(run, 'approve').pk}/"


def inbox(client, assigned="all"):
    return page_text(client.get(INBOX, {"assigned": assigned}))


def test_a_task_is_listed_for_its_assignee_and_later_for_the_next_group(operator, viewer, waiting_run, clock):
    User.objects.get(username="vera").groups.add(Group.objects.create(name="sales"))

    assert "Approve the order Is the customer known? order v1 order-4711 olga" in inbox(operator, "mine")
    assert "No open human tasks" in inbox(viewer, "groups")
    clock.advance(seconds=31 * 60)
    assert "No open human tasks" in inbox(operator, "mine")
    assert "group sales escalated" in inbox(viewer, "groups")
    clock.advance(seconds=60 * 60)
    assert "overdue" in inbox(viewer, "groups")
    assert "1 is overdue" in page_text(operator.get("/admin/"))


def test_a_task_is_claimed_released_and_taken_over_with_audit_entries(operator, waiting_run):
    here = task_of(waiting_run)
    operator.post(here, {"do": "take"})
    assert "claimed by olga" in inbox(operator, "mine")
    operator.post(here, {"do": "put_back"})
    task_id = newest_attempt_of(waiting_run, "approve").task_id
    human_tasks.claim_task(task_id, "ann")

    assert "ann claimed the task" in page_text(operator.get(here))
    refused = operator.post(here, {"outcome": "COMPLETED", "output": "{}"}, follow=True)
    assert "The task is claimed by ann. Claim it first." in page_text(refused)
    operator.post(here, {"do": "take"})
    operator.post(here, {"outcome": "COMPLETED", "output": "{}"})
    assert reload_run(waiting_run).status == "COMPLETED"
    actions = AuditEntry.objects.filter(object_id=waiting_run.pk).order_by("at", "id").values_list("action", "actor")
    assert list(actions)[-4:] == [
        ("release_task", "olga"),
        ("claim_task", "ann"),
        ("claim_task", "olga"),
        ("complete_task", "olga"),
    ]


def test_a_task_is_delegated_until_a_time_with_a_visible_reason(operator, waiting_run, clock):
    Group.objects.create(name="legal")
    said = {"do": "hand_on", "to": "group:legal", "minutes": "20", "reason": "a contract"}
    page = operator.post(task_of(waiting_run), said, follow=True)

    assert "group legal" in page_text(page) and "olga reassigned the task to legal" in page_text(page)
    assert "a contract" in page_text(page)
    assert HumanTask.objects.get().due_at == clock.now() + 20 * 60_000


def test_a_comment_is_stored_and_displayed_as_text(operator, waiting_run):
    page = operator.post(task_of(waiting_run), {"do": "comment", "reason": "<b>wait</b> for Monday"}, follow=True)

    assert "olga commented" in page_text(page) and "&lt;b&gt;wait&lt;/b&gt; for Monday" in html(page)


def test_hostile_forms_of_a_task_are_answered(operator, waiting_run):
    for form in [
        {"do": "comment", "reason": " "},
        {"do": "put_back"},
        {"do": "hand_on"},
        {"do": "hand_on", "to": "user:", "minutes": "x"},
        {"do": "hand_on", "to": "user:\0"},
        {"do": "hand_on", "to": "user:ann", "minutes": "0"},
    ]:
        assert 'class="error"' in html(operator.post(task_of(waiting_run), form, follow=True)), form
        assert not HumanTask.objects.exists(), form


def test_a_viewer_can_neither_claim_nor_complete(viewer, waiting_run):
    assert viewer.post(task_of(waiting_run), {"do": "take"}).status_code == 403


def test_comments_are_deleted_with_the_run(operator, waiting_run):
    operator.post(task_of(waiting_run), {"do": "take"})
    waiting_run.delete()

    assert not HumanTask.objects.exists()
