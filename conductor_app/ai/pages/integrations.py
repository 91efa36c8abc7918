"""Pages of integrations: the list, a form for each kind, the models, and a test of the connection.

Secrets are never displayed again.
"""

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters

from ...access.permissions import PROMPT
from ...access.visibility import may, shown_to, visible_names
from ...core.ai import AI_MODEL, INTEGRATION_KINDS, MCP, VECTOR_DB, IntegrationField, displayed_configuration
from ...core.errors import NotFound, RequestRefused, ValidationFailed
from ...core.masking import REDACTED
from ...definitions.models import WorkflowDefinition
from ...definitions.queries import newest_definitions
from ...settings import conf
from ...web.forms import JsonDocumentField, format_json
from ...web.pages import ObjectPage, Page, require_permission, show_refusal
from ..commands.integrations import delete_integration, delete_model, find_integration, save_integration, save_model
from ..models import Integration, IntegrationModel, ModelCall
from ..queries.budgets import format_amount
from ..queries.usage import (
    count_models,
    environment_integrations,
    last_calls,
    list_integrations,
    models_of,
    workflows_by_integration,
)
from ..workers.trials import CONNECTION_TESTS, check_connection

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
INPUT_NAMES = {VECTOR_DB: "vectorDB", MCP: "mcpServer"}
"""The inputs of steps that name integrations of these categories; others are named in llmProvider."""
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
FIELD_TEXTS = {
    "dimensions": gettext_lazy("Numbers of a vector. Leave empty: the first document of an index determines it."),
    "authorization": gettext_lazy("Such as Bearer and a token."),
}
CHOICE_LABELS = {
    "l2": gettext_lazy("Euclidean distance (l2)"),
    "cosine": gettext_lazy("Cosine"),
    "inner_product": gettext_lazy("Inner product"),
}
FREQUENCY_CHOICES = [
    ("daily", gettext_lazy("per day")),
    ("weekly", gettext_lazy("per week")),
    ("monthly", gettext_lazy("per month")),
]
PRICE_UNIT = 1_000
"""A price for a million tokens, in millionths of the currency for a thousand tokens."""
VIEW_PERMISSION = "conductor.view_integration"
ADD_PERMISSION = "conductor.add_integration"
CHANGE_PERMISSION = "conductor.change_integration"
DELETE_PERMISSION = "conductor.delete_integration"
EXECUTE_PERMISSION = "conductor.execute_integration"
MAX_LISTED = 500
FORM_FIELDS = {"inputPrice": "input_price", "outputPrice": "output_price", "maxTokens": "max_tokens"}


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
            help_text=_("As JSON. Settings that are not known to be public are stored encrypted and shown as ***."),
        )
        self.fields["others"].widget.attrs["rows"] = 5

    def _initial_values(self) -> dict[str, Any]:
        if self.row is None:
            return {field.name: field.default for field in self.setting_fields if field.default}
        stored = displayed_configuration(self.row.configuration)
        names = {field.name for field in self.setting_fields}
        others = {name: value for name, value in stored.items() if name not in names}
        shown = {name: value for name, value in stored.items() if name in names and value != REDACTED}
        text = format_json(others) if others else ""
        return {"description": self.row.description, "is_enabled": self.row.is_enabled, **shown, "others": text}

    def _is_kept(self, field: IntegrationField) -> bool:
        return self.row is not None and displayed_configuration(self.row.configuration).get(field.name) == REDACTED

    def _setting_field(self, field: IntegrationField) -> forms.Field:
        known = INTEGRATION_KINDS[self.kind]
        text = str(FIELD_TEXTS.get(field.name, ""))
        label = str(FIELD_LABELS.get(field.name, field.label))
        if field.choices:
            stored = (self.row.configuration if self.row else {}).get(field.name)
            values = dict.fromkeys([*field.choices, *([str(stored)] if stored else [])])
            choices = [(value, CHOICE_LABELS.get(value, value)) for value in values]
            return forms.ChoiceField(required=False, choices=choices, label=label, help_text=text)
        widget: forms.Widget = forms.TextInput()
        if field.is_secret:
            is_kept = self._is_kept(field)
            shown = {"placeholder": _("•••••••• (stored)")} if is_kept else {}
            widget = forms.PasswordInput(attrs={"autocomplete": "new-password", **shown})
            stored_text = _("Stored encrypted. Leave empty to keep it.") if is_kept else _("Stored encrypted.")
            text = f"{text} {stored_text}".strip()
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
            label=label,
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


