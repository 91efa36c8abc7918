"""Forms: numbers, JSON values as text, rows of names and values, and JSON documents. NUL is removed everywhere."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from django import forms
from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.utils.translation import gettext as _

from ..core import schemas
from ..core.errors import Invalid
from ..core.masking import MARK, NOT_FROM_CLIENTS, contains_mark
from ..core.primitives import JsonValue
from ..core.schemas import (
    JSON,
    LONG,
    TYPED,
    SchemaField,
    build_form,
    fits_form,
    format_typed,
    format_value,
    parse_form,
    split_document,
)
from ..utils.formatting import LazyText

MAX_ROWS = 2_000
LONG_TEXT = 60
AS_FORM, AS_JSON = "form", "json"


def parse_json_value(text: str, **options: Any) -> Any:
    """Parse a JSON text and remove NUL characters.

    Raises:
        ValueError: when the text is not JSON, or holds a lone surrogate or the mark of encrypted values.
        RecursionError: when the value is nested too deeply.
    """
    value = json.loads(text, **options)
    if contains_mark(text.encode(errors="replace"), value):
        raise ValueError(NOT_FROM_CLIENTS)
    if "\\ud" in text.lower():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError(_("it contains a lone surrogate (half of a character), which cannot be stored")) from None
    return _strip_nul_within(value) if "\\u0000" in text else value


def _strip_nul_within(value: JsonValue) -> Any:
    match value:
        case dict():
            return {_strip_nul(name): _strip_nul_within(each) for name, each in value.items()}
        case list():
            return [_strip_nul_within(each) for each in value]
    return _strip_nul(value)


def parse_json_object(text: str, name: str) -> dict[str, Any]:
    """Parse a JSON object. Empty text is an empty object. `name`: the label of the field in error messages."""
    if not text.strip():
        return {}
    try:
        value = parse_json_value(text)
    except RecursionError:
        raise Invalid(_("The %(name)s is nested too deeply.") % {"name": name}) from None
    except ValueError as error:
        raise Invalid(_("The %(name)s is not valid JSON: %(error)s.") % {"name": name, "error": error}) from error
    if not isinstance(value, dict):
        raise Invalid(_("The %(name)s must be a JSON object.") % {"name": name})
    return value


def parse_number(text: str, name: str | LazyText, digits: int = 9) -> int:
    """Parse a whole number. `name`: the label of the field in error messages."""
    number_text = text.strip()
    if not (number_text.isascii() and number_text.isdecimal()) or len(number_text) > digits:
        raise Invalid(_("Not a valid %(name)s: %(value)r.") % {"value": number_text[:40], "name": name})
    return int(number_text)


def strip_nul_from_request(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Wrap a view so that address, query and form contain no NUL. PostgreSQL rejects NUL in text, even in a search.

    Raises:
        Http404: when a part of the address consists only of NUL.
    """

    @wraps(view)
    def wrapper(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if any(value and not _strip_nul(value) for value in (*args, *kwargs.values())):
            raise Http404
        args, kwargs = tuple(map(_strip_nul, args)), {name: _strip_nul(value) for name, value in kwargs.items()}
        request.GET = _strip_nul_from_query(request.GET)  # type: ignore[assignment]
        if request.method == "POST":
            if any(MARK in value for values in request.POST.lists() for value in values[1]):
                raise SuspiciousOperation(NOT_FROM_CLIENTS)
            request.POST = _strip_nul_from_query(request.POST)  # type: ignore[assignment]
        return view(request, *args, **kwargs)

    return wrapper


def _strip_nul(value: Any) -> Any:
    return value.replace("\0", "") if isinstance(value, str) else value


def _strip_nul_from_query(query: QueryDict) -> QueryDict:
    if not any("\0" in value for values in query.lists() for value in (values[0], *values[1])):
        return query
    clean = QueryDict(mutable=True, encoding=query.encoding)
    for name, values in query.lists():
        clean.setlist(_strip_nul(name), [_strip_nul(value) for value in values])
    return clean


def parse_typed(text: str) -> Any:
    """Return the value of a field: numbers, true, false, null, objects, lists and quoted texts are JSON."""
    try:
        return schemas.parse_typed(text, parse_json_value)
    except schemas.UnreadableInput as unreadable:
        line, column = unreadable.place
        message = _("Not valid JSON at line %(line)s, column %(column)s. To enter it as text, put it in quotes.")
        raise Invalid(message % {"line": line, "column": column}) from None


class NumberedRow:
    """Base class of rows of a form. `prefix`: the beginning of the names of its fields, with its number."""

    __slots__ = ()
    prefix: str

    @property
    def id(self) -> str:
        return f"id_{self.prefix.replace('.', '-')}"


@dataclass(slots=True)
class FormRow(NumberedRow):
    """One row. `was`: the name before the edit. `errors`: those of the row."""

    prefix: str
    name: str = ""
    text: str = ""
    was: str = ""
    errors: list[str] = field(default_factory=list)

    @property
    def is_long(self) -> bool:
        return "\n" in self.text or len(self.text) > LONG_TEXT


def rows_of(values: Mapping[str, Any], prefix: str) -> list[FormRow]:
    """Return the rows of named values, and an empty row for another one."""
    rows = [
        FormRow(f"{prefix}.{n}", str(key), format_typed(value), str(key))
        for n, (key, value) in enumerate(values.items())
    ]
    return [*rows, FormRow(f"{prefix}.{len(rows)}")]


def submitted_rows(submitted: Mapping[str, str], prefix: str) -> list[FormRow]:
    """Return the rows that a form contains."""
    return list(_read_rows(submitted, prefix))


def _read_rows(submitted: Mapping[str, str], prefix: str) -> Iterator[FormRow]:
    for number in range(MAX_ROWS):
        key = f"{prefix}.{number}"
        if f"{key}.name" not in submitted:
            return
        texts = (submitted.get(f"{key}.{part}", "") for part in ("name", "value", "was"))
        name, text, was = texts
        yield FormRow(key, name.strip(), text, was)


def parse_rows(rows: list[FormRow]) -> dict[str, Any]:
    """Return the values of rows by name. Rows without a name are omitted; errors are added to their rows."""
    values: dict[str, Any] = {}
    for row in rows:
        if not row.name:
            if row.text.strip() and not row.was:
                row.errors.append(_("Enter a name."))
            continue
        if row.name in values:
            row.errors.append(_("This name is used twice."))
        try:
            values[row.name] = parse_typed(row.text)
        except Invalid as refused:
            row.errors.append(refused.message)
    return values


class JsonEditor(forms.Textarea):
    """A textarea that a script turns into an editor. It works without the script."""

    def __init__(self) -> None:
        super().__init__(
            {
                "class": "json-editor",
                "rows": 30,
                "cols": 80,
                "spellcheck": "false",
                "autocomplete": "off",
                "wrap": "off",
            }
        )


class JsonDocumentField(forms.CharField):
    """A JSON object."""

    widget = JsonEditor

    def __init__(self, **options: Any) -> None:
        super().__init__(strip=False, **options)

    def to_python(self, value: object) -> Any:
        text = super().to_python(value)
        return parse_json_document(text) if text else text


def parse_json_document(text: str) -> dict[str, Any]:
    """Parse a JSON object."""
    try:
        document = parse_json_value(text, parse_constant=_refuse_constant_of_document)
    except json.JSONDecodeError as error:
        raise forms.ValidationError(syntax_error_text(error), params={"line": error.lineno}) from None
    except RecursionError:
        raise forms.ValidationError(_("The document is nested too deeply.")) from None
    except ValueError as error:
        raise forms.ValidationError(_("Invalid JSON: %(error)s.") % {"error": error}) from None
    if not isinstance(document, dict):
        raise forms.ValidationError(_("Enter a JSON object."))
    return document


def syntax_error_text(error: json.JSONDecodeError) -> str:
    """Return the error and its position as a sentence."""
    place = {"message": error.msg, "line": error.lineno, "column": error.colno}
    return _("Invalid JSON: %(message)s at line %(line)s, column %(column)s.") % place


def _refuse_constant_of_document(name: str) -> None:
    raise forms.ValidationError(_("%(name)s is not a JSON value.") % {"name": name})


def format_json(document: Any) -> str:
    """Return a document for editing: indented by two spaces, with the keys in their order."""
    return json.dumps(document, indent=2, ensure_ascii=False)


class JsonForm(forms.Form):
    """Form with the whole document as JSON text."""

    def __init__(self, name: str, label: str, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields[name] = JsonDocumentField(label=label, required=False)
        self.fields[name].widget.attrs["rows"] = 8


@dataclass(slots=True)
class RenderedField:
    """One field as the template renders it, with its text and its errors."""

    field: SchemaField
    text: str
    errors: list[str]
    inner: "list[RenderedField]"
    labels: Mapping[str, str | LazyText] | None = None
    """Labels of choices, for those that are not shown as they are."""

    @property
    def id(self) -> str:
        return "id_" + self.field.name.replace(".", "-")

    @property
    def options(self) -> list[tuple[str, str]]:
        """Return the choices as texts, each with its label."""
        labels = self.labels or {}
        return [(text, str(labels.get(text, text))) for text in map(format_value, self.field.choices)]

    @property
    def is_long(self) -> bool:
        """Return True for a field of several lines. A field of one line would remove the line breaks."""
        is_long_value = self.field.kind == TYPED and len(self.text) > LONG_TEXT
        return self.field.kind in (JSON, LONG) or "\n" in self.text or is_long_value


class DocumentForm:
    """A document that a user edits, in fields or as JSON. A button switches between them and keeps the values.

    `mode`: the way it is edited. `errors_by_field`: errors by field name. `has_switched`: the submitted form asks to
    switch. `problem`: why it could not.
    """

    def __init__(
        self,
        name: str,
        label: str,
        schema: JsonValue,
        submitted: Mapping[str, str] | None,
        *,
        given: Mapping[str, Any] | None = None,
        blank: Mapping[str, Any] | None = None,
        mode: str = AS_FORM,
        mode_name: str = "mode",
    ) -> None:
        """Create the form.

        `name`: prefix of the field names. `submitted`: the posted values. `given`: the initial document; without it the
        defaults of the schema, otherwise `blank`. `mode_name`: the field that has the mode.
        """
        self.name, self.label, self.mode_name = name, label, mode_name
        self.fields = build_form(schema, name)
        self.has_switched, self.problem = False, ""
        self.show(given or (_default_values(self.fields) if self.fields else blank or {}), mode)
        if submitted is not None:
            self.bind(submitted)

    def show(self, document: Mapping[str, Any], mode: str = AS_FORM) -> None:
        """Show a document, as JSON if the fields cannot show all of it."""
        self._set(None, document, mode if fits_form(self.fields, document) else AS_JSON)

    def bind(self, submitted: Mapping[str, str]) -> None:
        """Take the values of a submitted form. If it asks for the other mode and is valid, show them there."""
        mode = submitted.get(self.mode_name) or (AS_JSON if self.name in submitted else AS_FORM)
        self._set(submitted, self.document, mode)
        target = submitted.get(self.switch_name)
        self.has_switched = target is not None
        if target is not None and self._parse():
            self.show(self.document, target)
            if self.mode != target:
                self.problem = _("A value has no field in the form, or another type. Change it here first.")

    def _set(self, submitted: Mapping[str, str] | None, document: Mapping[str, Any], mode: str) -> None:
        self.submitted, self.document = submitted, document
        self.mode = AS_FORM if self.fields and mode != AS_JSON else AS_JSON
        initial = {self.name: format_json(document)}
        self.json = JsonForm(self.name, self.label, submitted if self.mode == AS_JSON else None, initial=initial)
        self.errors_by_field: dict[str, list[str]] = {}

    @property
    def switch_name(self) -> str:
        """Return the name of the buttons that switch."""
        return f"{self.mode_name}.to"

    @property
    def modes(self) -> list[tuple[str, Any]]:
        """Return the ways to edit the document, each with its label."""
        return [(AS_FORM, _("Form")), (AS_JSON, "JSON")]

    def is_in(self, submitted: Mapping[str, str]) -> bool:
        """Return True if a submitted form has values for this one."""
        return self.mode_name in submitted or self.name in submitted

    @property
    def is_invalid(self) -> bool:
        """Return True if a value was refused."""
        return bool(self.errors_by_field or self.json.errors)

    @property
    def json_field(self) -> forms.BoundField:
        return self.json[self.name]

    @property
    def has_typed_fields(self) -> bool:
        """Return True if a field takes values of any type."""
        return any(field.kind == TYPED for field in self.fields)

    def is_valid(self) -> bool:
        """Parse the submitted values. Return True if they form a document."""
        return self._parse()

    def _parse(self) -> bool:
        if self.submitted is None:
            return True
        if self.mode == AS_FORM:
            self.document, errors_by_field = parse_form(self.fields, self.submitted)
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
