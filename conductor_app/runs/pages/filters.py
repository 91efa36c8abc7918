"""Filters of the list of runs, as a selection that bulk operations share, and the export of the list."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import Http404, QueryDict, StreamingHttpResponse
from django.urls import reverse
from django.utils.timezone import get_current_timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.visibility import visible
from ...bulk.selections import ScanNote
from ...core.errors import Invalid
from ...core.states import RUN
from ...db.keyset_pages import SortColumn, iterate_pages
from ...db.statements import read_snapshot
from ...definitions.models import WorkflowDefinition
from ...explanations.cause import failure_reasons
from ...utils import clock
from ...utils.formatting import DAY, HOUR, MINUTE, SECOND, LazyText
from ...web.badges import exact_time, machine_time
from ...web.documents import EXPORT_TYPES, download_rows
from ..models import Run

MAX_DEFINITIONS = 200
STATUSES = ("RUNNING", "PAUSED", "FAILED", "TIMED_OUT", "TERMINATED", "COMPLETED")
START_PRESETS = {
    "hour": gettext_lazy("Last hour"),
    "today": gettext_lazy("Today"),
    "24h": gettext_lazy("Last 24 hours"),
    "7d": gettext_lazy("Last 7 days"),
}
MAX_DURATION_MS = 36_500 * DAY
MAX_SECONDS = 253_402_300_799
"""The last second of the year 9999, the latest that a date has."""
UNIT_MS = {"ms": 1, "s": SECOND, "min": MINUTE, "m": MINUTE, "h": HOUR, "d": DAY}


def parse_time(text: str) -> int:
    """Return a time in milliseconds. `text`: an ISO time in the user's time zone, or milliseconds."""
    if text.isdecimal() and len(text) < 16:
        return int(text)
    try:
        parsed = datetime.fromisoformat(text)
        return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=get_current_timezone())).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise Invalid(
            _format_refusal(_("Not a valid date: %(text)s. Use a format such as 2027-03-01 14:30."), text)
        ) from error


def parse_duration(text: str) -> int:
    """Return a duration in milliseconds. `text`: `90` (seconds), `1.5 s`, `3 min`, `2 h`."""
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text.strip()[len(number) :].strip() or "s"
    try:
        duration = float(number) * UNIT_MS[unit]
        if not 0 <= duration <= MAX_DURATION_MS:
            raise ValueError("out of range")
        return int(duration)
    except (ValueError, KeyError) as error:
        raise Invalid(
            _format_refusal(_("Not a valid duration: %(text)s. Use a format such as 30 s, 5 min or 2 h."), text)
        ) from error


def parse_integer(text: str) -> int:
    """Return a whole number."""
    if not text.isdecimal() or len(text) > 9:
        raise Invalid(_format_refusal(_("Not a valid integer: %(text)s."), text))
    return int(text)


def _format_refusal(sentence: str, text: str) -> str:
    return sentence % {"text": repr(text[:40])}


@dataclass(frozen=True, slots=True)
class FilterField:
    """One field of the bar: its query parameter, its label, its key in a selection, and its parser."""

    name: str
    label: str | LazyText
    selection_key: str
    parse: Callable[[str], Any] = str
    hint: str | LazyText = ""

    @property
    def is_time(self) -> bool:
        """Return True if the field is a time."""
        return self.parse is parse_time

    def input_value(self, text: str) -> str:
        """Return the value of the field's input for the text of an address: times in the user's time zone."""
        if not self.is_time or not text:
            return text
        try:
            seconds = min(parse_time(text) / 1000, MAX_SECONDS)
            return datetime.fromtimestamp(seconds, get_current_timezone()).isoformat(" ", "seconds")[:19]
        except (Invalid, ValueError, OverflowError, OSError):
            return ""


