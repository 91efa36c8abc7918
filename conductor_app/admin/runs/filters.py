"""How the list of runs is narrowed down: the fields of its bar, read into a selection that bulk operations share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import QueryDict
from django.utils.timezone import get_current_timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import clock
from ...core.errors import Invalid
from ...core.states import RUN, TASK
from ...insight.durations import DAY, HOUR, MINUTE, SECOND
from ...models import WorkflowDefinition
from ..badges import exact

MOST_DEFINITIONS = 200
STATUSES = ("RUNNING", "PAUSED", "FAILED", "TIMED_OUT", "TERMINATED", "COMPLETED")
STARTED = {
    "hour": gettext_lazy("Last hour"),
    "today": gettext_lazy("Today"),
    "24h": gettext_lazy("Last 24 hours"),
    "7d": gettext_lazy("Last 7 days"),
}
UNITS = {"ms": 1, "s": SECOND, "min": MINUTE, "m": MINUTE, "h": HOUR, "d": DAY}


def moment(text: str) -> int:
    """A moment as people write it, in the reader's zone, or in milliseconds. Raises Invalid."""
    if text.isdecimal() and len(text) < 16:
        return int(text)
    try:
        said = datetime.fromisoformat(text)
        return int((said if said.tzinfo else said.replace(tzinfo=get_current_timezone())).timestamp() * 1000)
    except (ValueError, OverflowError) as wrong:
        raise Invalid(
            _refusal(_("%(text)s is no moment; they look like 2027-03-01 or 2027-03-01T14:30."), text)
        ) from wrong


def span_of(text: str) -> int:
    """A span as people write it: `90`, `1.5 s`, `3 min`, `2 h`. Raises Invalid."""
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text.strip()[len(number) :].strip() or "s"
    try:
        return int(float(number) * UNITS[unit])
    except (ValueError, KeyError, OverflowError) as wrong:
        raise Invalid(_refusal(_("%(text)s is no span; they look like 30 s, 5 min or 2 h."), text)) from wrong


def whole(text: str) -> int:
    """A whole number. Raises Invalid."""
    if not text.isdecimal() or len(text) > 9:
        raise Invalid(_refusal(_("%(text)s is no whole number."), text))
    return int(text)


def _refusal(sentence: str, text: str) -> str:
    return sentence % {"text": repr(text[:40])}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the bar: its name in the address, its words, the part of a selection it becomes, how it is read."""

    name: str
    label: str
    part: str
    read: Callable[[str], Any] = str
    hint: str = ""


FIELDS: tuple[Field, ...] = (
    Field("q", gettext_lazy("Search"), "search"),
    Field("name", gettext_lazy("Definition"), "definition"),
    Field("version", gettext_lazy("Version"), "version", whole),
    Field("started_since", gettext_lazy("Started since"), "started_since", moment, "2027-03-01T14:30"),
    Field("started_before", gettext_lazy("Started before"), "started_before", moment, "2027-03-02"),
    Field("ended_since", gettext_lazy("Ended since"), "ended_since", moment, "2027-03-01T14:30"),
    Field("ended_before", gettext_lazy("Ended before"), "ended_before", moment, "2027-03-02"),
    Field("least", gettext_lazy("Took at least"), "least_ms", span_of, "30 s"),
    Field("most", gettext_lazy("Took at most"), "most_ms", span_of, "5 min"),
    Field("correlation_id", gettext_lazy("Correlation id"), "correlation_id"),
    Field("idempotency_key", gettext_lazy("Idempotency key"), "idempotency_key"),
    Field("label", gettext_lazy("Label"), "label"),
    Field("parent", gettext_lazy("Started by run"), "parent", hint=gettext_lazy("its id")),
    Field("started_by", gettext_lazy("Started by"), "started_by"),
    Field("schedule", gettext_lazy("Schedule"), "schedule"),
    Field("task", gettext_lazy("Task"), "task", hint="charge:FAILED"),
    Field("error", gettext_lazy("Words of the error"), "error", hint="502 from gateway"),
    Field("inside", gettext_lazy("Value inside"), "inside", hint="input.customer.id=42"),
    Field("failure_group", gettext_lazy("Failure group"), "failure_group", whole),
    Field("refused_of", gettext_lazy("Refused in operation"), "refused_of"),
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
    found = [
        Chip(f.label, _spoken(f, text), _without(given, f.name))
        for f in FIELDS
        if (text := clean(given.get(f.name, "")))
    ]
    if preset := STARTED.get(given.get("started", "")):
        found.append(Chip(_("Started"), preset, _without(given, "started")))
    for status in statuses_of(given):
        others = [other for other in statuses_of(given) if other != status]
        kept = _copied(given, "status")
        kept.setlist("status", others)
        found.append(Chip(_("Status"), status, f"?{kept.urlencode()}"))
    return found


def _spoken(field: Field, text: str) -> str:
    """What was asked for; a moment in milliseconds as a person would say it."""
    return exact(int(text)) if field.read is moment and text.isdecimal() and len(text) < 15 else text


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
