"""Pages of Taskcluster's clients and roles: edited on Django's forms, written by commands.

An access token is displayed once.
"""

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms.widgets import DateTimeInput
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.models import Client
from ...core.errors import RequestRefused
from ...web.pages import ReadOnlyAdmin, moment_column
from ..auth import commands
from ..auth.commands import ClientSettings
from ..auth.scopes import expand_saved_scopes
from ..models import ScopeRole


class ScopesField(forms.CharField):
    """Scopes, one per line."""

    widget = forms.Textarea(attrs={"rows": 8, "spellcheck": "false"})

    def prepare_value(self, value: object) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: object) -> Any:
        return [line.strip() for line in (super().to_python(value) or "").splitlines() if line.strip()]


class ScopesForm(forms.ModelForm):
    """Fields that clients and roles share."""

    scopes = ScopesField(
        label=gettext_lazy("Scopes"),
        required=False,
        help_text=gettext_lazy("One per line. A trailing * matches every suffix."),
    )
    description = forms.CharField(
        label=gettext_lazy("Description"), required=False, widget=forms.Textarea(attrs={"rows": 3})
    )

    def clean(self) -> dict[str, Any]:
        """Validate the scopes as the engine does."""
        cleaned = super().clean() or {}
        if not self.errors:
            try:
                self.check(cleaned.get("id") or self.instance.pk, cleaned)
            except RequestRefused as refused:
                raise forms.ValidationError(refused.message) from None
        return cleaned

    def check(self, id: str, cleaned: dict[str, Any]) -> None:
        """Raise RequestRefused if the engine would reject the values."""


