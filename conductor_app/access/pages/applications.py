"""Applications, their access keys, and grants. The secret of a key is displayed once, when the key is created."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import ForeignKey, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.errors import RequestRefused
from ...settings import conf
from ...web.pages import GrantedRowsAdmin, ReadOnlyAdmin, moment_column, show_refusal
from ..commands import applications, users
from ..commands.users import Subject
from ..grants import may_give
from ..models import AccessKey, Application, Grant
from ..permissions import (
    ACCESSES,
    ADMIN,
    GRANTABLE_TARGET_TYPES,
    name_field,
    read_permission_set,
    require_free_application_name,
)
from ..visibility import may


class KeyForm(forms.Form):
    """Form to create a key."""

    application = forms.CharField(
        label=gettext_lazy("Application"),
        max_length=255,
        help_text=gettext_lazy(
            "The user of the key: a team, a service, a worker fleet. A new name creates a new application."
        ),
    )
    may_do_all = forms.BooleanField(
        required=False,
        initial=True,
        label=gettext_lazy("Administrator"),
        help_text=gettext_lazy(
            "A new application gets the role ADMIN. Otherwise it has no access until you grant permissions."
        ),
    )


class AccessKeyAdmin(ReadOnlyAdmin):
    """Keys with which clients sign in."""

    list_display = ("application", "id", "is_active", "created", "last_used")
    ordering = ("application__name", "id")
    list_select_related = ("application",)
    fields = ("id", "application", "is_active", "created", "last_used")
    actions = ("toggle", "remove")
    search_fields = ("id", "application__name")
    search_help_text = gettext_lazy("Part of a key id or of an application's name")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("conductor.add_accesskey")

    def add_view(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """Show the form that creates a key, or the new key.

        Raises:
            PermissionDenied: when the user may not create keys.
        """
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = KeyForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                return self._create_key(request, **form.cleaned_data)
            except RequestRefused as refused:
                form.add_error(None, refused.message)
        return self._render_page(request, _("Create access key"), form=form)

    def _create_key(self, request: HttpRequest, application: str, may_do_all: bool) -> HttpResponse:
        by = request.user.get_username()
        key_id, secret = applications.create_key_of(application, [ADMIN] if may_do_all else [], by)
        return self._render_page(request, _("Key created"), application=application, key_id=key_id, secret=secret)

    @admin.action(description=gettext_lazy("Revoke / Restore"), permissions=["toggle"])
    def toggle(self, request: HttpRequest, queryset: QuerySet[AccessKey]) -> None:
        """Revoke the selected keys that are active, and restore those that are revoked."""
        try:
            for key in queryset:
                applications.toggle_key(key.application_id, key.pk, request.user.get_username())
        except RequestRefused as refused:
            show_refusal(request, refused)
            return
        self.message_user(request, _("Done. Revoked keys are rejected within one second."))

    @admin.action(description=gettext_lazy("Delete"), permissions=["remove"])
    def remove(self, request: HttpRequest, queryset: QuerySet[AccessKey]) -> None:
        """Delete the selected keys."""
        try:
            for key in queryset:
                applications.delete_key(key.application_id, key.pk, request.user.get_username())
        except RequestRefused as refused:
            show_refusal(request, refused)
            return
        self.message_user(request, _("Deleted."))

    def has_toggle_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("conductor.change_accesskey")

    def has_remove_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("conductor.delete_accesskey")

    def _render_page(self, request: HttpRequest, title: str, **extra_context: object) -> TemplateResponse:
        context = {**self.admin_site.each_context(request), "title": title, "opts": AccessKey._meta, **extra_context}
        return TemplateResponse(request, "ops/access/access_key.html", context)

    created = moment_column("created_at", gettext_lazy("created"))
    last_used = moment_column("used_at", gettext_lazy("last used"))


class ApplicationForm(forms.ModelForm):
    """Form of an application. Its name must not be that of a user or of another application."""

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if "name" in self.changed_data:
            try:
                require_free_application_name(name, self.instance.pk)
            except RequestRefused as refused:
                raise ValidationError(refused.message) from None
        return name


def _is_covered(application: Application | None) -> bool:
    """Return True if the current user has all permissions of an application, which it could take over otherwise."""
    return application is None or may_give(read_permission_set(application.user_id))


class ApplicationAdmin(GrantedRowsAdmin):
    """Programs that use the API. Their keys have their own page; their roles are the groups of their user."""

    form = ApplicationForm
    list_display = ("name", "id", "roles", "keys_in_use", "created")
    ordering = ("name", "id")
    fields: ClassVar[Any] = ("name",)
    readonly_fields = ("id", "roles", "user_link", "created")
    search_fields = ("name", "id")
    search_help_text = gettext_lazy("Part of a name or id")

    has_add_permission = admin.ModelAdmin.has_add_permission

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_covered(obj) and may(request.user, "conductor.change_application", obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_covered(obj) and may(request.user, "conductor.delete_application", obj)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Application]:
        return super().get_queryset(request).prefetch_related("user__groups", "keys")

    def get_fields(self, request: HttpRequest, obj: Application | None = None) -> tuple[str, ...]:
        return ("name",) if obj is None else ("name", "id", "roles", "user_link", "created")

    def save_model(self, request: HttpRequest, obj: Application, form: forms.ModelForm, change: bool) -> None:
        by = request.user.get_username()
        if change:
            applications.rename_application(obj.pk, obj.name, by)
            return
        made = applications.create_application(obj.name, by)
        obj.pk, obj.user = made.pk, made.user

    def delete_model(self, request: HttpRequest, obj: Application) -> None:
        applications.delete_application(obj.pk, request.user.get_username())

    @admin.display(description=gettext_lazy("roles and groups"))
    def roles(self, row: Application) -> str:
        return ", ".join(sorted(group.name for group in row.user.groups.all())) or _("none")

    @admin.display(description=gettext_lazy("keys in use"))
    def keys_in_use(self, row: Application) -> int:
        return sum(key.is_active for key in row.keys.all())

    @admin.display(description=gettext_lazy("user"))
    def user_link(self, row: Application) -> SafeString:
        if not conf.is_server:
            return format_html("{}: {}", row.user.get_username(), _("roles are set as its groups"))
        address = reverse("admin:auth_user_change", args=[row.user_id])
        return format_html('<a href="{}">{}</a>: {}', address, row.user, _("roles are set as its groups"))

    created = moment_column("created_at", gettext_lazy("created"))


def _in_words(name: str) -> str:
    """Return a name of the API, such as `WORKFLOW_DEF`, as a person reads it."""
    return name.replace("_DEF", "_DEFINITION").replace("_", " ").capitalize()


class GrantForm(forms.ModelForm):
    """A user or group, a target and the accesses to it."""

    target_type = forms.ChoiceField(choices=[(each, _in_words(each)) for each in sorted(GRANTABLE_TARGET_TYPES)])
    target_id = forms.CharField(max_length=512, help_text=gettext_lazy("Name, prefix (order_*), or key:value for TAG"))
    access = forms.ChoiceField(choices=[(each, _in_words(each)) for each in ACCESSES])

    class Meta:
        model = Grant
        fields = ("user", "group", "target_type", "target_id", "access")

    def clean(self) -> dict[str, Any]:
        """Validate the subject and the target."""
        cleaned = super().clean() or {}
        if bool(cleaned.get("user")) == bool(cleaned.get("group")):
            raise forms.ValidationError(_("Choose either a user or a group."))
        if cleaned.get("target_type") == "TAG" and ":" not in cleaned.get("target_id", ""):
            self.add_error("target_id", _("Enter a tag as key:value."))
        return cleaned


class SubjectSelect(AutocompleteSelect):
    """Field for a user or a group. Django's widget fails on a value that is not an id when the form is shown again."""

    def optgroups(self, name: str, value: Sequence[str], attr: Any = None) -> list[Any]:
        """Return the option of the selected id, if it is one."""
        return super().optgroups(name, [each for each in value if each.isdecimal() and len(each) < 19], attr)


