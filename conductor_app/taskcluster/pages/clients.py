"""Shared parts of the pages of clients and roles: a form with scopes, and admins whose rows the engine writes."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.clients import expand_scopes
from ...core.errors import RequestRefused
from ...models import Client, ScopeRole
from ..badges import relative_time
from ..read_only import ReadOnlyAdmin


class ScopesField(forms.CharField):
    """Scopes, one per line."""

    widget = forms.Textarea(attrs={"rows": 8, "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
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
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        required=False,
        max_length=500,
        help_text=gettext_lazy("Recorded in the audit log."),
    )

    def clean(self) -> dict[str, Any]:
        """Validate the scopes as the engine does.

        Raises:
            ValidationError: when the engine would reject the values.
        """
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
    actions = ("delete_chosen",)

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
    def expanded_scopes(self, row: Client | ScopeRole) -> SafeString:
        """Return the scopes and every scope that their roles imply."""
        return (
            format_html_join("", "<div><code>{}</code></div>", ((scope,) for scope in expand_scopes(row.scopes))) or "–"
        )

    @admin.display(description=gettext_lazy("created"))
    def created(self, row: Client | ScopeRole) -> SafeString:
        return relative_time(row.created_at)

    @admin.display(description=gettext_lazy("updated"))
    def updated(self, row: Client | ScopeRole) -> SafeString:
        return relative_time(row.updated_at)
