"""Documents of integrations, prompts, budgets and usage. Secret settings are `***`."""

from collections.abc import Iterable
from typing import Any

from ...access.authentication import Actor
from ...access.permissions import PROMPT as PROMPT_TARGET
from ...access.permissions import READ
from ...core.ai import (
    AI_MODEL,
    CATEGORY_LABELS,
    PERIODS,
    SCOPES,
    IntegrationField,
    IntegrationKind,
    displayed_configuration,
)
from ...core.document.fields import (
    ChoiceOf,
    FieldSpec,
    FieldTable,
    IntegerOf,
    ListOf,
    NamedTable,
    ObjectOf,
    read_boolean,
    read_mapping,
    read_number,
    read_text,
    texts,
)
from ...core.errors import Invalid
from ...web.api.documents import LONG, TAG, fields_of_type
from ...web.api.requests import read_request
from ..commands.budgets import BudgetLimits
from ..models import Integration, IntegrationModel, ModelBudget, Prompt

INTEGRATION_UPDATE = NamedTable(
    "IntegrationUpdate",
    *fields_of_type(read_text, "type", "category", "description"),
    FieldSpec("enabled", read_boolean),
    FieldSpec("configuration", read_mapping),
)
NAMED_INTEGRATION = NamedTable("NamedIntegration", FieldSpec("name", read_text), *INTEGRATION_UPDATE)
MODEL_UPDATE = NamedTable(
    "IntegrationApiUpdate",
    FieldSpec("description", read_text),
    FieldSpec("enabled", read_boolean),
    FieldSpec("configuration", read_mapping),
    FieldSpec("maxTokens", IntegerOf(64)),
    FieldSpec("frequency", read_text),
    FieldSpec("inputPrice", IntegerOf(64)),
    FieldSpec("outputPrice", IntegerOf(64)),
)
AUDIT_FIELDS: FieldTable = (
    FieldSpec("createdBy", read_text),
    FieldSpec("updatedBy", read_text),
    *fields_of_type(IntegerOf(64), "createTime", "updateTime", "createdOn", "updatedOn"),
)
MODEL = NamedTable(
    "IntegrationApi",
    FieldSpec("api", read_text),
    FieldSpec("integrationName", read_text),
    *MODEL_UPDATE,
    FieldSpec("tags", ListOf(ObjectOf(TAG))),
    *AUDIT_FIELDS,
)
INTEGRATION = NamedTable(
    "Integration",
    *NAMED_INTEGRATION,
    FieldSpec("modelsCount", IntegerOf()),
    FieldSpec("tags", ListOf(ObjectOf(TAG))),
    FieldSpec("apis", ListOf(ObjectOf(MODEL))),
    *AUDIT_FIELDS,
)
INTEGRATION_FIELD = NamedTable(
    "IntegrationDefFormField",
    *fields_of_type(read_text, "fieldName", "fieldType", "label", "description"),
    FieldSpec("optional", read_boolean),
    FieldSpec("defaultValue", read_text),
)
INTEGRATION_KIND = NamedTable(
    "IntegrationDef",
    *fields_of_type(read_text, "name", "type", "category", "categoryLabel", "description"),
    FieldSpec("enabled", read_boolean),
    FieldSpec("tags", texts),
    FieldSpec("configuration", ListOf(ObjectOf(INTEGRATION_FIELD))),
)
NEW_PROMPT = NamedTable(
    "NewMessageTemplate",
    FieldSpec("name", read_text, ""),
    FieldSpec("version", IntegerOf(), 0),
    FieldSpec("description", read_text),
    FieldSpec("template", read_text, ""),
    FieldSpec("integrations", texts),
)
PROMPT = NamedTable(
    "MessageTemplate",
    *NEW_PROMPT,
    FieldSpec("variables", texts),
    FieldSpec("tags", ListOf(ObjectOf(TAG))),
    *AUDIT_FIELDS,
)
PROMPT_TEST = NamedTable(
    "PromptTemplateTestRequest",
    FieldSpec("prompt", read_text, ""),
    FieldSpec("promptVariables", read_mapping, dict),
    FieldSpec("llmProvider", read_text, ""),
    FieldSpec("model", read_text, ""),
    FieldSpec("temperature", read_number),
    FieldSpec("topP", read_number),
    FieldSpec("stopWords", texts, list),
)
BUDGET = NamedTable(
    "ModelBudget",
    FieldSpec("scope", ChoiceOf(*SCOPES)),
    FieldSpec("name", read_text, ""),
    FieldSpec("period", ChoiceOf(*PERIODS)),
    FieldSpec("maxCost", IntegerOf(64)),
    FieldSpec("maxTokens", IntegerOf(64)),
    FieldSpec("reason", read_text, ""),
)
SAVED_BUDGET = NamedTable(
    "SavedModelBudget",
    *(field for field in BUDGET if field.name != "reason"),
    *fields_of_type(LONG, "id", "updatedAt"),
    FieldSpec("updatedBy", read_text),
    FieldSpec("isOfIntegration", read_boolean),
)
BUDGET_STATE = NamedTable(
    "ModelBudgetState",
    *SAVED_BUDGET,
    *fields_of_type(LONG, "spentCost", "spentTokens", "reservedCost", "reservedTokens", "periodEndsAt",
                    "waitingTasks"),
    FieldSpec("isSpent", read_boolean),
)  # fmt: skip
BUDGETS = NamedTable(
    "ModelBudgets", FieldSpec("currency", read_text), FieldSpec("budgets", ListOf(ObjectOf(BUDGET_STATE)))
)


