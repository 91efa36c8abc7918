"""Views of tags on definitions and applications. Clients also read the rate limits of workflows as tags."""

from collections.abc import Callable
from typing import Any

from django.http import HttpResponse

from ...access import grants as access_tags
from ...access.grants import Tags
from ...access.permissions import APPLICATION, TASK_DEF, UPDATE, WORKFLOW_DEF
from ...core.document.fields import RATE_LIMIT
from ...core.errors import NotFound
from ...web.api import permissions as targets
from ...web.api import requests as request_body
from ...web.api.documents import TAG
from ...web.api.operations import ApiOperation, ArrayOf, Json, Shape
from ...web.api.permissions import (
    ALLOW_ALL,
    PermissionRule,
    can_update_application,
    can_view_application,
    can_view_task_definition,
    can_view_workflow,
    requires,
)
from ...web.api.requests import errors_under, read_request
from ...web.api.view import ConductorRequest, ConductorView
from .. import commands
from .serializers import read_tags, subtract_tags

can_update_workflow = requires(UPDATE, WORKFLOW_DEF, targets.named_in_address(WORKFLOW_DEF, "name"))
can_update_task = requires(UPDATE, TASK_DEF, targets.named_in_address(TASK_DEF, "name"))


def save_given_tags(target: str, document: dict[str, Any], given: tuple[Tags, bool] | None, by: str) -> None:
    """Add the tags in the document of a definition to its tags, or replace its tags with those in the document."""
    if given is not None:
        found, overwrites = given
        (commands.set_tags if overwrites else commands.add_tags)(target, document["name"], found, by)


def requested_tags(request: ConductorRequest, target: str, name: str) -> dict[str, Tags]:
    """Return the tags of a definition as its field `tags`, if the request asks for them, as the Go SDK does."""
    return {"tags": access_tags.metadata_tags(target, name)} if request.query.flag("metadata", False) else {}


def tag_operations(
    owner: str, can_view: PermissionRule, can_update: PermissionRule, *, removed: Shape | None = None
) -> dict[str, ApiOperation]:
    """Return the operations of a view of tags. `owner`: what has the tags. `removed`: the body of a removal."""
    return {
        "get": ApiOperation(f"List the tags of {owner}", can_view, reply=ArrayOf(TAG)),
        "put": ApiOperation(f"Set the tags of {owner}", can_update, body=ArrayOf(TAG)),
        "delete": ApiOperation(f"Remove tags from {owner}", can_update, body=removed),
    }


class AllTags(ConductorView):
    """GET /api/metadata/tags: list the tags of the objects that the caller may read."""

    @ApiOperation("List the tags that are in use", ALLOW_ALL, reply=ArrayOf(TAG))
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json(commands.readable_tags(request.actor))


class WorkflowTags(ConductorView):
    """GET, POST, PUT, DELETE /api/metadata/workflow/{name}/tags: list, add, replace or remove tags."""

    target = WORKFLOW_DEF

    @ApiOperation("List the tags of a workflow definition", can_view_workflow, reply=ArrayOf(TAG))
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        return Json(commands.list_tags(self.target, name))

    @ApiOperation("Add a tag to a workflow definition", can_update_workflow, body=TAG)
    def post(self, request: ConductorRequest, name: str) -> None:
        commands.add_tags(self.target, name, read_tags(request), request.actor.name)

    @ApiOperation("Set the tags of a workflow definition", can_update_workflow, body=ArrayOf(TAG))
    def put(self, request: ConductorRequest, name: str) -> None:
        commands.set_tags(self.target, name, read_tags(request), request.actor.name)

    @ApiOperation("Remove a tag from a workflow definition", can_update_workflow)
    def delete(self, request: ConductorRequest, name: str) -> None:
        commands.remove_tags(self.target, name, read_tags(request), request.actor.name)


class TaskTags(WorkflowTags):
    """GET, POST, PUT, DELETE /api/metadata/task/{taskName}/tags: list, add, replace or remove tags."""

    operations = {
        **tag_operations("a task definition", can_view_task_definition, can_update_task),
        "post": ApiOperation("Add a tag to a task definition", can_update_task, body=TAG),
        "delete": ApiOperation("Remove a tag from a task definition", can_update_task),
    }

    target = TASK_DEF


class ApplicationTags(ConductorView):
    """GET, PUT, DELETE /api/applications/{id}/tags: list, add or remove tags.

    The application need not exist, as in Orkes: the server gives the ids of applications, so that no later one gets
    the tags.
    """

    @ApiOperation("List the tags of an application", can_view_application, reply=ArrayOf(TAG))
    def get(self, request: ConductorRequest, id: str) -> HttpResponse:
        return Json(commands.list_tags(APPLICATION, id))

    @ApiOperation("Set the tags of an application", can_update_application, body=ArrayOf(TAG))
    def put(self, request: ConductorRequest, id: str) -> None:
        commands.add_tags(APPLICATION, id, read_tags(request), request.actor.name)

    @ApiOperation("Remove tags from an application", can_update_application)
    def delete(self, request: ConductorRequest, id: str) -> None:
        commands.remove_tags(APPLICATION, id, read_tags(request), request.actor.name)


class ObjectTags(ConductorView):
    """GET, PUT, DELETE of the tags that an object stores: list, replace or remove them.

    `find_tags(*key)` returns the tags; `change_tags(*key, change, by)` replaces them by the result of `change`.
    """

    find_tags: Callable[..., Tags]
    change_tags: Callable[..., None]

    @staticmethod
    def key(**path: str) -> tuple[str, ...]:
        """Return the key of the object from the parameters of the path."""
        return tuple(path.values())

    def get(self, request: ConductorRequest, **path: str) -> HttpResponse:
        return Json(self.find_tags(*self.key(**path)))

    def put(self, request: ConductorRequest, **path: str) -> None:
        tags = read_tags(request)
        self.change_tags(*self.key(**path), lambda _: tags, request.actor.name)

    def delete(self, request: ConductorRequest, **path: str) -> None:
        tags = read_tags(request)
        self.change_tags(*self.key(**path), lambda existing: subtract_tags(existing, tags), request.actor.name)


class WorkflowRateLimit(ConductorView):
    """GET, PUT, DELETE /api/metadata/workflow/{name}/rate-limit: get, set or remove the limit of concurrent runs."""

    @ApiOperation("Get the limit of parallel runs of a workflow", can_view_workflow, reply=RATE_LIMIT)
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        if (config := commands.run_limit(name)) is None:
            raise NotFound(f"The workflow {name} has no rate limit.")
        return Json(config)

    @ApiOperation("Set the limit of parallel runs of a workflow", can_update_workflow, body=RATE_LIMIT)
    def put(self, request: ConductorRequest, name: str) -> None:
        config = read_request(request_body.read_object(request), RATE_LIMIT, "rateLimitConfig")
        with errors_under("rateLimitConfig"):
            commands.set_run_limit(
                name, {**config, "rateLimitKey": config.get("rateLimitKey") or name}, request.actor.name
            )

    @ApiOperation("Remove the limit of parallel runs of a workflow", can_update_workflow)
    def delete(self, request: ConductorRequest, name: str) -> None:
        commands.set_run_limit(name, None, request.actor.name)
