"""Page that starts a run: the form, the same API call, and the errors of the engine."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.timezone import get_current_timezone_name
from django.utils.translation import gettext as _

from ...access.client_address import server_address
from ...core.errors import InputInvalid, RequestRefused, ValidationFailed
from ...core.masking import REDACTED
from ...engine.runs.manual_start import start_by_hand
from ...insight.runs.last_inputs import recent_starts, start_to_repeat
from ...models import WorkflowDefinition
from ...models.fields import dumps
from ..error_messages import require_permission
from ..runs.breakpoint_forms import DEBUG_PERMISSION
from .api_calls import curl_command, python_snippet
from .start_form import IDEMPOTENCY_STRATEGIES, StartInput

PERMISSION = "conductor.execute_workflowdefinition"
MAX_VERSIONS = 100


class StartPages:
    """Page that starts a run of a definition."""

    def start_urls(self) -> list[URLPattern]:
        return [path("<int:pk>/start/", self.admin_site.admin_view(self.start), name="start_run")]

    def start(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Show the form, or start a run. A rejected form is shown again with the errors at their fields."""
        require_permission(request, PERMISSION)
        row = self.find_row(request, pk)
        if request.method != "POST":
            initial, notes = _initial_values(request, row)
            return self._render_form(request, row, StartInput(row, None, initial), notes)
        if request.POST.get("stop_before"):
            require_permission(request, DEBUG_PERMISSION)
        start = StartInput(row, request.POST, {})
        if start.is_valid() and request.POST.get("step") != "show":
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
            "may_debug": request.user.has_perm(DEBUG_PERMISSION),
            "zone": get_current_timezone_name(),
            "curl": curl_command(call, server) if call else "",
            "python": python_snippet(call, server) if call else "",
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
