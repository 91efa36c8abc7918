"""Users and groups on Django's own pages; what is changed there stands in the audit, too."""

from typing import Any

from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from ...access.rights import SYSTEM_ROLES
from ...engine.access.notes import note


class Audited:
    """Notes in the audit what Django notes in its log of pages."""

    kind = ""

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        self._note(request, obj, "create", message)
        return super().log_addition(request, obj, message)  # type: ignore[misc]

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        self._note(request, obj, "change", message)
        return super().log_change(request, obj, message)  # type: ignore[misc]

    def log_deletions(self, request: HttpRequest, queryset: QuerySet) -> Any:
        for obj in queryset:
            self._note(request, obj, "delete", [])
        return super().log_deletions(request, queryset)  # type: ignore[misc]

    def _note(self, request: HttpRequest, obj: Model, action: str, message: Any) -> None:
        fields = [name for part in message if isinstance(part, dict) for each in part.values()
                  for name in each.get("fields", ())]  # fmt: skip
        note(self.kind, str(obj), action, request.user.get_username(), fields=fields)


class People(Audited, UserAdmin):
    """Users: people, and those of applications."""

    kind = "user"


class Groups(Audited, GroupAdmin):
    """Groups, and the roles that every server has: these are written at each start as they are meant to be."""

    kind = "group"
    list_display = ("name", "role")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Group]:
        return super().get_queryset(request).select_related("facts")

    def role(self, row: Group) -> str:
        """The role that the group is."""
        return getattr(getattr(row, "facts", None), "role", None) or "–"

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        is_every_servers = obj is not None and self.role(obj) in SYSTEM_ROLES
        return not is_every_servers and super().has_delete_permission(request, obj)
