"""Actions on a single open task, from its panel."""

import pytest
from django.urls import reverse

from conductor_app.access.models import AuditEntry
from conductor_app.runs.commands import control
from tests.builders import policy, step
from tests.page_text import button_names, html, page_text, run_url
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db


@pytest.fixture
def scenario(clock):
    return Scenario(clock, step("pay", policy=policy(retries=2, delay_seconds=600)), step("ship"))


def panel(client, scenario, ref="pay"):
    return client.get(run_url(scenario.row, task=ref))


def act(client, attempt, name, **said):
    return client.post(reverse("admin:task_act", args=[attempt.pk, name]), said, follow=True)


def newest_audit_entry():
    entry = AuditEntry.objects.order_by("-pk")[0]
    return entry.actor, entry.action, entry.reason, entry.facts.get("task")


def test_each_state_offers_its_possible_actions(operator, scenario):
    assert button_names(panel(operator, scenario)) == ["pause", "terminate", "front", "priority", "conclude"]
    scenario.worker("pay").polls()
    assert button_names(panel(operator, scenario))[2:] == ["release", "conclude"]
    scenario.worker("pay").fails()
    assert button_names(panel(operator, scenario))[2:] == ["now", "front", "priority", "conclude"]
    scenario.terminate()
    assert button_names(panel(operator, scenario)) == ["retry", "restart", "rerun"]


def test_a_delayed_retry_is_dispatched_at_once(operator, scenario):
    scenario.worker("pay").fails("no funds")
    assert scenario.queue("pay") == []

    page = act(operator, scenario.task("pay"), "now", reason="the card is topped up")

    assert "Retry delay skipped." in page_text(page)
    assert scenario.queue("pay") == ["pay, attempt 2"]
    assert newest_audit_entry() == ("olga", "skip delay", "the card is topped up", "pay")
    assert "is not delayed" in page_text(act(operator, scenario.task("pay"), "now"))


def test_the_priority_is_changed(operator, scenario):
    act(operator, scenario.task("pay"), "priority", priority="7")

    assert scenario.task("pay").priority == 7
    for odd in ("", "-1", "1000", "x", "²"):
        assert "Not a valid priority" in page_text(act(operator, scenario.task("pay"), "priority", priority=odd))
    assert "The priority must be 0 to 99" in page_text(act(operator, scenario.task("pay"), "priority", priority="100"))


def test_a_task_is_released_from_its_worker(operator, scenario):
    scenario.worker("pay", "w1").polls()

    act(operator, scenario.task("pay"), "release", reason="w1 hangs")

    assert scenario.queue("pay") == ["pay, attempt 1"]
    assert newest_audit_entry() == ("olga", "release from worker", "w1 hangs", "pay")
    assert "No worker holds it" in page_text(act(operator, scenario.task("pay"), "release"))


def test_a_task_is_answered_in_its_workers_place(operator, scenario):
    act(operator, scenario.task("pay"), "conclude", outcome="COMPLETED", output='{"receipt": 1}', reason="paid in cash")

    assert scenario.is_waiting_for("ship") and scenario.task("pay").output == {"receipt": 1}
    assert newest_audit_entry()[:3] == ("olga", "complete_task", "paid in cash")


def test_an_invalid_completion_is_rejected_with_an_explanation(operator, scenario):
    for said, answer in [
        ({"outcome": "COMPLETED", "output": "{"}, "The output is not valid JSON"),
        ({"outcome": "COMPLETED", "output": "[1]"}, "The output must be a JSON object."),
        ({"outcome": "COMPLETED", "output": "[" * 100_000}, "The output is nested too deeply."),
        ({"outcome": "LOST"}, "Unknown outcome"),
    ]:
        assert answer in page_text(act(operator, scenario.task("pay"), "conclude", **said)), answer
        assert scenario.is_waiting_for("pay"), answer


def test_an_action_on_an_ended_task_is_rejected_with_a_link_to_the_reason(operator, scenario):
    attempt = scenario.task("pay")
    control.terminate_run(scenario.id, "ann")

    page = act(operator, attempt, "front")

    assert "it does not wait in a queue" in page_text(page) and f"/admin/why-waiting/{attempt.pk}/" in html(page)


def test_the_button_leads_back_to_where_it_stood(operator, scenario):
    attempt = scenario.task("pay")

    for back, address in (
        ("why_waiting", f"/admin/why-waiting/{attempt.pk}/"),
        ("", run_url(scenario.row, task="pay")),
    ):
        answer = operator.post(reverse("admin:task_act", args=[attempt.pk, "front"]), {"back": back})
        assert answer["Location"] == address


def test_a_viewer_sees_no_actions_and_is_rejected(viewer, operator, scenario):
    attempt = scenario.task("pay")

    assert button_names(panel(viewer, scenario)) == []
    assert viewer.post(reverse("admin:task_act", args=[attempt.pk, "front"])).status_code == 403
    assert operator.get(reverse("admin:task_act", args=[attempt.pk, "front"])).status_code == 405
    assert operator.post(reverse("admin:task_act", args=[attempt.pk, "explode"])).status_code == 404
    assert operator.post(reverse("admin:task_act", args=["nobody", "front"])).status_code == 404


def test_skipping_an_open_task_is_planned(operator, scenario):
    assert "?do=jump&amp;ref=ship" in html(panel(operator, scenario))
    scenario.worker("pay").completes()
    assert "do=jump" not in html(panel(operator, scenario, "ship"))  # no step follows


def test_the_number_of_failures_with_the_same_error_leads_to_their_group(operator, clock):
    scenario = Scenario(clock, step("pay", policy=policy()))
    scenario.worker("pay").fails("502 from gateway\n  at line 42")
    scenario.starts("order")
    scenario.worker("pay").fails("502 from gateway\n  at line 42")
    scenario.later(seconds=5)

    page = panel(operator, scenario)

    assert "All failures with this error: 2" in page_text(page)
    assert "/admin/failures/" in html(page).partition("All failures with this error")[0][-60:]
    assert "at line 42" in html(page).partition("<h3>Reason</h3>")[2].partition("</pre>")[0]
