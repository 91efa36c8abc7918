"""Access keys: which application may ask for tokens. A secret is shown once, when its key is made."""

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString

from ..access.keys import create_key
from ..models import AccessKey
from .marks import ago
from .read_only import ReadOnlyAdmin


class KeyForm(forms.Form):
    """What has to be known to make a key."""

    application = forms.CharField(max_length=255, help_text="Who will use the key: a team, a service, a worker fleet.")


class AccessKeyAdmin(ReadOnlyAdmin):
    """Keys with which clients log in."""

    list_display = ("application", "id", "is_active", "created", "used")
    ordering = ("application__name", "id")
    list_select_related = ("application",)
    fields = ("id", "application", "is_active", "created", "used")
    search_fields = ("id", "application__name")
    search_help_text = "Part of a key id or of an application's name"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("conductor.add_accesskey")

    def add_view(self, request: HttpRequest, *_: object, **__: object) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = KeyForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            return self._made(request, form.cleaned_data["application"])
        return self._page(request, "Make an access key", form=form)

    def _made(self, request: HttpRequest, application: str) -> HttpResponse:
        key_id, secret = create_key(application)
        return self._page(request, "The key is made", application=application, key_id=key_id, secret=secret)

    def _page(self, request: HttpRequest, title: str, **shown: object) -> TemplateResponse:
        context = {**self.admin_site.each_context(request), "title": title, "opts": AccessKey._meta, **shown}
        return TemplateResponse(request, "ops/access_key.html", context)

    @admin.display(description="created")
    def created(self, key: AccessKey) -> SafeString:
        return ago(key.created_at)

    @admin.display(description="last used")
    def used(self, key: AccessKey) -> SafeString:
        return ago(key.used_at)
