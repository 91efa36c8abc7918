"""Queries about integrations, prompts, calls of models, and what the calls of runs and workflows have used."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Sum

from ...access.visibility import usable
from ...core.ai import OWN_VECTOR_DATABASES
from ...core.definition import INTEGRATION_INPUTS, is_name, walk
from ...definitions.models import WorkflowDefinition
from ...settings import conf
from ..models import Integration, IntegrationModel, ModelCall, ModelUsage, Prompt
from ..store import calls_below

MAX_MODELS = 1_000
MAX_WORKFLOWS = 500
NAMING_INPUTS = (*INTEGRATION_INPUTS, "mcpServer")


def list_integrations(category: str = "", active_only: bool = False) -> QuerySet[Integration]:
    """Return the integrations by name, without their secrets. `category`: a category, or empty for all."""
    rows = Integration.objects.defer("sealed").order_by("name")
    rows = rows.filter(category=category) if category else rows
    return rows.filter(is_enabled=True) if active_only else rows


def models_of(integrations: Iterable[str], active_only: bool = False) -> dict[str, list[IntegrationModel]]:
    """Return the models of integrations, by the name of the integration. Those without models are omitted."""
    rows = IntegrationModel.objects.filter(integration__in=list(integrations)).order_by("name")
    found: dict[str, list[IntegrationModel]] = {}
    for row in rows.filter(is_enabled=True) if active_only else rows:
        found.setdefault(row.integration, []).append(row)
    return found


def count_models(integrations: Iterable[str]) -> dict[str, int]:
    """Return the number of models of each integration that has some."""
    rows = IntegrationModel.objects.filter(integration__in=list(integrations)).order_by()
    return dict(rows.values_list("integration").annotate(count=Count("pk")))


def last_calls(integrations: Iterable[str]) -> dict[str, tuple[ModelCall, ModelCall | None]]:
    """Return the newest call and the newest failed call of each integration that has some, by its name."""
    newest = ModelCall.objects.filter(integration=OuterRef("name")).order_by("-started_at").values("pk")
    rows = Integration.objects.filter(name__in=list(integrations)).annotate(
        last=Subquery(newest[:1]), failed=Subquery(newest.filter(status="FAILED")[:1])
    )
    found = [row for row in rows.values_list("name", "last", "failed") if row[1]]
    columns = ("integration", "model", "run_id", "status", "started_at", "error")
    calls = ModelCall.objects.only(*columns).in_bulk({id for row in found for id in row[1:] if id})
    return {name: (calls[last], calls.get(failed)) for name, last, failed in found if last in calls}


def workflows_by_integration(rows: QuerySet[WorkflowDefinition]) -> dict[str, dict[WorkflowDefinition, list[str]]]:
    """Return the workflows among `rows` that name an integration, each with the references of the steps that do."""
    naming = Q()
    for name in NAMING_INPUTS:
        # The column is JSON text; only the steps decide.
        naming |= Q(document__contains=name)
    found: dict[str, dict[WorkflowDefinition, list[str]]] = {}
    for row in rows.filter(naming).order_by("name")[:MAX_WORKFLOWS]:
        for spot in walk(row.document.get("tasks")):
            inputs = spot.step.get("inputParameters")
            given = [inputs.get(each) for each in NAMING_INPUTS] if isinstance(inputs, dict) else ()
            for name in set(filter(is_name, given)):
                found.setdefault(name, {}).setdefault(row, []).append(spot.ref)
    return found


def newest_prompts() -> QuerySet[Prompt]:
    """Return the newest version of each prompt, by name."""
    newer = Prompt.objects.filter(name=OuterRef("name"), version__gt=OuterRef("version"))
    return Prompt.objects.filter(~Exists(newer)).order_by("name")


def versions_of(name: str) -> QuerySet[Prompt]:
    """Return all versions of a prompt, newest first."""
    return Prompt.objects.filter(name=name).order_by("-version")


def prompt_names() -> frozenset[str]:
    """Return the names of the prompts that the current actor may use."""
    return frozenset(usable(Prompt.objects.order_by()).values_list("name", flat=True).distinct())


def tokens_by_model(integration: str) -> dict[str, int]:
    """Return the tokens of the recorded calls of an integration, by model."""
    rows = ModelUsage.objects.filter(integration=integration).order_by()
    return dict(rows.values_list("model").annotate(tokens=Sum(F("prompt_tokens") + F("completion_tokens"))))


def prompts_bound_to(integration: str, model: str) -> list[Prompt]:
    """Return the newest versions of the prompts that are bound to a model."""
    bound = {f"{integration}:{model}", integration, model}
    # The column is JSON text; the exact comparison follows.
    rows = newest_prompts().filter(~Q(integrations=[]))
    return [row for row in rows if not bound.isdisjoint(row.integrations)]


def names_and_models() -> dict[str, frozenset[str]]:
    """Return the models of every usable integration, by its name, with those that need no row. Empty: any model."""
    names = [
        *usable(Integration.objects.all()).values_list("name", flat=True),
        *environment_integrations(),
        *OWN_VECTOR_DATABASES,
    ]
    found = models_of(names)
    return {name: frozenset(row.name for row in found.get(name, ())) for name in names}


def environment_integrations() -> dict[str, tuple[str, str]]:
    """Return API key and base URL of each integration that the server's environment defines, by its name."""
    given = {
        "openai": (conf.ai_openai_api_key, conf.ai_openai_base_url),
        "anthropic": (conf.ai_anthropic_api_key, conf.ai_anthropic_base_url),
        "ollama": ("", conf.ai_ollama_url),
    }
    return {name: (key, url) for name, (key, url) in given.items() if key or url}


def enabled_models() -> list[str]:
    """Return the enabled models of all integrations as `integration:model`."""
    enabled = Integration.objects.filter(is_enabled=True).values("name")
    rows = IntegrationModel.objects.filter(integration__in=enabled, is_enabled=True).order_by("integration", "name")
    return [str(row) for row in rows[:MAX_MODELS]]


def calls_of_attempt(attempt_id: str) -> list[ModelCall]:
    """Return the calls of an attempt without their replies, oldest first."""
    return list(ModelCall.objects.filter(attempt_id=attempt_id).defer("reply").order_by("started_at", "id"))


@dataclass(frozen=True, slots=True)
class UsageSums:
    """Sums over calls. `cost`: in millionths of the currency."""

    calls: int
    tokens: int
    cost: int


def usage_of_run(run_id: str, root_id: str) -> UsageSums:
    """Return what the calls of a run and of the runs below it have used. `root_id`: the run at the top of its tree."""
    return _sums(ModelCall.objects.filter(calls_below(run_id, root_id)), Count("pk"))


def usage_of_definition(name: str, since: int) -> UsageSums:
    """Return what the runs of a workflow have used since a time in epoch milliseconds, in full hours."""
    return _sums(ModelUsage.objects.filter(definition=name, hour__gte=since), Sum("calls"))


def _sums(rows: QuerySet[Any], number: Count | Sum) -> UsageSums:
    tokens = Sum(F("prompt_tokens") + F("completion_tokens"))
    sums = rows.aggregate(number=number, tokens=tokens, amount=Sum("cost"))
    return UsageSums(sums["number"] or 0, sums["tokens"] or 0, int(sums["amount"] or 0))
