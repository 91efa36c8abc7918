"""A JSON document that a user edits: as form fields derived from its schema, or as JSON text."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms

from ..core.schema_form import SchemaField, build_form, members_without_field, parse_form, split_document
from .json_editor import JsonDocumentField, format_json

AS_FORM, AS_JSON = "form", "json"


class JsonForm(forms.Form):
    """Form with the whole document as JSON text."""

    def __init__(self, name: str, label: str, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields[name] = JsonDocumentField(label=label, required=False)


@dataclass(slots=True)
class RenderedField:
    """One field as the template renders it, with its text and its errors."""

    field: SchemaField
    text: str
    errors: list[str]
    inner: "list[RenderedField]"

    @property
    def id(self) -> str:
        return "id_" + self.field.name.replace(".", "-")


class DocumentForm:
    """A document that a user edits. `mode`: as a form or as JSON; `errors_by_field`: errors by field name."""

    def __init__(
        self,
        name: str,
        label: str,
        schema: Any,
        submitted: Mapping[str, str] | None,
        *,
        given: Mapping[str, Any] | None = None,
        blank: Mapping[str, Any] | None = None,
        mode: str = AS_FORM,
    ) -> None:
        """Create the form.

        `name`: prefix of the field names. `submitted`: the posted values. `given`: the initial document; without it the
        defaults of the schema, otherwise `blank`.
        """
        self.submitted, self.fields = submitted, build_form(schema, name)
        self.name, self.document = name, given or (_default_values(self.fields) if self.fields else blank or {})
        requested_mode = submitted.get("mode", AS_FORM) if submitted is not None else mode
        is_form = (
            bool(self.fields)
            and requested_mode != AS_JSON
            and not (submitted is None and members_without_field(self.fields, self.document))
        )
        self.mode = AS_FORM if is_form else AS_JSON
        initial = {name: format_json(self.document)}
        self.json = JsonForm(name, label, submitted if self.mode == AS_JSON else None, initial=initial)
        self.errors_by_field: dict[str, list[str]] = {}

    def is_valid(self) -> bool:
        """Parse the submitted values. Return True if they form a document."""
        if self.mode == AS_FORM:
            self.document, errors_by_field = parse_form(self.fields, self.submitted or {})
            self.errors_by_field = {name: [message] for name, message in errors_by_field.items()}
            return not errors_by_field
        fits = self.json.is_valid()
        self.document = (self.json.cleaned_data.get(self.name) or {}) if fits else {}
        return fits

    def add_error(self, path: str, message: str) -> None:
        """Add an error to the field with this path, or to the whole form if no field has it."""
        names = {each.field.name for each in _flatten_fields(self.rendered_fields())} if self.mode == AS_FORM else set()
        name = path
        while name and name not in names:
            name = name.rpartition(".")[0]
        self.errors_by_field.setdefault(name, []).append(message if name == path else f"{path}: {message}")

    def rendered_fields(self) -> list[RenderedField]:
        """Return the fields of the document."""
        texts = self.submitted if self.submitted is not None else split_document(self.fields, self.document)
        return [self._render_field(field, texts) for field in self.fields]

    @property
    def form_errors(self) -> list[str]:
        """Return the errors that belong to no field."""
        return self.errors_by_field.get("", [])

    def _render_field(self, field: SchemaField, texts: Mapping[str, str]) -> RenderedField:
        inner = [self._render_field(each, texts) for each in field.fields]
        return RenderedField(field, texts.get(field.name, ""), self.errors_by_field.get(field.name, []), inner)


def _flatten_fields(rendered_fields: list[RenderedField]) -> Iterator[RenderedField]:
    for each in rendered_fields:
        yield each
        yield from _flatten_fields(each.inner)


def _default_values(fields: tuple[SchemaField, ...]) -> dict[str, Any]:
    return {field.key: field.default for field in fields if field.default is not None}