FILTER_FIELDS: tuple[FilterField, ...] = (
    FilterField("q", gettext_lazy("Search"), "search"),
    FilterField("name", gettext_lazy("Workflow"), "definition"),
    FilterField("version", gettext_lazy("Version"), "version", parse_integer),
    FilterField("started_since", gettext_lazy("Started after"), "started_since", parse_time),
    FilterField("started_before", gettext_lazy("Started before"), "started_before", parse_time),
    FilterField("ended_since", gettext_lazy("Ended after"), "ended_since", parse_time),
    FilterField("ended_before", gettext_lazy("Ended before"), "ended_before", parse_time),
    FilterField("failed_since", gettext_lazy("Failed after"), "failed_since", parse_time),
    FilterField("retried", gettext_lazy("Failed, then retried"), "retried", hint=gettext_lazy("yes or no")),
    FilterField("least", gettext_lazy("Min. duration"), "least_ms", parse_duration, "30 s"),
    FilterField("most", gettext_lazy("Max. duration"), "most_ms", parse_duration, "5 min"),
    FilterField("correlation_id", gettext_lazy("Correlation id"), "correlation_id"),
    FilterField("idempotency_key", gettext_lazy("Idempotency key"), "idempotency_key"),
    FilterField("label", gettext_lazy("Label"), "label"),
    FilterField("top_level", gettext_lazy("Top level only"), "top_level"),
    FilterField("parent", gettext_lazy("Parent run"), "parent", hint=gettext_lazy("run id")),
    FilterField("started_by", gettext_lazy("Started by"), "started_by"),
    FilterField("schedule", gettext_lazy("Schedule"), "schedule"),
    FilterField("task", gettext_lazy("Task"), "task", hint="charge:FAILED"),
    FilterField("error", gettext_lazy("Error contains"), "error", hint="502 from gateway"),
    FilterField("inside", gettext_lazy("Input/output value"), "inside", hint="input.customer.id=42"),
    FilterField("failure_group", gettext_lazy("Failure group"), "failure_group", parse_integer),
    FilterField("failure_groups", gettext_lazy("Failure groups"), "failure_groups", hint="3,7"),
    FilterField("refused_of", gettext_lazy("Rejected in bulk operation"), "refused_of"),
    FilterField("failed_again_of", gettext_lazy("Failed again after bulk operation"), "failed_again_of"),
)
START_FIELDS = ("started_since", "started_before")
BASIC_FIELDS = ("q", "name", "top_level", *START_FIELDS)
EXTRA_FIELDS = tuple(
    field
    for field in FILTER_FIELDS
    if field.name not in (*BASIC_FIELDS, "failure_group", "failure_groups", "refused_of", "failed_again_of")
)
"""Fields behind `More filters`."""


def parse_selection(query: QueryDict) -> dict[str, Any]:
    """Return the selection of an address."""
    found: dict[str, Any] = {}
    for field in FILTER_FIELDS:
        if text := clean_text(query.get(field.name, "")):
            found[field.selection_key] = field.parse(text)
    if statuses := parse_statuses(query):
        found["status"] = statuses
    if (since := _preset_start(query.get("started", ""))) is not None:
        found["started_since"] = max(since, found.get("started_since", 0))
    if (since := _preset_start(query.get("failed", ""))) is not None:
        found["failed_since"] = max(since, found.get("failed_since", 0))
    return found


def clean_text(text: str) -> str:
    return text.strip().replace("\0", "")[:1000]


def parse_statuses(query: QueryDict) -> list[str]:
    """Return the statuses of an address: repeated parameters or comma-separated values."""
    words = [word for value in query.getlist("status") for word in clean_text(value).upper().split(",")]
    return [word for word in dict.fromkeys(words) if word]


def _preset_start(preset: str) -> int | None:
    now = clock.now()
    return {"hour": now - HOUR, "today": now - now % DAY, "24h": now - DAY, "7d": now - 7 * DAY}.get(preset)


@dataclass(frozen=True, slots=True)
class FilterChip:
    """An active filter: its label, its value, and the address without it."""

    label: str
    value: str
    remove: str


def active_filters(query: QueryDict) -> list[FilterChip]:
    found = [
        FilterChip(str(f.label), _chip_text(f, text), _address_without(query, f.name))
        for f in FILTER_FIELDS
        if (text := clean_text(query.get(f.name, "")))
    ]
    for name, label in (("started", _("Started")), ("failed", _("Failed"))):
        if preset := START_PRESETS.get(query.get(name, "")):
            found.append(FilterChip(label, str(preset), _address_without(query, name)))
    for status in parse_statuses(query):
        others = [other for other in parse_statuses(query) if other != status]
        parameters = _copy_parameters(query, "status")
        parameters.setlist("status", others)
        found.append(FilterChip(_("Status"), status, f"?{parameters.urlencode()}"))
    return found


def _chip_text(field: FilterField, text: str) -> str:
    """Return the value of a filter. A time in milliseconds is formatted."""
    return exact_time(int(text)) if field.parse is parse_time and text.isdecimal() and len(text) < 15 else text


def _address_without(query: QueryDict, name: str) -> str:
    return f"?{_copy_parameters(query, name).urlencode()}"


def _copy_parameters(query: QueryDict, *left_out: str) -> QueryDict:
    parameters = query.copy()
    for name in (*left_out, "after", "before"):
        parameters.pop(name, None)
    return parameters


def address_with(query: QueryDict, **other: str) -> str:
    """Return the address with the same filters and additional parameters."""
    parameters = _copy_parameters(query, *other)
    for name, value in other.items():
        if value:
            parameters[name] = value
    return f"?{parameters.urlencode()}"


def definition_choices(selected: str) -> list[str]:
    """Return names of definitions for the menu: the latest changed ones, and the selected one."""
    rows = visible(WorkflowDefinition.objects.order_by("-id"))
    newest = rows.values_list("name", flat=True)[: 2 * MAX_DEFINITIONS]
    return sorted(dict.fromkeys([*filter(None, [selected]), *newest]))[:MAX_DEFINITIONS]


def _field_context(field: FilterField, query: QueryDict) -> tuple[FilterField, str]:
    return field, field.input_value(query.get(field.name, ""))


