"""Breakpoints of a definition on its page. They stop the runs that start after they are set."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from ... import clock
from ...core.errors import RequestRefused
from ...core.step_tree import walk
from ...engine.runs import debugging
from ...insight.runs.debugger import live_breakpoints_of
from ...models import WorkflowDefinition
from ..error_messages import require_permission, show_refusal
from ..runs.breakpoint_forms import DEBUG_PERMISSION, breakpoints_context, parse_breakpoint_form
from .start_page import PERMISSION


class BreakpointPages:
    """List and forms of the breakpoints of a definition."""

    def breakpoint_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.change_breakpoints)
        return [path("<int:pk>/breakpoints/", view, name="definition_breakpoints")]

    def breakpoints_of(self, request: HttpRequest, row: WorkflowDefinition) -> dict[str, Any]:
        """Return the context of the breakpoints, or nothing if the user may not set them."""
        if not (request.user.has_perm(DEBUG_PERMISSION) and request.user.has_perm(PERMISSION)):
            return {}
        found = live_breakpoints_of({"breakpoints": row.breakpoints}, clock.now())
        steps = [spot.ref for spot in walk(row.document.get("tasks")) if spot.ref]
        address = reverse("admin:definition_breakpoints", args=[row.pk])
        return {"may_debug": True, "is_open": True, **breakpoints_context(found, steps, address)}

    def change_breakpoints(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Set or remove a breakpoint."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        require_permission(request, DEBUG_PERMISSION)
        require_permission(request, PERMISSION)
        row = self.find_row(request, pk)
        try:
            messages.success(request, _change_breakpoint(request, row))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(f"{reverse('admin:conductor_workflowdefinition_change', args=[pk])}#breakpoints")


def _change_breakpoint(request: HttpRequest, row: WorkflowDefinition) -> str:
    """Execute the command that the form names, and return what was done."""
    form, by = request.POST, request.user.get_username()
    if form.get("do") == "remove":
        debugging.remove_definition_breakpoint(row.name, row.version, form.get("breakpoint", ""), by)
        return _("Breakpoint removed.")
    debugging.set_definition_breakpoint(row.name, row.version, parse_breakpoint_form(form), by)
    return _("Breakpoint set. It applies to runs that start from now on.")
