"""Alert targets: forms for each kind, tests with the real answer, retries, and incidents that end with their alert."""

import json
import logging
import re
from threading import Event

import pytest
from django.core import mail

from conductor_app.access import encryption
from conductor_app.access.models import AuditEntry
from conductor_app.alerts import commands as alert_targets
from conductor_app.alerts import commands as alerts
from conductor_app.alerts import notifier as alert_notifier
from conductor_app.alerts.models import Alert, AlertFiring, AlertTarget, SavedView
from conductor_app.events.workers.publisher import publish_due_events
from conductor_app.runs.models import Message
from tests.builders import step
from tests.page_text import html, page_text
from tests.recording_web_server import json_answer, running_web_server
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db
TARGETS, ALERTS = "/admin/alert-targets/", "/admin/alerts/"
ACCEPTED = json_answer({"status": "success", "message": "Event processed"}, 202)
FORMS = {
    "slack": {"url": "https://hooks.slack.com/services/T0/B0/p4ssw0rd"},
    "teams": {"url": "https://prod.logic.azure.com/workflows/1?sig=p4ssw0rd"},
    "pagerduty": {"routing_key": "p4ssw0rd", "severity": "critical", "api_url": "https://events.eu.pagerduty.com"},
    "webhook": {"url": "https://bot:p4ssw0rd@example.org/hook", "signing_key": "p4ssw0rd"},
    "email": {"addresses": "ann@example.com, bob@example.com"},
}


@pytest.fixture
def server(settings):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    with running_web_server() as server:
        yield server


def target_of(kind: str, **settings: str) -> AlertTarget:
    return alert_targets.create_target(kind, f"A {kind}", settings, "olga")


def pagerduty_target(server) -> AlertTarget:
    server.answers["/v2/enqueue"] = ACCEPTED
    return target_of("pagerduty", routing_key="k" * 32, api_url=server.url)


def alert_on_failures(clock, *targets: AlertTarget) -> Alert:
    """Return an alert that fires for three failures in ten minutes, and let three runs fail."""
    view = SavedView.objects.create(name="Failed", owner="olga", selection={"status": ["FAILED"]}, created_at=0)
    alert = alerts.save_alert(view, "count", 3, 10, 30, "olga", targets=[target.pk for target in targets])
    scenario = Scenario(clock, step("pay"))
    for _ in range(2):
        scenario.starts("order")
    for _ in range(3):
        scenario.worker("pay").fails("no luck")
    return alert


def check_and_publish() -> None:
    alerts.check_due_alerts(10)
    publish_due_events()


def bodies(server, path: str = "/v2/enqueue") -> list[dict]:
    return [json.loads(asked["body"]) for asked in server.asked if asked["path"].startswith(path)]


@pytest.mark.parametrize("kind", FORMS)
def test_a_target_of_each_kind_is_created_with_a_form_of_its_own_fields(operator, kind):
    form = html(operator.get(f"{TARGETS}new/{kind}/"))
    assert all(f'name="{name}"' in form for name in FORMS[kind])

    answer = operator.post(f"{TARGETS}new/{kind}/", {"name": "Ops", **FORMS[kind]})

    row = AlertTarget.objects.get()
    assert answer["Location"] == f"{TARGETS}{row.pk}/"
    assert alert_targets.target_settings(row).items() >= FORMS[kind].items()
    assert "Ops" in page_text(operator.get(ALERTS))
    entry = AuditEntry.objects.get(object_type="alert target")
    assert entry.action == "create" and "p4ssw0rd" not in str(entry.facts)


def test_the_address_of_a_webhook_is_readable_while_it_is_typed_and_not_shown_again(operator):
    empty = html(operator.get(f"{TARGETS}new/webhook/"))
    refused = html(operator.post(f"{TARGETS}new/webhook/", {"name": "", "url": "https://example.org/p4ssw0rd"}))

    assert re.search(r'<input type="url" name="url"', empty)
    assert "the saved view or rule (view)" in " ".join(empty.split()), "it explains what the receiver gets"
    assert re.search(r'<input type="password" name="signing_key"', empty) and "p4ssw0rd" not in refused


