"""The form of a schedule: when, in which zone, what it starts, and what it does when runs meet or were missed."""

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.cron import parse_cron, parse_zone
from ...core.errors import Invalid
from ...core.timetable import MOST_JITTER_SECONDS
from ...models import Schedule, WorkflowDefinition
from ..json_editor import JsonDocumentField, format_json

OVERLAP_LABELS = (
    ("ALLOW", gettext_lazy("starts anyway: runs go on beside one another")),
    ("SKIP", gettext_lazy("is passed over")),
    ("QUEUE", gettext_lazy("waits until the earlier run has ended")),
    ("TERMINATE_OTHER", gettext_lazy("stops the earlier run and starts")),
)
MAX_NAMES = 500


def format_overlap(row: Schedule) -> str:
    """What a slot does while an earlier run is open."""
    return str(dict(OVERLAP_LABELS).get(row.overlap, row.overlap))


class ScheduleForm(forms.Form):
    """Everything about a schedule that a person types."""

    name = forms.CharField(max_length=255, label=gettext_lazy("Name"))
    clocks = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        label=gettext_lazy("When"),
        help_text=gettext_lazy(
            "A line each: a cron expression with seconds first, then @ and a zone, such as "
            "0 30 9 * * MON-FRI @ Europe/Berlin"
        ),
    )
    workflow = forms.CharField(
        max_length=255, label=gettext_lazy("Workflow"), widget=forms.TextInput(attrs={"list": "workflow-names"})
    )
    version = forms.IntegerField(
        required=False,
        min_value=1,
        label=gettext_lazy("Version"),
        help_text=gettext_lazy("Empty: the newest at that time."),
    )
    input = JsonDocumentField(required=False, label=gettext_lazy("Input"))
    correlation_id = forms.CharField(required=False, max_length=512, label=gettext_lazy("Correlation id"))
    overlap = forms.ChoiceField(
        choices=OVERLAP_LABELS, initial="ALLOW", label=gettext_lazy("While an earlier run is open, a slot …")
    )
    jitter = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_JITTER_SECONDS,
        label=gettext_lazy("Spread over"),
        help_text=gettext_lazy("Seconds: each run starts by so much later at most, so that not all start at once."),
    )
    catches_up = forms.BooleanField(required=False, label=gettext_lazy("Run what was missed while no server ran"))
    window = forms.IntegerField(
        required=False,
        min_value=0,
        label=gettext_lazy("… if it is not older than"),
        help_text=gettext_lazy("Seconds; empty: any age."),
    )
    starts_at = forms.CharField(
        required=False, label=gettext_lazy("Not before"), help_text=gettext_lazy("2027-01-31T08:00Z; empty: at once.")
    )
    ends_at = forms.CharField(
        required=False, label=gettext_lazy("Not after"), help_text=gettext_lazy("Empty: for ever.")
    )
    reason = forms.CharField(required=False, max_length=500, label=gettext_lazy("Reason"))

    def clean_clocks(self) -> list[dict[str, str]]:
        """The expressions with their zones; each is read, so that a wrong one is told by its line."""
        found = []
        for number, line in enumerate(self.cleaned_data["clocks"].splitlines(), 1):
            if not line.strip():
                continue
            expression, _at, zone_id = line.partition(" @ ")
            expression, zone_id = expression.strip(), zone_id.strip() or "UTC"
            try:
                parse_cron(expression)
                parse_zone(zone_id)
            except Invalid as wrong:
                said = _("Line %(number)s: %(complaint)s") % {"number": number, "complaint": wrong.message}
                raise forms.ValidationError(said) from None
            found.append({"cronExpression": expression, "zoneId": zone_id})
        return found

    def clean_starts_at(self) -> int | None:
        return _parse_time_field(self.cleaned_data["starts_at"])

    def clean_ends_at(self) -> int | None:
        return _parse_time_field(self.cleaned_data["ends_at"])

    def document(self, before: dict[str, Any]) -> dict[str, Any]:
        """The schedule as the engine keeps it; what the form does not show stays as it was."""
        said = self.cleaned_data
        clocks = said["clocks"]
        start = {**(before.get("startWorkflowRequest") or {}), "name": said["workflow"], "input": said["input"] or {}}
        start |= {"version": said["version"], "correlationId": said["correlation_id"] or None}
        hidden = ("cronExpression", "zoneId", "cronSchedules")
        kept = {name: value for name, value in before.items() if name not in hidden}
        return kept | {
            "name": said["name"],
            **(clocks[0] if len(clocks) == 1 else {"cronSchedules": clocks}),
            "startWorkflowRequest": {name: value for name, value in start.items() if value is not None},
            "overlapPolicy": said["overlap"],
            "runCatchupScheduleInstances": said["catches_up"],
            "catchupWindowSeconds": said["window"],
            "jitterSeconds": said["jitter"] or None,
            "scheduleStartTime": said["starts_at"],
            "scheduleEndTime": said["ends_at"],
        }


def parse_time(text: str) -> int | None:
    """Epoch milliseconds of an ISO moment; without a zone it is UTC. Raises Invalid."""
    if not text.strip():
        return None
    try:
        found = datetime.fromisoformat(text.strip())
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return int(found.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise Invalid(_("Write a moment like 2027-01-31T08:00Z.")) from None


def _parse_time_field(text: str) -> int | None:
    try:
        return parse_time(text)
    except Invalid as wrong:
        raise forms.ValidationError(wrong.message) from None


def format_time(moment: int | None) -> str:
    """A moment as it is typed."""
    return "" if not moment else f"{datetime.fromtimestamp(moment / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def initial_values(name: str, document: dict[str, Any]) -> dict[str, Any]:
    """What the form shows of a schedule."""
    start = document.get("startWorkflowRequest") or {}
    clocks = document.get("cronSchedules") or [document]
    return {
        "name": name,
        "clocks": "\n".join(f"{each.get('cronExpression')} @ {each.get('zoneId') or 'UTC'}" for each in clocks),
        "workflow": start.get("name", ""),
        "version": start.get("version"),
        "input": format_json(start.get("input") or {}),
        "correlation_id": start.get("correlationId") or "",
        "overlap": document.get("overlapPolicy") or "ALLOW",
        "catches_up": bool(document.get("runCatchupScheduleInstances")),
        "window": document.get("catchupWindowSeconds"),
        "jitter": document.get("jitterSeconds"),
        "starts_at": format_time(document.get("scheduleStartTime")),
        "ends_at": format_time(document.get("scheduleEndTime")),
    }


def workflow_names() -> list[str]:
    """The workflows that can be started."""
    names = WorkflowDefinition.objects.order_by("name").values_list("name", flat=True).distinct()
    return list(names[:MAX_NAMES])
