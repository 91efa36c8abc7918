"""The settings of calls of models: a stand-in until the branch of integrations and prompts is merged."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ... import conf
from ...core.errors import Invalid


class UnknownIntegration(Invalid):
    """There is no such integration or model, or it is disabled."""


@dataclass(frozen=True)
class ModelSettings:
    """The settings of a model. Its representation contains no secrets."""

    integration: str
    kind: str
    category: str
    model: str
    api_key: str = field(repr=False)
    base_url: str
    configuration: Mapping[str, Any]
    secrets: Mapping[str, str] = field(repr=False)
    input_price: int | None = None
    output_price: int | None = None


def model_settings(integration: str, model: str) -> ModelSettings:
    """Return the settings for calls of a model.

    Raises:
        UnknownIntegration: when the integration is missing.
    """
    given = {
        "openai": (conf.ai_openai_api_key, conf.ai_openai_base_url),
        "anthropic": (conf.ai_anthropic_api_key, conf.ai_anthropic_base_url),
        "ollama": ("", conf.ai_ollama_url),
    }
    key, url = given.get(integration, ("", ""))
    if not (key or url):
        raise UnknownIntegration(f"There is no integration named {integration[:300]!r}. Create it on the page AI.")
    return ModelSettings(integration, integration, "AI_MODEL", model, key, url, {}, {"api_key": key} if key else {})


def integration_kind(name: str) -> str | None:
    """Return the kind of an integration, or None if there is none of this name."""
    return name if name in ("openai", "anthropic", "ollama") else None
