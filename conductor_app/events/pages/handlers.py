"""Event handlers: list, page, editor, test on past events, activation."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.permissions import EVENT_HANDLER
from ...access.visibility import may
from ...core.errors import RequestRefused, ValidationFailed
from ...core.failure_grouping import informative_line
from ...core.validation.checks import read_handler
from ...definitions.editor.checks import HANDLER, CheckResult, place_findings
from ...definitions.editor.pages import DefinitionAdmin, require_same_name
from ...definitions.validation import check_handler
from ...web.badges import relative_time, render_pill
from ...web.forms import format_json
from ...web.pages import show_refusal
from ..commands.handlers import TRIED, create_handlers, delete_handler, set_active, try_on_past_events, update_handler
from ..models import EventHandler
from ..queries import EventFilter, event_page, lint_handler, with_last_verdict
from .events import VERDICT_LABELS, handler_outcomes, trial_view

SAMPLE = {
    "name": "start_when_paid",
    "event": "conductor:orders:paid",
    "condition": "$.total > 100",
    "evaluatorType": "javascript",
    "actions": [
        {
            "action": "start_workflow",
            "start_workflow": {"name": "my_workflow", "input": {"order": "${id}", "total": "${total}"}},
        }
    ],
    "active": True,
}
MAX_EVENTS = 10


class EventHandlerAdmin(DefinitionAdmin):
    """Admin of event handlers."""

    is_archivable = False
    kind, sample, page_template, target_type = HANDLER, SAMPLE, "handler", EVENT_HANDLER
    change_permission, view_permission = "conductor.change_event_handler", "conductor.view_event_handler"
    new_title, saved_message = gettext_lazy("New event handler"), gettext_lazy("Event handler saved.")
    list_display = ("definition", "event", "state", "last_event", "updated", "changed_by")
    search_fields = ("name", "event")
    search_help_text = gettext_lazy("Part of the name of a handler or event")
    ordering = ("name",)

    class Media:
        css = {"all": ("ops/fixing.css", "ops/events.css")}

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.act)
        return [path("<int:pk>/do/<str:act>/", view, name="eventhandler_act"), *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[EventHandler]:
        return with_last_verdict(super().get_queryset(request))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, {"tab": "handlers", **(extra_context or {})})

    def get_extra_context(self, request: HttpRequest, row: EventHandler) -> dict[str, Any]:
        last = event_page(EventFilter(handler=row.name)).delivered[:MAX_EVENTS]
        findings = lint_handler(*check_handler(dict(row.document)))
        return {
            "may_delete": may(request.user, self._delete_permission(request), row),
            "checked": CheckResult(row.document, place_findings(findings, format_json(row.document))),
            "recent_events": [
                (delivered.delivery, next(each for each in handler_outcomes(delivered) if each.handler == row.name))
                for delivered in last
            ],
        }

    def save_document(self, form: Form, row: EventHandler | None, by: str) -> None:
        """Save the handler.

        Raises:
            ValidationFailed: when the document is invalid.
        """
        document, reason = form.cleaned_data["document"], form.cleaned_data["reason"]
        read, validation_errors = check_handler(document)
        if validation_errors:
            raise ValidationFailed(validation_errors)
        if row is None:
            create_handlers([read], by, reason)
        else:
            require_same_name(document, row)
            update_handler(read, by, reason)

    def try_document(self, document: dict[str, Any]) -> dict[str, Any]:
        return {"trial": trial_view(try_on_past_events(read_handler(document)[0]))}

    def get_drawings(self, result: Any) -> dict[str, Any]:
        return {"max_tested": TRIED}

    def act(self, request: HttpRequest, pk: int, act: str) -> HttpResponse:
        """Handle a button of the page.

        Raises:
            Http404: when the action is unknown.
        """
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        permission = self._delete_permission(request) if act == "delete" else self.change_permission
        row, by = self.find_row(request, pk, permission), request.user.get_username()
        try:
            if act == "delete":
                delete_handler(row.name, by)
                messages.success(request, _("%(name)s deleted. Its past results are kept.") % {"name": row.name})
                return HttpResponseRedirect(reverse("admin:conductor_eventhandler_changelist"))
            if act not in ("listen", "rest"):
                raise Http404
            set_active(row.name, act == "listen", by)
            message = _("%(name)s enabled.") if act == "listen" else _("%(name)s disabled.")
            messages.success(request, message % {"name": row.name})
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(reverse("admin:conductor_eventhandler_change", args=[pk]))

    def _delete_permission(self, request: HttpRequest) -> str:
        """Return the permission to delete a handler: that to change all handlers is sufficient."""
        return (
            self.change_permission
            if request.user.has_perm(self.change_permission)
            else self.change_permission.replace(".change_", ".delete_")
        )

    @admin.display(description=gettext_lazy("state"))
    def state(self, row: EventHandler) -> SafeString:
        return render_pill("succeeded", _("enabled")) if row.is_active else render_pill("paused", _("disabled"))

    @admin.display(description=gettext_lazy("last event"))
    def last_event(self, row: Any) -> SafeString:
        if row.last_at is None:
            return relative_time(None)
        group, word = VERDICT_LABELS.get(row.last_outcome, ("waiting", row.last_outcome))
        address = reverse("admin:events", query={"handler": row.name})
        shown = format_html(
            '<a href="{}">{}</a> {}', address, relative_time(row.last_at), render_pill(group, str(word))
        )
        error = informative_line(row.last_error or row.last_action_error or "", 120)
        return format_html('{} <div class="muted">{}</div>', shown, error) if error else shown
