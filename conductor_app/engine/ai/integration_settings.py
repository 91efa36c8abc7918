"""The settings with which a worker calls a model: of an integration, or of the server's environment."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...access import vault
from ...core.errors import Invalid
from ...core.integrations import (
    AI_MODEL,
    API_KEY_NAMES,
    BASE_URL_NAMES,
    INTEGRATION_KINDS,
    first_setting,
    without_secrets,
)
from ...insight.ai.integrations import environment_integrations
from ...models import Integration, IntegrationModel
from .integrations import read_secrets


class UnknownIntegration(Invalid):
    """There is no such integration or model, or it is disabled."""


@dataclass(frozen=True)
class ModelSettings:
    """The settings of a model. Its representation contains no secrets.

    `base_url`: empty for the provider's own. `configuration`: that of the integration and of the model, without
    secrets. `input_price`, `output_price`: millionths of the currency per 1,000 tokens, or None without a price.
    """

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

    An integration without any models permits all models of its provider.

    Raises:
        UnknownIntegration: when the integration or the model is missing or disabled.
    """
    row = Integration.objects.filter(pk=integration).first()
    if row is None:
        return _environment_settings(integration, model)
    if not row.is_enabled:
        raise UnknownIntegration(f"The integration {integration} is disabled. Enable it on its page.")
    own = _enabled_model(integration, model)
    secrets = _decrypt_secrets(row)
    configuration = {**without_secrets(row.configuration), **(own.configuration if own else {})}
    kind = INTEGRATION_KINDS.get(row.kind)
    base_url = first_setting({**configuration, **secrets}, BASE_URL_NAMES)
    return ModelSettings(
        integration=integration,
        kind=row.kind,
        category=row.category,
        model=model,
        api_key=first_setting(secrets, API_KEY_NAMES),
        base_url=base_url or (kind.base_url if kind else ""),
        configuration=configuration,
        secrets=secrets,
        input_price=own.input_price if own else None,
        output_price=own.output_price if own else None,
    )


def _environment_settings(integration: str, model: str) -> ModelSettings:
    found = environment_integrations().get(integration)
    if found is None:
        raise UnknownIntegration(
            f"There is no integration named {integration[:300]!r}. Create it on the page AI → Integrations, or use the "
            "name of an existing one."
        )
    key, url = found
    if integration == "ollama" and not url.rstrip("/").endswith("/v1"):
        url = f"{url.rstrip('/')}/v1"
    secrets = {"api_key": key} if key else {}
    return ModelSettings(integration, integration, AI_MODEL, model, key, url, {}, secrets)


def _enabled_model(integration: str, model: str) -> IntegrationModel | None:
    rows = list(IntegrationModel.objects.filter(integration=integration).order_by("name"))
    found = next((row for row in rows if row.name == model), None)
    if found is None and rows:
        offered = ", ".join(row.name for row in rows[:10])
        raise UnknownIntegration(
            f"The integration {integration} has no model named {model[:300]!r}. It has: {offered}. Add the model on "
            "the page of the integration."
        )
    if found is not None and not found.is_enabled:
        raise UnknownIntegration(
            f"The model {integration}:{model} is disabled. Enable it on the page of the integration."
        )
    return found


def _decrypt_secrets(row: Integration) -> dict[str, str]:
    try:
        secrets = read_secrets(row)
    except vault.DecryptionFailed:
        raise UnknownIntegration(
            f"No key of this server decrypts the secrets of the integration {row.name}. Enter them again on its page."
        ) from None
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in secrets.items()}
