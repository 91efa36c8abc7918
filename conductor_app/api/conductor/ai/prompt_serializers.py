"""Documents of prompts."""

from collections.abc import Iterable
from typing import Any

from ....access.access_types import PROMPT as PROMPT_TARGET
from ....access.access_types import READ
from ....access.conductor_auth import Actor
from ....core.document.checks.document_fields import FieldSpec, FieldTable, ObjectOf
from ....core.document.checks.values import IntegerOf, ListOf, read_mapping, read_number, read_text, texts
from ....models import Prompt
from ..definitions.tag_serializers import TAG
from .integration_serializers import AUDIT_FIELDS, audit_fields

NEW_PROMPT: FieldTable = (
    FieldSpec("name", read_text, ""),
    FieldSpec("version", IntegerOf(), 0),
    FieldSpec("description", read_text),
    FieldSpec("template", read_text, ""),
    FieldSpec("integrations", texts),
)
PROMPT: FieldTable = (
    *NEW_PROMPT,
    FieldSpec("variables", texts),
    FieldSpec("tags", ListOf(ObjectOf(TAG))),
    *AUDIT_FIELDS,
)
PROMPT_TEST: FieldTable = (
    FieldSpec("prompt", read_text, ""),
    FieldSpec("promptVariables", read_mapping, dict),
    FieldSpec("llmProvider", read_text, ""),
    FieldSpec("model", read_text, ""),
    FieldSpec("temperature", read_number),
    FieldSpec("topP", read_number),
    FieldSpec("stopWords", texts, list),
)


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