class EngineEditedAdmin(ReadOnlyAdmin):
    """Admin with Django's forms whose changes are commands to the engine."""

    ordering = ("id",)
    search_fields = ("id", "description")
    search_help_text = gettext_lazy("Part of an id or description")
    actions: tuple[str, ...] = ("delete_chosen",)

    has_add_permission = admin.ModelAdmin.has_add_permission
    has_change_permission = admin.ModelAdmin.has_change_permission
    has_delete_permission = admin.ModelAdmin.has_delete_permission

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return () if obj is None else ("id", *self.detail_fields)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return self.editable_fields if obj is None else (*self.editable_fields, *self.detail_fields)

    editable_fields: tuple[str, ...] = ()
    detail_fields: tuple[str, ...] = ()

    @admin.action(description=gettext_lazy("Delete"), permissions=["delete"])
    def delete_chosen(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Delete the selected rows."""
        for row in queryset:
            self.delete_model(request, row)
        self.message_user(request, _("Deleted."))

    @admin.display(description=gettext_lazy("scopes"))
    def scope_count(self, row: Client | ScopeRole) -> int:
        return len(row.scopes)

    @admin.display(description=gettext_lazy("expanded scopes"))
    def expanded_scopes(self, row: Client | ScopeRole) -> SafeString | str:
        """Return the scopes and every scope that their roles imply."""
        return (
            format_html_join("", "<div><code>{}</code></div>", ((scope,) for scope in expand_saved_scopes(row.scopes)))
            or "–"
        )

    created = moment_column("created_at", gettext_lazy("created"))
    updated = moment_column("updated_at", gettext_lazy("updated"))


class ScopeRoleForm(ScopesForm):
    """A role."""

    class Meta:
        model = ScopeRole
        fields = ("id", "scopes", "description")

    def check(self, id: str, cleaned: dict[str, Any]) -> None:
        commands.check_role(id, cleaned["scopes"], cleaned["description"])


class ScopeRoleAdmin(EngineEditedAdmin):
    """Named sets of scopes."""

    form = ScopeRoleForm
    list_display = ("id", "scope_count", "updated", "description")
    editable_fields = ("id", "scopes", "description")
    detail_fields = ("expanded_scopes", "created", "updated", "updated_by")

    def save_model(self, request: HttpRequest, obj: ScopeRole, form: forms.ModelForm, change: bool) -> None:
        by, cleaned = request.user.get_username(), form.cleaned_data
        write = commands.update_role if change else commands.create_role
        write(obj.pk, cleaned["scopes"], cleaned["description"], by)

    def delete_model(self, request: HttpRequest, obj: ScopeRole) -> None:
        commands.delete_role(obj.pk, request.user.get_username())


class ClientForm(ScopesForm):
    """A client."""

    expires = forms.DateTimeField(
        label=gettext_lazy("Expires"),
        widget=DateTimeInput(attrs={"placeholder": gettext_lazy("YYYY-MM-DD HH:MM")}, format="%Y-%m-%d %H:%M"),
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
        commands.check_client(id, client_settings(cleaned))


def client_settings(cleaned: dict[str, Any]) -> ClientSettings:
    """Return the settings of a client from the cleaned data of its form."""
    expires_at = round(cleaned["expires"].timestamp() * 1000)
    return ClientSettings(cleaned["scopes"], expires_at, cleaned["description"], cleaned["is_deleted_when_expired"])


class ClientAdmin(EngineEditedAdmin):
    """Clients that sign their requests with Hawk."""

    form = ClientForm
    list_display = ("id", "scope_count", "expires", "last_used", "is_disabled", "description")
    list_filter = ("is_disabled",)
    editable_fields = ("id", "scopes", "description", "expires", "is_deleted_when_expired")
    detail_fields = ("is_disabled", "expanded_scopes", "created", "updated", "updated_by", "token_issued", "last_used")
    actions = ("toggle_disabled", "reset_access_token", "delete_chosen")

    def save_model(self, request: HttpRequest, obj: Client, form: forms.ModelForm, change: bool) -> None:
        by, cleaned = request.user.get_username(), form.cleaned_data
        if change:
            commands.update_client(obj.pk, client_settings(cleaned), by)
        else:
            obj.token = commands.create_client(obj.pk, client_settings(cleaned), by)[1]

    def delete_model(self, request: HttpRequest, obj: Client) -> None:
        commands.delete_client(obj.pk, request.user.get_username())

    def response_add(self, request: HttpRequest, obj: Client, post_url_continue: str | None = None) -> HttpResponse:
        # The token is rendered into this response only: a message would be stored in the session.
        return self._token_response(request, obj.pk, obj.token)

    @admin.action(description=gettext_lazy("Disable / Enable"), permissions=["change"])
    def toggle_disabled(self, request: HttpRequest, queryset: QuerySet[Client]) -> None:
        """Disable the selected clients that are enabled, and enable those that are disabled."""
        for row in queryset:
            commands.set_disabled(row.pk, not row.is_disabled, request.user.get_username())
        self.message_user(request, _("Done. Requests of disabled clients are rejected within one second."))

    @admin.action(description=gettext_lazy("Rotate token"), permissions=["change"])
    def reset_access_token(self, request: HttpRequest, queryset: QuerySet[Client]) -> HttpResponse | None:
        """Give the selected client a new token. The old token becomes invalid."""
        selected = list(queryset[:2])
        if len(selected) != 1:
            self.message_user(request, _("Select one client: its token is displayed only once."), messages.ERROR)
            return None
        token = commands.reset_token(selected[0].pk, request.user.get_username())[1]
        return self._token_response(request, selected[0].pk, token)

    def _token_response(self, request: HttpRequest, client_id: str, token: str) -> HttpResponse:
        context = {**self.admin_site.each_context(request), "title": _("Access token"), "opts": self.opts}
        reply = TemplateResponse(
            request, "ops/access/access_token.html", {**context, "client_id": client_id, "token": token}
        )
        reply.headers["Cache-Control"] = "no-store"
        return reply

    expires = moment_column("expires_at", gettext_lazy("expires"))
    last_used = moment_column("used_at", gettext_lazy("last used"))
    token_issued = moment_column("rotated_at", gettext_lazy("token issued"))
