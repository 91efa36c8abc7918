"""Pages of prompts: the list, the versions with their differences, and trials with a model."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.errors import NotFound, RequestRefused, ValidationFailed
from ...engine.ai import prompts as engine
from ...engine.ai.integration_settings import model_settings
from ...engine.ai.trials import PromptTrial, try_prompt
from ...insight.ai.integrations import enabled_models
from ...insight.ai.prompts import newest_prompts, versions_of
from ...insight.text_diff import diff_hunks
from ...models import Prompt
from ..error_messages import require_permission, show_refusal
from ..object_pages import ObjectPage
from ..pages import Page
from .integration_pages import EXECUTE_PERMISSION
from .prompt_form import PromptForm, TrialForm

VIEW_PERMISSION = "conductor.view_prompt"
ADD_PERMISSION, CHANGE_PERMISSION, DELETE_PERMISSION = (
    "conductor.add_prompt",
    "conductor.change_prompt",
    "conductor.delete_prompt",
)
MAX_LISTED, MAX_VERSIONS = 500, 200


class PromptsPage(Page):
    """List of the newest versions."""

    name, title, permission = "prompts", gettext_lazy("Prompts"), VIEW_PERMISSION
    template = "ops/ai/prompts.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        rows = list(newest_prompts()[: MAX_LISTED + 1])
        return {
            "rows": rows[:MAX_LISTED],
            "is_cut": len(rows) > MAX_LISTED,
            "most": MAX_LISTED,
            "may_add": request.user.has_perm(ADD_PERMISSION),
        }


class NewPromptPage(ObjectPage):
    """Form that creates a prompt."""

    name, permission, route = "prompt_new", ADD_PERMISSION, "prompts/new/"
    template = "ops/ai/prompt_new.html"

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> dict[str, Any]:
        return {"title": _("New prompt"), "form": PromptForm()}

    def handle_post(self, request: HttpRequest, **url_kwargs: Any) -> HttpResponse | dict[str, Any]:
        form = PromptForm(request.POST)
        if form.is_valid():
            name = form.cleaned_data["name"].strip()
            if Prompt.objects.filter(name=name).exists():
                form.add_error("name", _("A prompt with this name already exists."))
            elif (row := _save(request, form, name)) is not None:
                return HttpResponseRedirect(reverse("admin:prompt", args=[row.pk]))
        return {"title": _("New prompt"), "form": form}


class PromptPage(ObjectPage):
    """Page of one version: its template, its differences from another version, and a trial."""

    name, permission, route = "prompt", VIEW_PERMISSION, "prompts/<int:prompt_id>/"
    template = "ops/ai/prompt.html"

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> dict[str, Any]:
        row = _find_prompt(url_kwargs["prompt_id"])
        return self._page_context(request, row, PromptForm(row=row))

    def handle_post(self, request: HttpRequest, **url_kwargs: Any) -> HttpResponse | dict[str, Any]:
        row, act = _find_prompt(url_kwargs["prompt_id"]), request.POST.get("do", "save")
        if act == "try":
            return self._try(request, row)
        if act == "delete":
            return _delete(request, row)
        is_new = act == "new_version"
        require_permission(request, ADD_PERMISSION if is_new else CHANGE_PERMISSION)
        form = PromptForm(request.POST, row)
        if form.is_valid():
            saved = _save(request, form, row.name, **({"new_version": True} if is_new else {"version": row.version}))
            if saved is not None:
                return HttpResponseRedirect(reverse("admin:prompt", args=[saved.pk]))
        return self._page_context(request, row, form)

    def _try(self, request: HttpRequest, row: Prompt) -> dict[str, Any]:
        require_permission(request, EXECUTE_PERMISSION)
        form, reply = TrialForm(row, enabled_models(), request.POST), None
        if form.is_valid():
            try:
                integration, model = form.cleaned_data["model"]
                template = engine.prompt_text(row.name, row.version, integration, model) or row.template
                trial = PromptTrial(template, form.values(), model_settings(integration, model), name=row.name)
                reply = try_prompt(trial, request.user.get_username())
            except RequestRefused as refused:
                form.add_error(None, refused.message)
        return self._page_context(request, row, PromptForm(row=row), form) | {"reply": reply}

    def _page_context(
        self, request: HttpRequest, row: Prompt, form: PromptForm, trial: TrialForm | None = None
    ) -> dict[str, Any]:
        versions = list(versions_of(row.name).only("pk", "version", "name", "template")[:MAX_VERSIONS])
        may_execute = request.user.has_perm(EXECUTE_PERMISSION)
        return {
            "title": row.name,
            "row": row,
            "form": form,
            "versions": versions,
            "trial": trial or (TrialForm(row, enabled_models()) if may_execute else None),
            "may_add": request.user.has_perm(ADD_PERMISSION),
            "may_change": request.user.has_perm(CHANGE_PERMISSION),
            "may_delete": request.user.has_perm(DELETE_PERMISSION),
            "required": CHANGE_PERMISSION,
            **_comparison(request, row, versions),
        }


def _comparison(request: HttpRequest, row: Prompt, versions: list[Prompt]) -> dict[str, Any]:
    """Return the differences from the version that the query names, otherwise from the one before."""
    others = [each for each in versions if each.pk != row.pk]
    if not others:
        return {}
    chosen = next((each for each in others if str(each.version) == request.GET.get("with")), None)
    before = next((each for each in others if each.version < row.version), others[-1])
    other = chosen or before
    return {"others": others, "other": other, "hunks": diff_hunks(other.template, row.template)}


def _find_prompt(prompt_id: int) -> Prompt:
    row = Prompt.objects.filter(pk=min(prompt_id, 2**62)).first()
    if row is None:
        raise NotFound(_("No such prompt. It may have been deleted."))
    return row


def _save(request: HttpRequest, form: PromptForm, name: str, **fields: Any) -> Prompt | None:
    """Save a prompt. Returns None with the errors in the form if it is refused."""
    try:
        entered, reason = form.fields_of_prompt(), form.cleaned_data["reason"]
        row = engine.save_prompt(name, by=request.user.get_username(), reason=reason, **entered, **fields)
    except ValidationFailed as failed:
        for each in failed.validation_errors:
            field = "models" if each.path == "integrations" else each.path
            form.add_error(field if field in form.fields else None, each.message)
        return None
    except RequestRefused as refused:
        form.add_error(None, refused.message)
        return None
    messages.success(request, _("Prompt %(prompt)s saved.") % {"prompt": row})
    return row


def _delete(request: HttpRequest, row: Prompt) -> HttpResponse:
    require_permission(request, DELETE_PERMISSION)
    try:
        reason = request.POST.get("reason", "").strip()[:500]
        engine.delete_prompt(row.name, row.version, request.user.get_username(), reason)
        messages.success(request, _("Prompt %(prompt)s deleted.") % {"prompt": row})
    except RequestRefused as refused:
        show_refusal(request, refused)
    return HttpResponseRedirect(reverse("admin:prompts"))