def integration_document(row: Integration, models: int | list[IntegrationModel]) -> dict[str, Any]:
    """Return an Integration. `models`: its models, or their number."""
    return {
        "name": row.name,
        "type": row.kind,
        "category": row.category,
        "description": row.description,
        "enabled": row.is_enabled,
        "configuration": displayed_configuration(row.configuration),
        "modelsCount": len(models) if isinstance(models, list) else models,
        "tags": row.tags,
        **({"apis": [model_document(model) for model in models]} if isinstance(models, list) else {}),
        **audit_fields(row),
    }


def model_document(row: IntegrationModel) -> dict[str, Any]:
    """Return an IntegrationApi."""
    optional = {
        "maxTokens": row.max_tokens,
        "frequency": row.frequency or None,
        "inputPrice": row.input_price,
        "outputPrice": row.output_price,
    }
    return {
        "api": row.name,
        "integrationName": row.integration,
        "description": row.description,
        "enabled": row.is_enabled,
        "configuration": displayed_configuration(row.configuration),
        "tags": row.tags,
        **{name: value for name, value in optional.items() if value is not None},
        **audit_fields(row),
    }


def audit_fields(row: Any) -> dict[str, Any]:
    """Return author and times of an object. Some SDKs read the times by their older names, `createdOn`, `updatedOn`."""
    people = {"createdBy": row.created_by, "updatedBy": row.updated_by}
    times = {"createTime": row.created_at, "updateTime": row.updated_at}
    times |= {"createdOn": row.created_at, "updatedOn": row.updated_at}
    return times | {name: person for name, person in people.items() if person}


def kind_document(kind: IntegrationKind) -> dict[str, Any]:
    """Return an IntegrationDef: the settings of a kind of integration."""
    return {
        "name": kind.name,
        "type": kind.name,
        "category": kind.category,
        "categoryLabel": CATEGORY_LABELS.get(kind.category, kind.category),
        "description": kind.label,
        "enabled": True,
        "tags": [],
        "configuration": [_field_document(field, kind) for field in kind.fields],
    }


def _field_document(field: IntegrationField, kind: IntegrationKind) -> dict[str, Any]:
    is_address = field.name == "base_url" and kind.category == AI_MODEL
    return {
        "fieldName": field.name,
        "fieldType": "PASSWORD" if field.is_secret else "TEXT",
        "label": field.label,
        "description": "",
        "optional": field.is_optional,
        "defaultValue": field.default or (kind.base_url if is_address else ""),
    }


def prompt_document(row: Prompt) -> dict[str, Any]:
    """Return a MessageTemplate."""
    return {
        "name": row.name,
        "version": row.version,
        "description": row.description,
        "template": row.template,
        "variables": row.variables,
        "integrations": row.integrations,
        "tags": row.tags,
        **audit_fields(row),
    }


def readable_prompts(actor: Actor, rows: Iterable[Prompt]) -> list[dict[str, Any]]:
    """Return the documents of the prompts that the actor may read."""
    return [prompt_document(row) for row in rows if actor.permissions.allows(READ, PROMPT_TARGET, row.name)]


def parse_budget(document: dict[str, Any]) -> tuple[BudgetLimits, str]:
    """Return a budget and the reason of a request."""
    fields = read_request(document, BUDGET, "saveBudget.budget")
    for name in ("scope", "period"):
        if not fields.get(name):
            raise Invalid(f"The field '{name}' of a budget is missing.")
    limits = BudgetLimits(
        fields["scope"], fields["name"] or "", fields["period"], fields.get("maxCost"), fields.get("maxTokens")
    )
    return limits, (fields["reason"] or "")[:500]


def budget_document(budget: ModelBudget) -> dict[str, Any]:
    """Return a budget as clients see it."""
    limits = {"maxCost": budget.max_cost, "maxTokens": budget.max_tokens}
    return {
        "id": budget.pk,
        "scope": budget.scope,
        "name": budget.name,
        "period": budget.period,
        **{name: value for name, value in limits.items() if value is not None},
        "isOfIntegration": bool(budget.origin),
        "updatedAt": budget.updated_at,
        "updatedBy": budget.updated_by,
    }
