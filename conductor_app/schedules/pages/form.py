"""The form of a schedule: workflow, overlap policy, catch-up, and its times with a cron expression and a zone each."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from cron_descriptor import ExpressionDescriptor, Options
from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.cron import MACROS, MAX_JITTER_SECONDS, parse_cron, parse_zone
from ...core.errors import Invalid, RequestRefused
from ...definitions.queries import missing_workflow
from ..models import Schedule

FIELD_SIZES = (60, 60, 24, 31, 12, 7)
"""The number of seconds, minutes, hours, days, months and weekdays."""
STEP = re.compile(r"(?:\*|\d+)/(\d+)")
WEEKDAY_OR_MONTH = re.compile("[A-Z]{3}")


@lru_cache(maxsize=1_000)
def describe_cron(text: str) -> str:
    """Return the expression in words, or "" if the library would describe it wrongly.

    Raises:
        CronRefused: when the text is invalid.
    """
    parse_cron(text)
    fields = MACROS.get(text.strip().lower(), text).upper().split()
    if any(map(_is_misread, fields, FIELD_SIZES)):
        return ""
    options = Options()
    options.use_24hour_time_format, options.locale_code = True, "en_US"
    return str(ExpressionDescriptor(" ".join(fields), options).get_full_description())


def _is_misread(field: str, size: int) -> bool:
    """Return True for a list with a rule or a step, and for a step after which less than its length is left."""
    if "," in field:
        return bool(re.search("[LW#/]", WEEKDAY_OR_MONTH.sub("", field)))
    step = STEP.fullmatch(field)
    return step is not None and size % int(step[1]) != 0


PRESETS = (
    (gettext_lazy("Every 15 minutes"), "0 */15 * * * *"),
    (gettext_lazy("Hourly"), "0 0 * * * *"),
    (gettext_lazy("Daily"), "0 0 6 * * *"),
    (gettext_lazy("Weekdays"), "0 0 6 * * MON-FRI"),
    (gettext_lazy("Weekly"), "0 0 6 * * MON"),
    (gettext_lazy("Monthly"), "0 0 6 1 * *"),
    (gettext_lazy("End of month"), "0 0 6 L * *"),
)
"""Labels and expressions of the buttons that fill the last row."""


@dataclass(frozen=True, slots=True)
class ScheduleClock:
    """One cron expression with its time zone, and its description if there is one."""

    expression: str
    zone_id: str = "UTC"

    @property
    def words(self) -> str:
        """Return the description, or "" for an expression that is invalid or has none."""
        try:
            return describe_cron(self.expression)
        except RequestRefused:
            return ""

    def document(self) -> dict[str, str]:
        """Return the entry of a schedule's document."""
        return {"cronExpression": self.expression, "zoneId": self.zone_id}


def schedule_clocks(document: Mapping[str, Any]) -> list[ScheduleClock]:
    written = document.get("cronSchedules") or [document]
    return [ScheduleClock(str(each.get("cronExpression") or ""), str(each.get("zoneId") or "UTC")) for each in written]


def posted_clocks(posted: Any) -> list[ScheduleClock]:
    """Return the rows of a posted form. A row without an expression is left out, except the first one."""
    expressions, zones = posted.getlist("expression"), posted.getlist("zone")
    zones += ["UTC"] * (len(expressions) - len(zones))
    rows = [
        ScheduleClock(expression.strip(), zone.strip() or "UTC")
        for expression, zone in zip(expressions, zones, strict=False)
    ]
    return [row for number, row in enumerate(rows) if row.expression or number == 0]


def apply_preset(rows: Iterable[ScheduleClock], expression: str) -> list[ScheduleClock]:
    """Return the rows with the expression of a preset in the last one, which keeps its time zone."""
    *before, last = list(rows) or [ScheduleClock("")]
    return [*before, ScheduleClock(expression, last.zone_id)]


class ClocksWidget(forms.Widget):
    """Reads the rows. The template renders them, with the descriptions."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[ScheduleClock]:
        return posted_clocks(data)


class ClocksField(forms.Field):
    """The rows, checked."""

    widget = ClocksWidget

    def clean(self, value: list[ScheduleClock]) -> list[dict[str, str]]:
        """Return the entries of the schedule's document."""
        for number, row in enumerate(value, 1):
            try:
                parse_cron(row.expression)
                parse_zone(row.zone_id)
            except Invalid as error:
                message = _("Line %(number)s: %(error)s") % {"number": number, "error": error.message}
                raise forms.ValidationError(message) from None
        if not value:
            raise forms.ValidationError(_("Enter a cron expression."))
        return [row.document() for row in value]


OVERLAP_LABELS = (
    ("ALLOW", gettext_lazy("Allow overlap")),
    ("SKIP", gettext_lazy("Skip")),
    ("QUEUE", gettext_lazy("Wait for the earlier run")),
    ("TERMINATE_OTHER", gettext_lazy("Terminate the earlier run")),
)


def format_overlap(row: Schedule) -> str:
    return str(dict(OVERLAP_LABELS).get(row.overlap, row.overlap))


TIME_ATTRIBUTES = {"placeholder": gettext_lazy("YYYY-MM-DD HH:MM")}


