"""The kinds of alert targets: the systems that alerts are sent to, and the settings that each of them needs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from .errors import Invalid

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
    """Return the settings of a target. An empty secret keeps its stored value.

    Raises:
        Invalid: when the kind is unknown, or a setting is missing or invalid.
    """
    if kind not in ALERT_TARGET_FIELDS:
        raise Invalid(f"Unknown kind of alert target {kind[:40]!r}. Use one of: {', '.join(ALERT_TARGET_KINDS)}.")
    cleaned = {}
    for field in ALERT_TARGET_FIELDS[kind]:
        value = given.get(field.name, "").strip() or (stored.get(field.name, "") if field.is_secret else field.default)
        _check_setting(field, value)
        if value:
            cleaned[field.name] = value
    return cleaned


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
    """Return the names of the secret settings of a kind."""
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
