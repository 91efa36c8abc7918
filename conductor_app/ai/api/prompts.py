"""Views of prompts. The body of most requests is the template as text."""

from typing import Any

from django.http import HttpResponse

from ...access.api.serializers import decode_text
from ...access.authentication import Target
from ...access.permissions import DELETE, EXECUTE, INTEGRATION, INTEGRATION_PROVIDER, READ, UPDATE
from ...access.permissions import PROMPT as PROMPT_TARGET
from ...core.errors import Invalid, NotFound
from ...definitions.api.tags import ObjectTags, tag_operations
from ...web.api import permissions as targets
from ...web.api import requests as request_body
from ...web.api.operations import PLAIN_TEXT, ApiOperation, ArrayOf, Json, PlainText
from ...web.api.permissions import ALLOW_ALL, RequiresAccess, RequiresDefinitionAccess, normalize_name, requires
from ...web.api.requests import parse_integer, read_request
from ...web.api.view import ConductorRequest, ConductorView
from ..commands.integrations import model_settings
from ..commands.prompts import (
    PromptTrial,
    change_prompt_tags,
    delete_prompt,
    find_prompt,
    save_prompt,
    save_prompts,
    update_prompt,
)
from ..queries.usage import newest_prompts, versions_of
from ..workers.trials import try_prompt
from .serializers import NEW_PROMPT, PROMPT, PROMPT_TEST, prompt_document, readable_prompts


def model_in_body(request: ConductorRequest, url_kwargs: dict[str, str]) -> list[Target]:
    """Return the integration and the model that the body names."""
    document = request_body.read_object(request)
    integration, model = (normalize_name(document.get(name)) for name in ("llmProvider", "model"))
    return [{INTEGRATION_PROVIDER: integration, INTEGRATION: f"{integration}:{model}"}]


can_view_prompt = requires(READ, PROMPT_TARGET, targets.named_in_address(PROMPT_TARGET, "name"))
can_save_prompt = RequiresDefinitionAccess(PROMPT_TARGET, targets.named_in_address(PROMPT_TARGET, "name"))
can_save_prompts = RequiresDefinitionAccess(PROMPT_TARGET, targets.definitions_in_body(PROMPT_TARGET))
can_update_prompt = requires(UPDATE, PROMPT_TARGET, targets.named_in_address(PROMPT_TARGET, "name"))
can_delete_prompt = requires(DELETE, PROMPT_TARGET, targets.named_in_address(PROMPT_TARGET, "name"))
can_try_prompt = RequiresAccess(((EXECUTE, INTEGRATION_PROVIDER), (EXECUTE, INTEGRATION)), model_in_body)


SAVE_QUERY = {"description": str, "models": str, "version": int, "autoIncrement": bool}
UPDATE_QUERY = {"description": str, "models": str, "version": int}


class Prompts(ConductorView):
    """GET, POST /api/prompts: list the newest versions, or save several prompts."""

    @ApiOperation("List prompts", ALLOW_ALL, reply=ArrayOf(PROMPT))
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json(readable_prompts(request.actor, newest_prompts()))

    @ApiOperation(
        "Create or update several prompts", can_save_prompts, body=ArrayOf(NEW_PROMPT), query={"newVersion": bool}
    )
    def post(self, request: ConductorRequest) -> None:
        read = [
            read_request(document, NEW_PROMPT, f"prompts[{number}]")
            for number, document in enumerate(request_body.read_objects(request))
        ]
        save_prompts(read, request.actor.name, new_version=request.query.flag("newVersion", default=False))


class PromptOne(ConductorView):
    """GET, POST, PUT, DELETE /api/prompts/{name}: get, save, update or delete a prompt."""

    @ApiOperation("Get a prompt", can_view_prompt, reply=PROMPT, query={"version": int})
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        return Json(prompt_document(find_prompt(name, request.query.integer("version", 0) or None)))

    @ApiOperation("Create or update a prompt", can_save_prompt, body=PLAIN_TEXT, query=SAVE_QUERY)
    def post(self, request: ConductorRequest, name: str) -> None:
        is_new = request.query.flag("autoIncrement", default=False)
        save_prompt(name, _template(request), request.actor.name, new_version=is_new, **_fields(request))

    @ApiOperation("Update a prompt", can_update_prompt, body=PLAIN_TEXT, query=UPDATE_QUERY)
    def put(self, request: ConductorRequest, name: str) -> None:
        update_prompt(name, _template(request), request.actor.name, **_fields(request))

    @ApiOperation("Delete all versions of a prompt", can_delete_prompt)
    def delete(self, request: ConductorRequest, name: str) -> None:
        delete_prompt(name, None, request.actor.name)


def _template(request: ConductorRequest) -> str:
    return decode_text(request_body.read_text(request)).replace("\0", "")


def _fields(request: ConductorRequest) -> dict[str, Any]:
    """Return the fields that the query has. Those without a parameter stay as they are."""
    query = request.query
    return {
        "description": query.text("description") if "description" in query.values else None,
        "models": query.texts("models") if "models" in query.values else None,
        "version": query.integer("version", 0) or None,
    }


class PromptVersions(ConductorView):
    """GET /api/prompts/{name}/versions: list all versions of a prompt, newest first."""

    @ApiOperation("List the versions of a prompt", can_view_prompt, reply=ArrayOf(PROMPT))
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        rows = [prompt_document(row) for row in versions_of(name)]
        if not rows:
            raise NotFound(f"There is no prompt named {name[:300]}.")
        return Json(rows)


class PromptVersion(ConductorView):
    """DELETE /api/prompts/{name}/versions/{version}: delete one version."""

    @ApiOperation("Delete a version of a prompt", can_delete_prompt)
    def delete(self, request: ConductorRequest, name: str, version: str) -> None:
        delete_prompt(name, parse_integer(version, "version"), request.actor.name)


class PromptTags(ObjectTags):
    """GET, PUT, DELETE /api/prompts/{name}/tags: list, set or remove tags."""

    operations = tag_operations("a prompt", can_view_prompt, can_update_prompt)

    find_tags = staticmethod(lambda name: find_prompt(name).tags)
    change_tags = staticmethod(change_prompt_tags)


class PromptTest(ConductorView):
    """POST /api/prompts/test: send a prompt, given as text, to a model. The reply is the answer as text."""

    @ApiOperation("Try a prompt with a model", can_try_prompt, reply=PLAIN_TEXT, body=PROMPT_TEST)
    def post(self, request: ConductorRequest) -> HttpResponse:
        fields = read_request(request_body.read_object(request), PROMPT_TEST, "promptTest")
        for name in ("llmProvider", "model"):
            if not fields.get(name):
                raise Invalid(f"`{name}` is missing.")
        trial = PromptTrial(
            fields["prompt"],
            fields["promptVariables"],
            model_settings(fields["llmProvider"], fields["model"]),
            fields.get("temperature"),
            fields.get("topP"),
            fields["stopWords"],
        )
        return PlainText(try_prompt(trial, request.actor.name).text)
