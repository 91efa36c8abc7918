"""What is typed into a form: a JSON object or a number, or a refusal that says what is wrong with it; never a NUL."""

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.utils.translation import gettext as _

from ..core.errors import Invalid


def parse_json_value(text: str, **options: Any) -> Any:
    """The value that a JSON text spells, less NUL. Raises ValueError, for half a character too, and RecursionError."""
    value = json.loads(text, **options)
    if "\\ud" in text.lower():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError(_("it holds half of a character, which no database keeps")) from None
    return _strip_nul_within(value) if "\\u0000" in text else value


def _strip_nul_within(value: Any) -> Any:
    match value:
        case dict():
            return {_strip_nul(name): _strip_nul_within(each) for name, each in value.items()}
        case list():
            return [_strip_nul_within(each) for each in value]
    return _strip_nul(value)


def parse_json_object(text: str, name: str) -> dict[str, Any]:
    """The JSON object in the text; nothing typed is an empty one. `name`: what the page calls it. Raises Invalid."""
    if not text.strip():
        return {}
    try:
        value = parse_json_value(text)
    except RecursionError:
        raise Invalid(_("The %(name)s is nested too deeply.") % {"name": name}) from None
    except ValueError as wrong:
        raise Invalid(_("The %(name)s is no JSON: %(wrong)s.") % {"name": name, "wrong": wrong}) from wrong
    if not isinstance(value, dict):
        raise Invalid(_("The %(name)s must be a JSON object.") % {"name": name})
    return value


def parse_number(text: str, name: str, digits: int = 9) -> int:
    """The whole number in the text. Raises Invalid."""
    given = text.strip()
    if not (given.isascii() and given.isdecimal()) or len(given) > digits:
        raise Invalid(_("%(given)r is no %(name)s.") % {"given": given[:40], "name": name})
    return int(given)


def strip_nul_from_request(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The view, told of no NUL in address, query and form: PostgreSQL keeps none in text, not even to look for it."""

    @wraps(view)
    def wrapper(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if any(value and not _strip_nul(value) for value in (*args, *kwargs.values())):
            raise Http404
        args, kwargs = tuple(map(_strip_nul, args)), {name: _strip_nul(value) for name, value in kwargs.items()}
        request.GET = _strip_nul_from_query(request.GET)
        if request.method == "POST":
            request.POST = _strip_nul_from_query(request.POST)
        return view(request, *args, **kwargs)

    return wrapper


def _strip_nul(value: Any) -> Any:
    return value.replace("\0", "") if isinstance(value, str) else value


def _strip_nul_from_query(given: QueryDict) -> QueryDict:
    if not any("\0" in value for values in given.lists() for value in (values[0], *values[1])):
        return given
    clean = QueryDict(mutable=True, encoding=given.encoding)
    for name, values in given.lists():
        clean.setlist(_strip_nul(name), [_strip_nul(value) for value in values])
    return clean
