"""Taskcluster's REST APIs, from the views and the schemas of their bodies."""

import json
import re
from typing import Any

from django.urls import URLPattern

from conductor_app.taskcluster import urls
from conductor_app.taskcluster.api import schemas
from conductor_app.taskcluster.api.view import ApiMethod, ScopeTemplate, TaskclusterView

from .tables import code, escape, table

SERVICES = {
    "Queue": ("/api/queue/v1/", urls.queue),
    "Auth": ("/api/auth/v1/", urls.auth),
    "Object": ("/api/object/v1/", urls.objects),
}
PARAMETER = re.compile(r"\(\?P<(\w+)>[^)]*\)")


def write_methods() -> str:
    """Return a section for each method, by service."""
    return "\n".join(
        f"## {service}\n\n" + "\n".join(text for pattern in patterns for text in _methods(prefix, pattern))
        for service, (prefix, patterns) in SERVICES.items()
    )


def _methods(prefix: str, pattern: URLPattern) -> list[str]:
    view = getattr(pattern.callback, "view_class", None)
    if view is None or not issubclass(view, TaskclusterView):
        return []
    path = prefix + PARAMETER.sub(r"<\1>", str(pattern.pattern)).strip("^$").replace("\\", "")
    return [_method(verb, path, view, method) for verb, method in view.methods.items()]


def _method(verb: str, path: str, view: type[TaskclusterView], method: ApiMethod) -> str:
    lines = [f"### {method.name}", "", f"`{verb} {path}`", ""]
    if method.is_public:
        lines += ["Requires no scopes.", ""]
    else:
        template = method.scopes_of_facts if method.scopes is None else method.scopes
        lines += [f"Scopes: {_scopes(template)}.", ""]
    if view.known_options and verb == "GET":
        lines += [f"Query: {', '.join(map(code, view.known_options))}.", ""]
    if body := schemas.SCHEMAS.get(method.name):
        lines += [_body(body)]
    return "\n".join(lines)


def _scopes(template: ScopeTemplate | None) -> str:
    """Return a requirement as text, with `all of` and `one of`."""
    if template is None:
        return "none"
    if isinstance(template, str):
        return code(template)
    if "for" in template:
        return f"{_scopes(template['each'])} for each of `{template['in']}`"
    operator, parts = next(iter(template.items()))
    if len(parts) == 1:
        return _scopes(parts[0])
    word = " and " if operator == "AllOf" else " or "
    return word.join(
        f"({text})" if isinstance(part, dict) and len(parts) > 1 and (" and " in text or " or " in text) else text
        for part in parts
        for text in [_scopes(part)]
    )


def _body(schema: dict[str, Any]) -> str:
    required = set(schema.get("required", ()))
    rows = [
        (code(name), _type(each), "yes" if name in required else "", _default(each))
        for name, each in schema.get("properties", {}).items()
    ]
    return table(("field", "type", "required", "default"), rows) if rows else "Body: an object.\n"


def _default(schema: dict[str, Any]) -> str:
    return code(json.dumps(schema["default"])) if "default" in schema else ""


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(map(code, schema["enum"]))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}{_limit(schema, 'maxItems', ' items')}"
    if "format" in schema:
        kind = f"{kind} ({schema['format']})"
    return escape(kind + _limit(schema, "maxLength", " characters") + _limit(schema, "maximum"))


def _limit(schema: dict[str, Any], name: str, unit: str = "") -> str:
    return f" of at most {schema[name]:,}{unit}" if name in schema else ""
