"""How the list of runs is narrowed down: the fields of its bar, read into a selection that bulk operations share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import QueryDict
from django.utils.timezone import get_current_timezone

from ... import clock
from ...core.errors import Invalid
from ...core.states import RUN, TASK
from ...insight.spans import DAY, HOUR, MINUTE, SECOND
from ...models import WorkflowDefinition

MOST_DEFINITIONS = 200
STATUSES = ("RUNNING", "PAUSED", "FAILED", "TIMED_OUT", "TERMINATED", "COMPLETED")
STARTED = {"hour": "Last hour", "today": "Today", "24h": "Last 24 hours", "7d": "Last 7 days"}
UNITS = {"ms": 1, "s": SECOND, "min": MINUTE, "m": MINUTE, "h": HOUR, "d": DAY}


def moment(text: str) -> int:
    """A moment as people write it, in the reader's zone, or in milliseconds. Raises Invalid."""
    if text.isdecimal() and len(text) < 16:
        return int(text)
    try:
        said = datetime.fromisoformat(text)
        return int((said if said.tzinfo else said.replace(tzinfo=get_current_timezone())).timestamp() * 1000)
    except (ValueError, OverflowError) as wrong:
        raise Invalid(f"{text[:40]!r} is no moment; they look like 2027-03-01 or 2027-03-01T14:30.") from wrong


def span_of(text: str) -> int:
    """A span as people write it: `90`, `1.5 s`, `3 min`, `2 h`. Raises Invalid."""
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text.strip()[len(number) :].strip() or "s"
    try:
        return int(float(number) * UNITS[unit])
    except (ValueError, KeyError, OverflowError) as wrong:
        raise Invalid(f"{text[:40]!r} is no span; they look like 30 s, 5 min or 2 h.") from wrong


def whole(text: str) -> int:
    """A whole number. Raises Invalid."""
    if not text.isdecimal() or len(text) > 9:
        raise Invalid(f"{text[:40]!r} is no whole number.")
    return int(text)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the bar: its name in the address, its words, the part of a selection it becomes, how it is read."""

    name: str
    label: str
    part: str
    read: Callable[[str], Any] = str
    hint: str = ""


FIELDS: tuple[Field, ...] = (
    Field("q", "Search", "search"),
    Field("name", "Definition", "definition"),
    Field("version", "Version", "version", whole),
    Field("started_since", "Started since", "started_since", moment, "2027-03-01T14:30"),
    Field("started_before", "Started before", "started_before", moment, "2027-03-02"),
    Field("ended_since", "Ended since", "ended_since", moment, "2027-03-01T14:30"),
    Field("ended_before", "Ended before", "ended_before", moment, "2027-03-02"),
    Field("least", "Took at least", "least_ms", span_of, "30 s"),
    Field("most", "Took at most", "most_ms", span_of, "5 min"),
    Field("correlation_id", "Correlation id", "correlation_id"),
    Field("idempotency_key", "Idempotency key", "idempotency_key"),
    Field("parent", "Started by run", "parent", hint="its id"),
    Field("started_by", "Started by", "started_by"),
    Field("schedule", "Schedule", "schedule"),
    Field("task", "Task", "task", hint="charge:FAILED"),
    Field("error", "Words of the error", "error", hint="502 from gateway"),
    Field("inside", "Value inside", "inside", hint="input.customer.id=42"),
    Field("failure_group", "Failure group", "failure_group", whole),
    Field("refused_of", "Refused in operation", "refused_of"),
)
EVERYDAY = ("q", "name")
MORE = tuple(field for field in FIELDS if field.name not in (*EVERYDAY, "failure_group", "refused_of"))
"""Those behind `More filters`."""
TASK_STATUSES = tuple(sorted(TASK.statuses))


def selection_of(given: QueryDict) -> dict[str, Any]:
    """What the address asks for, as a selection. Raises Invalid."""
    found: dict[str, Any] = {}
    for field in FIELDS:
        if text := clean(given.get(field.name, "")):
            found[field.part] = field.read(text)
    if statuses := statuses_of(given):
        found["status"] = statuses
    if (since := _since(given.get("started", ""))) is not None:
        found["started_since"] = max(since, found.get("started_since", 0))
    return found


def clean(text: str) -> str:
    return text.strip().replace("\0", "")[:1000]


def statuses_of(given: QueryDict) -> list[str]:
    """The statuses that are asked for, several or with commas between them."""
    words = [word for value in given.getlist("status") for word in clean(value).upper().split(",")]
    return [word for word in dict.fromkeys(words) if word]


def _since(preset: str) -> int | None:
    now = clock.now()
    return {"hour": now - HOUR, "today": now - now % DAY, "24h": now - DAY, "7d": now - 7 * DAY}.get(preset)


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter that holds: what it says, and the address without it."""

    label: str
    value: str
    remove: str


def chips(given: QueryDict) -> list[Chip]:
    """The filters that hold, each with its way out."""
    found = [Chip(f.label, text, _without(given, f.name)) for f in FIELDS if (text := clean(given.get(f.name, "")))]
    if preset := STARTED.get(given.get("started", "")):
        found.append(Chip("Started", preset, _without(given, "started")))
    for status in statuses_of(given):
        others = [other for other in statuses_of(given) if other != status]
        kept = _copied(given, "status")
        kept.setlist("status", others)
        found.append(Chip("Status", status, f"?{kept.urlencode()}"))
    return found


def _without(given: QueryDict, name: str) -> str:
    return f"?{_copied(given, name).urlencode()}"


def _copied(given: QueryDict, *left_out: str) -> QueryDict:
    kept = given.copy()
    for name in (*left_out, "after", "before"):
        kept.pop(name, None)
    return kept


def address_with(given: QueryDict, **other: str) -> str:
    """The same filters, with something else beside them."""
    kept = _copied(given, *other)
    for name, value in other.items():
        if value:
            kept[name] = value
    return f"?{kept.urlencode()}"


def definitions(chosen: str) -> list[str]:
    """Names of definitions to choose from: those changed last, and the chosen one."""
    newest = WorkflowDefinition.objects.order_by("-id").values_list("name", flat=True)[: 2 * MOST_DEFINITIONS]
    return sorted(dict.fromkeys([*filter(None, [chosen]), *newest]))[:MOST_DEFINITIONS]


def bar(given: QueryDict) -> Mapping[str, Any]:
    """What the bar shows."""
    chosen = statuses_of(given)
    return {
        "q": given.get("q", ""),
        "statuses": [(status, status in chosen) for status in STATUSES if status in RUN.statuses],
        "definition": given.get("name", ""),
        "definitions": definitions(given.get("name", "")),
        "started": given.get("started", ""),
        "presets": STARTED.items(),
        "more": [(field, given.get(field.name, "")) for field in MORE],
        "is_open": any(given.get(field.name) for field in MORE),
        "chips": chips(given),
        "sort": given.get("sort", ""),
    }
