"""The page that starts a run: the form, the same API call, and the errors of the engine."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.forms.widgets import DateTimeInput
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.timezone import get_current_timezone_name
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.authentication import server_address
from ...access.visibility import may
from ...core.definition import walk
from ...core.errors import InputInvalid, Invalid, RequestRefused, ValidationFailed
from ...core.masking import REDACTED
from ...db.fields import dumps
from ...definitions.editor.pages import DefinitionAdmin
from ...definitions.models import WorkflowDefinition
from ...definitions.schemas import input_schema
from ...utils import clock
from ...web.forms import AS_FORM, DocumentForm
from ...web.pages import require_permission
from ..commands.control import clean_labels
from ..commands.debugging import BreakpointRequest
from ..commands.start import StartRequest, start_by_hand
from ..queries.recent import recent_starts, start_to_repeat
from .debugger import DEBUG_PERMISSION, MAX_STEPS


def request_body(request: StartRequest) -> dict[str, Any]:
    """Return the request body of the API call, without empty fields."""
    body: dict[str, Any] = {
        "name": request.name,
        "version": request.version,
        "input": request.input,
        "correlationId": request.correlation_id,
        "priority": request.priority,
        "taskToDomain": request.domains,
        "idempotencyKey": request.idempotency_key,
        "labels": list(request.labels),
        "startAt": request.starts_at,
        "breakpoints": [{"taskReferenceName": each.ref, "place": each.place} for each in request.breakpoints],
    }
    if request.idempotency_key:
        body["idempotencyStrategy"] = request.idempotency_strategy
    return {name: value for name, value in body.items() if value not in (None, "", {}, 0, [])}


def curl_command(request: StartRequest, server: str) -> str:
    text = json.dumps(request_body(request), indent=2, ensure_ascii=False)
    return f"curl -X POST {server}/api/workflow -H 'Content-Type: application/json' \\\n  -d {shlex.quote(text)}"


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
        widget=DateTimeInput(attrs={"placeholder": gettext_lazy("YYYY-MM-DD HH:MM")}),
    )
    stop_before = forms.ChoiceField(required=False, label=gettext_lazy("Stop before step"))
    reason = forms.CharField(required=False, max_length=500, label=gettext_lazy("Reason"))

    @property
    def has_rare_options(self) -> bool:
        """Return True if an option that the page folds has a value or an error."""
        rare = (self[name] for name in ("idempotency_key", "labels", "domains", "reason"))
        return any(field.value() or field.errors for field in rare)

    def clean_labels(self) -> list[str]:
        """Parse comma-separated labels."""
        try:
            return clean_labels(label for label in self.cleaned_data["labels"].split(",") if label.strip())
        except Invalid as refused:
            raise forms.ValidationError(refused.message) from refused

    def clean_starts_at(self) -> int:
        """Return the start time in milliseconds, 0 for now."""
        moment = self.cleaned_data["starts_at"]
        at = round(moment.timestamp() * 1000) if moment else 0
        if at and at <= clock.now():
            raise forms.ValidationError(_("Enter a time in the future."))
        return at

    def clean_domains(self) -> dict[str, str]:
        """Parse `task = domain` pairs, one per line."""
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
        super().__init__(
            "input",
            _("Input as JSON"),
            input_schema(row.document),
            submitted,
            given=initial.get("input"),
            mode=initial.get("mode", AS_FORM),
        )
        self.row, self.form = row, StartForm(submitted, initial={**initial, "input": ""})
        refs = [spot.ref for spot in walk(row.document.get("tasks")) if spot.ref]
        choices = [("", "–"), *((ref, ref) for ref in refs[:MAX_STEPS])]
        self.form.fields["stop_before"].choices = choices  # type: ignore[attr-defined]  # a ChoiceField

    def is_valid(self) -> bool:
        """Parse the submitted values. Return True if the run can be requested."""
        is_document = super().is_valid()
        return self.form.is_valid() and is_document

    def request(self) -> StartRequest:
        values = self.form.cleaned_data if self.form.is_bound else self.form.initial
        return StartRequest(
            name=self.row.name,
            version=self.row.version,
            input=dict(self.document),
            correlation_id=values.get("correlation_id") or "",
            priority=values.get("priority") or 0,
            domains=values["domains"] if isinstance(values.get("domains"), dict) else {},
            labels=tuple(values["labels"]) if isinstance(values.get("labels"), list) else (),
            starts_at=values.get("starts_at") or 0,
            idempotency_key=values.get("idempotency_key") or None,
            idempotency_strategy=values.get("idempotency_strategy") or "FAIL",
            breakpoints=(BreakpointRequest(values["stop_before"]),) if values.get("stop_before") else (),
        )


PERMISSION = "conductor.execute_workflowdefinition"
MAX_VERSIONS = 100


class StartPages(DefinitionAdmin):
    """Page that starts a run of a definition."""

    def start_urls(self) -> list[URLPattern]:
        return [path("<int:pk>/start/", self.admin_site.admin_view(self.start), name="start_run")]

    def start(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Show the form, or start a run. A rejected form is shown again with the errors at their fields."""
        row = self.find_row(request, pk, PERMISSION)
        if request.method != "POST":
            initial, notes = _initial_values(request, row)
            return self._render_form(request, row, StartInput(row, None, initial), notes)
        if request.POST.get("stop_before"):
            require_permission(request, DEBUG_PERMISSION, row)
        start = StartInput(row, request.POST, {})
        if not start.has_switched and start.is_valid() and request.POST.get("step") != "show":
            run_id = self._start_run(request, start)
            if run_id:
                return HttpResponseRedirect(reverse("admin:conductor_run_change", args=[run_id]))
        return self._render_form(request, row, start, [])

    def _start_run(self, request: HttpRequest, start: StartInput) -> str:
        """Start the run and return its id. Return an empty string if the engine rejected the request."""
        by, reason = request.user.get_username(), start.form.cleaned_data["reason"]
        try:
            run_id, is_new = start_by_hand(start.request(), by, reason)
        except InputInvalid as refused:
            for each in refused.validation_errors:
                start.add_error(each.path, each.message)
        except ValidationFailed as refused:
            for each in refused.validation_errors:
                start.add_error("", each.message)
        except RequestRefused as refused:
            start.add_error("", refused.message)
        else:
            message = _("Run started.") if is_new else _("This key was used before. This is the existing run.")
            messages.success(request, message)
            return run_id
        return ""

    def _render_form(
        self, request: HttpRequest, row: WorkflowDefinition, start: StartInput, notes: list[str]
    ) -> HttpResponse:
        versions = WorkflowDefinition.objects.filter(name=row.name).order_by("-version").only("pk", "version")
        server, call = server_address(request), start.request() if _is_complete(start) else None
        context: dict[str, Any] = {
            "row": row,
            "start": start,
            "fields": start.rendered_fields(),
            "above": start.form_errors,
            "notes": notes,
            "versions": versions[:MAX_VERSIONS],
            "last": recent_starts(row.name),
            "like": request.GET.get("like", ""),
            "strategies": IDEMPOTENCY_STRATEGIES,
            "may_debug": may(request.user, DEBUG_PERMISSION, row),
            "zone": get_current_timezone_name(),
            "curl": curl_command(call, server) if call else "",
        }
        return self.render_page(request, "start", _("Start %(name)s") % {"name": row.name}, **context)


def _is_complete(start: StartInput) -> bool:
    return not start.form.is_bound or start.form.is_valid()


def _initial_values(request: HttpRequest, row: WorkflowDefinition) -> tuple[dict[str, Any], list[str]]:
    """Return the initial values, those of another run if the address names one, and notes for the page."""
    initial: dict[str, Any] = {"mode": request.GET.get("mode", "form")}
    like = request.GET.get("like", "").strip()
    if not like:
        return initial, []
    found = start_to_repeat(row.name, like)
    if found is None:
        return initial, [_("No such run of %(name)s: %(id)s.") % {"id": like[:64], "name": row.name}]
    run = found.run
    domains = "\n".join(f"{task} = {domain}" for task, domain in (run.domains or {}).items())
    initial |= {"correlation_id": run.correlation_id, "priority": run.priority, "domains": domains}
    initial["labels"] = ", ".join(run.labels.order_by("name").values_list("name", flat=True))
    if not found.has_input:
        return initial, [_("The input of that run is too large for a form. Copy it from the run's page.")]
    is_masked = f'"{REDACTED}"' in (dumps(found.input) or "")
    notes = [_("Masked values were not copied. Replace each *** with a value.")] if is_masked else []
    return initial | {"input": found.input}, notes
