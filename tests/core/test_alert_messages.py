"""Requests to alert targets, checked against the documented formats of the systems."""

import hmac
import json
from hashlib import sha256

import pytest
from jsonschema import Draft202012Validator

from conductor_app.core.alerts import (
    ALERT_TARGET_FIELDS,
    AlertNotice,
    clean_target_settings,
    displayed_settings,
    redact_target_secrets,
    requests_for,
)
from conductor_app.core.errors import Invalid
from tests.core.alert_target_schemas import SCHEMAS

LINK = "https://conductor.example.org/admin/alerts/7/"
SETTINGS = {
    "slack": {"url": "https://hooks.slack.com/services/T0/B0/secret-path"},
    "teams": {"url": "https://prod.logic.azure.com/workflows/1/triggers/manual?sig=secret-sig"},
    "pagerduty": {"routing_key": "a" * 32, "severity": "error", "api_url": "https://events.pagerduty.com"},
    "webhook": {"url": "https://example.org/hook?token=secret-token", "signing_key": "s3cret"},
}


def notice(event: str = "trigger", **more) -> AlertNotice:
    facts = {
        "view": "Failed <orders>",
        "sentence": "Failed <orders>: 12 in the last 10 min (threshold: 3 or more)",
        "at": 1_803_902_400_000,
        "incident": "conductor-alert-7-1803902400000",
        "alert": 7,
        "link": LINK,
    }
    return AlertNotice(event, **facts | more)


def parts(kind: str, sent: AlertNotice) -> tuple[str, dict, dict]:
    """Return the address, the headers and the document of the only request."""
    [request] = requests_for(kind, SETTINGS[kind], sent, "message-1")
    return request.url, dict(request.headers), json.loads(request.body)


@pytest.mark.parametrize("event", ["trigger", "resolve", "test"])
@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("text", ["short", "long", "empty"])
def test_a_request_has_the_documented_format(kind, event, text):
    more = {"short": {}, "long": {"sentence": "x" * 40_000, "view": "v" * 120}, "empty": {"link": "", "alert": None}}

    for request in requests_for(kind, SETTINGS[kind], notice(event, **more[text]), "message-1"):
        errors = [error.message for error in Draft202012Validator(SCHEMAS[kind]).iter_errors(json.loads(request.body))]
        assert errors == []
        assert request.headers["Content-Type"] == "application/json"


def test_slack_gets_text_without_markup_of_the_view():
    url, _, body = parts("slack", notice())

    assert url == SETTINGS["slack"]["url"]
    assert "Failed &lt;orders&gt;" in body["blocks"][0]["text"]["text"] and "<orders>" not in body["text"]
    assert f"<{LINK}|Show the runs>" in body["blocks"][0]["text"]["text"]


def test_teams_gets_an_adaptive_card_with_a_button():
    _, _, body = parts("teams", notice())

    [attachment] = body["attachments"]
    assert attachment["content"]["actions"] == [{"type": "Action.OpenUrl", "title": "Show the runs", "url": LINK}]


def test_the_same_key_triggers_and_resolves_an_incident_of_pagerduty():
    (url, _, opened), (_, _, closed) = (
        parts("pagerduty", notice()),
        parts("pagerduty", notice("resolve")),
    )

    assert url == "https://events.pagerduty.com/v2/enqueue"
    assert (opened["event_action"], closed["event_action"]) == ("trigger", "resolve")
    assert opened["dedup_key"] == closed["dedup_key"]
    assert opened["payload"]["timestamp"] == "2027-03-01T12:00:00Z"


def test_a_test_closes_the_incident_that_it_opens():
    requests = requests_for("pagerduty", SETTINGS["pagerduty"], notice("test"), "message-1")

    assert [json.loads(request.body)["event_action"] for request in requests] == ["trigger", "resolve"]


def test_the_signature_of_a_webhook_covers_its_time_and_its_body():
    [request] = requests_for("webhook", SETTINGS["webhook"], notice(), "message-1")

    signed = f"{request.headers['X-Conductor-Timestamp']}.{request.body}"
    expected = hmac.new(b"s3cret", signed.encode(), sha256).hexdigest()
    assert request.headers["X-Conductor-Signature"] == f"sha256={expected}"
    assert request.headers["X-Conductor-Timestamp"] == "1803902400"
    assert request.headers["X-Conductor-Message-Id"] == "message-1"


def test_a_webhook_without_a_key_is_not_signed():
    [request] = requests_for("webhook", {"url": "https://example.org/"}, notice(), "message-1")

    assert not {name for name in request.headers if name.startswith("X-Conductor-S")}


@pytest.mark.parametrize("kind", SETTINGS)
def test_texts_about_a_target_lose_its_secrets(kind):
    secrets = [value for value in SETTINGS[kind].values() if "secret" in value or "aaa" in value]

    text = redact_target_secrets(f"refused: {' '.join(secrets)}", kind, SETTINGS[kind])

    assert secrets and not any(secret in text for secret in secrets)


def test_an_error_that_quotes_the_path_of_a_webhook_loses_it():
    settings = {"url": "https://bot:secret@example.org/hooks/secret?token=secret"}

    text = redact_target_secrets("no connection (POST https://example.org/hooks/secret)", "slack", settings)

    assert text == "no connection (POST https://example.org***)"


@pytest.mark.parametrize("kind", ALERT_TARGET_FIELDS)
def test_displayed_settings_have_no_secret(kind):
    shown = displayed_settings(kind, SETTINGS.get(kind, {"addresses": "ann@example.com"}))

    assert "secret" not in str(shown) and "aaaa" not in str(shown)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("fax", {}),
        ("slack", {}),
        ("slack", {"url": "ftp://example.org"}),
        ("slack", {"url": "https:///path"}),
        ("slack", {"url": "https://example.org/\nHost: evil"}),
        ("webhook", {"url": "https://example.org:99999/"}),
        ("webhook", {"url": "https://example.org/", "signing_key": "short"}),
        ("pagerduty", {"routing_key": ""}),
        ("pagerduty", {"routing_key": "k", "severity": "odd"}),
        ("pagerduty", {"routing_key": "schlüssel"}),
        ("email", {"addresses": ""}),
    ],
    ids=str,
)
def test_invalid_settings_are_refused_without_quoting_them(kind, given):
    with pytest.raises(Invalid) as refused:
        clean_target_settings(kind, given, {})

    assert not any(value and value in refused.value.message for value in given.values())


def test_an_empty_secret_keeps_its_value_and_other_settings_get_their_default():
    stored = {"routing_key": "old", "severity": "critical"}

    cleaned = clean_target_settings("pagerduty", {"routing_key": " ", "severity": ""}, stored)

    assert cleaned == {"routing_key": "old", "severity": "error", "api_url": "https://events.pagerduty.com"}
