"""Form templates of HUMAN tasks: a list of their versions, and a JSON editor."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.errors import NotFound, RequestRefused, ValidationFailed
from ...core.schema_form import build_form
from ...engine.definitions import form_templates
from ...models import FormTemplate
from ..document_form import DocumentForm
from ..error_messages import require_permission, show_refusal
from ..json_editor import JsonDocumentField, format_json
from ..object_pages import ObjectPage
from ..pages import Page

VIEW_PERMISSION = "conductor.view_formtemplate"
ADD_PERMISSION, CHANGE_PERMISSION, DELETE_PERMISSION = (
    "conductor.add_formtemplate",
    "conductor.change_formtemplate",
    "conductor.delete_formtemplate",
)
MAX_LISTED = 500
SAMPLE = {
    "name": "approval",
    "version": 1,
    "jsonSchema": {
        "type": "object",
        "required": ["approved"],
        "properties": {"approved": {"type": "boolean", "title": "Approved?"}},
    },
    "templateUI": {
        "type": "VerticalLayout",
        "elements": [{"type": "Control", "scope": "#/properties/approved"}],
    },
}


class FormTemplatesPage(Page):
    """List of all versions of all form templates."""

    name, permission = "form_templates", VIEW_PERMISSION
    title = gettext_lazy("Form templates")
    template = "ops/definition/form_templates.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        rows = list(FormTemplate.objects.order_by("name", "-version")[: MAX_LISTED + 1])
        return {
            "rows": [(row, len(build_form(row.document.get("jsonSchema")))) for row in rows[:MAX_LISTED]],
            "is_cut": len(rows) > MAX_LISTED,
            "most": MAX_LISTED,
            "may_add": request.user.has_perm(ADD_PERMISSION),
        }


class TemplateForm(forms.Form):
    """A template as JSON text, and the reason for saving it."""

    document = JsonDocumentField(label=gettext_lazy("Template"))
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        required=False,
        max_length=500,
        help_text=gettext_lazy("Recorded in the audit log."),
    )


class _TemplateEditorPage(ObjectPage):
    """Form for a new template or a stored version."""

    template = "ops/definition/form_template.html"

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> dict[str, Any]:
        row = _find_template(url_kwargs)
        document = _template_json(row) if row else SAMPLE
        return self._page_context(request, row, TemplateForm(initial={"document": format_json(document)}))

    def handle_post(self, request: HttpRequest, **url_kwargs: Any) -> HttpResponse | dict[str, Any]:
        row, act = _find_template(url_kwargs), request.POST.get("do", "save")
        if row is not None and act == "delete":
            return self._delete(request, row)
        require_permission(request, CHANGE_PERMISSION if row is not None and act != "new_version" else ADD_PERMISSION)
        form = TemplateForm(request.POST)
        if form.is_valid() and (saved := self._save(request, form, row, act == "new_version")):
            messages.success(request, _("Form template %(template)s saved.") % {"template": saved})
            return HttpResponseRedirect(reverse("admin:form_template", args=[saved.pk]))
        return self._page_context(request, row, form)

    def _save(
        self, request: HttpRequest, form: TemplateForm, row: FormTemplate | None, is_new: bool
    ) -> FormTemplate | None:
        document, by = form.cleaned_data["document"], request.user.get_username()
        if row is not None:
            # The page edits one version. Another name or version belongs to another template.
            document = {**document, "name": row.name, "version": row.version}
        elif _exists(document):
            form.add_error("document", _("This version already exists. Edit it, or omit the version."))
            return None
        try:
            is_new = is_new or (row is None and not document.get("version"))
            return form_templates.save_templates(
                [document], by, new_version=is_new, reason=form.cleaned_data["reason"]
            )[0]
        except ValidationFailed as failed:
            for each in failed.validation_errors:
                form.add_error("document", f"{each.path}: {each.message}")
        except RequestRefused as refused:
            form.add_error(None, refused.message)
        return None

    def _delete(self, request: HttpRequest, row: FormTemplate) -> HttpResponse:
        require_permission(request, DELETE_PERMISSION)
        try:
            reason = request.POST.get("reason", "").strip()[:500]
            form_templates.delete_template(row.name, row.version, request.user.get_username(), reason)
            messages.success(request, _("Form template %(template)s deleted.") % {"template": row})
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(reverse("admin:form_templates"))

    def _page_context(self, request: HttpRequest, row: FormTemplate | None, form: TemplateForm) -> dict[str, Any]:
        schema = row.document.get("jsonSchema") if row else None
        preview = DocumentForm("preview", _("Output"), schema, None) if schema else None
        return {
            "title": str(row) if row else _("New form template"),
            "row": row,
            "form": form,
            "fields": preview.rendered_fields() if preview else [],
            "versions": FormTemplate.objects.filter(name=row.name).order_by("-version")[:MAX_LISTED] if row else [],
            "may_add": request.user.has_perm(ADD_PERMISSION),
            "may_change": request.user.has_perm(CHANGE_PERMISSION if row else ADD_PERMISSION),
            "may_delete": request.user.has_perm(DELETE_PERMISSION),
            "permission": CHANGE_PERMISSION if row else ADD_PERMISSION,
        }


class NewFormTemplatePage(_TemplateEditorPage):
    """Page that creates a form template."""

    name, permission, route = "form_template_new", ADD_PERMISSION, "form-templates/new/"


class FormTemplatePage(_TemplateEditorPage):
    """Page of one version of a template: its JSON, and a preview of the form."""

    name, permission, route = "form_template", VIEW_PERMISSION, "form-templates/<int:template_id>/"


def _find_template(url_kwargs: dict[str, Any]) -> FormTemplate | None:
    if not url_kwargs:
        return None
    row = (
        FormTemplate.objects.filter(pk=url_kwargs["template_id"]).first() if url_kwargs["template_id"] < 2**62 else None
    )
    if row is None:
        raise NotFound(_("No such form template. It may have been deleted."))
    return row


def _template_json(row: FormTemplate) -> dict[str, Any]:
    return {"name": row.name, "version": row.version, **row.document}


def _exists(document: dict[str, Any]) -> bool:
    name, version = document.get("name"), document.get("version")
    is_named = isinstance(name, str) and isinstance(version, int) and 0 < version < 2**31
    return is_named and FormTemplate.objects.filter(name=name.replace("\0", ""), version=version).exists()
