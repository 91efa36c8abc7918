"""Saved views and alerts: saved on a page, tested against past data, sent to a webhook and by mail, and logged."""

import re

import pytest
from django.core import mail

from conductor_app.alerts import commands as alerts
from conductor_app.alerts.commands import create_target
from conductor_app.alerts.models import Alert, AlertFiring, AlertTarget, SavedView
from conductor_app.events.workers.publisher import publish_due_events
from conductor_app.web.charts import PLOT_HEIGHT, TOP
from tests.builders import step
from tests.page_text import html, page_text
from tests.recording_web_server import running_web_server
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db
VIEWS, ALERTS = "/admin/views/", "/admin/alerts/"


@pytest.fixture
def scenario(clock) -> Scenario:
    """Return three runs that failed within a minute."""
    scenario = Scenario(clock, step("pay"))
    for _ in range(2):
        scenario.starts("order")
    for _ in range(3):
        clock.advance(seconds=10)
        scenario.worker("pay").fails("no luck")
    return scenario


def save_view(operator, **more) -> SavedView:
    form = {"do": "save", "title": "Failed orders", "status": "FAILED", "definition": "order", **more}
    assert operator.post(VIEWS, form)["Location"].startswith("/admin/conductor/run/")
    return SavedView.objects.latest("pk")


def alert_form(view: SavedView) -> dict[str, str]:
    """Return the form of an alert on at least three runs of a view in ten minutes, sent to a mailbox."""
    form = {"do": "save", "kind": "count", "threshold": "3", "window": "10", "repeat": "60", "target": mailbox()}
    return form | {"view": str(view.pk)}


def create_alert(operator, view: SavedView, **more) -> Alert:
    operator.post(ALERTS, alert_form(view) | more)
    return Alert.objects.last()


def mailbox() -> str:
    """Return the id of a target that is a mailbox."""
    known = AlertTarget.objects.filter(kind="email").first()
    return str((known or create_target("email", "Ann", {"addresses": "ann@example.com"}, "olga")).pk)


def test_a_view_is_saved_shown_and_deleted(operator, viewer, scenario):
    page = f"{VIEWS}{save_view(operator).pk}/"

    assert operator.get(page)["Location"] == "/admin/conductor/run/?name=order&status=FAILED"
    assert "Failed orders" in page_text(operator.get(VIEWS))
    assert "Failed orders" not in page_text(viewer.get(VIEWS))
    assert viewer.get(page).status_code == 404
    save_view(operator, is_shared="on")
    assert viewer.get(page)["Location"] == "/admin/conductor/run/?name=order&status=FAILED"

    operator.post(VIEWS, {"do": "remove", "view": str(SavedView.objects.get().pk)})
    assert not SavedView.objects.exists()


def test_a_filtered_list_offers_to_save_the_view(operator, scenario):
    listed = operator.get("/admin/conductor/run/?status=FAILED&least=1").content.decode()
    assert f"{VIEWS}?from_list=yes&amp;" in listed
    page = page_text(operator.get(f"{VIEWS}?from_list=yes&status=FAILED&least=1"))
    assert "Save a view Runs with status FAILED, that took at least 1.0 s" in page
    assert "unknown run status" in page_text(operator.get(VIEWS, {"status": "ODD"})).lower()


def test_an_alert_is_tested_on_the_last_seven_days(operator, scenario, clock):
    view = save_view(operator)
    clock.advance(seconds=3600)

    alert = create_alert(operator, view)

    assert "would have fired 1 time" in page_text(operator.get(ALERTS, {"try": alert.pk}))


def test_an_alert_fires_once_by_mail_and_webhook(operator, scenario, clock, settings):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    settings.CONDUCTOR_PUBLIC_URL = "https://conductor.example.org"
    view = save_view(operator)
    with running_web_server() as server:
        server.answers["/hook"] = (200, {}, b"")
        hook = create_target("webhook", "Hook", {"url": f"{server.url}/hook"}, "olga")
        create_alert(operator, view, target=[mailbox(), str(hook.pk)])
        for _ in range(3):
            alerts.check_due_alerts(10)
            publish_due_events()
            clock.advance(seconds=61)

    assert [message.to for message in mail.outbox] == [["ann@example.com"]]
    assert "Failed orders: 3 in the last 10 min" in mail.outbox[0].body
    [link] = re.findall(r"^https://conductor\.example\.org(/\S+)$", mail.outbox[0].body, re.MULTILINE)
    assert operator.get(link)["Location"] == "/admin/conductor/run/?name=order&status=FAILED"
    assert len(server.asked) == 1 and "Failed orders" in server.asked[0]["body"]
    assert f"https://conductor.example.org{link}" in server.asked[0]["body"]
    assert {ring.channel for ring in AlertFiring.objects.filter(delivered_at__isnull=False)} == {"email", "webhook"}
    assert "delivered" in page_text(operator.get(ALERTS))


def test_an_alert_names_the_error_of_the_latest_failure(operator, scenario, clock):
    clock.advance(seconds=1)
    scenario.starts("order")
    scenario.worker("pay").fails("Traceback (most recent call last):\n  File 'pay.py', line 1\nKeyError: 'zip'")
    create_alert(operator, save_view(operator))

    alerts.check_due_alerts(10)

    sentence = AlertFiring.objects.get(channel="email").sentence
    assert sentence.startswith("Failed orders: 4 in the last 10 min")
    assert sentence.endswith(". Latest failure: pay: KeyError: 'zip'")


