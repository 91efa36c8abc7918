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
from ..badges import exact_time

MAX_DEFINITIONS = 200
STATUSES = ("RUNNING", "PAUSED", "FAILED", "TIMED_OUT", "TERMINATED", "COMPLETED")
START_PRESETS = {
    "hour": gettext_lazy("Last hour"),
    "today": gettext_lazy("Today"),
    "24h": gettext_lazy("Last 24 hours"),
    "7d": gettext_lazy("Last 7 days"),
}
UNIT_MS = {"ms": 1, "s": SECOND, "min": MINUTE, "m": MINUTE, "h": HOUR, "d": DAY}


def parse_time(text: str) -> int:
    """A moment as people write it, in the reader's zone, or in milliseconds. Raises Invalid."""
    if text.isdecimal() and len(text) < 16:
        return int(text)
    try:
        parsed = datetime.fromisoformat(text)
        return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=get_current_timezone())).timestamp() * 1000)
    except (ValueError, OverflowError) as wrong:
        raise Invalid(
            _format_refusal(_("%(text)s is no moment; they look like 2027-03-01 or 2027-03-01T14:30."), text)
        ) from wrong


def parse_duration(text: str) -> int:
    """A span as people write it: `90`, `1.5 s`, `3 min`, `2 h`. Raises Invalid."""
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text.strip()[len(number) :].strip() or "s"
    try:
        return int(float(number) * UNIT_MS[unit])
    except (ValueError, KeyError, OverflowError) as wrong:
        raise Invalid(_format_refusal(_("%(text)s is no span; they look like 30 s, 5 min or 2 h."), text)) from wrong


def parse_integer(text: str) -> int:
    """A whole number. Raises Invalid."""
    if not text.isdecimal() or len(text) > 9:
        raise Invalid(_format_refusal(_("%(text)s is no whole number."), text))
    return int(text)


def _format_refusal(sentence: str, text: str) -> str:
    return sentence % {"text": repr(text[:40])}


@dataclass(frozen=True, slots=True)
class FilterField:
    """One field of the bar: its name in the address, its words, the part of a selection it becomes, how it is read."""

    name: str
    label: str
    selection_key: str
    parse: Callable[[str], Any] = str
    hint: str = ""


FILTER_FIELDS: tuple[FilterField, ...] = (
    FilterField("q", gettext_lazy("Search"), "search"),
    FilterField("name", gettext_lazy("Definition"), "definition"),
    FilterField("version", gettext_lazy("Version"), "version", parse_integer),
    FilterField("started_since", gettext_lazy("Started since"), "started_since", parse_time, "2027-03-01T14:30"),
    FilterField("started_before", gettext_lazy("Started before"), "started_before", parse_time, "2027-03-02"),
    FilterField("ended_since", gettext_lazy("Ended since"), "ended_since", parse_time, "2027-03-01T14:30"),
    FilterField("ended_before", gettext_lazy("Ended before"), "ended_before", parse_time, "2027-03-02"),
    FilterField("least", gettext_lazy("Took at least"), "least_ms", parse_duration, "30 s"),
    FilterField("most", gettext_lazy("Took at most"), "most_ms", parse_duration, "5 min"),
    FilterField("correlation_id", gettext_lazy("Correlation id"), "correlation_id"),
    FilterField("idempotency_key", gettext_lazy("Idempotency key"), "idempotency_key"),
    FilterField("label", gettext_lazy("Label"), "label"),
    FilterField("parent", gettext_lazy("Started by run"), "parent", hint=gettext_lazy("its id")),
    FilterField("started_by", gettext_lazy("Started by"), "started_by"),
    FilterField("schedule", gettext_lazy("Schedule"), "schedule"),
    FilterField("task", gettext_lazy("Task"), "task", hint="charge:FAILED"),
    FilterField("error", gettext_lazy("Words of the error"), "error", hint="502 from gateway"),
    FilterField("inside", gettext_lazy("Value inside"), "inside", hint="input.customer.id=42"),
    FilterField("failure_group", gettext_lazy("Failure group"), "failure_group", parse_integer),
    FilterField("refused_of", gettext_lazy("Refused in operation"), "refused_of"),
)
BASIC_FIELDS = ("q", "name")
EXTRA_FIELDS = tuple(
    field for field in FILTER_FIELDS if field.name not in (*BASIC_FIELDS, "failure_group", "refused_of")
)
"""Those behind `More filters`."""
TASK_STATUSES = tuple(sorted(TASK.statuses))


