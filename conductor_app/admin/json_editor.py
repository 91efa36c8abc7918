"""Form field for a JSON document. It keeps the text as typed and reports errors with line and column."""

import json
from typing import Any

from django import forms
from django.utils.translation import gettext as _

from .form_parsing import parse_json_value


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

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        return text if text in self.empty_values else parse_json_document(text)


def parse_json_document(text: str) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        ValidationError: when the text is not a JSON object; `params` has the line of the error.
    """
    try:
        document = parse_json_value(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise forms.ValidationError(syntax_error_text(error), params={"line": error.lineno}) from None
    except RecursionError:
        raise forms.ValidationError(_("The document is nested too deeply.")) from None
    except ValueError as error:
        raise forms.ValidationError(_("Invalid JSON: %(error)s.") % {"error": error}) from None
    if not isinstance(document, dict):
        raise forms.ValidationError(_("A definition must be a JSON object ({…})."))
    return document


def syntax_error_text(error: json.JSONDecodeError) -> str:
    """Return the error and its position as a sentence."""
    place = {"message": error.msg, "line": error.lineno, "column": error.colno}
    return _("Invalid JSON: %(message)s at line %(line)s, column %(column)s.") % place


def _refuse_constant(name: str) -> None:
    raise forms.ValidationError(_("%(name)s is not a JSON value.") % {"name": name})


def format_json(document: Any) -> str:
    """Return a document for editing: indented by two spaces, with the keys in their order."""
    return json.dumps(document, indent=2, ensure_ascii=False)
