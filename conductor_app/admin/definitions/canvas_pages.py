"""Pages of the canvas: the endpoint for the script, and the editor's page without it."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.template.loader import render_to_string
from django.urls import URLPattern, path

from ...core.errors import Invalid
from .canvas import CanvasState, handle_canvas, is_too_deep, panel_context
from .definition_checks import CheckResult, check_text, checks_report


class CanvasPages:
    """Endpoint and panel of the canvas."""

    def canvas_urls(self) -> list[URLPattern]:
        return [path("canvas/", self.admin_site.admin_view(self.canvas_view), name="workflowdefinition_canvas")]

    def canvas_view(self, request: HttpRequest) -> HttpResponse:
        """Apply an action to the submitted text. Return the new text, the diagram and the panel."""
        self._require_edit_permission(request)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        text = request.POST.get("document", "")
        try:
            state = handle_canvas(text, request.POST)
        except Invalid as refused:
            return JsonResponse({"message": refused.message}, status=422)
        result = check_text(self.kind, state.text)
        panel = render_to_string("ops/definition/step_panel.html", panel_context(state, result, request.POST), request)
        return JsonResponse(
            {
                **checks_report(result, self.kind),
                **({} if state.text == text else {"document": state.text}),
                "panel": panel,
                "at": state.at,
                "message": state.message,
                "is_refused": state.is_refused,
            }
        )

    def render_canvas(self, request: HttpRequest, row: Any, editing_start: Any) -> HttpResponse:
        """Apply an action without a script, and show the editor with the new text, which is saved as the draft."""
        data = request.POST.copy()
        try:
            state = handle_canvas(data.get("document", ""), data)
        except Invalid as refused:
            form, message = self.get_edit_form(row, data, editing_start), refused.message
            return self._render_editor(request, form, row, editing_start, canvas_message=message, is_refused=True)
        data["document"] = state.text
        request.POST = data
        self._keep_draft(request, row)
        form = self.get_edit_form(row, data, editing_start)
        form.checked = check_text(self.kind, state.text)
        panel = panel_context(state, form.checked, data)
        messages = {"canvas_message": state.message, "is_refused": state.is_refused}
        return self._render_editor(request, form, row, editing_start, **panel, **messages)

    def get_panel(self, request: HttpRequest, row: Any, result: CheckResult) -> dict[str, Any]:
        """Return the form of the workflow, which the panel shows first."""
        if result.document is None or is_too_deep(result.document) or "canvas" in request.POST:
            return {}
        return panel_context(CanvasState(result.document, ""), result, {"is_named": "yes" if row else ""})
