"""Conductor's REST API, from the OpenAPI document that the server serves."""

import re
from typing import Any

from conductor_app.site.openapi.pages import build_document
from conductor_app.site.openapi.schema import ERROR_DESCRIPTIONS

from .tables import code, escape, table

DOCUMENTS_PAGE = "conductor-documents.md"
ERROR_STATUSES = frozenset(map(str, ERROR_DESCRIPTIONS))
"""Statuses that every operation may reply with. The page of the errors describes them."""
SECTIONS = {
    "workflow": "Workflows",
    "tasks": "Tasks",
    "metadata": "Definitions and tags",
    "scheduler": "Schedules",
    "event": "Events and event handlers",
    "webhook": "Incoming webhooks",
    "human": "Human tasks",
    "queue": "Event queues",
    "schema": "Schemas",
    "secrets": "Secrets",
    "secrets-v2": "Secrets, second version",
    "environment": "Environment variables",
    "token": "Tokens",
    "applications": "Applications and keys",
    "auth": "Permissions",
    "users": "Users",
    "groups": "Groups",
    "roles": "Roles",
    "files": "Files",
    "payloads": "Payloads",
    "admin": "Administration",
    "version": "Version of the server",
    "": "Outside of /api",
}
"""Titles by the first part of the path. Others follow under the part itself."""
RIGHT = re.compile(r"\b[A-Z][A-Z_]{3,}\b")


def write_operations() -> str:
    """Return a section for each operation, by the first part of its path."""
    by_section: dict[str, list[str]] = {}
    for path, methods in build_document()["paths"].items():
        for method, operation in methods.items():
            by_section.setdefault(operation["tags"][0], []).append(_operation(method, path, operation))
    order = [*SECTIONS, *sorted(set(by_section) - set(SECTIONS))]
    return "\n".join(
        f"## {SECTIONS.get(tag, tag)}\n\n" + "\n".join(by_section[tag]) for tag in order if tag in by_section
    )


def write_documents() -> str:
    """Return a section with the fields of each document."""
    schemas = build_document()["components"]["schemas"]
    return "\n".join(f"## {name}\n\n{_fields(schema)}" for name, schema in sorted(schemas.items()))


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    lines = [f"### {operation['summary']}", "", f"`{method.upper()} {path}`", ""]
    lines += [f"Permission: {RIGHT.sub(_in_code, operation['x-permission'])}.", ""]
    if parameters := operation.get("parameters"):
        rows = [(code(each["name"]), each["in"], _type(each["schema"]), _required(each)) for each in parameters]
        lines += [table(("parameter", "in", "type", "required"), rows)]
    if body := operation.get("requestBody"):
        lines += [f"Body: {_contents(body['content'])}.", ""]
    for status, reply in operation["responses"].items():
        if status not in ERROR_STATUSES:
            empty = f"; empty when {operation['x-empty-when']}" if "x-empty-when" in operation else ""
            lines += [f"Reply {status}: {_contents(reply['content']) if reply.get('content') else 'empty'}{empty}.", ""]
    return "\n".join(lines)


def _in_code(name: re.Match[str]) -> str:
    return code(name[0])


def _contents(content: dict[str, Any]) -> str:
    return " or ".join(
        _type(media["schema"]) + ("" if kind == "application/json" else f" as {code(kind)}")
        for kind, media in content.items()
    )


def _required(parameter: dict[str, Any]) -> str:
    return "yes" if parameter.get("required") else ""


def _fields(schema: dict[str, Any]) -> str:
    rows = [(code(name), _type(each, here=True)) for name, each in schema.get("properties", {}).items()]
    return table(("field", "type"), rows) if rows else "Any object.\n"


def _type(schema: dict[str, Any], here: bool = False) -> str:
    """Return a type as text. `here`: on the page of the documents."""
    if schema.get("nullable"):
        return f"{_type({**schema, 'nullable': False}, here)} or null"
    if reference := schema.get("$ref", ""):
        name = reference.rpartition("/")[2]
        return f"[{name}]({'' if here else DOCUMENTS_PAGE}#{name.lower()})"
    if choices := schema.get("enum"):
        return ", ".join(map(code, choices))
    for combination in ("anyOf", "oneOf", "allOf"):
        if combination in schema:
            return " or ".join(dict.fromkeys(_type(each, here) for each in schema[combination]))
    kind = schema.get("type")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}), here)}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object, values: {_type(schema['additionalProperties'], here)}"
    return escape(f"{kind} ({schema['format']})" if schema.get("format") else kind or "any")
