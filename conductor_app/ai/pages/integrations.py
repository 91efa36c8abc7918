"""Pages of integrations: the list, a form for each kind, the models, and a test of the connection."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters

from ...core.errors import NotFound, RequestRefused, ValidationFailed
from ...core.integrations import AI_MODEL, INTEGRATION_KINDS
from ...engine.ai import integrations as engine
from ...engine.ai.trials import check_connection
from ...insight.ai.integrations import count_models, environment_integrations, list_integrations, models_of
from ...models import Integration, IntegrationModel
from ..error_messages import require_permission, show_refusal
from ..object_pages import ObjectPage
from ..pages import Page
from .integration_form import CATEGORY_LABELS, KIND_TEXTS, IntegrationForm, ModelForm, kind_label, price_text

VIEW_PERMISSION = "conductor.view_integration"
ADD_PERMISSION = "conductor.add_integration"
CHANGE_PERMISSION = "conductor.change_integration"
DELETE_PERMISSION = "conductor.delete_integration"
EXECUTE_PERMISSION = "conductor.execute_integration"
MAX_LISTED = 500
FORM_FIELDS = {"inputPrice": "input_price", "outputPrice": "output_price", "maxTokens": "max_tokens"}


class IntegrationsPage(Page):
    """List of the integrations, and the kinds of new ones."""

    name, title, permission = "integrations", gettext_lazy("Integrations"), VIEW_PERMISSION
    template = "ops/ai/integrations.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        rows = list(list_integrations()[: MAX_LISTED + 1])
        counts = count_models(row.name for row in rows[:MAX_LISTED])
        stored = {row.name for row in rows}
        return {
            "rows": [(row, kind_label(row.kind), counts.get(row.name, 0)) for row in rows[:MAX_LISTED]],
            "is_cut": len(rows) > MAX_LISTED,
            "most": MAX_LISTED,
            "of_environment": sorted(environment_integrations().keys() - stored),
            "categories": _kinds_by_category(),
            "may_add": request.user.has_perm(ADD_PERMISSION),
        }


class NewIntegrationPage(ObjectPage):
    """Form that creates an integration of one kind."""

    name, permission, template = "integration_new", ADD_PERMISSION, "ops/ai/integration_new.html"
    route = "integrations/new/<str:kind>/"

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> dict[str, Any]:
        kind = _known_kind(url_kwargs["kind"])
        return _new_context(kind, IntegrationForm(kind))

    @method_decorator(sensitive_post_parameters())
    def handle_post(self, request: HttpRequest, **url_kwargs: Any) -> HttpResponse | dict[str, Any]:
        kind = _known_kind(url_kwargs["kind"])
        form = IntegrationForm(kind, request.POST)
        if form.is_valid():
            name = form.cleaned_data["name"].strip()
            if Integration.objects.filter(pk=name).exists():
                form.add_error("name", _("An integration with this name already exists."))
            elif _save(request, form, name):
                return HttpResponseRedirect(reverse("admin:integration", args=[name]))
        return _new_context(kind, form)


class IntegrationPage(ObjectPage):
    """Page of one integration: its settings, its models, and the test of its connection."""

    name, permission, template = "integration", VIEW_PERMISSION, "ops/ai/integration.html"
    route = "integrations/of/<path:integration>/"

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> dict[str, Any]:
        row = engine.find_integration(url_kwargs["integration"])
        return self._page_context(request, row, IntegrationForm(row.kind, row=row))

    @method_decorator(sensitive_post_parameters())
    def handle_post(self, request: HttpRequest, **url_kwargs: Any) -> HttpResponse | dict[str, Any]:
        row, act = engine.find_integration(url_kwargs["integration"]), request.POST.get("do", "save")
        if act == "test":
            return self._test(request, row)
        if act == "delete":
            return _delete(request, row)
        require_permission(request, CHANGE_PERMISSION)
        if act == "add_model":
            return self._add_model(request, row)
        form = IntegrationForm(row.kind, request.POST, row)
        if form.is_valid() and _save(request, form, row.name):
            return HttpResponseRedirect(reverse("admin:integration", args=[row.name]))
        return self._page_context(request, row, form)

    def _test(self, request: HttpRequest, row: Integration) -> dict[str, Any]:
        require_permission(request, EXECUTE_PERMISSION)
        try:
            outcome, is_success = check_connection(row.name, request.user.get_username()), True
        except RequestRefused as refused:
            outcome, is_success = refused.message, False
        context = self._page_context(request, row, IntegrationForm(row.kind, row=row))
        return context | {"outcome": outcome, "is_success": is_success}

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
        return {
            "title": row.name,
            "row": row,
            "kind": kind_label(row.kind),
            "category": CATEGORY_LABELS.get(row.category, row.category),
            "form": form,
            "model_form": model_form or ModelForm(),
            "has_models": row.category == AI_MODEL,
            "models": [(model, price_text(model.input_price), price_text(model.output_price)) for model in models],
            "may_change": request.user.has_perm(CHANGE_PERMISSION),
            "may_delete": request.user.has_perm(DELETE_PERMISSION),
            "may_execute": request.user.has_perm(EXECUTE_PERMISSION),
            "required": CHANGE_PERMISSION,
        }


class IntegrationModelPage(ObjectPage):
    """Page of one model: its prices and its token limit."""

    name, permission, template = "integration_model", VIEW_PERMISSION, "ops/ai/model.html"
    route = "integrations/models/<int:model_id>/"

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> dict[str, Any]:
        row = _find_model(url_kwargs["model_id"])
        return self._page_context(request, row, ModelForm(row=row))

    def handle_post(self, request: HttpRequest, **url_kwargs: Any) -> HttpResponse | dict[str, Any]:
        row = _find_model(url_kwargs["model_id"])
        require_permission(request, CHANGE_PERMISSION)
        address = f"{reverse('admin:integration', args=[row.integration])}#models"
        if request.POST.get("do") == "delete":
            reason = request.POST.get("reason", "").strip()[:500]
            bound = engine.delete_model(row.integration, row.name, request.user.get_username(), reason)
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
            "usage_address": reverse("admin:model_usage", query={"integration": row.integration, "model": row.name}),
            "may_change": request.user.has_perm(CHANGE_PERMISSION),
            "required": CHANGE_PERMISSION,
        }


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


def _find_model(model_id: int) -> IntegrationModel:
    row = IntegrationModel.objects.filter(pk=min(model_id, 2**62)).first()
    if row is None:
        raise NotFound(_("No such model. It may have been deleted."))
    return row


def _save(request: HttpRequest, form: IntegrationForm, name: str) -> bool:
    """Save an integration. Returns False with the errors in the form if it is refused."""
    try:
        engine.save_integration(name, form.document(), request.user.get_username(), form.cleaned_data["reason"])
    except RequestRefused as refused:
        _add_errors(form, refused)
        return False
    messages.success(request, _("Integration saved."))
    return True


def _save_model(request: HttpRequest, form: ModelForm, integration: str, name: str) -> bool:
    try:
        by, reason = request.user.get_username(), form.cleaned_data["reason"]
        engine.save_model(integration, name, form.document(), by, reason)
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
    require_permission(request, DELETE_PERMISSION)
    try:
        reason = request.POST.get("reason", "").strip()[:500]
        bound = engine.delete_integration(row.name, request.user.get_username(), reason)
        messages.success(request, _("Integration %(name)s deleted.") % {"name": row.name})
        _warn_of_bindings(request, bound)
    except RequestRefused as refused:
        show_refusal(request, refused)
    return HttpResponseRedirect(reverse("admin:integrations"))


def _warn_of_bindings(request: HttpRequest, prompts: list[str]) -> None:
    """Name the prompts that were bound to nothing else than what is deleted."""
    if prompts:
        names = ", ".join(prompts[:10]) + (", …" if len(prompts) > 10 else "")
        messages.warning(
            request,
            _("These prompts can be used with no other model: %(names)s. Add a model to them, or delete them.")
            % {"names": names},
        )
