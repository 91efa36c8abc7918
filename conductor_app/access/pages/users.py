"""Users and groups on Django's own pages. Changes are also recorded in the audit log."""

from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.contrib.admin import ShowFacets, display
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.forms import CheckboxSelectMultiple
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from ...core.errors import Conflict
from ...web.badges import relative_time
from ...web.pages import ListAdmin, render_to_string, show_refusal
from ..audit import record_access_change
from ..commands.users import keep_administrator
from ..grants import may_give
from ..permissions import (
    ALL_PERMISSIONS,
    RIGHT_BY_PERMISSION,
    SYSTEM_ROLES,
    USED_PERMISSIONS,
    PermissionSet,
    read_group_permission_set,
    read_permission_set,
    require_free_user_name,
)
from ..sign_in.pages import SignInFieldsMixin

ACTION_LABELS = {
    "view": gettext_lazy("View"),
    "add": gettext_lazy("Create"),
    "change": gettext_lazy("Change"),
    "delete": gettext_lazy("Delete"),
    "execute": gettext_lazy("Execute"),
}
SUBJECT_LABELS = {
    "bulkoperation": gettext_lazy("Bulk operations"),
    "callerquota": gettext_lazy("Quotas"),
    "domain": gettext_lazy("Task domains"),
    "event_handler": gettext_lazy("Event handlers"),
    "failuregroup": gettext_lazy("Failures"),
    "formtemplate": gettext_lazy("Form templates"),
    "historyentry": gettext_lazy("Run history"),
    "message": gettext_lazy("Messages between runs"),
    "poller": gettext_lazy("Workers"),
    "retentionpolicy": gettext_lazy("Retention"),
    "savedview": gettext_lazy("Saved views"),
    "schema": gettext_lazy("Schemas"),
    "sweeppass": gettext_lazy("System"),
    "task": gettext_lazy("Tasks"),
    "tasklog": gettext_lazy("Task logs"),
    "webhook": gettext_lazy("Webhooks"),
}
"""Labels of permissions on things without a list in the sidebar: a page there, a part of pages, or no table."""


class AuditedAdmin:
    """Mixin that records Django's own log of changes in the audit log."""

    object_type = ""

    def log_addition(self, request: HttpRequest, obj: Model, message: object) -> Any:
        self._record_change(request, obj, "create", message)
        return super().log_addition(request, obj, message)  # type: ignore[misc]

    def log_change(self, request: HttpRequest, obj: Model, message: object) -> Any:
        self._record_change(request, obj, "change", message)
        return super().log_change(request, obj, message)  # type: ignore[misc]

    def log_deletions(self, request: HttpRequest, queryset: QuerySet) -> Any:
        for obj in queryset:
            self._record_change(request, obj, "delete", [])
        return super().log_deletions(request, queryset)  # type: ignore[misc]

    def _record_change(self, request: HttpRequest, obj: Model, action: str, message: Any) -> None:
        fields = [name for part in message if isinstance(part, dict) for each in part.values()
                  for name in each.get("fields", ())]  # fmt: skip
        record_access_change(self.object_type, str(obj), action, request.user.get_username(), fields=fields)


