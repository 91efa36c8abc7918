"""Requests that announce an alert to Slack, Microsoft Teams, PagerDuty and other systems.

The formats are those of each system's documentation. Its limits apply to characters: longer texts are cut.
"""

import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from .alert_targets import INCIDENT_KINDS, PAGERDUTY, SLACK, TEAMS, WEBHOOK

TRIGGER, RESOLVE, TEST = "trigger", "resolve", "test"
Settings = Mapping[str, str]
TITLES = {TRIGGER: "Alert", RESOLVE: "Resolved", TEST: "Test of an alert target"}
SOURCE = "Conductor"


@dataclass(frozen=True, slots=True)
class AlertNotice:
    """What a target is notified of. `incident` is the same for the notices that open, repeat and close an incident."""

    event: str
    view: str
    sentence: str
    at: int
    incident: str
    alert: int | None = None
    link: str = ""

    @property
    def iso_time(self) -> str:
        """Return the time in ISO 8601."""
        return f"{datetime.fromtimestamp(self.at / 1000, UTC):%Y-%m-%dT%H:%M:%S}Z"

    def document(self) -> dict[str, Any]:
        """Return the notice as JSON for the outbox."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TargetRequest:
    """A POST request to a target."""

    url: str
    body: str
    headers: Mapping[str, str]


def requests_for(kind: str, settings: Settings, notice: AlertNotice, message_id: str) -> list[TargetRequest]:
    """Return the requests that announce a notice. A test of a kind with incidents opens one and closes it."""
    build = BUILDERS[kind]
    if notice.event != TEST or kind not in INCIDENT_KINDS:
        return [build(settings, notice, message_id)]
    facts = notice.document()
    return [build(settings, AlertNotice(**facts | {"event": each}), message_id) for each in (TRIGGER, RESOLVE)]


def _json_request(url: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> TargetRequest:
    return TargetRequest(url, json.dumps(body), {"Content-Type": "application/json", **(headers or {})})


def _slack_request(settings: Settings, notice: AlertNotice, message_id: str) -> TargetRequest:
    text = f"*{TITLES[notice.event]}: {_escape_slack(notice.view)}*\n{_escape_slack(notice.sentence)}"
    if notice.link:
        text += f"\n<{notice.link}|Show the runs>"
    blocks = [
        {"type": "section", "text": {"type": "mrkdwn", "text": text[:3000]}},
        {"type": "context", "elements": [{"type": "plain_text", "text": f"{SOURCE} · {notice.iso_time}"}]},
    ]
    # `text` is the notification. The blocks are the message.
    return _json_request(settings["url"], {"text": _escape_slack(notice.sentence)[:3000], "blocks": blocks})


def _escape_slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _teams_request(settings: Settings, notice: AlertNotice, message_id: str) -> TargetRequest:
    title = {"type": "TextBlock", "size": "Medium", "weight": "Bolder", "wrap": True}
    facts = [{"title": "View", "value": notice.view}, {"title": "Time", "value": notice.iso_time}]
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            {**title, "text": f"{TITLES[notice.event]}: {notice.view}"},
            {"type": "TextBlock", "text": notice.sentence[:2000], "wrap": True},
            {"type": "FactSet", "facts": facts},
        ],
    }
    if notice.link:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Show the runs", "url": notice.link}]
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return _json_request(settings["url"], {"type": "message", "attachments": [attachment]})


def _pagerduty_request(settings: Settings, notice: AlertNotice, message_id: str) -> TargetRequest:
    event: dict[str, Any] = {"routing_key": settings["routing_key"], "dedup_key": notice.incident[:255]}
    if notice.event == RESOLVE:
        event["event_action"] = "resolve"
    else:
        details = {"view": notice.view, "alert": notice.alert}
        event |= {
            "event_action": "trigger",
            "client": SOURCE,
            "payload": {
                "summary": notice.sentence[:1024],
                "source": SOURCE,
                "severity": settings["severity"],
                "timestamp": notice.iso_time,
                "custom_details": details,
            },
        }
        if notice.link:
            event |= {"client_url": notice.link, "links": [{"href": notice.link, "text": "Show the runs"}]}
    return _json_request(f"{settings['api_url'].rstrip('/')}/v2/enqueue", event)


def _webhook_request(settings: Settings, notice: AlertNotice, message_id: str) -> TargetRequest:
    """Return a request whose signature covers its time, so that a recorded request cannot be repeated later."""
    body = {"view": notice.view, "sentence": notice.sentence, "at": notice.at, "alert": notice.alert}
    body |= {"event": notice.event, **({"address": notice.link} if notice.link else {})}
    request = _json_request(settings["url"], body, {"X-Conductor-Message-Id": message_id})
    if not (key := settings.get("signing_key")):
        return request
    seconds = str(notice.at // 1000)
    signature = hmac.new(key.encode(), f"{seconds}.{request.body}".encode(), sha256).hexdigest()
    signed = {"X-Conductor-Timestamp": seconds, "X-Conductor-Signature": f"sha256={signature}"}
    return TargetRequest(request.url, request.body, {**request.headers, **signed})


BUILDERS: dict[str, Callable[[Settings, AlertNotice, str], TargetRequest]] = {
    SLACK: _slack_request,
    TEAMS: _teams_request,
    PAGERDUTY: _pagerduty_request,
    WEBHOOK: _webhook_request,
}
"""The builder of a request for each kind, except email."""