class IntegrationsPage(Page):
    """List of the integrations, and the kinds of new ones."""

    name, title, permission = "integrations", gettext_lazy("Integrations"), VIEW_PERMISSION
    template = "ops/ai/integrations.html"
    shows_granted_rows = True

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        rows = list(shown_to(request.user, VIEW_PERMISSION, list_integrations())[: MAX_LISTED + 1])
        counts = count_models(row.name for row in rows[:MAX_LISTED])
        calls, uses = last_calls(row.name for row in rows[:MAX_LISTED]), _uses(request)
        stored, sees_all = {row.name for row in rows}, request.user.has_perm(VIEW_PERMISSION)
        return {
            "rows": [
                (row, kind_label(row.kind), counts.get(row.name, 0), last, _current_test(row, last), uses[row.name])
                for row in rows[:MAX_LISTED]
                for last, _failed in [calls.get(row.name, (None, None))]
            ],
            "is_cut": len(rows) > MAX_LISTED,
            "most": MAX_LISTED,
            "of_environment": sorted(environment_integrations().keys() - stored) if sees_all else (),
            "categories": _kinds_by_category(),
            "may_add": request.user.has_perm(ADD_PERMISSION),
            "sees_tests": request.user.has_perm(EXECUTE_PERMISSION),
        }


class NewIntegrationPage(ObjectPage):
    """Form that creates an integration of one kind."""

    name, permission, template = "integration_new", ADD_PERMISSION, "ops/ai/integration_new.html"
    route = "integrations/new/<str:kind>/"

    def get_context(self, request: HttpRequest, kind: str) -> dict[str, Any]:
        kind = _known_kind(kind)
        return _new_context(kind, IntegrationForm(kind))

    @method_decorator(sensitive_post_parameters())
    def handle_post(self, request: HttpRequest, kind: str) -> HttpResponse | dict[str, Any]:
        kind = _known_kind(kind)
        form = IntegrationForm(kind, request.POST)
        if form.is_valid():
            name = form.cleaned_data["name"].strip()
            if Integration.objects.filter(pk=name).exists():
                form.add_error("name", _("An integration with this name already exists."))
            elif _save(request, form, name):
                messages.info(request, _("Test the connection, and then name the integration in a step."))
                return HttpResponseRedirect(reverse("admin:integration", args=[name]))
        return _new_context(kind, form)


