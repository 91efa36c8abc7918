"""Audit: who did what, and why. Append-only."""

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from ...models import AuditEntry
from ..marks import ago
from ..read_only import ReadOnlyAdmin
from ..runs.page import address


class ObjectFilter(admin.SimpleListFilter):
    """By what was acted on."""

    title, parameter_name = "object", "object_type"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        return [
            ("run", "Runs"),
            ("task", _("Stand-alone tasks")),
            ("task_group", _("Task groups")),
            ("workflow_definition", "Workflow definitions"),
            ("task_definition", "Task definitions"),
            ("schedule", "Schedules"),
            ("secret", "Secrets"),
            ("variable", "Variables"),
            ("application", "Applications"),
            ("permission", "Permissions"),
            ("client", "Taskcluster clients"),
            ("scope_role", "Taskcluster roles"),
            ("user", "Users"),
            ("group", "Groups"),
            ("role", "Roles"),
        ]

    def queryset(self, request: HttpRequest, queryset):
        return queryset.filter(object_type=self.value()) if self.value() else queryset


class AuditAdmin(ReadOnlyAdmin):
    """Every act of a person or a client."""

    list_display = ("when", "actor", "action", "what", "reason")
    list_display_links = None
    list_filter = (ObjectFilter,)
    ordering = ("-at", "-id")
    search_fields = ("=object_id", "=actor")
    search_help_text = "A run id, name:version of a definition, a name, or an actor, exactly"
    fields = ("at", "actor", "action", "object_type", "object_id", "reason", "facts")

    @admin.display(description="when")
    def when(self, entry: AuditEntry) -> SafeString:
        return ago(entry.at)

    @admin.display(description="object")
    def what(self, entry: AuditEntry) -> SafeString:
        kind = entry.object_type.replace("_", " ")
        return format_html('{} <a href="{}">{}</a>', kind, address_of(entry), entry.object_id)


ACCESS = {
    "application": "conductor_application",
    "permission": "conductor_grant",
    "user": "auth_user",
    "group": "auth_group",
    "role": "auth_group",
    "client": "conductor_client",
    "scope_role": "conductor_scoperole",
}
"""The pages on which what is said of access is looked for."""

ALONE = {"task": "conductor_solo", "task_group": "conductor_group"}
"""The pages of what belongs to no run."""


def address_of(entry: AuditEntry) -> str:
    """Where the object is, or where to look for it."""
    if entry.object_type == "run":
        return address(entry.object_id)
    if entry.object_type in ALONE:
        return reverse(f"admin:{ALONE[entry.object_type]}_change", args=[entry.object_id])
    if entry.object_type in ("schedule", "secret", "variable"):
        return reverse(f"admin:conductor_{entry.object_type}_changelist", query={"q": entry.object_id})
    if entry.object_type in ACCESS:
        wanted = entry.object_id.partition(":")[2] if entry.object_type == "permission" else entry.object_id
        return reverse(f"admin:{ACCESS[entry.object_type]}_changelist", query={"q": wanted})
    page = "taskdefinition" if entry.object_type == "task_definition" else "workflowdefinition"
    name = entry.object_id.rpartition(":")[0] or entry.object_id
    return reverse(f"admin:conductor_{page}_changelist", query={"q": name})