@pytest.mark.parametrize("kind", sorted(set(FORMS) - {"email"}))
def test_no_page_shows_the_secrets_of_a_target(operator, viewer, kind):
    operator.post(f"{TARGETS}new/{kind}/", {"name": "Ops", **FORMS[kind]})
    row = AlertTarget.objects.get()

    for client in (operator, viewer):
        for address in (ALERTS, f"{TARGETS}{row.pk}/"):
            assert "p4ssw0rd" not in html(client.get(address))
    assert "p4ssw0rd" not in row.sealed + str(row.settings)


def test_an_empty_secret_is_kept_and_a_new_one_replaces_it(operator):
    row = target_of("slack", url="https://hooks.slack.com/services/old")
    page = f"{TARGETS}{row.pk}/"

    operator.post(page, {"do": "save", "name": "Renamed", "url": ""})
    assert alert_targets.target_settings(AlertTarget.objects.get())["url"].endswith("/old")
    operator.post(page, {"do": "save", "name": "Renamed", "url": "https://hooks.slack.com/services/new"})
    assert alert_targets.target_settings(AlertTarget.objects.get())["url"].endswith("/new")


def test_only_a_secret_that_is_set_is_said_to_be_stored(operator):
    row = target_of("webhook", url=FORMS["webhook"]["url"])
    form = operator.get(f"{TARGETS}{row.pk}/").context["form"]
    assert "Stored" in form.fields["url"].help_text and "Stored" not in form.fields["signing_key"].help_text

    operator.post(f"{TARGETS}{row.pk}/", {"do": "save", "name": row.name, "url": "", "signing_key": "p4ssw0rd"})

    assert "Stored" in operator.get(f"{TARGETS}{row.pk}/").context["form"].fields["signing_key"].help_text


@pytest.mark.parametrize("kind", ["pagerduty", "webhook"])
def test_a_stored_key_stays_with_its_address(operator, kind):
    row = target_of(kind, **FORMS[kind])
    page = f"{TARGETS}{row.pk}/"
    key, address = ("routing_key", "api_url") if kind == "pagerduty" else ("signing_key", "url")
    moved = {"do": "save", "name": "Mine", **FORMS[kind], key: "", address: "https://evil.example.org"}

    assert f"Enter `{key}` again" in page_text(operator.post(page, moved))
    assert alert_targets.target_settings(AlertTarget.objects.get())[address] == FORMS[kind][address]

    operator.post(page, {**moved, key: "another-key"})
    settings = alert_targets.target_settings(AlertTarget.objects.get())
    assert (settings[address], settings[key]) == ("https://evil.example.org", "another-key")


def test_an_invalid_form_is_shown_again_with_the_reason(operator):
    answer = operator.post(f"{TARGETS}new/email/", {"name": "Ops", "addresses": "ann@example.com, no address"})

    assert "'no' is not a valid email address." in page_text(answer)
    target_of("slack", url="https://hooks.slack.com/x")
    answer = operator.post(f"{TARGETS}new/slack/", {"name": "A slack", "url": "https://hooks.slack.com/y"})
    assert "already exists" in page_text(answer)
    assert operator.get(f"{TARGETS}new/fax/").status_code == 404


@pytest.mark.parametrize(("host", "is_warned"), [("localhost", True), ("mail.example.com", False)])
def test_the_form_of_a_target_by_email_warns_if_no_mail_server_is_set(operator, settings, host, is_warned):
    settings.EMAIL_HOST = host

    assert ("No mail server is set" in page_text(operator.get(f"{TARGETS}new/email/"))) is is_warned
    assert "No mail server is set" not in page_text(operator.get(f"{TARGETS}new/slack/"))


def test_a_viewer_reads_targets_and_changes_none(viewer):
    row = target_of("slack", url="https://hooks.slack.com/x")

    assert "you need the permission to change runs" in page_text(viewer.get(f"{TARGETS}{row.pk}/"))
    assert viewer.get(f"{TARGETS}new/slack/").status_code == 403
    for do in ("test", "save", "delete"):
        assert viewer.post(f"{TARGETS}{row.pk}/", {"do": do}).status_code == 403
    assert not Message.objects.exists() and AlertTarget.objects.exists()