class IntegrationPage(ObjectPage):
    """Page of one integration: its settings, its models, and the test of its connection."""

    name, permission, template = "integration", VIEW_PERMISSION, "ops/ai/integration.html"
    shows_granted_rows = True
    route = "integrations/of/<path:integration>/"

    def get_context(self, request: HttpRequest, integration: str) -> dict[str, Any]:
        row = _find_integration(request, integration)
        return self._page_context(request, row, IntegrationForm(row.kind, row=row))

    @method_decorator(sensitive_post_parameters())
    def handle_post(self, request: HttpRequest, integration: str) -> HttpResponse | dict[str, Any]:
        row, act = _find_integration(request, integration), request.POST.get("do", "save")
        if act == "test":
            return self._test(request, row)
        if act == "delete":
            return _delete(request, row)
        require_permission(request, CHANGE_PERMISSION, row)
        if act == "add_model":
            return self._add_model(request, row)
        form = IntegrationForm(row.kind, request.POST, row)
        if form.is_valid() and _save(request, form, row.name):
            return HttpResponseRedirect(reverse("admin:integration", args=[row.name]))
        return self._page_context(request, row, form)

    def _test(self, request: HttpRequest, row: Integration) -> dict[str, Any]:
        require_permission(request, EXECUTE_PERMISSION, row)
        row.last_test = check_connection(row.name, request.user.get_username())
        return self._page_context(request, row, IntegrationForm(row.kind, row=row)) | {"outcome": row.last_test}

    def _add_model(self, request: HttpRequest, row: Integration) -> HttpResponse | dict[str, Any]:
        form = ModelForm(request.POST)
        if form.is_valid():
            name = form.cleaned_data["name"].strip()
            if IntegrationModel.objects.filter(integration=row.name, name=name).exists():
                form.add_error("name", _("The integration already has a model with this name."))
            elif _save_model(request, form, row.name, name):
                return HttpResponseRedirect(f"{reverse('admin:integration', args=[row.name])}#models")
        return self._page_context(request, row, IntegrationForm(row.kind, row=row), form)

    def _page_context(
        self, request: HttpRequest, row: Integration, form: IntegrationForm, model_form: ModelForm | None = None
    ) -> dict[str, Any]:
        models = models_of([row.name]).get(row.name, [])
        last, failed = last_calls([row.name]).get(row.name, (None, None))
        may_test = row.category in CONNECTION_TESTS and may(request.user, EXECUTE_PERMISSION, row)
        return {
            "title": row.name,
            "row": row,
            "kind": kind_label(row.kind),
            "category": CATEGORY_LABELS.get(row.category, row.category),
            "form": form,
            "model_form": model_form or ModelForm(),
            "has_models": row.category == AI_MODEL,
            "models": [(model, price_text(model.input_price), price_text(model.output_price)) for model in models],
            "may_change": may(request.user, CHANGE_PERMISSION, row),
            "may_delete": may(request.user, DELETE_PERMISSION, row),
            "required": CHANGE_PERMISSION,
            "may_test": may_test,
            "test": _current_test(row, last),
            "key_is_stored": bool(row.sealed),
            "input_name": INPUT_NAMES.get(row.category, "llmProvider"),
            "uses": _uses(request)[row.name],
            "last": last,
            "last_failure": failed,
            "may_view_runs": request.user.has_perm("conductor.view_run"),
        }


class IntegrationModelPage(ObjectPage):
    """Page of one model: its prices and its token limit."""

    name, permission, template = "integration_model", VIEW_PERMISSION, "ops/ai/model.html"
    shows_granted_rows = True
    route = "integrations/models/<int:model_id>/"

    def get_context(self, request: HttpRequest, model_id: int) -> dict[str, Any]:
        row = _find_model(request, model_id)
        return self._page_context(request, row, ModelForm(row=row))

    def handle_post(self, request: HttpRequest, model_id: int) -> HttpResponse | dict[str, Any]:
        row = _find_model(request, model_id)
        require_permission(request, CHANGE_PERMISSION, _integration_of(row))
        address = f"{reverse('admin:integration', args=[row.integration])}#models"
        if request.POST.get("do") == "delete":
            bound = delete_model(row.integration, row.name, request.user.get_username())
            messages.success(request, _("Model %(name)s deleted.") % {"name": row.name})
            _warn_of_bindings(request, bound)
            return HttpResponseRedirect(address)
        form = ModelForm(request.POST, row)
        if form.is_valid() and _save_model(request, form, row.integration, row.name):
            return HttpResponseRedirect(address)
        return self._page_context(request, row, form)

    def _page_context(self, request: HttpRequest, row: IntegrationModel, form: ModelForm) -> dict[str, Any]:
        return {
            "title": row.name,
            "row": row,
            "form": form,
            "may_change": may(request.user, CHANGE_PERMISSION, _integration_of(row)),
            "required": CHANGE_PERMISSION,
        }


def _current_test(row: Integration, last: ModelCall | None) -> dict[str, Any] | None:
    """Return the last test of an integration if neither a change nor a call came after it."""
    since = max(row.updated_at, last.started_at if last else 0)
    return row.last_test if row.last_test and row.last_test["at"] >= since else None


