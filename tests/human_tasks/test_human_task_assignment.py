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


def to(who, minutes=0, kind="CONDUCTOR_USER"):
    return {"assignee": {"userType": kind, "user": who}, "slaMinutes": minutes}


@pytest.fixture
def asked(clock, db):
    first, then = to("olga", 30), to("sales", 60, "CONDUCTOR_GROUP")
    define_workflow(
        "order", ask(displayName="Approve the order", question="Is the customer known?", assignments=[first, then])
    )
    return start_run("order", correlation_id="order-4711")


def task_of(run):
    return f"{INBOX}{newest_attempt_of(run, 'approve').pk}/"


def inbox(client, assigned="all"):
    return page_text(client.get(INBOX, {"assigned": assigned}))


def test_a_task_is_listed_for_its_assignee_and_later_for_the_next_group(operator, viewer, asked, clock):
    User.objects.get(username="vera").groups.add(Group.objects.create(name="sales"))

    assert "Approve the order Is the customer known? order v1 order-4711 olga" in inbox(operator, "mine")
    assert "No open human tasks" in inbox(viewer, "groups")
    clock.advance(seconds=31 * 60)
    assert "No open human tasks" in inbox(operator, "mine")
    assert "group sales escalated" in inbox(viewer, "groups")
    clock.advance(seconds=60 * 60)
    assert "overdue" in inbox(viewer, "groups")
    assert "1 is overdue" in page_text(operator.get("/admin/"))


def test_a_task_is_claimed_released_and_taken_over_with_audit_entries(operator, asked):
    here = task_of(asked)
    operator.post(here, {"do": "take"})
    assert "claimed by olga" in inbox(operator, "mine")
    operator.post(here, {"do": "put_back"})
    task_id = newest_attempt_of(asked, "approve").task_id
    human_tasks.claim_task(task_id, "ann")

    assert "ann claimed the task" in page_text(operator.get(here))
    refused = operator.post(here, {"outcome": "COMPLETED", "output": "{}"}, follow=True)
    assert "The task is claimed by ann. Claim it first." in page_text(refused)
    operator.post(here, {"do": "take"})
    operator.post(here, {"outcome": "COMPLETED", "output": "{}"})
    assert reload_run(asked).status == "COMPLETED"
    actions = AuditEntry.objects.filter(object_id=asked.pk).order_by("at", "id").values_list("action", "actor")
    assert list(actions)[-4:] == [
        ("release_task", "olga"),
        ("claim_task", "ann"),
        ("claim_task", "olga"),
        ("complete_task", "olga"),
    ]


def test_a_task_is_delegated_until_a_time_with_a_visible_reason(operator, asked, clock):
    Group.objects.create(name="legal")
    said = {"do": "hand_on", "to": "group:legal", "minutes": "20", "reason": "a contract"}
    page = operator.post(task_of(asked), said, follow=True)

    assert "group legal" in page_text(page) and "olga reassigned the task to legal" in page_text(page)
    assert "a contract" in page_text(page)
    assert HumanTask.objects.get().due_at == clock.now() + 20 * 60_000


def test_a_comment_is_stored_and_displayed_as_text(operator, asked):
    page = operator.post(task_of(asked), {"do": "comment", "reason": "<b>wait</b> for Monday"}, follow=True)

    assert "olga commented" in page_text(page) and "&lt;b&gt;wait&lt;/b&gt; for Monday" in html(page)


def test_hostile_forms_of_a_task_are_answered(operator, asked):
    for form in [
        {"do": "comment", "reason": " "},
        {"do": "put_back"},
        {"do": "hand_on"},
        {"do": "hand_on", "to": "user:", "minutes": "x"},
        {"do": "hand_on", "to": "user:\0"},
        {"do": "hand_on", "to": "user:ann", "minutes": "0"},
    ]:
        assert 'class="error"' in html(operator.post(task_of(asked), form, follow=True)), form
        assert not HumanTask.objects.exists(), form


def test_a_viewer_can_neither_claim_nor_complete(viewer, asked):
    assert viewer.post(task_of(asked), {"do": "take"}).status_code == 403


def test_comments_are_deleted_with_the_run(operator, asked):
    operator.post(task_of(asked), {"do": "take"})
    asked.delete()

    assert not HumanTask.objects.exists()
