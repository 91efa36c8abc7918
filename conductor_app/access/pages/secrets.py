"""Secrets and variables. The value of a secret can be set and never be read."""

from django import forms
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters

from ...core.errors import RequestRefused
from ...utils.formatting import LazyText
from ...web.pages import GrantedRowsAdmin, moment_column, require_permission
from ..commands import secrets
from ..visibility import may


class WriteOnlyTextarea(forms.Textarea):
    """Textarea for a text of several lines, such as a private key, that never renders its value."""

    def format_value(self, value: object) -> None:
        return None


class SecretForm(forms.Form):
    """A name and a value that is never displayed again."""

    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=255, help_text=gettext_lazy("Referenced as ${workflow.secrets.NAME}.")
    )
    value = forms.CharField(
        label=gettext_lazy("Value"),
        strip=False,
        widget=WriteOnlyTextarea(attrs={"autocomplete": "off", "rows": 3}),
        help_text=gettext_lazy(
            "Replaces an existing secret with this name. The value is stored encrypted and never displayed."
        ),
    )


class VariableForm(forms.Form):
    """A name and a value that every user may read."""

    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=255, help_text=gettext_lazy("Referenced as ${workflow.env.NAME}.")
    )
    value = forms.CharField(
        label=gettext_lazy("Value"), strip=False, help_text=gettext_lazy("Not secret: displayed here and in runs.")
    )


@method_decorator(sensitive_post_parameters("value"), name="add_view")
class NamedValueAdmin(GrantedRowsAdmin):
    """Shared parts of both admins: a list, a form that saves, and a button that deletes."""

    ordering = ("name",)
    search_fields = ("name",)
    search_help_text = gettext_lazy("Part of a name")
    form_class: type[forms.Form] = SecretForm
    add_title: str | LazyText = ""
    save_value = delete_value = staticmethod(lambda *_: None)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may(request.user, self._permission_to("add")) or may(request.user, self._permission_to("change"))

    def _permission_to(self, verb: str) -> str:
        return f"conductor.{verb}_{self.opts.model_name}"

    def get_urls(self) -> list[URLPattern]:
        view, name = self.admin_site.admin_view(self.delete_named), f"{self.opts.model_name}_delete"
        return [path("<str:name>/delete/", view, name=name), *super().get_urls()]

    def add_view(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """Show the form that saves a value.

        Raises:
            PermissionDenied: when the user may not save values.
        """
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = self.form_class(request.POST or None, initial={"name": request.GET.get("name", "")})
        if request.method == "POST" and form.is_valid():
            cleaned = form.cleaned_data
            self._require_permission_to_save(request, cleaned["name"])
            try:
                self.save_value(cleaned["name"], cleaned["value"], request.user.get_username())
            except RequestRefused as refused:
                form.add_error(None, refused.message)
            else:
                return self._redirect_to_list(request, _("%(name)s saved.") % {"name": cleaned["name"]})
        context = {**self.admin_site.each_context(request), "title": self.add_title}
        return TemplateResponse(request, "ops/web/named_value.html", {**context, "opts": self.opts, "form": form})

    def _require_permission_to_save(self, request: HttpRequest, name: str) -> None:
        """Require the permission to add a value with this name, or to change it if it exists."""
        if not request.user.has_perms((self._permission_to("add"), self._permission_to("change"))):
            verb = "change" if self.model._default_manager.filter(pk=name).exists() else "add"
            require_permission(request, self._permission_to(verb), self.model(name=name))

    def delete_named(self, request: HttpRequest, name: str) -> HttpResponse:
        """Delete the value.

        Raises:
            PermissionDenied: when the user may not delete values, or the request is not a POST.
        """
        if request.method != "POST":
            raise PermissionDenied
        require_permission(request, self._permission_to("delete"), self.model(name=name))
        try:
            self.delete_value(name, request.user.get_username())
        except RequestRefused as refused:
            return self._redirect_to_list(request, refused.message)
        return self._redirect_to_list(request, _("%(name)s deleted.") % {"name": name})

    def change_view(self, request: HttpRequest, object_id: str, *args: object, **kwargs: object) -> HttpResponse:
        """Show the facts of a value.

        Raises:
            PermissionDenied: when there is no such value, or the user may not see it.
        """
        row = self.get_object(request, unquote(object_id))
        if row is None or not self.has_view_permission(request, row):
            raise PermissionDenied
        context = {**self.admin_site.each_context(request), "title": row.name, "opts": self.opts, "row": row}
        permitted = {
            "add": self.has_add_permission(request),
            "delete": may(request.user, self._permission_to("delete"), row),
        }
        facts: list[tuple[str, str]] = [(_("created"), self.created(row)), (_("updated"), self.updated(row))]
        tags = ", ".join(f"{tag['key']}:{tag['value']}" for tag in row.tags)
        facts += [(_("updated by"), row.updated_by), (_("tags"), tags)]
        delete_url = reverse(f"admin:{self.opts.model_name}_delete", args=[row.name])
        return TemplateResponse(
            request,
            "ops/web/named_values.html",
            {**context, "may": permitted, "facts": facts, "delete_url": delete_url},
        )

    def _redirect_to_list(self, request: HttpRequest, message: str) -> HttpResponse:
        self.message_user(request, message)
        return HttpResponseRedirect(reverse(f"admin:conductor_{self.opts.model_name}_changelist"))

    created = moment_column("created_at", gettext_lazy("created"))
    updated = moment_column("updated_at", gettext_lazy("updated"))


class SecretAdmin(NamedValueAdmin):
    """Secrets by name. Secrets of the server's environment are not listed."""

    list_display = ("name", "created", "updated", "updated_by")
    form_class, add_title = SecretForm, gettext_lazy("Add secret")
    save_value, delete_value = staticmethod(secrets.put_secret), staticmethod(secrets.delete_secret)

    def get_queryset(self, request: HttpRequest):
        return super().get_queryset(request).defer("sealed")


class VariableAdmin(NamedValueAdmin):
    """Variables by name, with their values."""

    list_display = ("name", "value", "updated", "updated_by")
    form_class, add_title = VariableForm, gettext_lazy("Add variable")
    save_value, delete_value = staticmethod(secrets.put_variable), staticmethod(secrets.delete_variable)