def _uses(request: HttpRequest) -> dict[str, dict[WorkflowDefinition, list[str]]]:
    """Return the workflows that the user may see and their steps, by the integration that the steps name."""
    rows = shown_to(request.user, "conductor.view_workflowdefinition", newest_definitions())
    return defaultdict(dict, workflows_by_integration(rows))


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


def kind_label(kind: str) -> str:
    """Return the label of a kind; of an unknown one, its name."""
    return str(KIND_LABELS.get(kind, kind))


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


def _kinds_by_category() -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Return the kinds of new integrations by category, each with its label and text."""
    kinds: dict[str, list[tuple[str, str, str]]] = {}
    for name, kind in INTEGRATION_KINDS.items():
        kinds.setdefault(kind.category, []).append((name, kind_label(name), str(KIND_TEXTS[name])))
    return [(str(CATEGORY_LABELS[category]), found) for category, found in kinds.items()]


def _new_context(kind: str, form: IntegrationForm) -> dict[str, Any]:
    title = _("New integration: %(kind)s") % {"kind": kind_label(kind)}
    return {"title": title, "form": form, "text": KIND_TEXTS[kind]}


def _known_kind(kind: str) -> str:
    if kind not in INTEGRATION_KINDS:
        raise NotFound(_("There is no such kind of integration."))
    return kind


def _find_integration(request: HttpRequest, name: str) -> Integration:
    row = find_integration(name)
    if not may(request.user, VIEW_PERMISSION, row):
        raise NotFound(f"There is no integration named {name[:300]}.")
    return row


def _integration_of(model: IntegrationModel) -> Integration:
    """Return the integration of a model, with its name only: it decides about the permissions on the model."""
    return Integration(name=model.integration)


def _find_model(request: HttpRequest, model_id: int) -> IntegrationModel:
    row = IntegrationModel.objects.filter(pk=min(model_id, 2**62)).first()
    if row is None or not may(request.user, VIEW_PERMISSION, _integration_of(row)):
        raise NotFound(_("No such model. It may have been deleted."))
    return row


def _save(request: HttpRequest, form: IntegrationForm, name: str) -> bool:
    """Save an integration. Returns False with the errors in the form if it is refused."""
    try:
        save_integration(name, form.document(), request.user.get_username())
    except RequestRefused as refused:
        _add_errors(form, refused)
        return False
    messages.success(request, _("Integration saved."))
    return True


def _save_model(request: HttpRequest, form: ModelForm, integration: str, name: str) -> bool:
    try:
        save_model(integration, name, form.document(), request.user.get_username())
    except RequestRefused as refused:
        _add_errors(form, refused)
        return False
    messages.success(request, _("Model saved."))
    return True


def _add_errors(form: forms.Form, refused: RequestRefused) -> None:
    """Add the errors of a refused document to the fields that they are about."""
    if not isinstance(refused, ValidationFailed):
        form.add_error(None, refused.message)
        return
    for each in refused.validation_errors:
        name = each.path.removeprefix("configuration.")
        field = FORM_FIELDS.get(name, name)
        form.add_error(field if field in form.fields else None, f"{name} {each.message}")


def _delete(request: HttpRequest, row: Integration) -> HttpResponse:
    require_permission(request, DELETE_PERMISSION, row)
    try:
        bound = delete_integration(row.name, request.user.get_username())
        messages.success(request, _("Integration %(name)s deleted.") % {"name": row.name})
        _warn_of_bindings(request, bound)
    except RequestRefused as refused:
        show_refusal(request, refused)
    return HttpResponseRedirect(reverse("admin:integrations"))


def _warn_of_bindings(request: HttpRequest, prompts: list[str]) -> None:
    """Name the prompts that were bound to nothing else than what is deleted, as far as the user may see them."""
    if prompts := visible_names(PROMPT, prompts):
        names = ", ".join(prompts[:10]) + (", …" if len(prompts) > 10 else "")
        messages.warning(
            request,
            _("These prompts can be used with no other model: %(names)s. Add a model to them, or delete them.")
            % {"names": names},
        )
