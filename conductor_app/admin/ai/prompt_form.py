"""Forms of a prompt, and of a trial of it with a model."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.prompts import MAX_NAME_LENGTH, permits_model
from ...models import Prompt

MAX_VARIABLES = 50
"""Placeholders that the form of a trial has fields for."""


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
    reason = forms.CharField(
        required=False,
        max_length=500,
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("Recorded in the audit log."),
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
