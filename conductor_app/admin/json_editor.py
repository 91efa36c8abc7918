"""A field for a JSON document: kept as it was typed, refused with line and column."""

import json
from typing import Any

from django import forms

from .form_parsing import parse_json_value

NOT_JSON = "This is not JSON: {message} at line {line}, column {column}."
UNREADABLE = "This cannot be read as JSON: {error}."


class JsonEditor(forms.Textarea):
    """A textarea that a script makes an editor of. Works without it."""

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

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        return text if text in self.empty_values else parse_json_document(text)


def parse_json_document(text: str) -> dict[str, Any]:
    """The JSON object in the text; raises ValidationError with the place of the first fault."""
    try:
        document = parse_json_value(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        message = NOT_JSON.format(message=error.msg, line=error.lineno, column=error.colno)
        raise forms.ValidationError(message, params={"line": error.lineno}) from None
    except RecursionError:
        raise forms.ValidationError("The document is nested too deeply.") from None
    except ValueError as error:
        raise forms.ValidationError(UNREADABLE.format(error=error)) from None
    if not isinstance(document, dict):
        raise forms.ValidationError("A definition is a JSON object: it begins with { and ends with }.")
    return document


def _refuse_constant(name: str) -> None:
    raise forms.ValidationError(f"{name} is not a JSON value.")


def format_json(document: Any) -> str:
    """A document as it is offered for editing: keys in their order, two spaces a level."""
    return json.dumps(document, indent=2, ensure_ascii=False)
