"""The kinds of documents in a folder of definitions, and how the kind of a document without one is recognized."""

from typing import Any

from .checks.field_specs import TASK_DEFINITION

KIND_NAMES = {
    "schema": "schemas",
    "task": "tasks",
    "queue-limit": "queue-limits",
    "form-template": "form-templates",
    "workflow": "workflows",
    "event-handler": "event-handlers",
    "schedule": "schedules",
    "alert": "alerts",
    "role": "roles",
}
"""The values of `kind` in a document, and the plural of the kind that each names."""
TASK_FIELDS = frozenset(spec.name for spec in TASK_DEFINITION)


def recognize_kind(document: dict[str, Any]) -> str:
    """Return the stated kind of a document, or the kind that has such fields, or an empty text."""
    if isinstance(stated := document.get("kind"), str):
        return stated
    if isinstance(document.get("tasks"), list):
        return "workflow"
    if "startWorkflowRequest" in document:
        return "schedule"
    if "event" in document and "actions" in document:
        return "event-handler"
    if "conditions" in document:
        return "alert"
    if "jsonSchema" in document or "templateUI" in document:
        return "form-template"
    if "permissions" in document:
        return "role"
    if "data" in document and "name" in document:
        return "schema"
    return "task" if "name" in document and document.keys() - {"kind"} <= TASK_FIELDS else ""
