"""Forms that edit a definition: its document, the version to save, and the reason."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...core.document.lint import ERROR, LintFinding
from ...core.errors import ValidationError
from ..json_editor import JsonDocumentField
from .definition_checks import CheckResult, place_findings

NEW_VERSION, OVERWRITE = "new", "overwrite"


class DefinitionForm(forms.Form):
    """A definition as JSON text."""

    document = JsonDocumentField(label=gettext_lazy("Definition"))
    reason = forms.CharField(
        required=False,
        max_length=500,
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("Saved with the version and in the audit log."),
    )
    base = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)
    checked: CheckResult | None = None

    def show_errors(self, validation_errors: list[ValidationError]) -> None:
        """Show the errors of the engine at their lines."""
        findings = [LintFinding(ERROR, "refused", each.path, each.message) for each in validation_errors]
        self.checked = CheckResult(None, place_findings(findings, self.data.get("document", "")))
        count = len(validation_errors)
        message = ngettext("%(count)s error in this definition.", "%(count)s errors in this definition.", count)
        self.add_error("document", message % {"count": count})


class WorkflowEditForm(DefinitionForm):
    """An existing workflow definition, saved as a new version or over its version."""

    save_as = forms.ChoiceField(widget=forms.RadioSelect, label=gettext_lazy("Save as"), required=False)

    def __init__(self, *args: Any, version: int, next_version: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["save_as"].choices = [
            (
                NEW_VERSION,
                _("New version %(next)s (version %(version)s stays available)")
                % {"next": next_version, "version": version},
            ),
            (
                OVERWRITE,
                _("Overwrite version %(version)s (active runs keep the document that they started with)")
                % {"version": version},
            ),
        ]

    def clean_save_as(self) -> str:
        return self.cleaned_data["save_as"] or NEW_VERSION
