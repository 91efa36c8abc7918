"""What is typed into a form: a JSON object or a number, or a refusal that says what is wrong with it."""

import json
from typing import Any

from django.utils.translation import gettext as _

from ..core.errors import Invalid


def json_object(text: str, name: str) -> dict[str, Any]:
    """The JSON object in the text; nothing typed is an empty one. `name`: what the page calls it. Raises Invalid."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except RecursionError:
        raise Invalid(_("The %(name)s is nested too deeply.") % {"name": name}) from None
    except ValueError as wrong:
        raise Invalid(_("The %(name)s is no JSON: %(wrong)s.") % {"name": name, "wrong": wrong}) from wrong
    if not isinstance(value, dict):
        raise Invalid(_("The %(name)s must be a JSON object.") % {"name": name})
    return value


def number(text: str, name: str, digits: int = 9) -> int:
    """The whole number in the text. Raises Invalid."""
    given = text.strip()
    if not (given.isascii() and given.isdecimal()) or len(given) > digits:
        raise Invalid(_("%(given)r is no %(name)s.") % {"given": given[:40], "name": name})
    return int(given)
