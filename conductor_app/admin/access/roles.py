"""Taskcluster roles: named sets of scopes."""

from typing import Any

from django import forms
from django.http import HttpRequest

from ...engine.access import scope_roles
from ...models import ScopeRole
from .scope_forms import EngineEditedAdmin, ScopesForm


class ScopeRoleForm(ScopesForm):
    """A role."""

    class Meta:
        model = ScopeRole
        fields = ("id", "scopes", "description")

    def check(self, id: str, cleaned: dict[str, Any]) -> None:
        scope_roles.check_role(id, cleaned["scopes"], cleaned["description"])


class ScopeRoleAdmin(EngineEditedAdmin):
    """Named sets of scopes."""

    form = ScopeRoleForm
    list_display = ("id", "scope_count", "updated", "description")
    editable_fields = ("id", "scopes", "description", "reason")
    detail_fields = ("expanded_scopes", "created", "updated", "updated_by")

    def save_model(self, request: HttpRequest, obj: ScopeRole, form: forms.ModelForm, change: bool) -> None:
        by, cleaned = request.user.get_username(), form.cleaned_data
        write = scope_roles.update_role if change else scope_roles.create_role
        write(obj.pk, cleaned["scopes"], cleaned["description"], by, cleaned["reason"])

    def delete_model(self, request: HttpRequest, obj: ScopeRole) -> None:
        scope_roles.delete_role(obj.pk, request.user.get_username())
