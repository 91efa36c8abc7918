"""What the pages of clients and of roles share: a form with scopes, and rows that the engine writes."""

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
    """Scopes, one in a line."""

    widget = forms.Textarea(attrs={"rows": 8, "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        return [line.strip() for line in (super().to_python(value) or "").splitlines() if line.strip()]


class ScopesForm(forms.ModelForm):
    """What clients and roles have both."""

    scopes = ScopesField(
        label=gettext_lazy("Scopes"),
        required=False,
        help_text=gettext_lazy("One in a line; a last * stands for every end."),
    )
    description = forms.CharField(
        label=gettext_lazy("Description"), required=False, widget=forms.Textarea(attrs={"rows": 3})
    )
    reason = forms.CharField(
        label=gettext_lazy("Reason"), required=False, max_length=500, help_text=gettext_lazy("For the audit.")
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors:
            try:
                self.check(cleaned.get("id") or self.instance.pk, cleaned)
            except RequestRefused as refused:
                raise forms.ValidationError(refused.message) from None
        return cleaned

    def check(self, id: str, cleaned: dict[str, Any]) -> None:
        """Raise Refused where the engine would."""


class EngineEditedAdmin(ReadOnlyAdmin):
    """What both have: Django's pages, and nothing written by them."""

    ordering = ("id",)
    search_fields = ("id", "description")
    search_help_text = gettext_lazy("Part of an id or of a description")
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
        """Delete the chosen ones."""
        for row in queryset:
            self.delete_model(request, row)
        self.message_user(request, _("They are deleted."))

    @admin.display(description=gettext_lazy("scopes"))
    def scope_count(self, row: Client | ScopeRole) -> int:
        return len(row.scopes)

    @admin.display(description=gettext_lazy("stands for"))
    def expanded_scopes(self, row: Client | ScopeRole) -> SafeString:
        """The scopes with all that their roles imply."""
        return (
            format_html_join("", "<div><code>{}</code></div>", ((scope,) for scope in expand_scopes(row.scopes))) or "–"
        )

    @admin.display(description=gettext_lazy("made"))
    def made(self, row: Client | ScopeRole) -> SafeString:
        return relative_time(row.created_at)

    @admin.display(description=gettext_lazy("changed"))
    def changed(self, row: Client | ScopeRole) -> SafeString:
        return relative_time(row.updated_at)