def _describe_start(query: QueryDict) -> str:
    """Return the selected period of starts in a few words."""
    if preset := START_PRESETS.get(query.get("started", "")):
        return str(preset)
    return _("Custom range") if any(query.get(name) for name in START_FIELDS) else _("Any time")


def filter_bar(query: QueryDict) -> Mapping[str, Any]:
    statuses = parse_statuses(query)
    return {
        "q": query.get("q", ""),
        "statuses": [(status, status in statuses) for status in STATUSES if status in RUN.statuses],
        "definition": query.get("name", ""),
        "definitions": definition_choices(query.get("name", "")),
        "started": query.get("started", ""),
        "failed": query.get("failed", ""),
        "presets": START_PRESETS.items(),
        "start_fields": [_field_context(field, query) for field in FILTER_FIELDS if field.name in START_FIELDS],
        "when": _describe_start(query),
        "top_level": bool(query.get("top_level")),
        "more": [_field_context(field, query) for field in EXTRA_FIELDS],
        "is_open": any(query.get(field.name) for field in EXTRA_FIELDS),
        "chips": active_filters(query),
        "sort": query.get("sort", ""),
    }


FILTER_LABELS = {field.selection_key: field.label for field in FILTER_FIELDS}
FASTER_SEARCHES = {
    "error": (gettext_lazy("Search all failures for this error"), "admin:failures"),
    "task": (gettext_lazy("Search all failures of this task"), "admin:failures"),
}
"""Pages whose search uses an index and answers nearly the same question."""


@dataclass(frozen=True, slots=True)
class CoverageNote:
    """Note about one filter. `since`: start of the searched period. `older`: address that continues the search."""

    label: str
    number: int
    since: int
    older: str
    faster_search: tuple[str, str] | None


def coverage_notes(notes: Iterable[ScanNote], parameters: QueryDict) -> list[CoverageNote]:
    """Return the notes about the filters of an address."""
    return [
        CoverageNote(
            str(FILTER_LABELS[note.filter]),
            note.number,
            note.since,
            address_with(parameters, started_before=str(note.since)),
            _faster_search(note.filter, parameters),
        )
        for note in notes
    ]


def _faster_search(name: str, parameters: QueryDict) -> tuple[str, str] | None:
    if name not in FASTER_SEARCHES:
        return None
    label, page = FASTER_SEARCHES[name]
    query = {"view": "all", "q": parameters.get(name, "").partition(":")[0]}
    return str(label), reverse(
        page, query=query | ({"definition": parameters["name"]} if parameters.get("name") else {})
    )


EXPORT_COLUMNS = (
    "id", "definition", "version", "status", "correlation_id", "started_at", "ended_at", "duration_ms", "started_by",
    "parent_id", "failed_task", "reason",
)  # fmt: skip


def export_runs(runs: QuerySet[Run], sort: SortColumn, format: str) -> StreamingHttpResponse:
    """Stream the runs as `csv` or `json`."""
    if format not in EXPORT_TYPES:
        raise Http404
    return download_rows("runs", format, EXPORT_COLUMNS, _export_rows(runs, sort))


def _export_rows(runs: QuerySet[Run], sort: SortColumn) -> Iterator[dict[str, Any]]:
    pages = iterate_pages(runs, sort)
    while True:
        # One snapshot per page: the client decides how long the download takes.
        with read_snapshot():
            page = next(pages, [])
            failed = failure_reasons(page)
        if not page:
            return
        for run in page:
            yield _export_row(run, *failed.get(run.pk, ("", run.reason)))


def _export_row(run: Run, task: str, reason: str) -> dict[str, Any]:
    took = None if run.ended_at is None else run.duration_ms(run.ended_at)
    values = (
        run.pk, run.name, run.version, run.status, run.correlation_id, machine_time(run.created_at),
        machine_time(run.ended_at),
        took, run.started_by, run.parent_id, task, reason,
    )  # fmt: skip
    return dict(zip(EXPORT_COLUMNS, values, strict=True))


def selection_query(selection: Mapping[str, Any]) -> dict[str, str]:
    """Return the query parameters of a selection in the list of runs."""
    found = {
        field.name: _query_value(field, selection[field.selection_key])
        for field in FILTER_FIELDS
        if field.selection_key in selection
    }
    return found | ({"status": ",".join(selection["status"])} if selection.get("status") else {})


def _query_value(field: FilterField, value: object) -> str:
    return f"{value} ms" if field.parse is parse_duration else str(value)


LIST_FIELDS = ("ids", "status")


def list_parameters(form_data: QueryDict) -> dict[str, str]:
    """Return the parameters of the plan for all runs that a filtered list of runs shows."""
    return selection_parameters(parse_selection(form_data))


def selection_parameters(selection: Mapping[str, Any]) -> dict[str, str]:
    """Return a selection as parameters of the plan's address."""
    return {name: ",".join(value) if name in LIST_FIELDS else str(value) for name, value in selection.items()}
