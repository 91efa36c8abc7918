"""Forms of an integration and of its models. Secrets are never displayed again."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import conf
from ...core.integrations import AI_MODEL, INTEGRATION_KINDS, MCP, VECTOR_DB, IntegrationField
from ...core.masking import REDACTED
from ...insight.ai.amounts import format_amount
from ...models import Integration, IntegrationModel
from ..json_editor import JsonDocumentField, format_json

KIND_LABELS = {
    "openai": gettext_lazy("OpenAI or compatible"),
    "anthropic": gettext_lazy("Anthropic"),
    "azure_openai": gettext_lazy("Azure OpenAI"),
    "ollama": gettext_lazy("Ollama"),
    "litellm": gettext_lazy("LiteLLM"),
    "mistral": gettext_lazy("Mistral"),
    "Grok": gettext_lazy("Grok"),
    "perplexity": gettext_lazy("Perplexity"),
    "huggingface": gettext_lazy("Hugging Face"),
    "pgvectordb": gettext_lazy("Vector table of this server"),
    "mcp": gettext_lazy("MCP server"),
}
KIND_TEXTS = {
    "openai": gettext_lazy("OpenAI, or any server with the same API: set its base URL."),
    "anthropic": gettext_lazy("Claude models."),
    "azure_openai": gettext_lazy("OpenAI models in an Azure resource."),
    "ollama": gettext_lazy("Models on your own machines, without a key."),
    "litellm": gettext_lazy("A LiteLLM proxy."),
    "mistral": gettext_lazy("Models of Mistral AI."),
    "Grok": gettext_lazy("Grok models of xAI."),
    "perplexity": gettext_lazy("Sonar models, which search the web."),
    "huggingface": gettext_lazy("Models of Hugging Face's inference providers."),
    "pgvectordb": gettext_lazy("Embeddings in this server's database, without another service."),
    "mcp": gettext_lazy("Tools of a server that speaks the Model Context Protocol."),
}
CATEGORY_LABELS = {
    AI_MODEL: gettext_lazy("AI models"),
    VECTOR_DB: gettext_lazy("Vector databases"),
    MCP: gettext_lazy("MCP servers"),
}
FIELD_LABELS = {
    "api_key": gettext_lazy("API key"),
    "base_url": gettext_lazy("Base URL"),
    "endpoint": gettext_lazy("Endpoint"),
    "deployment_name": gettext_lazy("Deployment"),
    "api_version": gettext_lazy("API version"),
    "dimensions": gettext_lazy("Dimensions"),
    "distanceMetric": gettext_lazy("Distance metric"),
    "url": gettext_lazy("URL"),
    "authorization": gettext_lazy("Authorization header"),
}
FREQUENCY_CHOICES = [
    ("daily", gettext_lazy("per day")),
    ("weekly", gettext_lazy("per week")),
    ("monthly", gettext_lazy("per month")),
]
PRICE_UNIT = 1_000
"""A price for a million tokens, in millionths of the currency for a thousand tokens."""


def kind_label(kind: str) -> str:
    """Return the label of a kind; of an unknown one, its name."""
    return str(KIND_LABELS.get(kind, kind))


def _reason_field() -> forms.CharField:
    return forms.CharField(required=False, max_length=500, label=_("Reason"), help_text=_("Recorded in the audit log."))


class IntegrationForm(forms.Form):
    """The fields of one kind of integration. Without a row, it creates one."""

    name = forms.CharField(
        max_length=255,
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("AI steps refer to it by this name, in llmProvider or vectorDB."),
    )
    description = forms.CharField(max_length=2_000, required=False, label=gettext_lazy("Description"))
    is_enabled = forms.BooleanField(required=False, initial=True, label=gettext_lazy("Enabled"))

    def __init__(self, kind: str, data: Mapping[str, Any] | None = None, row: Integration | None = None) -> None:
        self.kind, self.row = kind, row
        known = INTEGRATION_KINDS.get(kind)
        self.setting_fields = known.fields if known else ()
        super().__init__(data, initial=self._initial_values())
        if row is not None:
            del self.fields["name"]
        for field in self.setting_fields:
            self.fields[field.name] = self._setting_field(field)
        self.fields["others"] = JsonDocumentField(
            required=False,
            label=_("Further settings"),
            help_text=_("As JSON. Settings that look secret, such as api_key, are stored encrypted and shown as ***."),
        )
        self.fields["others"].widget.attrs["rows"] = 5
        self.fields["reason"] = _reason_field()

    def _initial_values(self) -> dict[str, Any]:
        if self.row is None:
            return {field.name: field.default for field in self.setting_fields if field.default}
        stored = self.row.configuration
        names = {field.name for field in self.setting_fields}
        others = {name: value for name, value in stored.items() if name not in names}
        shown = {name: value for name, value in stored.items() if name in names and value != REDACTED}
        text = format_json(others) if others else ""
        return {"description": self.row.description, "is_enabled": self.row.is_enabled, **shown, "others": text}

    def _is_kept(self, field: IntegrationField) -> bool:
        return self.row is not None and self.row.configuration.get(field.name) == REDACTED

    def _setting_field(self, field: IntegrationField) -> forms.CharField:
        known = INTEGRATION_KINDS[self.kind]
        text = ""
        widget: forms.Widget = forms.TextInput()
        if field.is_secret:
            widget = forms.PasswordInput(attrs={"autocomplete": "new-password"})
            text = _("Stored encrypted. Leave empty to keep it.") if self._is_kept(field) else _("Stored encrypted.")
        elif field.name == "base_url" and field.is_optional:
            address = known.base_url
            text = (
                _("Leave empty for %(address)s.") % {"address": address}
                if address
                else _("Leave empty for the provider's own address.")
            )
        return forms.CharField(
            required=not field.is_optional and not self._is_kept(field),
            max_length=4_000,
            label=str(FIELD_LABELS.get(field.name, field.label)),
            help_text=text,
            widget=widget,
        )

    def document(self) -> dict[str, Any]:
        """Return the integration that was entered. A secret that was left empty is `***`."""
        configuration = dict(self.cleaned_data["others"] or {})
        for field in self.setting_fields:
            if value := self.cleaned_data[field.name]:
                configuration[field.name] = value
            elif field.is_secret and self._is_kept(field):
                configuration[field.name] = REDACTED
        known = INTEGRATION_KINDS.get(self.kind)
        return {
            "type": self.kind,
            "category": self.row.category if self.row else known.category if known else None,
            "description": self.cleaned_data["description"],
            "enabled": self.cleaned_data["is_enabled"],
            "configuration": configuration,
        }


class ModelForm(forms.Form):
    """A model of an integration, or an index of a vector database. Without a row, it creates one."""

    name = forms.CharField(
        max_length=255, label=gettext_lazy("Name"), help_text=gettext_lazy("As the provider names it.")
    )
    description = forms.CharField(max_length=2_000, required=False, label=gettext_lazy("Description"))
    is_enabled = forms.BooleanField(required=False, initial=True, label=gettext_lazy("Enabled"))
    input_price = forms.DecimalField(
        required=False,
        min_value=0,
        max_value=1_000_000,
        max_digits=10,
        decimal_places=3,
        label=gettext_lazy("Input price"),
    )
    output_price = forms.DecimalField(
        required=False,
        min_value=0,
        max_value=1_000_000,
        max_digits=10,
        decimal_places=3,
        label=gettext_lazy("Output price"),
    )
    max_tokens = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=10**15,
        label=gettext_lazy("Token limit"),
        help_text=gettext_lazy("AI steps wait when the model has used this many tokens. Leave empty for no limit."),
    )
    frequency = forms.ChoiceField(choices=FREQUENCY_CHOICES, label=gettext_lazy("Limit period"))

    def __init__(self, data: Mapping[str, Any] | None = None, row: IntegrationModel | None = None) -> None:
        self.row = row
        super().__init__(data, initial=_model_values(row) if row else {})
        if row is not None:
            del self.fields["name"]
        price_unit = {"currency": conf.ai_currency}
        self.fields["input_price"].help_text = _("In %(currency)s for a million tokens.") % price_unit
        self.fields["output_price"].help_text = (
            _("In %(currency)s for a million tokens. Without prices, calls count as free.") % price_unit
        )
        self.fields["reason"] = _reason_field()

    def document(self) -> dict[str, Any]:
        """Return the model that was entered."""
        cleaned = self.cleaned_data
        return {
            "description": cleaned["description"],
            "enabled": cleaned["is_enabled"],
            "inputPrice": _stored_price(cleaned["input_price"]),
            "outputPrice": _stored_price(cleaned["output_price"]),
            "maxTokens": cleaned["max_tokens"],
            "frequency": cleaned["frequency"],
        }


def _model_values(row: IntegrationModel) -> dict[str, Any]:
    return {
        "description": row.description,
        "is_enabled": row.is_enabled,
        "input_price": displayed_price(row.input_price),
        "output_price": displayed_price(row.output_price),
        "max_tokens": row.max_tokens,
        "frequency": row.frequency or "daily",
    }


def _stored_price(price: Decimal | None) -> int | None:
    return None if price is None else int(price * PRICE_UNIT)


def displayed_price(stored: int | None) -> Decimal | None:
    """Return a stored price as the price of a million tokens."""
    return None if stored is None else Decimal(stored) / PRICE_UNIT


def price_text(stored: int | None) -> str:
    """Return a stored price for pages, with two decimals or as many as it has. Empty without a price."""
    price = displayed_price(stored)
    if price is None:
        return ""
    decimals = max(2, -int(price.normalize().as_tuple().exponent))
    return format_amount(float(price), decimals)
