"""Form templates of human tasks: a list of their versions, and an editor.

The designer has rows for the fields, which become the JSON schema of the answer.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.visibility import may, visible
from ...core.errors import NotFound, RequestRefused, ValidationFailed
from ...core.human_tasks import ANSWER_SCHEMA_KEY, APPROVAL_SCHEMA, TEMPLATES, answer_schema, human_task_definition
from ...core.primitives import JsonValue
from ...core.schemas import CHOICE, DATE, JSON, LONG, MOMENT, NUMBER, TEXT, WHOLE, YES_NO, build_form, format_value
from ...web.forms import DocumentForm, JsonDocumentField, NumberedRow, format_json, parse_typed
from ...web.pages import ObjectPage, Page, require_permission, show_refusal
from .. import form_templates as human_tasks_form_templates
from ..models import FormTemplate

PREFIX = "design"
OTHER = "other"
KINDS = {
    YES_NO: gettext_lazy("Yes or no"),
    TEXT: gettext_lazy("Text"),
    LONG: gettext_lazy("Long text"),
    CHOICE: gettext_lazy("Choice"),
    WHOLE: gettext_lazy("Whole number"),
    NUMBER: gettext_lazy("Number"),
    DATE: gettext_lazy("Date"),
    MOMENT: gettext_lazy("Date and time"),
    OTHER: gettext_lazy("Other (JSON)"),
}
SCHEMAS: dict[str, dict[str, Any]] = {
    YES_NO: {"type": "boolean"},
    TEXT: {"type": "string"},
    LONG: {"type": "string", "maxLength": 2_000},
    WHOLE: {"type": "integer"},
    NUMBER: {"type": "number"},
    DATE: {"type": "string", "format": "date"},
    MOMENT: {"type": "string", "format": "date-time"},
}
TYPE_KEYWORDS = ("type", "format", "enum", "maxLength")
MAX_FIELDS = 80


@dataclass(slots=True)
class DesignedField(NumberedRow):
    """One field of the form, as a row. `was`: its name before the edit."""

    prefix: str
    name: str = ""
    title: str = ""
    kind: str = TEXT
    is_required: bool = False
    choices: str = ""
    was: str = ""
    errors: list[str] = field(default_factory=list)


def designed_fields(inputs: Mapping[str, Any]) -> list[DesignedField]:
    """Return the rows for the schema in the inputs of a HUMAN step, and an empty row for another field.

    There are no rows for a schema that is too large for a form.
    """
    schema = answer_schema(inputs)
    properties = _properties(schema)
    if properties and not build_form(schema):
        return []
    rows = []
    for number, each in enumerate(build_form(schema)):
        kind = each.kind if each.kind in KINDS and each.kind != JSON else OTHER
        title = properties[each.key].get("title") if isinstance(properties[each.key], Mapping) else ""
        choices = ", ".join(map(format_value, each.choices))
        row = DesignedField(f"{PREFIX}.{number}", each.key, str(title or ""), kind, each.is_required, choices, each.key)
        rows.append(row)
    return [*rows, DesignedField(f"{PREFIX}.{len(rows)}")]


def submitted_fields(submitted: Mapping[str, str]) -> list[DesignedField]:
    return list(_read_fields(submitted))


def _read_fields(submitted: Mapping[str, str]) -> Iterator[DesignedField]:
    for number in range(MAX_FIELDS + 1):
        key = f"{PREFIX}.{number}"
        if f"{key}.name" not in submitted:
            return
        name, title, kind, choices, was = (
            submitted.get(f"{key}.{part}", "").strip() for part in ("name", "title", "kind", "choices", "was")
        )
        kind = kind if kind in KINDS else TEXT
        yield DesignedField(key, name, title, kind, f"{key}.required" in submitted, choices, was)


def design_schema(inputs: Mapping[str, Any], fields: list[DesignedField]) -> dict[str, Any]:
    """Return the inputs with the schema that the rows describe. Errors are added to their rows."""
    before = answer_schema(inputs)
    if not _properties(before) and not any(each.name for each in fields):
        return dict(inputs)
    properties: dict[str, Any] = {}
    for each in fields:
        if not each.name:
            continue
        if each.name in properties:
            each.errors.append(_("This name is used twice."))
        properties[each.name] = _property(_properties(before).get(each.was), each)
    named = before.get("required")
    texts = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    others = [name for name in texts if name not in _properties(before)]
    required = others + [each.name for each in fields if each.name and each.is_required]
    schema = {**before, "type": "object", "properties": properties, "required": required}
    if not required:
        del schema["required"]
    return _put_schema(inputs, schema)


def _property(before: JsonValue, row: DesignedField) -> dict[str, Any]:
    part = dict(before) if isinstance(before, Mapping) else {}
    was_kind = build_form({"properties": {"x": part}})[0].kind if part else ""
    if row.kind not in (was_kind, OTHER):
        part = {name: value for name, value in part.items() if name not in TYPE_KEYWORDS} | SCHEMAS.get(row.kind, {})
    if row.kind == CHOICE:
        part["enum"] = [parse_typed(choice.strip()) for choice in row.choices.split(",") if choice.strip()]
        if not part["enum"]:
            row.errors.append(_("Enter the choices, comma-separated."))
    if row.title:
        part["title"] = row.title
    else:
        part.pop("title", None)
    return part


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _put_schema(inputs: Mapping[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Put the schema where the inputs have it, otherwise into the question."""
    question = dict(human_task_definition(inputs))
    holder = next((name for name in TEMPLATES if _holds_schema(question.get(name))), "")
    if holder and not isinstance(question.get("jsonSchema"), Mapping):
        question[holder] = {**question[holder], "jsonSchema": schema}
    else:
        question["jsonSchema"] = schema
    return {**inputs, ANSWER_SCHEMA_KEY: question}