class GrantAdmin(ReadOnlyAdmin):
    """Grants on single targets. Roles grant access to all targets of a type."""

    form = GrantForm
    list_display = ("subject", "access", "target_type", "target_id", "granted_since", "granted_by")
    list_display_links = None
    list_filter = ("target_type", "access")
    list_select_related = ("user", "group")
    ordering = ("target_type", "target_id", "id")
    search_fields = ("target_id", f"=user__{name_field()}", "=group__name")
    search_help_text = gettext_lazy("Part of a name, or the exact name of a user or group")
    fields: ClassVar[Any] = ("user", "group", "target_type", "target_id", "access")
    # Another project has the pages of its users, which look them up, elsewhere.
    autocomplete_fields = ("user", "group") if conf.is_server else ()
    actions = ("revoke_grants",)

    has_add_permission = admin.ModelAdmin.has_add_permission
    has_delete_permission = admin.ModelAdmin.has_delete_permission

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Ignore the query string: Django would use a value that is no number as the id of a user and fail."""
        return {}

    def formfield_for_foreignkey(self, db_field: ForeignKey, request: HttpRequest, **kwargs: object) -> Any:
        if not conf.is_server:
            return super().formfield_for_foreignkey(db_field, request, **kwargs)
        return super().formfield_for_foreignkey(db_field, request, widget=SubjectSelect(db_field, self.admin_site))

    def save_model(self, request: HttpRequest, obj: Grant, form: forms.ModelForm, change: bool) -> None:
        subject = Subject(user_id=obj.user_id, group_id=obj.group_id)
        what = (obj.target_type, obj.target_id, [obj.access])
        users.grant(subject, *what, to=self.subject(obj), by=request.user.get_username())
        rows = Grant.objects.filter(Q(user_id=obj.user_id), Q(group_id=obj.group_id), access=obj.access)
        obj.pk = rows.get(target_type=obj.target_type, target_id=obj.target_id).pk

    def delete_model(self, request: HttpRequest, obj: Grant) -> None:
        subject = Subject(user_id=obj.user_id, group_id=obj.group_id)
        what = (obj.target_type, obj.target_id, [obj.access])
        users.revoke(subject, *what, to=self.subject(obj), by=request.user.get_username())

    @admin.action(description=gettext_lazy("Revoke"), permissions=["delete"])
    def revoke_grants(self, request: HttpRequest, queryset: QuerySet[Grant]) -> None:
        """Revoke the selected grants."""
        try:
            for row in queryset.select_related("user", "group"):
                self.delete_model(request, row)
        except RequestRefused as refused:
            show_refusal(request, refused)
            return
        self.message_user(request, _("Permissions revoked."))

    @admin.display(description=gettext_lazy("user or group"))
    def subject(self, row: Grant) -> str:
        return str(row.user or row.group)

    granted_since = moment_column("granted_at", gettext_lazy("granted"))
