"""JSON values as the text of one form field: texts as they are, other values as JSON."""

import json
from typing import Any

from django.utils.translation import gettext as _

from ...core.errors import Invalid
from ..form_parsing import parse_json_value

LITERALS = frozenset(("true", "false", "null"))
BEGINS_JSON = frozenset('{["-0123456789')


def format_typed(value: Any) -> str:
    """Return the text of a field for a value. A text that would be parsed as another value is put in quotes."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, dict | list) and value else None)
    try:
        is_plain = parse_typed(value) == value
    except Invalid:
        is_plain = False
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def parse_typed(text: str) -> Any:
    """Return the value of a field: numbers, true, false, null, objects, lists and quoted texts are JSON.

    Raises:
        Invalid: when the text begins like an object, a list or a quoted text, and is not valid JSON.
    """
    written = text.strip()
    if written in LITERALS:
        return json.loads(written)
    if written[:1] not in BEGINS_JSON or not written:
        return text
    try:
        return parse_json_value(written, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        if written[0] in '{["':
            raise Invalid(_("Not valid JSON. To enter it as text, put it in quotes.")) from None
        return text


def _refuse_constant(name: str) -> None:
    raise ValueError(name)
