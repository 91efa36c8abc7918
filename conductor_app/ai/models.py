"""Tables of integrations, prompts, calls of models, budgets and vectors.

Amounts are integers in millionths of the currency of the prices (`AI_CURRENCY`).
"""

from typing import Any, ClassVar

from django.core.checks import CheckMessage
from django.db import models
from django.db.models import Q
from django.db.models.functions import Length

from ..access.models import NamedValue
from ..db.fields import Authored, DocumentField, IdField, MomentField

L2, COSINE, INNER_PRODUCT = METRICS = ("l2", "cosine", "inner_product")
"""The metrics of distance. A smaller value is nearer; the inner product is negative for that reason."""


class Integration(NamedValue):
    """A named account at a provider.

    `category`: AI_MODEL, VECTOR_DB, MCP or another one of Conductor's. `kind`: the type of the provider, such as
    `openai`. `configuration`: the settings, with `***` for secret ones. `sealed`: those, as an encrypted JSON object.
    `last_test`: the result of the last test of the connection: `at`, `by`, `isSuccess`, `text` and `tookMs`.
    """

    access_names: ClassVar[dict[str, str]] = {"INTEGRATION_PROVIDER": "name"}

    category = models.CharField(max_length=32)
    kind = models.CharField(max_length=64)
    description = models.TextField(default="", blank=True)
    is_enabled = models.BooleanField(default=True)
    configuration = DocumentField(default=dict)
    sealed = models.TextField(default="", blank=True)
    last_test = DocumentField(null=True, blank=True)

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

    access_names: ClassVar[dict[str, str]] = {"PROMPT": "name"}

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


class ModelCall(models.Model):
    """One paid call of a model. Its row is committed before the request is sent.

    `request_key`: identifies the attempt and the content of the request, so that a repeated attempt finds the stored
    reply instead of paying again. `content_key`: the same without the attempt, so that a retry finds it. `run_id`:
    empty for a trial on a page. `root_id`: the run at the top of the tree of the run. `status`: STARTED, REPLIED,
    FAILED, or LOST if the process ended before the reply. `reply`: the reply as the worker needs it, until the attempt
    has reported. `first_token_ms`: the time until the first token of a streamed reply. `reused_at`: when a repeated
    attempt or a retry used the stored reply. `reserved_cost`, `reserved_tokens`: what budgets reserve for the call
    while it is open.
    """

    id = IdField(primary_key=True)
    request_key = models.CharField(max_length=64)
    content_key = models.CharField(max_length=64, default="", db_default="", blank=True)
    run_id = IdField()
    root_id = IdField(default="", db_default="", blank=True)
    task_id = IdField()
    attempt_id = IdField()
    reference = models.CharField(max_length=255)
    task_type = models.CharField(max_length=64)
    definition = models.CharField(max_length=255)
    version = models.IntegerField()
    caller = models.CharField(max_length=320, default="", blank=True)
    integration = models.CharField(max_length=255)
    model = models.CharField(max_length=255)
    prompt = models.CharField(max_length=255, default="", blank=True)
    status = models.CharField(max_length=8)
    prompt_tokens = models.BigIntegerField(default=0)
    completion_tokens = models.BigIntegerField(default=0)
    cost = models.BigIntegerField(default=0)
    reserved_cost = models.BigIntegerField(default=0, db_default=0)
    reserved_tokens = models.BigIntegerField(default=0, db_default=0)
    started_at = MomentField()
    ended_at = MomentField(null=True)
    first_token_ms = models.IntegerField(null=True)
    reused_at = MomentField(null=True)
    finish_reason = models.CharField(max_length=32, default="", blank=True)
    error = models.TextField(default="", blank=True)
    reply = DocumentField(null=True)

    class Meta:
        # Pages show calls to those who may view the run.
        default_permissions = ()
        indexes = [
            models.Index(name="model_call_by_run", fields=["run_id", "started_at"]),
            models.Index(name="model_call_by_root", fields=["root_id"]),
            models.Index(name="model_call_by_request", fields=["request_key"]),
            models.Index(name="model_call_by_attempt", fields=["attempt_id"]),
            models.Index(name="model_call_by_time", fields=["started_at"]),
            models.Index(name="model_call_by_integration", fields=["integration", "-started_at"]),
            models.Index(name="model_call_failed", fields=["integration", "-started_at"], condition=Q(status="FAILED")),
            models.Index(name="model_call_with_reply", fields=["started_at"], condition=Q(reply__isnull=False)),
            models.Index(
                name="model_call_reply_of_task", fields=["task_id", "content_key"], condition=Q(reply__isnull=False)
            ),
            models.Index(name="model_call_open", fields=["started_at"], condition=Q(status="STARTED"), include=["id"]),
        ]

    @classmethod
    def check(cls, **kwargs: Any) -> list[CheckMessage]:
        """Check the model, without a warning that SQLite has no use for the column that an index includes."""
        return [each for each in super().check(**kwargs) if each.id != "models.W040"]

    def __str__(self) -> str:
        return f"{self.integration}:{self.model} for {self.run_id}"


