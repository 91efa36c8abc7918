"""The settings with which a worker calls a model: of an integration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import Invalid
from ...models import Integration, IntegrationModel


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
        UnknownIntegration: when the integration is missing or disabled.
    """
    row = Integration.objects.filter(pk=integration, is_enabled=True).first()
    if row is None:
        raise UnknownIntegration(f"There is no integration named {integration[:300]!r}.")
    own = IntegrationModel.objects.filter(integration=integration, name=model).first()
    return ModelSettings(
        integration,
        row.kind,
        row.category,
        model,
        "",
        str(row.configuration.get("base_url", "")),
        row.configuration,
        {},
        own.input_price if own else None,
        own.output_price if own else None,
    )
