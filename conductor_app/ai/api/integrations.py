"""Views of integrations: providers, their models, the prompts and tokens of models, and the budgets of models."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse

from ...access.authentication import Target
from ...access.permissions import DELETE, INTEGRATION_PROVIDER, READ, UPDATE
from ...access.permissions import INTEGRATION as INTEGRATION_TARGET
from ...access.permissions import PROMPT as PROMPT_TARGET
from ...access.visibility import visible
from ...core.ai import CATEGORIES, INTEGRATION_KINDS
from ...core.document.fields import IntegerOf, MapOf, texts
from ...core.errors import Invalid
from ...definitions.api.tags import ObjectTags, tag_operations
from ...settings import conf
from ...utils import clock
from ...web.api import permissions as targets
from ...web.api import requests as request_body
from ...web.api.operations import NO_CONTENT, ApiOperation, ArrayOf, EmptyOk, Json
from ...web.api.permissions import ADMINISTRATORS_ONLY, ALLOW_ALL, RequiresAccess, RequiresDefinitionAccess, requires
from ...web.api.requests import read_request
from ...web.api.view import ConductorRequest, ConductorView
from ..commands import integrations as engine
from ..commands.budgets import delete_budget, save_budget
from ..commands.calls import add_tokens
from ..commands.integrations import model_in_any_order
from ..commands.prompts import bind_prompt
from ..models import Integration
from ..queries.budgets import BudgetState, budget_states
from ..queries.usage import count_models, list_integrations, models_of, prompts_bound_to, tokens_by_model
from . import serializers
from .serializers import BUDGET, budget_document, parse_budget


def model_in_address(request: ConductorRequest, url_kwargs: dict[str, str]) -> list[Target]:
    """Return the integration and the model in the path, which the Python SDK sends in either order."""
    integration, model = model_in_any_order(url_kwargs["name"], url_kwargs["model"])
    return [{INTEGRATION_PROVIDER: integration, INTEGRATION_TARGET: f"{integration}:{model}"}]


can_view_integration = requires(READ, INTEGRATION_PROVIDER, targets.named_in_address(INTEGRATION_PROVIDER, "name"))
can_save_integration = RequiresDefinitionAccess(
    INTEGRATION_PROVIDER, targets.named_in_address(INTEGRATION_PROVIDER, "name")
)
can_save_integrations = RequiresDefinitionAccess(
    INTEGRATION_PROVIDER, targets.definitions_in_body(INTEGRATION_PROVIDER)
)
can_update_integration = requires(UPDATE, INTEGRATION_PROVIDER, targets.named_in_address(INTEGRATION_PROVIDER, "name"))
can_delete_integration = requires(DELETE, INTEGRATION_PROVIDER, targets.named_in_address(INTEGRATION_PROVIDER, "name"))
can_view_model = RequiresAccess(((READ, INTEGRATION_PROVIDER), (READ, INTEGRATION_TARGET)), model_in_address)
can_update_model = RequiresAccess(((UPDATE, INTEGRATION_PROVIDER), (UPDATE, INTEGRATION_TARGET)), model_in_address)
can_bind_prompt = requires(UPDATE, PROMPT_TARGET, targets.named_in_address(PROMPT_TARGET, "prompt"))


LIST_QUERY = {"category": str, "type": str, "activeOnly": bool}
MAX_AT_ONCE = 200
REMOVABLE_FIELDS = ("maxTokens", "inputPrice", "outputPrice")


class Providers(ConductorView):
    """GET /api/integrations/provider: list the integrations."""

    @ApiOperation("List integrations", ALLOW_ALL, reply=ArrayOf(serializers.INTEGRATION), query=LIST_QUERY)
    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = list(readable_integrations(request))
        counts = count_models(row.name for row in rows)
        return Json([serializers.integration_document(row, counts.get(row.name, 0)) for row in rows])


class Integrations(Providers):
    """GET, POST /api/integrations: list the integrations, or save several."""

    operations = {
        "get": ApiOperation(
            "List integrations, as another client does",
            ALLOW_ALL,
            reply=ArrayOf(serializers.INTEGRATION),
            query=LIST_QUERY,
        ),
        "post": ApiOperation(
            "Create or update several integrations", can_save_integrations, body=ArrayOf(serializers.NAMED_INTEGRATION)
        ),
    }

    get = Providers.get

    def post(self, request: ConductorRequest) -> HttpResponse:
        documents = request_body.read_objects(request)
        if len(documents) > MAX_AT_ONCE:
            raise Invalid(f"At most {MAX_AT_ONCE} integrations can be saved at once (got {len(documents)}).")
        read = [
            read_request(each, serializers.NAMED_INTEGRATION, f"[{number}]") for number, each in enumerate(documents)
        ]
        engine.save_integrations(read, request.actor.name)
        return EmptyOk()


def readable_integrations(request: ConductorRequest) -> QuerySet[Integration]:
    """Return the integrations that the caller may read, filtered by the query.

    Clients send a category as `category` or `type`, and a kind as `type`.

    Raises:
        Invalid: when the category is unknown.
    """
    category, type_ = request.query.text("category"), request.query.text("type")
    if category and category not in CATEGORIES:
        raise Invalid(f"Query parameter 'category' must be one of {', '.join(CATEGORIES)}, not '{category[:100]}'.")
    rows = list_integrations(category, request.query.flag("activeOnly", default=False))
    if type_:
        rows = rows.filter(category=type_) if type_ in CATEGORIES else rows.filter(kind=type_)
    return visible(rows)


class IntegrationOne(ConductorView):
    """GET, POST, DELETE /api/integrations/provider/{name}: get, save or delete an integration."""

    @ApiOperation("Get an integration", can_view_integration, reply=serializers.INTEGRATION)
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        row = engine.find_integration(name)
        return Json(serializers.integration_document(row, models_of([name]).get(name, [])))

    @ApiOperation("Create or update an integration", can_save_integration, body=serializers.INTEGRATION_UPDATE)
    def post(self, request: ConductorRequest, name: str) -> None:
        document = read_request(request_body.read_object(request), serializers.INTEGRATION_UPDATE, "integration")
        engine.save_integration(name, document, request.actor.name)

    @ApiOperation("Delete an integration", can_delete_integration)
    def delete(self, request: ConductorRequest, name: str) -> None:
        engine.delete_integration(name, request.actor.name)


class IntegrationTags(ObjectTags):
    """GET, PUT, DELETE /api/integrations/provider/{name}/tags: list, set or remove tags."""

    operations = tag_operations("an integration", can_view_integration, can_update_integration)

    find_tags = staticmethod(lambda name: engine.find_integration(name).tags)
    change_tags = staticmethod(engine.change_integration_tags)


class IntegrationTokens(ConductorView):
    """GET /api/integrations/provider/{name}/metrics: get the number of tokens that each model has used."""

    @ApiOperation(
        "Get the tokens that the models of an integration have used", can_view_integration, reply=MapOf(IntegerOf(64))
    )
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        engine.find_integration(name)
        return Json(tokens_by_model(name))


class IntegrationModels(ConductorView):
    """GET /api/integrations/provider/{name}/integration: list the models of an integration."""

    @ApiOperation(
        "List the models of an integration",
        can_view_integration,
        reply=ArrayOf(serializers.MODEL),
        query={"activeOnly": bool},
    )
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        engine.find_integration(name)
        found = models_of([name], request.query.flag("activeOnly", default=False))
        return Json([serializers.model_document(row) for row in found.get(name, [])])


class IntegrationModelNames(ConductorView):
    """GET /api/integrations/provider/{name}/integration/all: list the names of the models."""

    @ApiOperation("List the names of an integration's models", can_view_integration, reply=texts)
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        engine.find_integration(name)
        return Json([row.name for row in models_of([name]).get(name, [])])


class ModelView(ConductorView):
    """Base class of the views of one model, whose path may have integration and model in either order."""

    @staticmethod
    def key(name: str, model: str) -> tuple[str, str]:
        """Return integration and model."""
        return engine.model_in_any_order(name, model)


class IntegrationModelOne(ModelView):
    """GET, POST, DELETE /api/integrations/provider/{name}/integration/{model}: get, save or delete a model."""

    @ApiOperation("Get a model of an integration", can_view_model, reply=serializers.MODEL)
    def get(self, request: ConductorRequest, name: str, model: str) -> HttpResponse:
        return Json(serializers.model_document(engine.find_model(*self.key(name, model))))

    @ApiOperation("Create or update a model of an integration", can_update_integration, body=serializers.MODEL_UPDATE)
    def post(self, request: ConductorRequest, name: str, model: str) -> None:
        sent = request_body.read_object(request)
        # Other fields keep their values if they are null; these can be removed.
        removed = {field: None for field in REMOVABLE_FIELDS if field in sent and sent[field] is None}
        document = read_request(sent, serializers.MODEL_UPDATE, "model") | removed
        engine.save_model(name, model, document, request.actor.name)

    @ApiOperation("Delete a model of an integration", can_update_model)
    def delete(self, request: ConductorRequest, name: str, model: str) -> None:
        engine.delete_model(*self.key(name, model), request.actor.name)


class IntegrationModelTags(ObjectTags):
    """GET, PUT, DELETE …/integration/{model}/tags: list, set or remove the tags of a model."""

    operations = tag_operations("a model", can_view_model, can_update_model)

    find_tags = staticmethod(lambda integration, model: engine.find_model(integration, model).tags)
    change_tags = staticmethod(engine.change_model_tags)

    @staticmethod
    def key(**path: str) -> tuple[str, ...]:
        """Return integration and model, which the path may have in either order."""
        return engine.model_in_any_order(path["name"], path["model"])


class IntegrationModelTokens(ModelView):
    """GET, POST …/integration/{model}/metrics: get the tokens that a model has used, or add those of other calls."""

    @ApiOperation("Get the tokens that a model has used", can_view_model, reply=IntegerOf(64))
    def get(self, request: ConductorRequest, name: str, model: str) -> HttpResponse:
        row = engine.find_model(*self.key(name, model))
        return Json(tokens_by_model(row.integration).get(row.name, 0))

    @ApiOperation("Add tokens to the usage of a model", can_update_model, body=IntegerOf(64))
    def post(self, request: ConductorRequest, name: str, model: str) -> None:
        tokens = request_body.read_json(request)
        if not isinstance(tokens, int) or isinstance(tokens, bool):
            raise Invalid("The request body must be a whole number of tokens.")
        add_tokens(*self.key(name, model), tokens, request.actor.name)


class IntegrationModelPrompts(ModelView):
    """GET …/integration/{model}/prompt: list the prompts that are bound to a model."""

    @ApiOperation("List the prompts of a model", can_view_model, reply=ArrayOf(serializers.PROMPT))
    def get(self, request: ConductorRequest, name: str, model: str) -> HttpResponse:
        row = engine.find_model(*self.key(name, model))
        return Json(serializers.readable_prompts(request.actor, prompts_bound_to(row.integration, row.name)))


class IntegrationModelPrompt(ModelView):
    """POST …/integration/{model}/prompt/{prompt}: bind a prompt to a model."""

    @ApiOperation("Bind a prompt to a model", can_bind_prompt)
    def post(self, request: ConductorRequest, name: str, model: str, prompt: str) -> None:
        bind_prompt(*self.key(name, model), prompt, request.actor.name)


class IntegrationKinds(ConductorView):
    """GET /api/integrations/def: list the kinds of integrations with their settings."""

    @ApiOperation("List the kinds of integrations", ALLOW_ALL, reply=ArrayOf(serializers.INTEGRATION_KIND))
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json([serializers.kind_document(kind) for kind in INTEGRATION_KINDS.values()])


class IntegrationKindOne(ConductorView):
    """GET /api/integrations/def/{name}: get one kind of integration, as a list."""

    @ApiOperation("Get a kind of integration", ALLOW_ALL, reply=ArrayOf(serializers.INTEGRATION_KIND))
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        kind = INTEGRATION_KINDS.get(name)
        return Json([serializers.kind_document(kind)] if kind else [])


class AllModels(ConductorView):
    """GET /api/integrations/all: list all models as `integration:model`."""

    @ApiOperation("List all models as integration:model", ALLOW_ALL, reply=texts, query=LIST_QUERY)
    def get(self, request: ConductorRequest) -> HttpResponse:
        names = [row.name for row in readable_integrations(request)]
        found = models_of(names, request.query.flag("activeOnly", default=False))
        return Json([str(model) for name in names for model in found.get(name, [])])


Document = dict[str, Any]


class ModelBudgets(ConductorView):
    """GET /api/model-budgets: list all budgets with what is spent of them. PUT: create or replace one.

    A budget is identified by `scope`, `name` and `period`. Amounts are integers in millionths of the currency.
    """

    @ApiOperation("List the budgets of models", ADMINISTRATORS_ONLY, reply=serializers.BUDGETS)
    def get(self, request: ConductorRequest) -> HttpResponse:
        states = budget_states(clock.now())
        return Json({"currency": conf.ai_currency, "budgets": [_state_document(state) for state in states]})

    @ApiOperation("Save a budget of models", ADMINISTRATORS_ONLY, reply=serializers.SAVED_BUDGET, body=BUDGET)
    def put(self, request: ConductorRequest) -> HttpResponse:
        limits, reason = parse_budget(request_body.read_object(request))
        return Json(budget_document(save_budget(limits, request.actor.name, reason)))


class ModelBudgetOne(ConductorView):
    """DELETE /api/model-budgets/{id}: delete a budget. The tasks that wait for it continue."""

    @ApiOperation("Delete a budget of models", ADMINISTRATORS_ONLY, reply=NO_CONTENT)
    def delete(self, request: ConductorRequest, budget_id: int) -> None:
        delete_budget(budget_id, request.actor.name)


def _state_document(state: BudgetState) -> Document:
    counted: Document = {}
    if state.spent is not None:
        counted = {
            "spentCost": state.spent.cost,
            "spentTokens": state.spent.tokens,
            "reservedCost": state.reserved.cost,
            "reservedTokens": state.reserved.tokens,
            "isSpent": state.is_spent,
        }
    ends = {} if state.room_at is None else {"periodEndsAt": state.room_at}
    return {**budget_document(state.budget), **counted, **ends, "waitingTasks": state.waiting}
