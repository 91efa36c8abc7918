"""Taskcluster clients: edited on Django's forms, written by the engine. An access token is displayed once."""

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms.widgets import DateTimeInput
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...engine.access import clients
from ...engine.access.clients import ClientSettings
from ...models import Client
from ..badges import relative_time
from .scope_forms import EngineEditedAdmin, ScopesForm


class ClientForm(ScopesForm):
    """A client."""

    expires = forms.DateTimeField(
        label=gettext_lazy("Expires"),
        widget=DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text=gettext_lazy("UTC."),
    )

    class Meta:
        model = Client
        fields = ("id", "scopes", "description", "is_deleted_when_expired")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.expires_at:
            self.initial["expires"] = datetime.fromtimestamp(self.instance.expires_at / 1000, UTC)

    def check(self, id: str, cleaned: dict[str, Any]) -> None:
        clients.check_client(id, client_settings(cleaned))


def client_settings(cleaned: dict[str, Any]) -> ClientSettings:
    """Return the settings of a client from the cleaned data of its form."""
    expires_at = round(cleaned["expires"].timestamp() * 1000)
    return ClientSettings(cleaned["scopes"], expires_at, cleaned["description"], cleaned["is_deleted_when_expired"])


class ClientAdmin(EngineEditedAdmin):
    """Clients that sign their requests with Hawk."""

    form = ClientForm
    list_display = ("id", "scope_count", "expires", "last_used", "is_disabled", "description")
    list_filter = ("is_disabled",)
    editable_fields = ("id", "scopes", "description", "expires", "is_deleted_when_expired", "reason")
    detail_fields = ("is_disabled", "expanded_scopes", "created", "updated", "updated_by", "token_issued", "last_used")
    actions = ("toggle_disabled", "reset_access_token", "delete_chosen")

    def save_model(self, request: HttpRequest, obj: Client, form: forms.ModelForm, change: bool) -> None:
        by, cleaned = request.user.get_username(), form.cleaned_data
        if change:
            clients.update_client(obj.pk, client_settings(cleaned), by, cleaned["reason"])
        else:
            obj.token = clients.create_client(obj.pk, client_settings(cleaned), by, cleaned["reason"])[1]

    def delete_model(self, request: HttpRequest, obj: Client) -> None:
        clients.delete_client(obj.pk, request.user.get_username())

    def response_add(self, request: HttpRequest, obj: Client, post_url_continue: str | None = None) -> HttpResponse:
        # The token is rendered into this response only: a message would be stored in the session.
        return self._token_response(request, obj.pk, obj.token)

    @admin.action(description=gettext_lazy("Disable / Enable"), permissions=["change"])
    def toggle_disabled(self, request: HttpRequest, queryset: QuerySet[Client]) -> None:
        """Disable the selected clients that are enabled, and enable those that are disabled."""
        for row in queryset:
            clients.set_disabled(row.pk, not row.is_disabled, request.user.get_username())
        self.message_user(request, _("Done. Requests of disabled clients are rejected within one second."))

    @admin.action(description=gettext_lazy("Rotate token"), permissions=["change"])
    def reset_access_token(self, request: HttpRequest, queryset: QuerySet[Client]) -> HttpResponse | None:
        """Give the selected client a new token. The old token becomes invalid."""
        selected = list(queryset[:2])
        if len(selected) != 1:
            self.message_user(request, _("Select one client: its token is displayed only once."), messages.ERROR)
            return None
        token = clients.reset_token(selected[0].pk, request.user.get_username())[1]
        return self._token_response(request, selected[0].pk, token)

    def _token_response(self, request: HttpRequest, client_id: str, token: str) -> HttpResponse:
        context = {**self.admin_site.each_context(request), "title": _("Access token"), "opts": self.opts}
        reply = TemplateResponse(request, "ops/access_token.html", {**context, "client_id": client_id, "token": token})
        reply.headers["Cache-Control"] = "no-store"
        return reply

    @admin.display(description=gettext_lazy("expires"))
    def expires(self, row: Client) -> SafeString:
        return relative_time(row.expires_at)

    @admin.display(description=gettext_lazy("last used"))
    def last_used(self, row: Client) -> SafeString:
        return relative_time(row.used_at)

    @admin.display(description=gettext_lazy("token issued"))
    def token_issued(self, row: Client) -> SafeString:
        return relative_time(row.rotated_at)
