"""The form that starts a run: its input as form or JSON, and the other options of a start."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.forms.widgets import DateTimeInput
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import clock
from ...core.errors import Invalid
from ...core.step_tree import walk
from ...engine.definitions.schemas import fill_in_schemas
from ...engine.runs.debugging import BreakpointRequest
from ...engine.runs.labels import clean_labels
from ...engine.runs.run_commands import StartRequest
from ...models import WorkflowDefinition
from ..document_form import AS_FORM, DocumentForm
from ..runs.breakpoint_forms import MAX_STEPS

IDEMPOTENCY_STRATEGIES = (
    ("FAIL", gettext_lazy("Reject always")),
    ("RETURN_EXISTING", gettext_lazy("Return the existing run")),
    ("FAIL_ON_RUNNING", gettext_lazy("Reject while running")),
)


class StartForm(forms.Form):
    """Options of a start, without the input."""

    correlation_id = forms.CharField(required=False, max_length=512, label=gettext_lazy("Correlation id"))
    priority = forms.IntegerField(required=False, min_value=0, max_value=99, label=gettext_lazy("Priority"), initial=0)
    idempotency_key = forms.CharField(required=False, max_length=255, label=gettext_lazy("Idempotency key"))
    idempotency_strategy = forms.ChoiceField(
        required=False, choices=IDEMPOTENCY_STRATEGIES, initial="FAIL", label=gettext_lazy("If the key was used before")
    )
    domains = forms.CharField(
        required=False,
        label=gettext_lazy("Domains"),
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": "charge_card = blue"}),
    )
    labels = forms.CharField(required=False, max_length=1400, label=gettext_lazy("Labels"))
    starts_at = forms.DateTimeField(
        required=False,
        label=gettext_lazy("Start at"),
        widget=DateTimeInput(attrs={"type": "datetime-local", "step": 1}),
    )
    stop_before = forms.ChoiceField(required=False, label=gettext_lazy("Stop before step"))
    reason = forms.CharField(required=False, max_length=500, label=gettext_lazy("Reason"))

    def clean_labels(self) -> list[str]:
        """Parse comma-separated labels.

        Raises:
            ValidationError: when a label is invalid, or there are too many.
        """
        try:
            return clean_labels(label for label in self.cleaned_data["labels"].split(",") if label.strip())
        except Invalid as refused:
            raise forms.ValidationError(refused.message) from refused

    def clean_starts_at(self) -> int:
        """Return the start time in milliseconds, 0 for now.

        Raises:
            ValidationError: when the time has passed.
        """
        moment = self.cleaned_data["starts_at"]
        at = round(moment.timestamp() * 1000) if moment else 0
        if at and at <= clock.now():
            raise forms.ValidationError(_("Enter a time in the future."))
        return at

    def clean_domains(self) -> dict[str, str]:
        """Parse `task = domain` pairs, one per line.

        Raises:
            ValidationError: when a line is invalid.
        """
        pairs: dict[str, str] = {}
        for number, line in enumerate(self.cleaned_data["domains"].splitlines(), 1):
            if not line.strip():
                continue
            task, sign, domain = (part.strip() for part in line.partition("="))
            if not (sign and task and domain):
                raise forms.ValidationError(_("Line %(number)s must look like `task = domain`.") % {"number": number})
            pairs[task] = domain
        return pairs


class StartInput(DocumentForm):
    """Start of a run, from an address or a submitted form: the input and the options."""

    def __init__(
        self, row: WorkflowDefinition, submitted: Mapping[str, str] | None, initial: Mapping[str, Any]
    ) -> None:
        """Create the form. `initial`: values such as `input` and `correlation_id`, and `mode` (`form` or `json`)."""
        schema = fill_in_schemas(row.document).get("inputSchema")
        super().__init__(
            "input",
            _("Input"),
            schema.get("data") if isinstance(schema, Mapping) else None,
            submitted,
            given=initial.get("input"),
            blank=_blank_input(row),
            mode=initial.get("mode", AS_FORM),
        )
        self.row, self.form = row, StartForm(submitted, initial={**initial, "input": ""})
        refs = [spot.ref for spot in walk(row.document.get("tasks")) if spot.ref]
        self.form.fields["stop_before"].choices = [("", "–"), *((ref, ref) for ref in refs[:MAX_STEPS])]

    def is_valid(self) -> bool:
        """Parse the submitted values. Return True if the run can be requested."""
        is_document = super().is_valid()
        return self.form.is_valid() and is_document

    def request(self) -> StartRequest:
        """Return the request to the engine."""
        values = self.form.cleaned_data if self.form.is_bound else self.form.initial
        return StartRequest(
            name=self.row.name,
            version=self.row.version,
            input=self.document,
            correlation_id=values.get("correlation_id") or "",
            priority=values.get("priority") or 0,
            domains=values["domains"] if isinstance(values.get("domains"), dict) else {},
            labels=tuple(values["labels"]) if isinstance(values.get("labels"), list) else (),
            starts_at=values.get("starts_at") or 0,
            idempotency_key=values.get("idempotency_key") or None,
            idempotency_strategy=values.get("idempotency_strategy") or "FAIL",
            breakpoints=(BreakpointRequest(values["stop_before"]),) if values.get("stop_before") else (),
        )


def _blank_input(row: WorkflowDefinition) -> dict[str, Any]:
    """Return the input names of a definition without schema, with empty values or those of its input template."""
    names = row.document.get("inputParameters")
    template = row.document.get("inputTemplate")
    defaults = template if isinstance(template, Mapping) else {}
    return {str(name): defaults.get(name, "") for name in names} if isinstance(names, list) else {}
