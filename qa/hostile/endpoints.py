"""Every address of the server, read from its URL patterns, with what its documentation says about its requests."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.contrib.admindocs.views import extract_views_from_urlpatterns, simplify_regex
from django.urls import get_resolver

from conductor_app.site.openapi.pages import build_document
from conductor_app.taskcluster.api.schemas import SCHEMAS

CONDUCTOR, TASKCLUSTER, PAGES, OTHERS = "Conductor API", "Taskcluster API", "pages", "others"
PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
TASKCLUSTER_ADDRESS = re.compile(r"/api/(queue|auth|object|artifacts)/v1/")
WAITING = re.compile(r"/tasks/poll|/claim-work/|/execute/|/signal|/update-v2|/sync$")
"""Addresses whose requests may wait for an event, by design."""

Schema = Mapping[str, Any]


@dataclass
class Endpoint:
    """One address with its documented methods."""

    template: str
    area: str
    bodies: dict[str, Schema | None] = field(default_factory=dict)
    """The methods, each with the schema of its body."""
    query: dict[str, dict[str, Schema]] = field(default_factory=dict)
    """For each method, its query parameters with their schemas."""

    @property
    def parameters(self) -> Sequence[str]:
        return PARAMETER.findall(self.template)

    @property
    def can_wait(self) -> bool:
        return bool(WAITING.search(self.template)) or any("waitForSeconds" in names for names in self.query.values())


@contextmanager
def silent_warnings() -> Iterator[None]:
    """Log only errors. Each refused request logs a warning."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def all_endpoints() -> list[Endpoint]:
    """Return every address, in a fixed order."""
    found = {}
    for view, pattern, *_ in extract_views_from_urlpatterns(get_resolver().url_patterns):
        template = simplify_regex(str(pattern))
        found[template] = Endpoint(template, _area_of(template))
        for method, operation in getattr(getattr(view, "view_class", None), "methods", {}).items():
            found[template].bodies[method] = SCHEMAS.get(operation.name)
    documented = dict(_documented_operations())
    for endpoint in found.values():
        for method, (query, body) in documented.get(PARAMETER.sub(r"{\1}", endpoint.template), {}).items():
            endpoint.query[method], endpoint.bodies[method] = query, body
        if not endpoint.bodies:
            endpoint.bodies = {"GET": None, "POST": None}
    return list(found.values())


def _area_of(template: str) -> str:
    if TASKCLUSTER_ADDRESS.match(template):
        return TASKCLUSTER
    if template.startswith("/api/"):
        return CONDUCTOR
    return PAGES if template.startswith("/admin/") else OTHERS


def _documented_operations() -> Iterator[tuple[str, dict[str, tuple[dict[str, Schema], Schema | None]]]]:
    """Yield each address of the OpenAPI document with its methods, their query parameters and their bodies."""
    with silent_warnings():
        document = build_document()
    components = document.get("components", {}).get("schemas", {})
    for address, operations in document["paths"].items():
        yield (
            address,
            {
                method.upper(): (
                    {each["name"]: each["schema"] for each in operation.get("parameters", []) if each["in"] == "query"},
                    _body_schema(operation, components),
                )
                for method, operation in operations.items()
            },
        )


def _body_schema(operation: Mapping[str, Any], components: Mapping[str, Schema]) -> Schema | None:
    """Return the schema of a body. Its references are resolved when a value is built, because schemas are recursive."""
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" not in content:
        return None
    return {**content["application/json"]["schema"], "components": components}
