"""The form of a definition: its document, what saving means, and why."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...core.document.lint import ERROR, LintFinding
from ...core.errors import ValidationError
from ..json_editor import JsonDocumentField
from .checks import CheckResult, place_findings

NEW_VERSION, OVERWRITE = "new", "overwrite"


class DefinitionForm(forms.Form):
    """A definition as JSON."""

    document = JsonDocumentField(label=gettext_lazy("Definition"))
    reason = forms.CharField(
        required=False,
        max_length=500,
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("Kept with the version and in the audit."),
    )
    base = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)
    checked: CheckResult | None = None

    def show_errors(self, complaints: list[ValidationError]) -> None:
        """Show every complaint with the line that it speaks of."""
        said = [LintFinding(ERROR, "refused", each.path, each.message) for each in complaints]
        self.checked = CheckResult(None, place_findings(said, self.data.get("document", "")))
        count = len(complaints)
        said = ngettext(
            "%(count)s thing is wrong with this definition.", "%(count)s things are wrong with this definition.", count
        )
        self.add_error("document", said % {"count": count})


class WorkflowEditForm(DefinitionForm):
    """A workflow definition that exists: saved beside its old version, or over it."""

    save_as = forms.ChoiceField(widget=forms.RadioSelect, label=gettext_lazy("Save as"), required=False)

    def __init__(self, *args: Any, version: int, next_version: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["save_as"].choices = [
            (
                NEW_VERSION,
                _("Version %(next)s, a new one. Runs and clients that name version %(version)s keep it.")
                % {"next": next_version, "version": version},
            ),
            (
                OVERWRITE,
                _("Version %(version)s, over what is there. Runs that have started keep the document they began with.")
                % {"version": version},
            ),
        ]

    def clean_save_as(self) -> str:
        return self.cleaned_data["save_as"] or NEW_VERSION
