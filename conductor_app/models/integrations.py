"""Integrations with providers of models, vector indexes and MCP servers, and the models or indexes of each."""

from django.db import models

from .fields import Authored, DocumentField
from .secrets import NamedValue


class Integration(NamedValue):
    """A named account at a provider.

    `category`: AI_MODEL, VECTOR_DB, MCP or another one of Conductor's. `kind`: the type of the provider, such as
    `openai`. `configuration`: the settings, with `***` for secret ones. `sealed`: those, as an encrypted JSON object.
    """

    category = models.CharField(max_length=32)
    kind = models.CharField(max_length=64)
    description = models.TextField(default="", blank=True)
    is_enabled = models.BooleanField(default=True)
    configuration = DocumentField(default=dict)
    sealed = models.TextField(default="", blank=True)

    class Meta(NamedValue.Meta):
        permissions = [("execute_integration", "Can use integrations in definitions")]


class IntegrationModel(Authored):
    """A model of an AI provider, or an index of a vector database, that an integration offers.

    `input_price` and `output_price`: in millionths of the currency per 1,000 tokens. `max_tokens`: the limit of tokens
    per `frequency` (daily, weekly or monthly), or null for no limit.
    """

    integration = models.CharField(max_length=255)
    name = models.CharField(max_length=255)
    description = models.TextField(default="", blank=True)
    is_enabled = models.BooleanField(default=True)
    configuration = DocumentField(default=dict)
    input_price = models.BigIntegerField(null=True, blank=True)
    output_price = models.BigIntegerField(null=True, blank=True)
    max_tokens = models.BigIntegerField(null=True, blank=True)
    frequency = models.CharField(max_length=16, default="", blank=True)
    tags = DocumentField(default=list)

    class Meta:
        ordering = ["integration", "name"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="one_model_per_integration_and_name", fields=["integration", "name"])
        ]

    def __str__(self) -> str:
        return f"{self.integration}:{self.name}"


class Prompt(Authored):
    """One version of a prompt template.

    `integrations`: the models it may be used with, as `integration:model`; empty for any. `variables`: the names of its
    placeholders.
    """

    name = models.CharField(max_length=255)
    version = models.IntegerField(default=1)
    template = models.TextField()
    description = models.TextField(default="", blank=True)
    variables = DocumentField(default=list)
    integrations = DocumentField(default=list)
    tags = DocumentField(default=list)

    class Meta:
        ordering = ["name", "-version"]
        permissions = [("execute_prompt", "Can use prompts in definitions")]
        constraints = [models.UniqueConstraint(name="one_prompt_per_name_and_version", fields=["name", "version"])]

    def __str__(self) -> str:
        return f"{self.name} version {self.version}"