def test_a_test_shows_the_answer_of_the_target(operator, server):
    server.answers["/services/p4ssw0rd"] = (200, {}, b"ok")
    row = target_of("slack", url=f"{server.url}/services/p4ssw0rd")
    page = f"{TARGETS}{row.pk}/"

    operator.post(page, {"do": "test"})
    assert "sending" in page_text(operator.get(page))
    publish_due_events()

    text = page_text(operator.get(page))
    assert "delivered" in text and "200 OK: ok" in text
    assert "This is a test of the alert target A slack, sent by olga." in server.asked[0]["body"]
    assert "200 OK: ok" in page_text(operator.get(f"{page}live/"))


def test_a_failed_test_shows_the_error_without_secrets_and_is_not_repeated(operator, server, caplog):
    server.answers["/services/p4ssw0rd"] = (404, {}, b"no_service at /services/p4ssw0rd")
    row = target_of("slack", url=f"{server.url}/services/p4ssw0rd")
    page = f"{TARGETS}{row.pk}/"

    with caplog.at_level(logging.DEBUG, "conductor_app"):
        operator.post(page, {"do": "test"})
        publish_due_events()

    text = page_text(operator.get(page))
    assert "not delivered, 1 try" in text and "404 Not Found: no_service at ***" in text
    assert "p4ssw0rd" not in text + caplog.text + str(AlertFiring.objects.values())
    assert not Message.objects.exists()


def test_a_test_of_an_incident_system_opens_and_closes_an_incident(operator, server):
    row = pagerduty_target(server)

    operator.post(f"{TARGETS}{row.pk}/", {"do": "test"})
    publish_due_events()

    assert len(server.asked) == 2
    assert AlertFiring.objects.get().answer.count("202 Accepted") == 2


def test_a_target_whose_kind_is_no_longer_supported_is_shown_and_gets_nothing(clock, operator, server):
    row, refusal = pagerduty_target(server), "Delete the target, and create one of another kind."
    AlertTarget.objects.update(kind="opsgenie")
    alert_on_failures(clock, row)
    page = f"{TARGETS}{row.pk}/"

    check_and_publish()

    assert not server.asked and not Message.objects.exists()
    assert AlertFiring.objects.get().error.endswith(refusal)
    assert refusal in page_text(operator.get(page)) and 'value="save"' not in html(operator.get(page))
    for address in (ALERTS, "/admin/budgets/"):
        assert "opsgenie" in html(operator.get(address))
    operator.post(page, {"do": "save", "name": "Ops"})
    assert AlertTarget.objects.get().name == row.name
    operator.post(page, {"do": "delete"})
    assert not AlertTarget.objects.exists()


def test_the_network_guard_refuses_private_addresses(operator, settings):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ()
    with running_web_server() as server:
        row = target_of("webhook", url=f"{server.url}/hook")
        operator.post(f"{TARGETS}{row.pk}/", {"do": "test"})
        publish_due_events()

    assert "is not a public address" in AlertFiring.objects.get().error and not server.asked


def test_an_alert_reaches_targets_of_all_kinds(clock, server, settings):
    settings.CONDUCTOR_PUBLIC_URL = "https://conductor.example.org"
    for path in ("/slack", "/teams", "/hook", "/v2/enqueue"):
        server.answers[path] = ACCEPTED
    alert = alert_on_failures(
        clock,
        target_of("slack", url=f"{server.url}/slack"),
        target_of("teams", url=f"{server.url}/teams"),
        target_of("webhook", url=f"{server.url}/hook", signing_key="p4ssw0rd"),
        target_of("pagerduty", routing_key="k" * 32, api_url=server.url),
        target_of("email", addresses="ann@example.com bob@example.com"),
    )

    check_and_publish()

    assert {asked["path"] for asked in server.asked} == set(server.answers)
    assert all(f"https://conductor.example.org/admin/alerts/{alert.pk}/" in asked["body"] for asked in server.asked)
    assert [message.to for message in mail.outbox] == [["ann@example.com", "bob@example.com"]]
    assert AlertFiring.objects.filter(delivered_at__isnull=False).count() == 5


