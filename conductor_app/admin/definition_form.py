"""The form of a definition: its document, what saving means, and why."""

from typing import Any

from django import forms

from ..core.errors import Complaint
from ..core.language.positions import Positions
from .json_editor import JsonDocumentField

NEW_VERSION, OVERWRITE = "new", "overwrite"


class DefinitionForm(forms.Form):
    """A definition as JSON."""

    document = JsonDocumentField(label="Definition")
    reason = forms.CharField(required=False, max_length=500, label="Reason", help_text="Kept in the audit.")

    def complain(self, complaints: list[Complaint]) -> None:
        """Show every complaint at the field, with the line that it speaks of."""
        positions = Positions(self.data.get("document", ""))
        self.complaints = [self._placed(complaint, positions) for complaint in complaints]
        count = len(complaints)
        self.add_error("document", f"{count} thing{' is' if count == 1 else 's are'} wrong with this definition.")

    complaints: list[dict[str, Any]] = []

    def _placed(self, complaint: Complaint, positions: Positions) -> dict[str, Any]:
        position = positions.of(complaint.path) if complaint.path else None
        line = position.line if position else None
        return {"path": complaint.path, "message": complaint.message, "line": line}


class WorkflowEditForm(DefinitionForm):
    """A workflow definition that exists: saved beside its old version, or over it."""

    save_as = forms.ChoiceField(widget=forms.RadioSelect, label="Save as")
    revision = forms.IntegerField(widget=forms.HiddenInput, required=False)
    field_order = ("document", "save_as", "reason")

    def __init__(self, *args: Any, version: int, next_version: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["save_as"].choices = [
            (NEW_VERSION, f"Version {next_version}, a new one. Runs and clients that name version {version} keep it."),
            (
                OVERWRITE,
                f"Version {version}, over what is there. Runs that have started keep the document they began with.",
            ),
        ]
