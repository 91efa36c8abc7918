"""Access keys, with which applications request tokens. A secret is displayed once, when its key is created."""

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.access_types import ADMIN
from ...core.errors import RequestRefused
from ...engine.access import applications
from ...models import AccessKey
from ..badges import relative_time
from ..error_messages import show_refusal
from ..read_only import ReadOnlyAdmin


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
        for key in queryset:
            applications.delete_key(key.application_id, key.pk, request.user.get_username())
        self.message_user(request, _("Deleted."))

    def has_toggle_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("conductor.change_accesskey")

    def has_remove_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("conductor.delete_accesskey")

    def _render_page(self, request: HttpRequest, title: str, **extra_context: object) -> TemplateResponse:
        context = {**self.admin_site.each_context(request), "title": title, "opts": AccessKey._meta, **extra_context}
        return TemplateResponse(request, "ops/access_key.html", context)

    @admin.display(description=gettext_lazy("created"))
    def created(self, key: AccessKey) -> SafeString:
        return relative_time(key.created_at)

    @admin.display(description=gettext_lazy("last used"))
    def last_used(self, key: AccessKey) -> SafeString:
        return relative_time(key.used_at)
