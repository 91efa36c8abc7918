"""Pages of prompts: the list, the versions with their differences, and trials with a model."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.permissions import INTEGRATION_PROVIDER
from ...access.visibility import may, shown_to, visible_names
from ...core.ai import MAX_NAME_LENGTH, permits_model
from ...core.errors import NotFound, RequestRefused, ValidationFailed
from ...utils.differences import diff_hunks
from ...web.pages import ObjectPage, Page, require_permission, show_refusal
from ..commands.integrations import model_settings
from ..commands.prompts import PromptTrial, delete_prompt, prompt_text, save_prompt
from ..models import Integration, Prompt
from ..queries.usage import enabled_models, newest_prompts, versions_of
from ..workers.trials import try_prompt
from .integrations import EXECUTE_PERMISSION

MAX_VARIABLES = 50
"""Placeholders that the form of a trial has fields for."""
VIEW_PERMISSION = "conductor.view_prompt"
ADD_PERMISSION, CHANGE_PERMISSION, DELETE_PERMISSION = (
    "conductor.add_prompt",
    "conductor.change_prompt",
    "conductor.delete_prompt",
)
MAX_LISTED, MAX_VERSIONS = 500, 200


class PromptForm(forms.Form):
    """A prompt. Without a row, it creates one."""

    name = forms.CharField(
        max_length=MAX_NAME_LENGTH,
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("AI steps refer to it by this name, in promptName or instructions."),
    )
    description = forms.CharField(max_length=2_000, required=False, label=gettext_lazy("Description"))
    template = forms.CharField(
        strip=False,
        label=gettext_lazy("Template"),
        help_text=gettext_lazy("Write placeholders as ${name}. The step sets their values in promptVariables."),
        widget=forms.Textarea({"rows": 14, "spellcheck": "false"}),
    )
    models = forms.CharField(
        required=False,
        max_length=20_000,
        label=gettext_lazy("Models"),
        help_text=gettext_lazy("One per line, as integration:model. Leave empty to allow all models."),
        widget=forms.Textarea({"rows": 3, "spellcheck": "false"}),
    )

    def __init__(self, data: Mapping[str, Any] | None = None, row: Prompt | None = None) -> None:
        initial = (
            {"description": row.description, "template": row.template, "models": "\n".join(row.integrations)}
            if row
            else {}
        )
        super().__init__(data, initial=initial)
        if row is not None:
            del self.fields["name"]

    def fields_of_prompt(self) -> dict[str, Any]:
        """Return the fields of `save_prompt` that were entered."""
        # Browsers send line breaks as two characters.
        template = self.cleaned_data["template"].replace("\r\n", "\n")
        models = [line.strip() for line in self.cleaned_data["models"].splitlines() if line.strip()]
        return {"template": template, "description": self.cleaned_data["description"], "models": models}


class TrialForm(forms.Form):
    """The model of a trial, and a value for each placeholder of the prompt."""

    model = forms.CharField(
        max_length=2 * MAX_NAME_LENGTH + 1,
        label=gettext_lazy("Model"),
        help_text=gettext_lazy("As integration:model."),
    )

    def __init__(self, row: Prompt, known_models: Iterable[str], data: Mapping[str, Any] | None = None) -> None:
        self.known_models = [name for name in known_models if permits_model(row.integrations, *name.split(":", 1))]
        super().__init__(data, prefix="try", initial={"model": next(iter(self.known_models), "")})
        self.fields["model"].widget.attrs["list"] = "known-models"
        self.variables = row.variables[:MAX_VARIABLES]
        for number, name in enumerate(self.variables):
            self.fields[f"variable_{number}"] = forms.CharField(
                required=False,
                max_length=20_000,
                label=f"${{{name}}}",
                widget=forms.Textarea({"rows": 1, "spellcheck": "false"}),
            )

    def clean_model(self) -> tuple[str, str]:
        integration, colon, model = self.cleaned_data["model"].strip().partition(":")
        if not (integration and colon and model):
            raise forms.ValidationError(_("Enter integration:model, such as openai:gpt-4o."))
        return integration, model

    def values(self) -> dict[str, str]:
        """Return the values of the placeholders."""
        return {name: self.cleaned_data[f"variable_{number}"] for number, name in enumerate(self.variables)}


class PromptsPage(Page):
    """List of the newest versions."""

    name, title, permission = "prompts", gettext_lazy("Prompts"), VIEW_PERMISSION
    template = "ops/ai/prompts.html"
    shows_granted_rows = True

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        rows = list(shown_to(request.user, VIEW_PERMISSION, newest_prompts())[: MAX_LISTED + 1])
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

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        return {"title": _("New prompt"), "form": PromptForm()}

    def handle_post(self, request: HttpRequest) -> HttpResponse | dict[str, Any]:
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
    shows_granted_rows = True

    def get_context(self, request: HttpRequest, prompt_id: int) -> dict[str, Any]:
        row = _find_prompt(request, prompt_id)
        return self._page_context(request, row, PromptForm(row=row))

    def handle_post(self, request: HttpRequest, prompt_id: int) -> HttpResponse | dict[str, Any]:
        row, act = _find_prompt(request, prompt_id), request.POST.get("do", "save")
        if act == "try":
            return self._try(request, row)
        if act == "delete":
            return _delete(request, row)
        is_new = act == "new_version"
        require_permission(request, ADD_PERMISSION if is_new else CHANGE_PERMISSION, row)
        form = PromptForm(request.POST, row)
        if form.is_valid():
            saved = _save(request, form, row.name, **({"new_version": True} if is_new else {"version": row.version}))
            if saved is not None:
                return HttpResponseRedirect(reverse("admin:prompt", args=[saved.pk]))
        return self._page_context(request, row, form)

    def _try(self, request: HttpRequest, row: Prompt) -> dict[str, Any]:
        if not may(request.user, EXECUTE_PERMISSION):
            raise PermissionDenied(EXECUTE_PERMISSION)
        form, reply = TrialForm(row, _models_for_trials(request), request.POST), None
        if form.is_valid():
            integration, model = form.cleaned_data["model"]
            require_permission(request, EXECUTE_PERMISSION, Integration(name=integration))
            try:
                template = prompt_text(row.name, row.version, integration, model) or row.template
                trial = PromptTrial(template, form.values(), model_settings(integration, model), name=row.name)
                reply = try_prompt(trial, request.user.get_username())
            except RequestRefused as refused:
                form.add_error(None, refused.message)
        return self._page_context(request, row, PromptForm(row=row), form) | {"reply": reply}

    def _page_context(
        self, request: HttpRequest, row: Prompt, form: PromptForm, trial: TrialForm | None = None
    ) -> dict[str, Any]:
        versions = list(versions_of(row.name).only("pk", "version", "name", "template")[:MAX_VERSIONS])
        may_try = may(request.user, EXECUTE_PERMISSION)
        return {
            "title": row.name,
            "row": row,
            "form": form,
            "versions": versions,
            "trial": trial or (TrialForm(row, _models_for_trials(request)) if may_try else None),
            "may_add": may(request.user, ADD_PERMISSION, row),
            "may_change": may(request.user, CHANGE_PERMISSION, row),
            "may_delete": may(request.user, DELETE_PERMISSION, row),
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


def _models_for_trials(request: HttpRequest) -> list[str]:
    """Return the enabled models that the user may see."""
    names = enabled_models()
    if request.user.has_perm(EXECUTE_PERMISSION):
        return names
    integrations = set(visible_names(INTEGRATION_PROVIDER, {name.partition(":")[0] for name in names}))
    return [name for name in names if name.partition(":")[0] in integrations]


def _find_prompt(request: HttpRequest, prompt_id: int) -> Prompt:
    row = Prompt.objects.filter(pk=min(prompt_id, 2**62)).first()
    if row is None or not may(request.user, VIEW_PERMISSION, row):
        raise NotFound(_("No such prompt. It may have been deleted."))
    return row


def _save(request: HttpRequest, form: PromptForm, name: str, **fields: Any) -> Prompt | None:
    """Save a prompt. Returns None with the errors in the form if it is refused."""
    try:
        row = save_prompt(name, by=request.user.get_username(), **form.fields_of_prompt(), **fields)
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
    require_permission(request, DELETE_PERMISSION, row)
    try:
        delete_prompt(row.name, row.version, request.user.get_username())
        messages.success(request, _("Prompt %(prompt)s deleted.") % {"prompt": row})
    except RequestRefused as refused:
        show_refusal(request, refused)
    return HttpResponseRedirect(reverse("admin:prompts"))