class AdministratorsMixin:
    """Mixin that refuses a change after which no administrator could sign in."""

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return _keep_administrator(super().changeform_view, request, *args, **kwargs)  # type: ignore[misc]

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return _keep_administrator(super().delete_view, request, *args, **kwargs)  # type: ignore[misc]

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return _keep_administrator(super().changelist_view, request, *args, **kwargs)  # type: ignore[misc]

    def user_change_password(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return _keep_administrator(super().user_change_password, request, *args, **kwargs)  # type: ignore[misc]


def _keep_administrator(
    view: Callable[..., HttpResponse], request: HttpRequest, *args: Any, **kwargs: Any
) -> HttpResponse:
    """Call a view, and show its form again with the reason if no administrator would remain."""
    if request.method != "POST":
        return view(request, *args, **kwargs)
    try:
        with keep_administrator():
            return view(request, *args, **kwargs)
    except Conflict as refused:
        show_refusal(request, refused)
        return HttpResponseRedirect(request.get_full_path())


class PermissionCheckboxes(CheckboxSelectMultiple):
    """A checkbox for each permission that the server checks, grouped by object type.

    `page_name`: returns the name of the list of a model.
    """

    def __init__(self, page_name: Callable[[Any], str]) -> None:
        super().__init__()
        self.page_name = page_name

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(name, value, *args, **kwargs)
        verb, _, subject = value.instance.codename.partition("_")
        about = SUBJECT_LABELS.get(subject) or self.page_name(value.instance.content_type.model_class()._meta)
        attributes = {"label": ACTION_LABELS[verb], "rank": [*ACTION_LABELS].index(verb), "about": str(about)}
        # As code and the 403 page name it.
        permission = f"{value.instance.content_type.app_label}.{value.instance.codename}"
        return option | attributes | {"permission": permission}

    def render(self, name: str, value: object, attrs: Any = None, renderer: Any = None) -> SafeString:
        context = self.get_context(name, value, attrs)
        options = _deduplicate_options([option for _, group, _ in context["widget"]["optgroups"] for option in group])
        about = groupby(sorted(options, key=itemgetter("about", "rank")), key=itemgetter("about"))
        context["abouts"] = [_option_group(name, list(group)) for name, group in about]
        return render_to_string("ops/web/grouped_checkboxes.html", context)


def _deduplicate_options(options: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep one checkbox per label: some permissions belong to two tables, and either one grants access."""
    selected = {option["permission"] for option in options if option["selected"]}
    by_permission = {option["permission"]: option for option in options}
    return [option | {"selected": name in selected} for name, option in by_permission.items()]


def _option_group(name: str, options: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": name, "options": options, "chosen": sum(option["selected"] for option in options)}


class CheckboxAdmin(ListAdmin):
    """Mixin that selects groups and permissions by checkboxes, which keyboards and screen readers can reach."""

    admin_site: Any
    filter_horizontal: Any = ()
    permission_field = ""

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest | None = None, **kwargs: object) -> Any:
        is_groups = db_field.name == "groups"
        widget = CheckboxSelectMultiple() if is_groups else PermissionCheckboxes(self.admin_site.page_name)
        field = super().formfield_for_manytomany(db_field, request, widget=widget, **kwargs)  # type: ignore[misc]
        # A user can give only permissions that it has itself.
        if not is_groups:
            field.queryset = _required_permissions().filter(pk__in=_held_permission_ids())
        else:
            held = [group.pk for group in Group.objects.all() if may_give(read_group_permission_set(group.pk))]
            field.queryset = Group.objects.filter(pk__in=held)
        return field

    def save_related(self, request: HttpRequest, form: Any, *args: object) -> None:
        """Keep the permissions that the form does not show."""
        permissions = getattr(form.instance, self.permission_field)
        unseen = list(permissions.exclude(pk__in=_required_permissions().filter(pk__in=_held_permission_ids())))
        super().save_related(request, form, *args)  # type: ignore[misc]
        permissions.add(*unseen)


def _required_permissions() -> QuerySet[Permission]:
    names = [name.partition(".") for name in sorted(USED_PERMISSIONS)]
    which = Q(*(Q(content_type__app_label=app, codename=codename) for app, _, codename in names), _connector=Q.OR)
    return Permission.objects.select_related("content_type").filter(which)


def _held_permission_ids() -> list[int]:
    """Return the ids of the permissions that the current user may give."""
    ids = []
    for id, app, codename in Permission.objects.values_list("id", "content_type__app_label", "codename"):
        right = RIGHT_BY_PERMISSION.get(f"{app}.{codename}")
        wanted = PermissionSet(rights=frozenset([right])) if right else ALL_PERMISSIONS
        if may_give(wanted):
            ids.append(id)
    return ids


class FreeNameMixin:
    """A user's name must not be that of another user or of an application."""

    cleaned_data: dict[str, Any]
    changed_data: list[str]
    instance: User

    def clean_username(self) -> str:
        # Django's form of a new user has its own check.
        check: Any = getattr(super(), "clean_username", None)
        name: str = (check and check()) or self.cleaned_data["username"]
        if "username" in self.changed_data:
            try:
                require_free_user_name(name, self.instance.pk or 0)
            except Conflict as refused:
                raise ValidationError(refused.message) from None
        return name


class UserForm(FreeNameMixin, UserChangeForm):
    """Form of an existing user."""


class NewUserForm(FreeNameMixin, AdminUserCreationForm):
    """Form of a new user."""


class AuditedUserAdmin(AuditedAdmin, AdministratorsMixin, CheckboxAdmin, SignInFieldsMixin, UserAdmin):
    """Users: people, and the users of applications."""

    object_type, permission_field = "user", "user_permissions"
    form, add_form = UserForm, NewUserForm
    show_facets = ShowFacets.NEVER
    search_help_text = gettext_lazy("Part of a name or email address")
    readonly_fields = ("last_seen", "joined", "sign_in")
    fieldsets = (
        (None, {"fields": ("username", "password", ("first_name", "last_name"), "email")}),
        (gettext_lazy("Access"), {"fields": (("is_active", "is_staff", "is_superuser"), "groups")}),
        (gettext_lazy("Single permissions"), {"fields": ("user_permissions",), "classes": ("collapse",)}),
        (gettext_lazy("Sign-in"), {"fields": ("sign_in", ("last_seen", "joined"))}),
    )

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Return True if the user may change users, and has all permissions of this one: it could take them over."""
        is_covered = obj is None or obj == request.user or may_give(read_permission_set(obj.pk))
        return is_covered and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        is_covered = obj is None or may_give(read_permission_set(obj.pk))
        return is_covered and super().has_delete_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        """Return the fields that only superusers may change, and those that no user may."""
        fields = tuple(super().get_readonly_fields(request, obj))
        return fields if request.user.is_superuser else (*fields, "is_superuser")

    @display(description=gettext_lazy("last login"))
    def last_seen(self, row: User) -> SafeString:
        return relative_time(round(row.last_login.timestamp() * 1000) if row.last_login else None)

    @display(description=gettext_lazy("date joined"))
    def joined(self, row: User) -> SafeString:
        return relative_time(round(row.date_joined.timestamp() * 1000))


class AuditedGroupAdmin(AuditedAdmin, AdministratorsMixin, CheckboxAdmin, GroupAdmin):
    """Groups, and the built-in roles, which are reset at each start of the server."""

    object_type, permission_field = "group", "permissions"
    list_display = ("name", "role")
    search_help_text = gettext_lazy("Part of a name")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Group]:
        return super().get_queryset(request).select_related("profile")

    def role(self, row: Group) -> str:
        """Return the built-in role that the group represents."""
        return getattr(getattr(row, "profile", None), "role", None) or "–"

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        """Return True if the user may change groups, and has all permissions of this one."""
        is_covered = obj is None or may_give(read_group_permission_set(obj.pk))
        return is_covered and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        is_every_servers = obj is not None and self.role(obj) in SYSTEM_ROLES
        is_covered = obj is None or may_give(read_group_permission_set(obj.pk))
        return is_covered and not is_every_servers and super().has_delete_permission(request, obj)