def test_an_alert_that_clears_resolves_its_incident(clock, server):
    alert = alert_on_failures(clock, pagerduty_target(server), target_of("email", addresses="ann@example.com"))
    check_and_publish()
    clock.advance(seconds=601)

    check_and_publish()
    clock.advance(seconds=61)
    check_and_publish()

    opened, closed = bodies(server)
    assert (opened["event_action"], closed["event_action"]) == ("trigger", "resolve")
    assert opened["dedup_key"] == closed["dedup_key"]
    assert len(mail.outbox) == 1
    alert.refresh_from_db()
    assert alert.incident_at is None


def test_repeated_firings_belong_to_one_incident_and_a_later_one_opens_another(clock, server):
    alert = alert_on_failures(clock, pagerduty_target(server))
    Alert.objects.filter(pk=alert.pk).update(window_minutes=60)
    check_and_publish()
    clock.advance(seconds=31 * 60)
    check_and_publish()
    clock.advance(seconds=31 * 60)
    check_and_publish()
    scenario = Scenario(clock, step("ship"))
    for _ in range(2):
        scenario.starts("order")
    for _ in range(3):
        scenario.worker("ship").fails("no luck")
    clock.advance(seconds=61)
    check_and_publish()

    keys = [body["dedup_key"] for body in bodies(server)]
    assert [body["event_action"] for body in bodies(server)] == ["trigger", "trigger", "resolve", "trigger"]
    assert keys[0] == keys[1] == keys[2] != keys[3]


@pytest.mark.parametrize("is_view", [False, True], ids=["alert", "view"])
def test_a_deleted_alert_resolves_its_incident(clock, server, is_view):
    alert = alert_on_failures(clock, pagerduty_target(server))
    check_and_publish()

    alerts.remove_view(alert.view_id, "olga") if is_view else alerts.remove_alert(alert.pk, "olga")
    publish_due_events()

    assert [body["event_action"] for body in bodies(server)] == ["trigger", "resolve"]


def test_a_firing_that_cannot_be_delivered_opens_no_incident_after_the_alert_has_cleared(clock, server):
    alert_on_failures(clock, pagerduty_target(server))
    server.answers["/v2/enqueue"] = [(500, {}, b"broken"), ACCEPTED]
    check_and_publish()
    clock.advance(seconds=601)

    check_and_publish()

    assert [body["event_action"] for body in bodies(server)] == ["trigger", "resolve"]
    first = AlertFiring.objects.order_by("pk")[0]
    assert first.delivered_at is None and "cleared" in first.error
    assert not Message.objects.exists()


def test_a_target_that_limits_the_rate_is_notified_after_the_pause_that_it_demands(clock, server):
    alert_on_failures(clock, pagerduty_target(server))
    server.answers["/v2/enqueue"] = [json_answer({"status": "throttle"}, 429, **{"Retry-After": "90"}), ACCEPTED]
    check_and_publish()
    assert "429 Too Many Requests" in AlertFiring.objects.get().error

    clock.advance(seconds=89)
    publish_due_events()
    assert len(server.asked) == 1
    clock.advance(seconds=2)
    publish_due_events()

    assert len(server.asked) == 2
    row = AlertFiring.objects.get()
    assert row.delivered_at and not row.error and row.tries == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("Mon, 01 Mar 2027 12:01:30 GMT", 90), ("Mon, 01 Mar 2027 11:00:00 GMT", 1), ("soon", 1), ("9" * 40, 3600)],
)
def test_the_pause_may_be_a_date_and_is_limited(clock, server, header, seconds):
    server.answers["/hook"] = (429, {"Retry-After": header}, b"")
    alert_on_failures(clock, target_of("webhook", url=f"{server.url}/hook"))

    check_and_publish()

    assert Message.objects.get().due_at - clock.now() == seconds * 1000


