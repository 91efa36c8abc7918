"""Parse form values: JSON documents and numbers. NUL characters are removed everywhere."""

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.utils.translation import gettext as _

from ..core.errors import Invalid


def parse_json_value(text: str, **options: Any) -> Any:
    """Parse a JSON text and remove NUL characters.

    Raises:
        ValueError: when the text is not JSON, or holds a lone surrogate.
        RecursionError: when the value is nested too deeply.
    """
    value = json.loads(text, **options)
    if "\\ud" in text.lower():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError(_("it contains a lone surrogate (half of a character), which cannot be stored")) from None
    return _strip_nul_within(value) if "\\u0000" in text else value


def _strip_nul_within(value: Any) -> Any:
    match value:
        case dict():
            return {_strip_nul(name): _strip_nul_within(each) for name, each in value.items()}
        case list():
            return [_strip_nul_within(each) for each in value]
    return _strip_nul(value)


def parse_json_object(text: str, name: str) -> dict[str, Any]:
    """Parse a JSON object. Empty text is an empty object. `name`: the label of the field in error messages.

    Raises:
        Invalid: when the text is not JSON, is not an object, or is nested too deeply.
    """
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


def parse_number(text: str, name: str, digits: int = 9) -> int:
    """Parse a whole number. `name`: the label of the field in error messages.

    Raises:
        Invalid: when the text is not a number of at most `digits` digits.
    """
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


def _strip_nul_from_query(query: QueryDict) -> QueryDict:
    if not any("\0" in value for values in query.lists() for value in (values[0], *values[1])):
        return query
    clean = QueryDict(mutable=True, encoding=query.encoding)
    for name, values in query.lists():
        clean.setlist(_strip_nul(name), [_strip_nul(value) for value in values])
    return clean
