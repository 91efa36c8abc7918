"""Formats of requests to alert targets as JSON Schemas, written from the public documentation of each system.

Slack: incoming webhooks and Block Kit. Teams: workflow webhooks and Adaptive Cards 1.4. PagerDuty: Events API v2.
The schemas permit only documented members.
"""

from typing import Any


def text(most: int, **more: Any) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": most, **more}


def closed(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


URL = {"type": "string", "pattern": "^https?://"}
TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"}

SLACK_TEXT = {
    "oneOf": [
        closed({"type": {"const": "mrkdwn"}, "text": text(3000)}, "type", "text"),
        closed({"type": {"const": "plain_text"}, "text": text(3000)}, "type", "text"),
    ]
}
SLACK = closed(
    {
        "text": text(40_000),
        "blocks": {
            "type": "array",
            "maxItems": 50,
            "items": {
                "oneOf": [
                    closed({"type": {"const": "section"}, "text": SLACK_TEXT}, "type", "text"),
                    closed(
                        {
                            "type": {"const": "context"},
                            "elements": {"type": "array", "minItems": 1, "maxItems": 10, "items": SLACK_TEXT},
                        },
                        "type",
                        "elements",
                    ),
                ]
            },
        },
    },
    "text",
)

TEXT_BLOCK = closed(
    {
        "type": {"const": "TextBlock"},
        "text": text(10_000),
        "size": {"enum": ["Default", "Small", "Medium", "Large", "ExtraLarge"]},
        "weight": {"enum": ["Default", "Lighter", "Bolder"]},
        "wrap": {"type": "boolean"},
    },
    "type",
    "text",
)
FACT_SET = closed(
    {
        "type": {"const": "FactSet"},
        "facts": {"type": "array", "items": closed({"title": text(100), "value": text(1000)}, "title", "value")},
    },
    "type",
    "facts",
)
CARD = closed(
    {
        "$schema": {"const": "http://adaptivecards.io/schemas/adaptive-card.json"},
        "type": {"const": "AdaptiveCard"},
        "version": {"enum": ["1.0", "1.1", "1.2", "1.3", "1.4"]},
        "body": {"type": "array", "items": {"oneOf": [TEXT_BLOCK, FACT_SET]}},
        "actions": {
            "type": "array",
            "maxItems": 6,
            "items": closed({"type": {"const": "Action.OpenUrl"}, "title": text(100), "url": URL}, "type", "url"),
        },
    },
    "type",
    "version",
    "body",
)
TEAMS = closed(
    {
        "type": {"const": "message"},
        "attachments": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": closed(
                {
                    "contentType": {"const": "application/vnd.microsoft.card.adaptive"},
                    "contentUrl": {"type": "null"},
                    "content": CARD,
                },
                "contentType",
                "content",
            ),
        },
    },
    "type",
    "attachments",
)

ROUTING = {"routing_key": text(32, minLength=32), "dedup_key": text(255)}
PAGERDUTY = {
    "oneOf": [
        closed(
            {
                **ROUTING,
                "event_action": {"const": "trigger"},
                "client": text(255),
                "client_url": URL,
                "links": {"type": "array", "items": closed({"href": URL, "text": text(255)}, "href")},
                "payload": closed(
                    {
                        "summary": text(1024),
                        "source": text(255),
                        "severity": {"enum": ["critical", "error", "warning", "info"]},
                        "timestamp": TIME,
                        "custom_details": {"type": "object"},
                    },
                    "summary",
                    "source",
                    "severity",
                ),
            },
            "routing_key",
            "event_action",
            "payload",
        ),
        closed(
            {**ROUTING, "event_action": {"enum": ["acknowledge", "resolve"]}},
            "routing_key",
            "event_action",
            "dedup_key",
        ),
    ]
}

SCHEMAS = {
    "slack": SLACK,
    "teams": TEAMS,
    "pagerduty": PAGERDUTY,
}
