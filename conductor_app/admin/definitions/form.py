"""The form of a definition: its document, what saving means, and why."""

from typing import Any

from django import forms

from ...core.errors import Complaint
from ...core.language.lint import ERROR, Finding
from ..json_editor import JsonDocumentField
from .checks import Checked, placed

NEW_VERSION, OVERWRITE = "new", "overwrite"


class DefinitionForm(forms.Form):
    """A definition as JSON."""

    document = JsonDocumentField(label="Definition")
    reason = forms.CharField(
        required=False, max_length=500, label="Reason", help_text="Kept with the version and in the audit."
    )
    base = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)
    checked: Checked | None = None

    def complain(self, complaints: list[Complaint]) -> None:
        """Show every complaint with the line that it speaks of."""
        said = [Finding(ERROR, "refused", each.path, each.message) for each in complaints]
        self.checked = Checked(None, placed(said, self.data.get("document", "")))
        count = len(complaints)
        self.add_error("document", f"{count} thing{' is' if count == 1 else 's are'} wrong with this definition.")


class WorkflowEditForm(DefinitionForm):
    """A workflow definition that exists: saved beside its old version, or over it."""

    save_as = forms.ChoiceField(widget=forms.RadioSelect, label="Save as", required=False)

    def __init__(self, *args: Any, version: int, next_version: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["save_as"].choices = [
            (NEW_VERSION, f"Version {next_version}, a new one. Runs and clients that name version {version} keep it."),
            (
                OVERWRITE,
                f"Version {version}, over what is there. Runs that have started keep the document they began with.",
            ),
        ]

    def clean_save_as(self) -> str:
        return self.cleaned_data["save_as"] or NEW_VERSION