def test_failed_deliveries_of_alerts_are_logged(operator, scenario):
    view = save_view(operator)
    hook = create_target("webhook", "Hook", {"url": "http://127.0.0.1:9/hook"}, "olga")
    create_alert(operator, view, target=str(hook.pk))

    alerts.check_due_alerts(10)
    publish_due_events()

    ring = AlertFiring.objects.get()
    assert ring.delivered_at is None and ring.error
    assert "not delivered" in page_text(operator.get(ALERTS))


def test_an_alert_below_its_threshold_does_not_fire(operator, scenario):
    create_alert(operator, save_view(operator), threshold="4")

    alerts.check_due_alerts(10)

    assert not AlertFiring.objects.exists()


def test_hostile_alerts_are_refused(operator, scenario):
    whole = alert_form(save_view(operator))
    for form in [
        {},
        {"kind": "odd"},
        {"target": []},
        {"target": "999"},
        {"target": "x"},
        {"view": "999"},
        {"window": "0"},
        {"threshold": "0"},
        {"threshold": "x"},
    ]:
        assert operator.post(ALERTS, (whole | form) if form else {"do": "save"}, follow=True).status_code == 200, form
        assert not Alert.objects.exists(), form


def test_a_viewer_saves_views_but_no_alerts(viewer, scenario):
    view = save_view(viewer)

    assert "you need the permission to change runs" in page_text(viewer.get(ALERTS))
    assert viewer.post(ALERTS, alert_form(view)).status_code == 403


def test_an_alert_watches_no_view_that_the_user_may_not_see(operator, scenario):
    other = alerts.save_view("Mine", {"status": ["FAILED"]}, "ann")

    assert "No such view" in page_text(operator.post(ALERTS, alert_form(other), follow=True))
    assert not Alert.objects.exists()


def test_a_saved_view_leads_to_an_alert_on_it(operator, scenario):
    view = save_view(operator)

    address = f"{ALERTS}?view={view.pk}"
    assert f'<a href="{address}#add">Add an alert</a>' in html(operator.get("/admin/conductor/run/"))
    assert operator.get(address).context["chosen_view"] == str(view.pk)


def test_pages_of_views_take_few_queries(operator, scenario, django_assert_max_num_queries):
    view = save_view(operator)
    create_alert(operator, view)
    operator.get(VIEWS)
    for address in (VIEWS, f"{ALERTS}?try={Alert.objects.get().pk}"):
        with django_assert_max_num_queries(15):
            operator.get(address)


def test_the_count_of_a_pinned_view_is_on_the_overview(operator, viewer, scenario):
    save_view(operator, is_tile="on")

    assert "3 Failed orders" in page_text(operator.get("/admin/view-tiles/"))
    assert 'data-live="/admin/view-tiles/live/"' in html(operator.get("/admin/"))
    assert "No tiles" in page_text(viewer.get("/admin/view-tiles/"))


def test_an_alert_on_age_fires_for_runs_open_too_long(operator, scenario, clock):
    scenario.starts("order")
    view = save_view(operator, status="RUNNING")
    alert = create_alert(operator, view, kind="age", threshold="30")

    alerts.check_due_alerts(10)
    assert not AlertFiring.objects.exists()
    clock.advance(seconds=31 * 60)
    alerts.check_due_alerts(10)

    assert "1 open for 30 min or longer" in AlertFiring.objects.get().sentence
    assert "one open for at least 30 min" in page_text(operator.get(ALERTS))
    assert "would have fired 1 time" in page_text(operator.get(ALERTS, {"try": alert.pk}))


def test_the_back_test_draws_the_measured_values_and_the_threshold(operator, scenario, clock):
    view = save_view(operator)
    clock.advance(seconds=3600)

    shown = operator.get(ALERTS, {"try": create_alert(operator, view).pk})

    # Three failures reach the threshold of 3 an hour ago, in the last bar of two hours, and the axis ends at 4.
    chart, drawn = shown.context["chart"], html(shown)
    assert (chart.threshold.value, chart.highest, chart.time_range.count) == (3, 4, 84)
    quiet, fired = chart.series
    assert (fired.values[-1], fired.total, quiet.total) == (3, 3, 0)
    assert "Threshold 3" in drawn and f'y1="{TOP + PLOT_HEIGHT / 4:.1f}"' in drawn.partition('class="limit"')[2][:120]
    assert drawn.count('<rect class="failed"') == 1


def test_a_bar_of_an_absence_alert_has_the_lowest_value(operator, scenario, clock):
    view = save_view(operator)
    clock.advance(seconds=1800)
    alert = create_alert(operator, view, kind="absence", threshold="1", repeat="10080")

    chart = operator.get(ALERTS, {"try": alert.pk}).context["chart"]

    assert chart.series[0].values[-1] == 0 and chart.threshold.value == 1


@pytest.mark.parametrize("kind", ["share", "age", "count", "absence"])
def test_a_back_test_without_runs_is_drawn(operator, scenario, clock, kind):
    view = save_view(operator, definition="other")

    shown = html(operator.get(ALERTS, {"try": create_alert(operator, view, kind=kind).pk}))

    assert shown.count('<rect class="room"') == 84 and "Threshold" in shown
