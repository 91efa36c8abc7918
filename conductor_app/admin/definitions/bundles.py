"""Definitions given out as one file, and taken in after a look at what that would do."""

import json
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...core.errors import Invalid, RequestRefused
from ...engine import bundles
from ..documents import json_file_response
from ..error_messages import require_permission
from ..form_parsing import parse_json_value

VIEWS = ("conductor.view_workflowdefinition", "conductor.view_taskdefinition")
CHANGES = ("conductor.change_workflowdefinition", "conductor.change_taskdefinition")
VIEWS_TEMPLATES = "conductor.view_formtemplate"
CHANGES_TEMPLATES = ("conductor.add_formtemplate", "conductor.change_formtemplate")
LARGEST = 10_000_000
MOST_EXPORTED = 1_000


class BundleForm(forms.Form):
    """A bundle as a file or as text, and what becomes of workflows that exist."""

    file = forms.FileField(required=False, label=gettext_lazy("File"))
    text = forms.CharField(
        required=False, strip=False, label=gettext_lazy("Or as text"), widget=forms.Textarea(attrs={"rows": 10})
    )
    how = forms.ChoiceField(
        required=False,
        initial=bundles.AS_NEW_VERSIONS,
        widget=forms.RadioSelect,
        label=gettext_lazy("Workflows that have changed"),
        choices=[
            (bundles.AS_NEW_VERSIONS, gettext_lazy("become new versions")),
            (
                bundles.AS_GIVEN,
                gettext_lazy("are written under the version that the bundle gives them, over what is there"),
            ),
        ],
    )
    reason = forms.CharField(required=False, max_length=500, label=gettext_lazy("Reason"))

    def clean(self) -> dict[str, Any]:
        """The text that was given in either way."""
        said = super().clean() or {}
        file = said.get("file")
        if file is not None:
            if file.size > LARGEST:
                raise forms.ValidationError(_("The file has more than %(count)s MB.") % {"count": LARGEST // 1_000_000})
            said["text"] = file.read().decode("utf-8-sig", "replace")
        if not (said.get("text") or "").strip():
            raise forms.ValidationError(_("Choose a file, or paste a bundle."))
        return said


class BundlePages:
    """The pages of import and export."""

    def bundle_urls(self) -> list[URLPattern]:
        site = self.admin_site
        return [
            path("export/", site.admin_view(self.give_out), name="definitions_export"),
            path("import/", site.admin_view(self.take_in), name="definitions_import"),
        ]

    def give_out(self, request: HttpRequest) -> HttpResponse:
        """A bundle of one workflow with all that it needs (`?name=`), or of all workflows."""
        for permission in VIEWS:
            require_permission(request, permission)
        name = request.GET.get("name")
        names = [name] if name else self.model.objects.order_by("name").values_list("name", flat=True).distinct()
        shown = bundles.export_bundle(
            list(names[:MOST_EXPORTED]), with_templates=request.user.has_perm(VIEWS_TEMPLATES)
        )
        return json_file_response(shown, name or "definitions")

    def take_in(self, request: HttpRequest) -> HttpResponse:
        """First what it would do, then, when that is confirmed, the same for good."""
        for permission in CHANGES:
            require_permission(request, permission)
        form = BundleForm(request.POST or None, request.FILES or None)
        items, text = [], ""
        if request.method == "POST" and form.is_valid():
            text = form.cleaned_data["text"]
            try:
                given = _read(text)
                if any(kind == bundles.TEMPLATE for kind, _document in bundles.parse_bundle(given)):
                    for permission in CHANGES_TEMPLATES:
                        require_permission(request, permission)
                if request.POST.get("step") == "take":
                    return self._taken(request, form, given)
                items = bundles.plan_import(given)
            except RequestRefused as refused:
                form.add_error(None, refused.message)
        shown = {"form": form, "items": items, "text": text, "counts": bundles.count_by_verdict(items)}
        return self.page(request, "import", _("Import definitions"), **shown)

    def _taken(self, request: HttpRequest, form: BundleForm, given: Any) -> HttpResponse:
        said = form.cleaned_data
        how = said["how"] or bundles.AS_NEW_VERSIONS
        result = bundles.import_bundle(given, how, request.user.get_username(), said["reason"])
        kept, refused = len(result["kept"]), result["refused"]
        said = ngettext("%(count)s definition taken in.", "%(count)s definitions taken in.", kept)
        messages.success(request, said % {"count": kept})
        if refused:
            messages.warning(request, _("Refused: %(names)s.") % {"names": ", ".join(refused[:10])})
        return HttpResponseRedirect(reverse("admin:conductor_workflowdefinition_changelist"))


def _read(text: str) -> Any:
    try:
        return parse_json_value(text)
    except json.JSONDecodeError as fault:
        raise Invalid(_not_json(fault)) from None
    except RecursionError:
        raise Invalid(_("This is nested too deeply.")) from None
    except ValueError as fault:
        raise Invalid(_("This cannot be read as JSON: %(error)s.") % {"error": fault}) from None


def _not_json(fault: json.JSONDecodeError) -> str:
    facts = {"message": fault.msg, "line": fault.lineno, "column": fault.colno}
    return _("This is not JSON: %(message)s at line %(line)s, column %(column)s.") % facts