@pytest.mark.parametrize("status", [500, 503, 400, 403])
def test_a_refused_notification_is_repeated(clock, server, status):
    server.answers["/hook"] = [(status, {}, b"no"), (204, {}, b"")]
    alert_on_failures(clock, target_of("webhook", url=f"{server.url}/hook"))
    check_and_publish()
    assert str(status) in AlertFiring.objects.get().error

    clock.advance(seconds=2)
    publish_due_events()

    assert AlertFiring.objects.get().answer == "204 No Content"


def test_a_target_that_does_not_answer_is_given_up_after_the_timeout_and_tried_again(clock, server, monkeypatch):
    monkeypatch.setattr(alert_notifier, "TIMEOUT_MS", 200)
    released = Event()
    server.answers["/hook"] = (200, {}, b"")
    answer_to = server.answer_to
    server.answer_to = lambda path: (released.wait(30), answer_to(path))[1]
    alert_on_failures(clock, target_of("webhook", url=f"{server.url}/hook"))

    check_and_publish()
    assert "the server sent no data" in AlertFiring.objects.get().error
    released.set()
    clock.advance(seconds=2)
    publish_due_events()

    assert AlertFiring.objects.get().delivered_at


def test_one_target_that_fails_does_not_delay_the_others(clock, server):
    server.answers |= {"/bad": (500, {}, b""), "/good": (200, {}, b"")}
    bad = target_of("slack", url=f"{server.url}/bad")
    good = target_of("webhook", url=f"{server.url}/good")
    alert_on_failures(clock, bad, good)

    check_and_publish()

    assert {row.recipient: bool(row.delivered_at) for row in AlertFiring.objects.all()} == {
        "A slack": False,
        "A webhook": True,
    }


def test_notifications_of_a_deleted_target_are_dropped(clock, server, operator):
    target = pagerduty_target(server)
    alert_on_failures(clock, target)
    alerts.check_due_alerts(10)

    operator.post(f"{TARGETS}{target.pk}/", {"do": "delete"})
    publish_due_events()

    assert not Message.objects.exists() and not server.asked
    assert AlertFiring.objects.get().error == "The target was deleted."
    assert "No targets" in page_text(operator.get(ALERTS))


def test_the_outbox_has_no_secrets(clock, server):
    alert_on_failures(clock, pagerduty_target(server))

    alerts.check_due_alerts(10)

    assert "k" * 32 not in str(Message.objects.get().facts)


def test_secrets_are_encrypted_again_with_the_newest_key(settings):
    row = target_of("slack", url="https://hooks.slack.com/services/x")
    settings.CONDUCTOR_SECRETS_KEYS = ("another key",)

    assert alert_targets.reencrypt_targets() == 1

    row.refresh_from_db()
    assert encryption.is_current(row.sealed)
    assert alert_targets.target_settings(row)["url"] == "https://hooks.slack.com/services/x"


def test_a_target_whose_secrets_no_key_decrypts_says_so(operator, server, settings):
    row = target_of("slack", url=f"{server.url}/x")
    AlertTarget.objects.filter(pk=row.pk).update(seal_name="another name")

    operator.post(f"{TARGETS}{row.pk}/", {"do": "test"})
    publish_due_events()

    assert "No key of this server decrypts" in AlertFiring.objects.get().error
    assert not Message.objects.exists()
    operator.post(f"{TARGETS}{row.pk}/", {"do": "save", "name": "Again", "url": f"{server.url}/y"})
    assert alert_targets.target_settings(AlertTarget.objects.get())["url"] == f"{server.url}/y"


def test_pages_of_targets_take_few_queries(operator, clock, server, django_assert_max_num_queries):
    target = pagerduty_target(server)
    alert_on_failures(clock, target)
    check_and_publish()
    operator.get(ALERTS)

    for address in (ALERTS, f"{TARGETS}{target.pk}/"):
        with django_assert_max_num_queries(15):
            operator.get(address)
