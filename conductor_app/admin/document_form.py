"""A JSON document that is typed on a page: field by field as its schema draws them, or as JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms

from ..core.schema_form import SchemaField, build_form, members_without_field, parse_form, split_document
from .json_editor import JsonDocumentField, format_json

AS_FORM, AS_JSON = "form", "json"


class JsonForm(forms.Form):
    """The whole document as JSON."""

    def __init__(self, name: str, label: str, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.fields[name] = JsonDocumentField(label=label, required=False)


@dataclass(slots=True)
class RenderedField:
    """One field as the template shows it: what stands in it, and what is wrong with it."""

    field: SchemaField
    text: str
    errors: list[str]
    inner: "list[RenderedField]"

    @property
    def id(self) -> str:
        return "id_" + self.field.name.replace(".", "-")


class DocumentForm:
    """A document that is being typed. `mode`: as a form or as JSON; `wrong`: complaints by the name of the field."""

    def __init__(
        self,
        name: str,
        label: str,
        schema: Any,
        typed: Mapping[str, str] | None,
        *,
        given: Mapping[str, Any] | None = None,
        blank: Mapping[str, Any] | None = None,
        mode: str = AS_FORM,
    ) -> None:
        """`name`: how the names of its fields begin. `typed`: what was sent. `given`: what it begins with, else the
        defaults of the schema, else `blank`."""
        self.typed, self.fields = typed, build_form(schema, name)
        self.name, self.document = name, given or (_defaults(self.fields) if self.fields else blank or {})
        asked = typed.get("mode", AS_FORM) if typed is not None else mode
        is_form = (
            bool(self.fields)
            and asked != AS_JSON
            and not (typed is None and members_without_field(self.fields, self.document))
        )
        self.mode = AS_FORM if is_form else AS_JSON
        initial = {name: format_json(self.document)}
        self.json = JsonForm(name, label, typed if self.mode == AS_JSON else None, initial=initial)
        self.wrong: dict[str, list[str]] = {}

    def is_valid(self) -> bool:
        """Whether what was typed is a document."""
        if self.mode == AS_FORM:
            self.document, wrong = parse_form(self.fields, self.typed or {})
            self.wrong = {name: [message] for name, message in wrong.items()}
            return not wrong
        fits = self.json.is_valid()
        self.document = (self.json.cleaned_data.get(self.name) or {}) if fits else {}
        return fits

    def add_error(self, path: str, message: str) -> None:
        """Show a complaint at the field that it speaks of, or above all fields."""
        names = {shown.field.name for shown in _flat(self.shown())} if self.mode == AS_FORM else set()
        name = path
        while name and name not in names:
            name = name.rpartition(".")[0]
        self.wrong.setdefault(name, []).append(message if name == path else f"{path}: {message}")

    def shown(self) -> list[RenderedField]:
        """The fields of the document."""
        texts = self.typed if self.typed is not None else split_document(self.fields, self.document)
        return [self._shown(field, texts) for field in self.fields]

    @property
    def above(self) -> list[str]:
        """What is wrong with no field of its own."""
        return self.wrong.get("", [])

    def _shown(self, field: SchemaField, texts: Mapping[str, str]) -> RenderedField:
        inner = [self._shown(each, texts) for each in field.fields]
        return RenderedField(field, texts.get(field.name, ""), self.wrong.get(field.name, []), inner)


def _flat(shown: list[RenderedField]) -> Iterator[RenderedField]:
    for each in shown:
        yield each
        yield from _flat(each.inner)


def _defaults(fields: tuple[SchemaField, ...]) -> dict[str, Any]:
    return {field.key: field.default for field in fields if field.default is not None}
