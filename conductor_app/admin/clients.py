"""Taskcluster's clients and roles: edited as Django edits rows, written by the engine. A token is shown once."""

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

from ..access.clients import expanded
from ..core.errors import Refused
from ..engine.access import clients, scope_roles
from ..engine.access.clients import Wanted
from ..models import Client, ScopeRole
from .marks import ago
from .read_only import ReadOnlyAdmin


class ScopesField(forms.CharField):
    """Scopes, one in a line."""

    widget = forms.Textarea(attrs={"rows": 8, "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        return [line.strip() for line in (super().to_python(value) or "").splitlines() if line.strip()]


class WithScopes(forms.ModelForm):
    """What clients and roles have both."""

    scopes = ScopesField(required=False, help_text="One in a line; a last * stands for every end.")
    description = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 3}))
    reason = forms.CharField(required=False, max_length=500, help_text="For the audit.")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors:
            try:
                self.check(cleaned.get("id") or self.instance.pk, cleaned)
            except Refused as refused:
                raise forms.ValidationError(refused.message) from None
        return cleaned

    def check(self, id: str, cleaned: dict[str, Any]) -> None:
        """Raise Refused where the engine would."""


class ClientForm(WithScopes):
    """A client."""

    expires = forms.DateTimeField(
        widget=DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"), help_text="In UTC."
    )

    class Meta:
        model = Client
        fields = ("id", "scopes", "description", "is_deleted_when_expired")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.expires_at:
            self.initial["expires"] = datetime.fromtimestamp(self.instance.expires_at / 1000, UTC)

    def check(self, id: str, cleaned: dict[str, Any]) -> None:
        clients.check_client(id, wanted(cleaned))


class ScopeRoleForm(WithScopes):
    """A role."""

    class Meta:
        model = ScopeRole
        fields = ("id", "scopes", "description")

    def check(self, id: str, cleaned: dict[str, Any]) -> None:
        scope_roles.check_role(id, cleaned["scopes"], cleaned["description"])


def wanted(said: dict[str, Any]) -> Wanted:
    """What a form says of a client."""
    expires_at = round(said["expires"].timestamp() * 1000)
    return Wanted(said["scopes"], expires_at, said["description"], said["is_deleted_when_expired"])


class EditedByTheEngine(ReadOnlyAdmin):
    """What both have: Django's pages, and nothing written by them."""

    ordering = ("id",)
    search_fields = ("id", "description")
    search_help_text = "Part of an id or of a description"
    actions = ("delete_chosen",)

    has_add_permission = admin.ModelAdmin.has_add_permission
    has_change_permission = admin.ModelAdmin.has_change_permission
    has_delete_permission = admin.ModelAdmin.has_delete_permission

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return () if obj is None else ("id", *self.facts)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return self.typed if obj is None else (*self.typed, *self.facts)

    typed: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()

    @admin.action(description="Delete", permissions=["delete"])
    def delete_chosen(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Delete the chosen ones."""
        for row in queryset:
            self.delete_model(request, row)
        self.message_user(request, "They are deleted.")

    @admin.display(description="scopes")
    def how_many(self, row: Client | ScopeRole) -> int:
        return len(row.scopes)

    @admin.display(description="stands for")
    def stands_for(self, row: Client | ScopeRole) -> SafeString:
        """The scopes with all that their roles imply."""
        return format_html_join("", "<div><code>{}</code></div>", ((scope,) for scope in expanded(row.scopes))) or "–"

    @admin.display(description="made")
    def made(self, row: Client | ScopeRole) -> SafeString:
        return ago(row.created_at)

    @admin.display(description="changed")
    def changed(self, row: Client | ScopeRole) -> SafeString:
        return ago(row.updated_at)


class ClientAdmin(EditedByTheEngine):
    """Clients that sign their requests."""

    form = ClientForm
    list_display = ("id", "how_many", "expires", "used", "is_disabled", "description")
    list_filter = ("is_disabled",)
    typed = ("id", "scopes", "description", "expires", "is_deleted_when_expired", "reason")
    facts = ("is_disabled", "stands_for", "made", "changed", "updated_by", "rotated", "used")
    actions = ("switch", "give_token", "delete_chosen")

    def save_model(self, request: HttpRequest, obj: Client, form: forms.ModelForm, change: bool) -> None:
        by, said = request.user.get_username(), form.cleaned_data
        if change:
            clients.update_client(obj.pk, wanted(said), by, said["reason"])
        else:
            _, obj.token = clients.create_client(obj.pk, wanted(said), by, said["reason"])

    def delete_model(self, request: HttpRequest, obj: Client) -> None:
        clients.delete_client(obj.pk, request.user.get_username())

    def response_add(self, request: HttpRequest, obj: Client, post_url_continue: str | None = None) -> HttpResponse:
        # The token goes into this page and nowhere else: a message would be kept in the session.
        return self._told(request, obj.pk, obj.token)

    @admin.action(description="Disable, or let be used again", permissions=["change"])
    def switch(self, request: HttpRequest, queryset: QuerySet[Client]) -> None:
        """Disable the chosen clients that are in use, and give those back that are disabled."""
        for row in queryset:
            clients.set_disabled(row.pk, not row.is_disabled, request.user.get_username())
        self.message_user(request, "Clients that are disabled are refused within a second.")

    @admin.action(description="Give another access token", permissions=["change"])
    def give_token(self, request: HttpRequest, queryset: QuerySet[Client]) -> HttpResponse | None:
        """Another token for the one that is chosen; the one before is good for nothing."""
        chosen = list(queryset[:2])
        if len(chosen) != 1:
            self.message_user(request, "Choose one client: its token is shown once.", messages.ERROR)
            return None
        _, token = clients.reset_token(chosen[0].pk, request.user.get_username())
        return self._told(request, chosen[0].pk, token)

    def _told(self, request: HttpRequest, client_id: str, token: str) -> HttpResponse:
        shown = {**self.admin_site.each_context(request), "title": "The access token", "opts": self.opts}
        reply = TemplateResponse(request, "ops/access_token.html", {**shown, "client_id": client_id, "token": token})
        reply.headers["Cache-Control"] = "no-store"
        return reply

    @admin.display(description="expires")
    def expires(self, row: Client) -> SafeString:
        return ago(row.expires_at)

    @admin.display(description="last used")
    def used(self, row: Client) -> SafeString:
        return ago(row.used_at)

    @admin.display(description="token given")
    def rotated(self, row: Client) -> SafeString:
        return ago(row.rotated_at)


class ScopeRoleAdmin(EditedByTheEngine):
    """Names for scopes."""

    form = ScopeRoleForm
    list_display = ("id", "how_many", "changed", "description")
    typed = ("id", "scopes", "description", "reason")
    facts = ("stands_for", "made", "changed", "updated_by")

    def save_model(self, request: HttpRequest, obj: ScopeRole, form: forms.ModelForm, change: bool) -> None:
        by, said = request.user.get_username(), form.cleaned_data
        write = scope_roles.update_role if change else scope_roles.create_role
        write(obj.pk, said["scopes"], said["description"], by, said["reason"])

    def delete_model(self, request: HttpRequest, obj: ScopeRole) -> None:
        scope_roles.delete_role(obj.pk, request.user.get_username())