def parse_selection(query: QueryDict) -> dict[str, Any]:
    """What the address asks for, as a selection. Raises Invalid."""
    found: dict[str, Any] = {}
    for field in FILTER_FIELDS:
        if text := clean_text(query.get(field.name, "")):
            found[field.selection_key] = field.parse(text)
    if statuses := parse_statuses(query):
        found["status"] = statuses
    if (since := _preset_start(query.get("started", ""))) is not None:
        found["started_since"] = max(since, found.get("started_since", 0))
    return found


def clean_text(text: str) -> str:
    return text.strip().replace("\0", "")[:1000]


def parse_statuses(query: QueryDict) -> list[str]:
    """The statuses that are asked for, several or with commas between them."""
    words = [word for value in query.getlist("status") for word in clean_text(value).upper().split(",")]
    return [word for word in dict.fromkeys(words) if word]


def _preset_start(preset: str) -> int | None:
    now = clock.now()
    return {"hour": now - HOUR, "today": now - now % DAY, "24h": now - DAY, "7d": now - 7 * DAY}.get(preset)


@dataclass(frozen=True, slots=True)
class FilterChip:
    """A filter that holds: what it says, and the address without it."""

    label: str
    value: str
    remove: str


def active_filters(query: QueryDict) -> list[FilterChip]:
    """The filters that hold, each with its way out."""
    found = [
        FilterChip(f.label, _chip_text(f, text), _address_without(query, f.name))
        for f in FILTER_FIELDS
        if (text := clean_text(query.get(f.name, "")))
    ]
    if preset := START_PRESETS.get(query.get("started", "")):
        found.append(FilterChip(_("Started"), preset, _address_without(query, "started")))
    for status in parse_statuses(query):
        others = [other for other in parse_statuses(query) if other != status]
        parameters = _copy_parameters(query, "status")
        parameters.setlist("status", others)
        found.append(FilterChip(_("Status"), status, f"?{parameters.urlencode()}"))
    return found


def _chip_text(field: FilterField, text: str) -> str:
    """What was asked for; a moment in milliseconds as a person would say it."""
    return exact_time(int(text)) if field.parse is parse_time and text.isdecimal() and len(text) < 15 else text


def _address_without(query: QueryDict, name: str) -> str:
    return f"?{_copy_parameters(query, name).urlencode()}"


def _copy_parameters(query: QueryDict, *left_out: str) -> QueryDict:
    parameters = query.copy()
    for name in (*left_out, "after", "before"):
        parameters.pop(name, None)
    return parameters


def address_with(query: QueryDict, **other: str) -> str:
    """The same filters, with something else beside them."""
    parameters = _copy_parameters(query, *other)
    for name, value in other.items():
        if value:
            parameters[name] = value
    return f"?{parameters.urlencode()}"


def definition_choices(chosen: str) -> list[str]:
    """Names of definitions to choose from: those changed last, and the chosen one."""
    newest = WorkflowDefinition.objects.order_by("-id").values_list("name", flat=True)[: 2 * MAX_DEFINITIONS]
    return sorted(dict.fromkeys([*filter(None, [chosen]), *newest]))[:MAX_DEFINITIONS]


def filter_bar(query: QueryDict) -> Mapping[str, Any]:
    """What the bar shows."""
    chosen = parse_statuses(query)
    return {
        "q": query.get("q", ""),
        "statuses": [(status, status in chosen) for status in STATUSES if status in RUN.statuses],
        "definition": query.get("name", ""),
        "definitions": definition_choices(query.get("name", "")),
        "started": query.get("started", ""),
        "presets": START_PRESETS.items(),
        "more": [(field, query.get(field.name, "")) for field in EXTRA_FIELDS],
        "is_open": any(query.get(field.name) for field in EXTRA_FIELDS),
        "chips": active_filters(query),
        "sort": query.get("sort", ""),
    }
