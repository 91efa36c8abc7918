"""What an operator may do to one task that is under way, from its panel."""

import pytest
from django.urls import reverse

from conductor_app.engine.runs import run_commands
from conductor_app.models import AuditEntry
from tests.admin.reading import button_names, html, page_text, run_url
from tests.builders import policy, step
from tests.story import Story

pytestmark = pytest.mark.django_db


@pytest.fixture
def story(clock):
    return Story(clock, step("pay", policy=policy(retries=2, delay_seconds=600)), step("ship"))


def panel(client, story, ref="pay"):
    return client.get(run_url(story.row, task=ref))


def act(client, attempt, name, **said):
    return client.post(reverse("admin:task_act", args=[attempt.pk, name]), said, follow=True)


def noted():
    entry = AuditEntry.objects.order_by("-pk")[0]
    return entry.actor, entry.action, entry.reason, entry.facts.get("task")


def test_each_state_offers_its_possible_actions(operator, story):
    assert button_names(panel(operator, story)) == ["pause", "terminate", "front", "priority", "conclude"]
    story.worker("pay").polls()
    assert button_names(panel(operator, story))[2:] == ["release", "conclude"]
    story.worker("pay").fails()
    assert button_names(panel(operator, story))[2:] == ["now", "front", "priority", "conclude"]
    story.terminate()
    assert button_names(panel(operator, story)) == ["retry", "restart", "rerun"]


def test_a_delayed_retry_is_dispatched_at_once(operator, story):
    story.worker("pay").fails("no funds")
    assert story.queue("pay") == []

    page = act(operator, story.task("pay"), "now", reason="the card is topped up")

    assert "Retry delay skipped." in page_text(page)
    assert story.queue("pay") == ["pay, attempt 2"]
    assert noted() == ("olga", "hand out now", "the card is topped up", "pay")
    assert "is not delayed" in page_text(act(operator, story.task("pay"), "now"))


def test_the_priority_is_changed(operator, story):
    act(operator, story.task("pay"), "priority", priority="7")

    assert story.task("pay").priority == 7
    for odd in ("", "-1", "1000", "x", "²"):
        assert "Not a valid priority" in page_text(act(operator, story.task("pay"), "priority", priority=odd))
    assert "The priority must be 0 to 99" in page_text(act(operator, story.task("pay"), "priority", priority="100"))


def test_a_task_is_released_from_its_worker(operator, story):
    story.worker("pay", "w1").polls()

    act(operator, story.task("pay"), "release", reason="w1 hangs")

    assert story.queue("pay") == ["pay, attempt 1"]
    assert noted() == ("olga", "take from worker", "w1 hangs", "pay")
    assert "No worker holds it" in page_text(act(operator, story.task("pay"), "release"))


def test_a_task_is_answered_in_its_workers_place(operator, story):
    act(operator, story.task("pay"), "conclude", outcome="COMPLETED", output='{"receipt": 1}', reason="paid in cash")

    assert story.is_waiting_for("ship") and story.task("pay").output == {"receipt": 1}
    assert noted()[:3] == ("olga", "complete_task", "paid in cash")


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ({"outcome": "COMPLETED", "output": "{"}, "The output is not valid JSON"),
        ({"outcome": "COMPLETED", "output": "[1]"}, "The output must be a JSON object."),
        ({"outcome": "COMPLETED", "output": "[" * 100_000}, "The output is nested too deeply."),
        ({"outcome": "LOST"}, "Unknown outcome"),
    ],
)
def test_an_invalid_completion_is_rejected_with_an_explanation(operator, story, said, answer):
    assert answer in page_text(act(operator, story.task("pay"), "conclude", **said))
    assert story.is_waiting_for("pay")


def test_an_action_on_an_ended_task_is_rejected_with_a_link_to_the_reason(operator, story):
    attempt = story.task("pay")
    run_commands.terminate_run(story.id, "ann")

    page = act(operator, attempt, "front")

    assert "it does not wait in a queue" in page_text(page) and f"/admin/turn/{attempt.pk}/" in html(page)


def test_the_button_leads_back_to_where_it_stood(operator, story):
    attempt = story.task("pay")

    for back, address in (("turn", f"/admin/turn/{attempt.pk}/"), ("", run_url(story.row, task="pay"))):
        answer = operator.post(reverse("admin:task_act", args=[attempt.pk, "front"]), {"back": back})
        assert answer["Location"] == address


def test_a_viewer_sees_no_actions_and_is_rejected(viewer, operator, story):
    attempt = story.task("pay")

    assert button_names(panel(viewer, story)) == []
    assert viewer.post(reverse("admin:task_act", args=[attempt.pk, "front"])).status_code == 403
    assert operator.get(reverse("admin:task_act", args=[attempt.pk, "front"])).status_code == 405
    assert operator.post(reverse("admin:task_act", args=[attempt.pk, "explode"])).status_code == 404
    assert operator.post(reverse("admin:task_act", args=["nobody", "front"])).status_code == 404


def test_skipping_an_open_task_is_planned(operator, story):
    assert "?do=jump&amp;ref=ship" in html(panel(operator, story))
    story.worker("pay").completes()
    assert "do=jump" not in html(panel(operator, story, "ship"))  # nothing comes behind it


def test_the_same_error_elsewhere_leads_to_its_group(operator, clock):
    story = Story(clock, step("pay", policy=policy()))
    story.worker("pay").fails("502 from gateway\n  at line 42")
    story.starts("order")
    story.worker("pay").fails("502 from gateway\n  at line 42")
    story.later(seconds=5)

    page = panel(operator, story)

    assert "The same error elsewhere: 1" in page_text(page)
    assert "/admin/failures/" in html(page).partition("The same error elsewhere")[0][-60:]
    assert "at line 42" in html(page).partition("<summary>Complete error</summary>")[2]
