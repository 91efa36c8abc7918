"""Task definitions: retries, time limits and concurrency limits."""

from typing import Any

from django.contrib import admin
from django.forms import Form
from django.http import HttpRequest
from django.urls import URLPattern
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.permissions import TASK_DEF
from ...web.badges import format_count
from ...web.forms import format_json
from .. import commands, validation
from ..editor.checks import CheckResult, place_findings
from ..editor.pages import require_same_name
from ..editor.step_catalog import NEW_TASK
from ..editor.task_form import TaskFormPages
from ..models import TaskDefinition
from ..policies import task_drawings
from ..queries import workflows_using_task
from .workflows import ArchiveFilter, CatalogTaskList, render_flags


class TaskDefinitionAdmin(TaskFormPages):
    """Task definitions by name."""

    kind, sample, page_template = "task", NEW_TASK, "task"
    target_type = TASK_DEF
    new_title, saved_message = gettext_lazy("New task definition"), gettext_lazy("Task definition saved.")
    list_display = ("title", "description", "owner_email", "used_by", "limits", "updated", "changed_by")
    list_filter = (ArchiveFilter,)
    ordering = ("name",)

    def get_urls(self) -> list[URLPattern]:
        return [*self.form_urls(), *super().get_urls()]

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[CatalogTaskList]:
        return CatalogTaskList

    @admin.display(description=gettext_lazy("name"))
    def title(self, row: TaskDefinition) -> SafeString:
        name = format_html('<a href="{}/change/"><strong>{}</strong></a>', row.pk, row.name)
        return format_html("{} {}", name, render_flags(row.catalog_entry.flags))

    @admin.display(description=gettext_lazy("used by"))
    def used_by(self, row: TaskDefinition) -> str:
        return format_count(row.catalog_entry.used_by) if row.catalog_entry.used_by else "–"

    def get_extra_context(self, request: HttpRequest, row: TaskDefinition) -> dict[str, Any]:
        found = place_findings(validation.lint_task(row.document), format_json(row.document))
        return {
            "used_by": workflows_using_task(row.name),
            "checked": CheckResult(row.document, found) if found else None,
            **task_drawings(row.document),
        }

    def get_drawings(self, result: Any) -> dict[str, Any]:
        return task_drawings(result.document) if result.document is not None else {}

    def save_document(self, form: Form, row: TaskDefinition | None, by: str) -> None:
        document, reason = form.cleaned_data["document"], form.cleaned_data["reason"]
        if row is not None:
            require_same_name(document, row)
        commands.save_task(document, by, overwrite=row is not None, reason=reason)

    @admin.display(description=gettext_lazy("limits"))
    def limits(self, row: TaskDefinition) -> str:
        at_a_time = _("%(count)s at a time") % {"count": row.concurrent_limit} if row.concurrent_limit else ""
        facts = {"count": row.rate_count, "seconds": row.rate_seconds}
        rate = _("%(count)s in %(seconds)s s") % facts if row.rate_count else ""
        return ", ".join(filter(None, (at_a_time, rate))) or "–"
