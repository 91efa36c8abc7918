"""Prompt templates: their placeholders, limits, and the models that they may be used with."""

import re
from collections.abc import Iterable

from .errors import ValidationError

PLACEHOLDER = re.compile(r"\$\{([^{}]+)\}")
MAX_NAME_LENGTH = 255
MAX_TEMPLATE_BYTES = 262_144
MAX_MODELS = 200


def placeholders(template: str) -> list[str]:
    """Return the names of the placeholders `${name}` in the order of their first use."""
    return list(dict.fromkeys(name.strip() for name in PLACEHOLDER.findall(template)))


def prompt_errors(name: str, template: str, models: Iterable[str]) -> list[ValidationError]:
    """Return the errors of a prompt."""
    errors = []
    if not name.strip() or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        errors.append(ValidationError("name", f"must have 1 to {MAX_NAME_LENGTH} printable characters", name[:300]))
    if not template.strip():
        errors.append(ValidationError("template", "must not be empty"))
    elif len(template.encode("utf-8", "surrogatepass")) > MAX_TEMPLATE_BYTES:
        errors.append(ValidationError("template", f"must have at most {MAX_TEMPLATE_BYTES:,} bytes"))
    models = list(models)
    if len(models) > MAX_MODELS or any(not 0 < len(model) <= 2 * MAX_NAME_LENGTH for model in models):
        errors.append(ValidationError("integrations", f"must be at most {MAX_MODELS} names such as openai:gpt-4o"))
    return errors


def permits_model(bound: Iterable[str], integration: str, model: str) -> bool:
    """Return True if a prompt with these bindings may be used with a model.

    A binding is `integration:model`, or one of the two names. Without bindings any model may be used.
    """
    bound = list(bound)
    return not bound or not {f"{integration}:{model}", integration, model}.isdisjoint(bound)
