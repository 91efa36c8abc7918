"""The templates of the pages. In another Django project, they do not replace those of the project, and vice versa.

Several have the names of templates of Django's admin. So another project has an engine of its own for them, which its
own pages do not use.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from django.apps import apps
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template import TemplateDoesNotExist, engines
from django.template.backends.django import DjangoTemplates
from django.template.response import SimpleTemplateResponse
from django.utils.safestring import SafeString, mark_safe

from ..settings import conf
from ..settings.resources import TEMPLATE_OPTIONS, TEMPLATES_DIR

FRAMEWORK_APPS = ("admin", "auth")
"""The apps of Django whose templates pages extend or use."""


@cache
def _own_engine() -> DjangoTemplates:
    folders = (Path(apps.get_app_config(label).path) / "templates" for label in FRAMEWORK_APPS)
    options = {name: list(value) for name, value in TEMPLATE_OPTIONS.items()}
    return DjangoTemplates(
        {"NAME": "conductor", "DIRS": [TEMPLATES_DIR, *folders], "APP_DIRS": False, "OPTIONS": options}
    )


def render_to_string(
    template: str, context: Mapping[str, Any] | None = None, request: HttpRequest | None = None
) -> SafeString:
    """Render a template of the pages."""
    engine = engines["django"] if conf.is_server else _own_engine()
    # Rendered templates are safe.
    return mark_safe(engine.get_template(template).render(dict(context or {}), request))


ResponseT = TypeVar("ResponseT", bound=HttpResponseBase)


def with_own_template(response: ResponseT) -> ResponseT:
    """Let a response that is not rendered yet use the templates of the pages, also if Django's admin has created it."""
    if conf.is_server or not isinstance(response, SimpleTemplateResponse) or response.is_rendered:
        return response
    names = response.template_name
    if isinstance(names, str | list | tuple):
        response.template_name = _select([names] if isinstance(names, str) else names)
    return response


def _select(names: Iterable[str]) -> Any:
    missing = TemplateDoesNotExist("")
    for name in names:
        try:
            return _own_engine().get_template(name)
        except TemplateDoesNotExist as error:
            missing = error
    raise missing