class ModelUsage(models.Model):
    """The calls, tokens, cost and total duration of one hour, per model, definition and caller."""

    hour = MomentField()
    integration = models.CharField(max_length=255)
    model = models.CharField(max_length=255)
    definition = models.CharField(max_length=255)
    caller = models.CharField(max_length=320, default="", blank=True)
    calls = models.BigIntegerField(default=0)
    failures = models.BigIntegerField(default=0)
    prompt_tokens = models.BigIntegerField(default=0)
    completion_tokens = models.BigIntegerField(default=0)
    cost = models.BigIntegerField(default=0)
    duration_ms = models.BigIntegerField(default=0)

    class Meta:
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                name="one_usage_per_hour", fields=["hour", "integration", "model", "definition", "caller"]
            )
        ]
        indexes = [models.Index(name="model_usage_by_definition", fields=["definition", "hour"])]

    def __str__(self) -> str:
        return f"{self.integration}:{self.model} of {self.definition}"


class ModelBudget(models.Model):
    """A limit of cost or tokens for calls of models.

    `scope`: RUN (each run of the definition `name`, with the runs below it), DEFINITION, CALLER, INTEGRATION, or MODEL
    (`integration:model`). An empty `name` with the scope RUN applies to the runs of all definitions, and the scope ALL
    has no name. `period`: RUN for the life of a run, or DAY, WEEK, MONTH in UTC. A limit of null is none. `origin`:
    `integration` for the limit of a model that its integration sets, otherwise empty.

    `spent_cost`, `spent_tokens`: since `period_start`, in epoch milliseconds. A budget of runs counts nothing here: its
    use is that of the calls of each run and of those below it.
    """

    scope = models.CharField(max_length=16)
    name = models.CharField(max_length=320, default="", blank=True)
    period = models.CharField(max_length=8)
    max_cost = models.BigIntegerField(null=True, blank=True)
    max_tokens = models.BigIntegerField(null=True, blank=True)
    origin = models.CharField(max_length=16, default="", blank=True)
    period_start = MomentField(default=0)
    spent_cost = models.BigIntegerField(default=0)
    spent_tokens = models.BigIntegerField(default=0)
    updated_at = MomentField(default=0)
    updated_by = models.CharField(max_length=255, default="", blank=True)

    class Meta:
        ordering = ["scope", "name", "period", "origin"]
        default_permissions = ("view", "change")
        constraints = [
            models.UniqueConstraint(
                name="one_budget_per_scope_name_and_period", fields=["scope", "name", "period", "origin"]
            )
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.name} per {self.period}"


class BudgetHold(models.Model):
    """An attempt that waits because a budget has no room. The attempt is not visible to claims until `until`.

    `root_id`: the run at the top of the tree of the run. `waits_for_calls`: True if the budget has room again when an
    open call ends, otherwise it is spent. `facts`: the budget as the pages name it, and what was spent when the attempt
    was held (`tasks/gates.py`). `allowed_by`: the operator who allowed the attempt one call beyond the budget.
    """

    attempt_id = IdField(primary_key=True)
    run_id = IdField()
    root_id = IdField(default="", db_default="", blank=True)
    budget = models.ForeignKey(ModelBudget, on_delete=models.SET_NULL, null=True, db_constraint=False)
    waits_for_calls = models.BooleanField(default=False, db_default=False)
    facts = DocumentField(default=dict)
    held_at = MomentField()
    until = MomentField()
    allowed_by = models.CharField(max_length=255, default="", blank=True)

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(name="budget_hold_by_run", fields=["run_id"]),
            models.Index(name="budget_hold_by_end", fields=["until"]),
            models.Index(name="budget_hold_for_calls", fields=["held_at"], condition=Q(waits_for_calls=True)),
        ]

    def __str__(self) -> str:
        return f"{self.attempt_id} until {self.until}"


class VectorDocument(models.Model):
    """A text, or a part of one, with its embedding.

    `database`: the name of the integration. `embedding`: little-endian 32-bit floats. `norm`: its Euclidean norm.
    `parent_id`: the document of which this one is a part.
    """

    database = models.CharField(max_length=255)
    index = models.CharField(max_length=255)
    namespace = models.CharField(max_length=255)
    document_id = models.CharField(max_length=255)
    parent_id = models.CharField(max_length=255, default="", blank=True)
    text = models.TextField(default="", blank=True)
    metadata = DocumentField(default=dict)
    embedding = models.BinaryField()
    norm = models.FloatField()
    updated_at = MomentField()

    class Meta:
        default_permissions = ("view", "delete")
        constraints = [
            models.UniqueConstraint(
                name="one_vector_per_document", fields=["database", "index", "namespace", "document_id"]
            )
        ]

    def __str__(self) -> str:
        return f"{self.database}/{self.index}/{self.namespace}/{self.document_id}"


def vector_length() -> Length:
    """Return the expression for the bytes of an embedding."""
    return Length("embedding", output_field=models.IntegerField())
