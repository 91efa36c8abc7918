"""Types of objects in the audit log: their labels and their addresses."""

from collections.abc import Callable

from django.urls import reverse
from django.utils.translation import gettext_lazy

from ..models import AuditEntry
from .events.event_pages import event_address
from .failures.failure_groups import failure_group_address
from .queues.queue_list import queue_address
from .runs.run_page import run_address
from .standalone.page_addresses import group_address as task_group_address

OBJECT_LABELS = {
    "run": gettext_lazy("Runs"),
    "bulk operation": gettext_lazy("Bulk operations"),
    "failure group": gettext_lazy("Failure groups"),
    "view": gettext_lazy("Saved views"),
    "alert": gettext_lazy("Alerts"),
    "alert target": gettext_lazy("Alert targets"),
    "queue": gettext_lazy("Queues"),
    "worker": gettext_lazy("Workers"),
    "task": gettext_lazy("Taskcluster tasks"),
    "task_group": gettext_lazy("Task groups"),
    "workflow_definition": gettext_lazy("Workflow definitions"),
    "task_definition": gettext_lazy("Task definitions"),
    "form_template": gettext_lazy("Form templates"),
    "schedule": gettext_lazy("Schedules"),
    "event": gettext_lazy("Events"),
    "event_handler": gettext_lazy("Event handlers"),
    "message": gettext_lazy("Undelivered messages"),
    "webhook": gettext_lazy("Webhooks"),
    "integration": gettext_lazy("Integrations"),
    "integration_model": gettext_lazy("Models"),
    "prompt": gettext_lazy("Prompts"),
    "retention policy": gettext_lazy("Retention"),
    "secret": gettext_lazy("Secrets"),
    "variable": gettext_lazy("Variables"),
    "application": gettext_lazy("Applications"),
    "permission": gettext_lazy("Permissions"),
    "quota": gettext_lazy("Quotas"),
    "budget": gettext_lazy("Budgets"),
    "vector index": gettext_lazy("Vector indexes"),
    "client": gettext_lazy("Taskcluster clients"),
    "scope_role": gettext_lazy("Taskcluster roles"),
    "user": gettext_lazy("Users"),
    "group": gettext_lazy("Groups"),
    "role": gettext_lazy("Roles"),
    "import": gettext_lazy("Imports"),
    "server": gettext_lazy("Server"),
}
"""All object types, in the order of the filter."""


def _search_address(page: str) -> Callable[[str], str]:
    """Return a function that builds the address of a list that searches for an id."""
    return lambda id: reverse(f"admin:{page}_changelist", query={"q": id})


def _definition_address(page: str) -> Callable[[str], str]:
    return lambda id: _search_address(page)(id.rpartition(":")[0] or id)


def _numbered_address(address_of: Callable[[int], str]) -> Callable[[str], str]:
    return lambda id: address_of(int(id)) if id.isdecimal() and len(id) < 18 else ""


OBJECT_ADDRESSES: dict[str, Callable[[str], str]] = {
    "run": run_address,
    "bulk operation": lambda id: reverse("admin:bulk_operation", args=[id]),
    "failure group": _numbered_address(failure_group_address),
    "view": _numbered_address(lambda id: reverse("admin:view", args=[id])),
    "alert": lambda id: reverse("admin:views"),
    "alert target": _numbered_address(lambda id: reverse("admin:alert_target", args=[id])),
    "queue": queue_address,
    "worker": lambda id: reverse("admin:workers", query={"q": id}),
    "task": lambda id: reverse("admin:conductor_standalonetask_change", args=[id]),
    "task_group": task_group_address,
    "workflow_definition": _definition_address("conductor_workflowdefinition"),
    "task_definition": _definition_address("conductor_taskdefinition"),
    "form_template": lambda id: reverse("admin:form_templates"),
    "schedule": _search_address("conductor_schedule"),
    "event": _numbered_address(event_address),
    "event_handler": _search_address("conductor_eventhandler"),
    "message": lambda id: reverse("admin:undelivered_messages"),
    "webhook": lambda id: reverse("admin:webhook", args=[id]),
    "integration": lambda id: reverse("admin:integration", args=[id]),
    "integration_model": lambda id: reverse("admin:integration", args=[id.partition(":")[0]]),
    "prompt": lambda id: reverse("admin:prompts"),
    "retention policy": lambda id: reverse("admin:retention"),
    "secret": _search_address("conductor_secret"),
    "variable": _search_address("conductor_variable"),
    "application": _search_address("conductor_application"),
    "permission": lambda id: _search_address("conductor_grant")(id.partition(":")[2]),
    "quota": lambda id: reverse("admin:quotas"),
    "budget": lambda id: reverse("admin:budgets"),
    "vector index": lambda id: reverse("admin:vector_indexes"),
    "client": _search_address("conductor_client"),
    "scope_role": _search_address("conductor_scoperole"),
    "user": _search_address("auth_user"),
    "group": _search_address("auth_group"),
    "role": _search_address("auth_group"),
}


def object_address(entry: AuditEntry) -> str:
    """Return the address of the object or of a search for it. Empty if no page shows it."""
    build_address = OBJECT_ADDRESSES.get(entry.object_type)
    return build_address(entry.object_id) if build_address and entry.object_id else ""
