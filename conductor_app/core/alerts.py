"""Alerts: the rules that fire them, the kinds of targets with their settings, and the requests that announce them.

The requests have the formats of each system's documentation. Its limits apply to characters: longer texts are cut.
"""

import hmac
import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from .errors import Invalid

COUNT, SHARE, ABSENCE, AGE, BUDGET = VIEW_KINDS = ("count", "share", "absence", "age", "budget")
NEW_CAUSE, RETURNED_CAUSE, UNPOLLED_QUEUE = RULE_KINDS = ("new_cause", "returned_cause", "unpolled_queue")
"""Rules on all workflows or on one. They fire for what was not there at the check before."""
ALERT_KINDS = (*VIEW_KINDS, *RULE_KINDS)
SPENT_PERCENT = 80
"""The default threshold of an alert on budgets."""
MINUTE_MS = 60_000
DAY_MINUTES = 24 * 60
MAX_MINUTES = 7 * DAY_MINUTES


@dataclass(frozen=True, slots=True)
class AlertRule:
    """Condition on the runs of a view, or on budgets of AI steps.

    `threshold`: minimum number of hits (count), minimum percentage of hits (share), number of hits that must be reached
    (absence), minimum age of an open run in minutes (age), or minimum percentage of a budget that is spent (budget).
    An alert repeats at the earliest after `repeat_ms`.
    """

    kind: str
    threshold: int
    window_ms: int
    repeat_ms: int

    @property
    def age_ms(self) -> int:
        """Minimum age of an open run, in milliseconds, for rules of kind `age`."""
        return self.threshold * MINUTE_MS

    def is_met(self, hits: int, total: int) -> bool:
        """Return True if `hits` among `total` runs meet the condition. Of budgets, `hits` is the spent percentage."""
        if self.kind == ABSENCE:
            return hits < self.threshold
        if self.kind == SHARE:
            return total > 0 and hits * 100 >= self.threshold * total
        return hits >= self.limit

    @property
    def limit(self) -> int:
        """Return the threshold in the unit of the measured value: for the kind `age`, one run."""
        return 1 if self.kind == AGE else self.threshold

    def sentence(self, hits: int, total: int) -> str:
        """Describe the measured values and the threshold."""
        if self.kind == AGE:
            return f"{hits} open for {self.threshold} min or longer"
        window = f"in the last {self.window_ms // MINUTE_MS} min"
        if self.kind == SHARE:
            percentage = 100 * hits // total if total else 0
            return f"{hits} of {total} runs {window}: {percentage} % (threshold: {self.threshold} %)"
        limit = f"fewer than {self.threshold}" if self.kind == ABSENCE else f"{self.threshold} or more"
        return f"{hits} {window} (threshold: {limit})"


def find_rule_problem(kind: str, threshold: int, window: int, repeat: int) -> str:
    """Return why these values are no condition of an alert, or an empty text. `window` and `repeat` are in minutes."""
    if kind not in VIEW_KINDS:
        return f"Unknown kind of alert {kind!r}. Use one of: {', '.join(VIEW_KINDS)}."
    most = 100 if kind in (SHARE, BUDGET) else 10**6
    if not 1 <= threshold <= most:
        return f"The threshold must be 1 to {most:,} (got {threshold})."
    if not (1 <= window <= MAX_MINUTES and 1 <= repeat <= MAX_MINUTES):
        return f"The window and the pause must be 1 to {MAX_MINUTES} minutes (got {window} and {repeat})."
    return ""


def measure_at(rule: AlertRule, hits: Sequence[int], total: Sequence[int], moments: Sequence[int]) -> list[float]:
    """Return the value that the rule compares with its threshold at each time: a number of runs, or a percentage.

    `hits` and `total` are those of `find_alert_times`.
    """
    return [_value_at(rule, hits, total, now) for now in moments]


def _value_at(rule: AlertRule, hits: Sequence[int], total: Sequence[int], now: int) -> float:
    if rule.kind == AGE:
        return bisect_right(hits, now) - bisect_right(total, now)
    count = _count_within(hits, now - rule.window_ms, now)
    if rule.kind != SHARE:
        return count
    every = _count_within(total, now - rule.window_ms, now)
    return 100 * count / every if every else 0


def find_alert_times(
    rule: AlertRule, hits: Sequence[int], total: Sequence[int], since: int, until: int
) -> list[tuple[int, int]]:
    """Return each time at which the rule would have fired, checked once a minute, with the number of hits.

    For rules of kind `age`, `hits` are the times at which runs became too old, and `total` the times at which those
    runs ended.
    """
    found: list[tuple[int, int]] = []
    for now in range(since, until + 1, MINUTE_MS):
        if found and now - found[-1][0] < rule.repeat_ms:
            continue
        if rule.kind == AGE:
            count = bisect_right(hits, now) - bisect_right(total, now)
        else:
            count = _count_within(hits, now - rule.window_ms, now)
        if rule.is_met(count, _count_within(total, now - rule.window_ms, now)):
            found.append((now, count))
    return found


def _count_within(moments: Sequence[int], after: int, until: int) -> int:
    return bisect_right(moments, until) - bisect_left(moments, after + 1)


