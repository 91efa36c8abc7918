"""Users and groups on Django's own pages; what is changed there stands in the audit, too."""

from itertools import groupby
from operator import itemgetter
from typing import Any

from django.contrib.admin import ShowFacets, display
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Model, QuerySet
from django.forms import CheckboxSelectMultiple
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from ...access.rights import SYSTEM_ROLES
from ...engine.access.notes import note
from ..marks import ago


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


class PermissionBoxes(CheckboxSelectMultiple):
    """A box for each permission, gathered by what it is about."""

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(name, value, *args, **kwargs)
        permission = value.instance
        return option | {"label": permission.name, "about": permission.content_type.name}

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        shown = self.get_context(name, value, attrs)
        options = [option for _, group, _ in shown["widget"]["optgroups"] for option in group]
        about = groupby(sorted(options, key=itemgetter("about")), key=itemgetter("about"))
        shown["abouts"] = [_about(name, list(group)) for name, group in about]
        return render_to_string("ops/boxes.html", shown)


def _about(name: str, options: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": name, "options": options, "chosen": sum(option["selected"] for option in options)}


class Boxed:
    """Groups and permissions are chosen by ticking boxes, which keys and screen readers reach."""

    filter_horizontal = ()

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest | None = None, **given: Any) -> Any:
        widget = CheckboxSelectMultiple if db_field.name == "groups" else PermissionBoxes
        field = super().formfield_for_manytomany(db_field, request, widget=widget(), **given)  # type: ignore[misc]
        if db_field.name != "groups":
            field.queryset = Permission.objects.select_related("content_type")
        return field


class People(Audited, Boxed, UserAdmin):
    """Users: people, and those of applications."""

    kind = "user"
    show_facets = ShowFacets.NEVER
    search_help_text = gettext_lazy("Part of a name or of a mail address")
    readonly_fields = ("seen", "joined")
    fieldsets = (*UserAdmin.fieldsets[:-1], (gettext_lazy("Important dates"), {"fields": ("seen", "joined")}))

    @display(description=gettext_lazy("last login"))
    def seen(self, row: User) -> SafeString:
        return ago(row.last_login and round(row.last_login.timestamp() * 1000))

    @display(description=gettext_lazy("date joined"))
    def joined(self, row: User) -> SafeString:
        return ago(round(row.date_joined.timestamp() * 1000))


class Groups(Audited, Boxed, GroupAdmin):
    """Groups, and the roles that every server has: these are written at each start as they are meant to be."""

    kind = "group"
    list_display = ("name", "role")
    search_help_text = gettext_lazy("Part of a name")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Group]:
        return super().get_queryset(request).select_related("facts")

    def role(self, row: Group) -> str:
        """The role that the group is."""
        return getattr(getattr(row, "facts", None), "role", None) or "–"

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        is_every_servers = obj is not None and self.role(obj) in SYSTEM_ROLES
        return not is_every_servers and super().has_delete_permission(request, obj)
