"""The times of a schedule in its form: a row with a cron expression and a time zone each, and presets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.cron import parse_cron, parse_zone
from ...core.errors import Invalid, RequestRefused
from ...insight.schedules.cron_words import describe_cron

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
        """Return the description, or "" for an expression that is invalid or shorter than its description."""
        try:
            return describe_cron(self.expression)
        except RequestRefused:
            return ""

    def document(self) -> dict[str, str]:
        """Return the entry of a schedule's document."""
        return {"cronExpression": self.expression, "zoneId": self.zone_id}


def schedule_clocks(document: Mapping[str, Any]) -> list[ScheduleClock]:
    """Return the cron expressions of a schedule."""
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
        """Return the entries of the schedule's document.

        Raises:
            ValidationError: when a row is invalid.
        """
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