SLACK, TEAMS, PAGERDUTY, WEBHOOK, EMAIL = ALERT_TARGET_KINDS = ("slack", "teams", "pagerduty", "webhook", "email")
INCIDENT_KINDS = frozenset((PAGERDUTY,))
"""Kinds whose incidents stay open until the alert clears."""
MAX_ADDRESSES = 10
MIN_SIGNING_KEY_LENGTH = 8
MIN_REDACTED_LENGTH = 4
"""Shorter parts of an address, such as its path `/in`, are no secrets, and occur in other words."""


@dataclass(frozen=True, slots=True)
class TargetField:
    """One setting of a target. Secret settings are stored encrypted and never displayed."""

    name: str
    is_secret: bool = False
    is_required: bool = True
    is_url: bool = False
    default: str = ""
    choices: tuple[str, ...] = ()
    max_length: int = 1000


# The path of a webhook's address is its password.
ADDRESS = TargetField("url", is_secret=True, is_url=True)
ALERT_TARGET_FIELDS: dict[str, tuple[TargetField, ...]] = {
    SLACK: (ADDRESS,),
    TEAMS: (ADDRESS,),
    PAGERDUTY: (
        TargetField("routing_key", is_secret=True, max_length=64),
        TargetField("severity", default="error", choices=("critical", "error", "warning", "info")),
        TargetField("api_url", is_url=True, default="https://events.pagerduty.com"),
    ),
    WEBHOOK: (ADDRESS, TargetField("signing_key", is_secret=True, is_required=False, max_length=200)),
    EMAIL: (TargetField("addresses"),),
}


def clean_target_settings(kind: str, given: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a target. An empty secret keeps its stored value, unless an address changes.

    Raises:
        Invalid: when the kind is unknown, a setting is missing or invalid, or a stored key would get another address.
    """
    if kind not in ALERT_TARGET_FIELDS:
        raise Invalid(f"Unknown kind of alert target {kind[:40]!r}. Use one of: {', '.join(ALERT_TARGET_KINDS)}.")
    cleaned = {}
    for field in ALERT_TARGET_FIELDS[kind]:
        value = given.get(field.name, "").strip() or (stored.get(field.name, "") if field.is_secret else field.default)
        _check_setting(field, value)
        if value:
            cleaned[field.name] = value
    _refuse_moved_keys(kind, given, stored, cleaned)
    return cleaned


def _refuse_moved_keys(
    kind: str, given: Mapping[str, str], stored: Mapping[str, str], cleaned: Mapping[str, str]
) -> None:
    """Refuse to keep a stored key if an address changes. Otherwise an editor could send the key to itself."""
    fields = ALERT_TARGET_FIELDS[kind]
    addresses = [field for field in fields if field.is_url]
    if all(stored.get(field.name, field.default) == cleaned.get(field.name, "") for field in addresses):
        return
    for field in fields:
        if field.is_secret and field.name in stored and not given.get(field.name, "").strip():
            raise Invalid(f"Enter `{field.name}` again: the address changed, and a stored key stays with its address.")


def _check_setting(field: TargetField, value: str) -> None:
    """Check a setting. The error never contains the value, which may be a secret."""
    if not value and field.is_required:
        raise Invalid(f"Enter a value for `{field.name}`.")
    if len(value) > field.max_length or not value.isprintable():
        raise Invalid(f"`{field.name}` must have at most {field.max_length} printable characters.")
    if value and field.choices and value not in field.choices:
        raise Invalid(f"`{field.name}` must be one of: {', '.join(field.choices)}.")
    if value and field.is_url and not _is_http_address(value):
        raise Invalid(f"`{field.name}` must start with https:// or http:// and name a host.")
    if value and field.name == "signing_key" and len(value) < MIN_SIGNING_KEY_LENGTH:
        raise Invalid(f"`signing_key` must have at least {MIN_SIGNING_KEY_LENGTH} characters.")
    if field.name == "routing_key" and not value.isascii():
        raise Invalid(f"`{field.name}` must have only ASCII characters.")


def _is_http_address(value: str) -> bool:
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


def split_addresses(text: str) -> list[str]:
    """Return the email addresses of a list that is separated by commas or spaces."""
    return [each for each in text.replace(",", " ").split() if each]


def secret_names(kind: str) -> frozenset[str]:
    return frozenset(field.name for field in ALERT_TARGET_FIELDS[kind] if field.is_secret)


def redact_target_secrets(text: str, kind: str, settings: Mapping[str, str]) -> str:
    """Return a text, such as the answer of the target, without the secrets of the target."""
    for value in sorted(_secret_parts(kind, settings), key=len, reverse=True):
        text = text.replace(value, "***")
    return text


def _secret_parts(kind: str, settings: Mapping[str, str]) -> Iterator[str]:
    for name in secret_names(kind):
        value = settings.get(name, "")
        if not value:
            continue
        yield value
        if name == ADDRESS.name:
            parts = urlsplit(value)
            # Errors contain the address without its user, password and query.
            confidential = (parts.path.rstrip("/"), parts.query, parts.password or "")
            yield from (part for part in confidential if len(part) >= MIN_REDACTED_LENGTH)


def displayed_settings(kind: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that pages may show: public ones, and of an address only the host."""
    shown = {name: value for name, value in settings.items() if name not in secret_names(kind)}
    if address := settings.get(ADDRESS.name):
        parts = urlsplit(address)
        shown["host"] = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/…"
    return shown


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


def _json_request(url: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> TargetRequest:
    return TargetRequest(url, json.dumps(body), {"Content-Type": "application/json", **(headers or {})})


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
