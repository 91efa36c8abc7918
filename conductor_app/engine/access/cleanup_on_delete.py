"""Deletion of the grants and tags of deleted objects, so that a new object of the same name does not inherit them."""

from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Model
from django.db.models.signals import post_delete

from ...access.access_types import (
    APPLICATION,
    EVENT_HANDLER,
    INTEGRATION_PROVIDER,
    PROMPT,
    SCHEDULE,
    SCHEMA,
    SECRET,
    TASK_DEF,
    USER,
    VARIABLE,
    WEBHOOK,
    WORKFLOW_DEF,
)
from ...models import (
    Application,
    EventHandler,
    Grant,
    Integration,
    Prompt,
    Schedule,
    SchemaDefinition,
    Secret,
    Tag,
    TaskDefinition,
    Variable,
    Webhook,
    WorkflowDefinition,
)

NAMES: dict[type[Model], tuple[str, str]] = {
    WorkflowDefinition: (WORKFLOW_DEF, "name"),
    TaskDefinition: (TASK_DEF, "name"),
    Schedule: (SCHEDULE, "name"),
    EventHandler: (EVENT_HANDLER, "name"),
    SchemaDefinition: (SCHEMA, "name"),
    Secret: (SECRET, "name"),
    Variable: (VARIABLE, "name"),
    Webhook: (WEBHOOK, "name"),
    Integration: (INTEGRATION_PROVIDER, "name"),
    Prompt: (PROMPT, "name"),
    Application: (APPLICATION, "id"),
}
"""The target type in grants and tags, and the name column, of each model."""


def connect_cleanup_signals() -> None:
    """Connect the deletion signals of all models that can be granted."""
    for model in name_columns():
        post_delete.connect(_on_removal, sender=model, dispatch_uid=f"leftovers of {model.__name__}")


def name_columns() -> dict[type[Model], tuple[str, str]]:
    """Return NAMES with Django's user model."""
    return {**NAMES, get_user_model(): (USER, "username")}


def _on_removal(sender: type[Model], instance: Model, **_: Any) -> None:
    target, column = name_columns()[sender]
    name = getattr(instance, column)
    # A definition exists until its last version is deleted.
    if not sender._default_manager.filter(**{column: name}).exists():
        Grant.objects.filter(target_type=target, target_id=name).delete()
        # Tags name a webhook by its id.
        tagged = instance.pk if target == WEBHOOK else name
        Tag.objects.filter(object_type=target, object_name=tagged).delete()