def _holds_schema(template: JsonValue) -> bool:
    return isinstance(template, Mapping) and isinstance(template.get("jsonSchema"), Mapping)


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
    "jsonSchema": APPROVAL_SCHEMA,
    "templateUI": {
        "type": "VerticalLayout",
        "elements": [{"type": "Control", "scope": "#/properties/approved"}],
    },
}


class FormTemplatesPage(Page):
    """List of all versions of all form templates."""

    name, permission, shows_granted_rows = "form_templates", VIEW_PERMISSION, True
    title = gettext_lazy("Form templates")
    template = "ops/human_tasks/form_templates.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        rows = list(visible(FormTemplate.objects.order_by("name", "-version"))[: MAX_LISTED + 1])
        return {
            "rows": [(row, len(build_form(row.document.get("jsonSchema")))) for row in rows[:MAX_LISTED]],
            "is_cut": len(rows) > MAX_LISTED,
            "most": MAX_LISTED,
            "may_add": may(request.user, ADD_PERMISSION),
        }


class TemplateForm(forms.Form):
    """A template as JSON text."""

    document = JsonDocumentField(label=gettext_lazy("Template"))


class _TemplateEditorPage(ObjectPage):
    """Form for a new template or a stored version."""

    template = "ops/human_tasks/form_template.html"
    shows_granted_rows = True

    def get_context(self, request: HttpRequest, template_id: int | None = None) -> dict[str, Any]:
        row = _find_template(template_id)
        document = {"name": row.name, "version": row.version, **row.document} if row else SAMPLE
        return self._page_context(request, row, TemplateForm(initial={"document": format_json(document)}))

    def handle_post(self, request: HttpRequest, template_id: int | None = None) -> HttpResponse | dict[str, Any]:
        row, act = _find_template(template_id), request.POST.get("do", "save")
        if row is not None and act == "delete":
            return self._delete(request, row)
        permission = CHANGE_PERMISSION if row is not None and act != "new_version" else ADD_PERMISSION
        if row is not None:
            require_permission(request, permission, row)
        form = TemplateForm(request.POST)
        if row is None and form.is_valid():
            require_permission(request, permission, FormTemplate(name=form.cleaned_data["document"].get("name")))
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
            return human_tasks_form_templates.save_templates([document], by, new_version=is_new)[0]
        except ValidationFailed as failed:
            for each in failed.validation_errors:
                form.add_error("document", f"{each.path}: {each.message}")
        except RequestRefused as refused:
            form.add_error(None, refused.message)
        return None

    def _delete(self, request: HttpRequest, row: FormTemplate) -> HttpResponse:
        require_permission(request, DELETE_PERMISSION, row)
        try:
            human_tasks_form_templates.delete_template(row.name, row.version, request.user.get_username())
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
            "may_add": may(request.user, ADD_PERMISSION, row),
            "may_change": may(request.user, CHANGE_PERMISSION if row else ADD_PERMISSION, row),
            "may_delete": may(request.user, DELETE_PERMISSION, row),
            "permission": CHANGE_PERMISSION if row else ADD_PERMISSION,
        }


class NewFormTemplatePage(_TemplateEditorPage):
    """Page that creates a form template."""

    name, permission, route = "form_template_new", ADD_PERMISSION, "form-templates/new/"


class FormTemplatePage(_TemplateEditorPage):
    """Page of one version of a template: its JSON, and a preview of the form."""

    name, permission, route = "form_template", VIEW_PERMISSION, "form-templates/<int:template_id>/"


def _find_template(template_id: int | None) -> FormTemplate | None:
    if template_id is None:
        return None
    row = visible(FormTemplate.objects.filter(pk=template_id)).first() if template_id < 2**62 else None
    if row is None:
        raise NotFound(_("No such form template. It may have been deleted."))
    return row


def _exists(document: dict[str, Any]) -> bool:
    name, version = document.get("name"), document.get("version")
    if not isinstance(name, str) or not isinstance(version, int) or not 0 < version < 2**31:
        return False
    return FormTemplate.objects.filter(name=name.replace("\0", ""), version=version).exists()
