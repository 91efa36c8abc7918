"""Task definitions: how a task is retried, how long it may take, how many at a time."""

from django.contrib import admin
from django.forms import Form

from ..engine import definitions
from ..models import TaskDefinition
from .definitions import DefinitionAdmin, refuse_another_name
from .samples import NEW_TASK


class TaskDefinitionAdmin(DefinitionAdmin):
    """Task definitions by name."""

    kind, sample = "task", NEW_TASK
    list_display = ("definition", "description", "limits", "changed", "changed_by")
    ordering = ("name",)

    def save(self, form: Form, row: TaskDefinition | None, by: str) -> None:
        document, reason = form.cleaned_data["document"], form.cleaned_data["reason"]
        if row is not None:
            refuse_another_name(document, row)
        definitions.save_task(document, by, overwrite=row is not None, reason=reason)

    @admin.display(description="limits")
    def limits(self, row: TaskDefinition) -> str:
        at_a_time = f"{row.concurrent_limit} at a time" if row.concurrent_limit else ""
        rate = f"{row.rate_count} in {row.rate_seconds} s" if row.rate_count else ""
        return ", ".join(filter(None, (at_a_time, rate))) or "–"