class ScheduleForm(forms.Form):
    """All fields of a schedule that the user edits."""

    name = forms.CharField(max_length=255, label=gettext_lazy("Name"))
    clocks = ClocksField(label=gettext_lazy("Times"))
    workflow = forms.CharField(
        max_length=255,
        label=gettext_lazy("Workflow"),
        widget=forms.TextInput(attrs={"list": "workflow-names", "autocomplete": "off", "data-previews": True}),
    )
    version = forms.IntegerField(
        required=False,
        min_value=1,
        label=gettext_lazy("Version"),
        help_text=gettext_lazy("Leave empty to use the newest version."),
    )
    correlation_id = forms.CharField(required=False, max_length=512, label=gettext_lazy("Correlation id"))
    overlap = forms.ChoiceField(
        choices=OVERLAP_LABELS,
        initial="ALLOW",
        label=gettext_lazy("Overlap policy"),
        help_text=gettext_lazy("When a run of the schedule is still open at the next time."),
    )
    jitter = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_JITTER_SECONDS,
        label=gettext_lazy("Jitter"),
        help_text=gettext_lazy("Maximum random delay of each start, in seconds."),
    )
    catches_up = forms.BooleanField(
        required=False,
        label=gettext_lazy("Catch up on missed slots"),
        help_text=gettext_lazy("After a downtime of the server or a pause."),
    )
    window = forms.IntegerField(
        required=False,
        min_value=0,
        label=gettext_lazy("Catch-up window"),
        help_text=gettext_lazy("In seconds. Leave empty for no limit."),
    )
    starts_at = forms.CharField(
        required=False,
        label=gettext_lazy("Not before (UTC)"),
        help_text=gettext_lazy("Leave empty to start now."),
        widget=forms.TextInput(attrs=TIME_ATTRIBUTES),
    )
    ends_at = forms.CharField(
        required=False,
        label=gettext_lazy("Not after (UTC)"),
        help_text=gettext_lazy("Leave empty for no end."),
        widget=forms.TextInput(attrs=TIME_ATTRIBUTES),
    )
    reason = forms.CharField(required=False, max_length=500, label=gettext_lazy("Reason"))

    def __init__(self, *args: Any, has_inline_workflow: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.has_inline_workflow = has_inline_workflow

    def clean(self) -> dict[str, Any]:
        """Check that the workflow exists, unless the schedule contains its definition."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.has_inline_workflow and (name := cleaned.get("workflow")):
            version = cleaned.get("version")
            if message := missing_workflow(name, version):
                self.add_error("version" if version and not missing_workflow(name) else "workflow", message)
        return cleaned

    def clean_starts_at(self) -> int | None:
        return _parse_time_field(self.cleaned_data["starts_at"])

    def clean_ends_at(self) -> int | None:
        return _parse_time_field(self.cleaned_data["ends_at"])

    def document(self, before: dict[str, Any], input: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schedule's document. Fields that the form lacks are kept. `input`: that of its runs."""
        cleaned = self.cleaned_data
        clocks = cleaned["clocks"]
        start = {
            **(before.get("startWorkflowRequest") or {}),
            "name": cleaned["workflow"],
            "input": dict(input),
        }
        start |= {"version": cleaned["version"], "correlationId": cleaned["correlation_id"] or None}
        hidden = ("cronExpression", "zoneId", "cronSchedules")
        unchanged = {name: value for name, value in before.items() if name not in hidden}
        return unchanged | {
            "name": cleaned["name"],
            **(clocks[0] if len(clocks) == 1 else {"cronSchedules": clocks}),
            "startWorkflowRequest": {name: value for name, value in start.items() if value is not None},
            "overlapPolicy": cleaned["overlap"],
            "runCatchupScheduleInstances": cleaned["catches_up"],
            "catchupWindowSeconds": cleaned["window"],
            "jitterSeconds": cleaned["jitter"] or None,
            "scheduleStartTime": cleaned["starts_at"],
            "scheduleEndTime": cleaned["ends_at"],
        }


def parse_time(text: str) -> int | None:
    """Return an ISO time in milliseconds. A time without a zone is UTC."""
    if not text.strip():
        return None
    try:
        found = datetime.fromisoformat(text.strip())
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return int(found.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise Invalid(_("Not a valid date. Use a format such as 2027-01-31 08:00.")) from None


def _parse_time_field(text: str) -> int | None:
    try:
        return parse_time(text)
    except Invalid as error:
        raise forms.ValidationError(error.message) from None


def format_time(moment: int | None) -> str:
    return "" if not moment else f"{datetime.fromtimestamp(moment / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def initial_values(name: str, document: dict[str, Any]) -> dict[str, Any]:
    start = document.get("startWorkflowRequest") or {}
    return {
        "name": name,
        "clocks": schedule_clocks(document),
        "workflow": start.get("name", ""),
        "version": start.get("version"),
        "correlation_id": start.get("correlationId") or "",
        "overlap": document.get("overlapPolicy") or "ALLOW",
        "catches_up": bool(document.get("runCatchupScheduleInstances")),
        "window": document.get("catchupWindowSeconds"),
        "jitter": document.get("jitterSeconds"),
        "starts_at": format_time(document.get("scheduleStartTime")),
        "ends_at": format_time(document.get("scheduleEndTime")),
    }


def posted_values(posted: QueryDict) -> dict[str, Any]:
    """Return the values of a form that was posted to change its rows, as initial values of the next one."""
    return {**posted.dict(), "clocks": posted_clocks(posted), "catches_up": "catches_up" in posted}
