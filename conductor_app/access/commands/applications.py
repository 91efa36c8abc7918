"""Commands on applications, the first access to a server, and what is left of deleted objects.

Commands on applications, their roles and their keys.

Initial access of a server: the root client of its environment, and the role of anonymous callers.

Deletion of the grants and tags of deleted objects, so that a new object of the same name does not inherit them.
"""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.db.models import Model
from django.db.models.signals import post_delete

from ...ai.models import Integration, Prompt
from ...core.errors import NotFound
from ...definitions.models import SchemaDefinition, TaskDefinition, WorkflowDefinition
from ...events.models import EventHandler, Webhook
from ...schedules.models import Schedule
from ...settings import conf
from ...taskcluster.auth.commands import ClientSettings, create_client, reset_token
from ...taskcluster.auth.scopes import ANONYMOUS_ROLE_SCOPE, ASSUME_PREFIX, NEVER_EXPIRES, decrypt_token
from ...taskcluster.models import Client, ScopeRole
from ...utils import clock
from .. import secrets as vault
from .. import tokens as access_keys
from ..audit import record_access_change
from ..grants import require_group_permissions, require_user_permissions
from ..models import AccessKey, Application, Grant, Secret, Tag, Variable
from ..permissions import (
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
    role_group,
)

KIND = "application"


def find_application(id: str) -> Application:
    """Return an application by id.

    Raises:
        NotFound: when there is no such application.
    """
    found = Application.objects.select_related("user").filter(pk=id).first()
    if found is None:
        raise NotFound(f"There is no application {id}.")
    return found


def create_application(name: str, by: str, *roles: str) -> Application:
    """Create an application with the given roles. Without roles or grants it has no access.

    Raises:
        NotFound: when one of the roles does not exist.
    """
    with transaction.atomic():
        created = access_keys.new_application(name, by)
        record_access_change(KIND, created.id, "create", by, name=name)
        for role in roles:
            add_role(created.id, role, by)
    return created


def rename_application(id: str, name: str, by: str) -> Application:
    """Rename an application.

    Raises:
        NotFound: when there is no such application.
    """
    with transaction.atomic():
        found = find_application(id)
        found.name, found.updated_at, found.updated_by = name, clock.now(), by
        found.user.first_name = name[:150]
        found.user.save()
        found.save()
        record_access_change(KIND, id, "rename", by, name=name)
    return found


def delete_application(id: str, by: str) -> None:
    """Delete an application with its keys and grants.

    Raises:
        NotFound: when there is no such application.
    """
    with transaction.atomic():
        found = find_application(id)
        found.user.delete()
        record_access_change(KIND, id, "delete", by, name=found.name)


def add_role(id: str, role: str, by: str) -> None:
    """Add a role to an application.

    Raises:
        Forbidden: when the current actor does not have the permissions of the role.
        NotFound: when there is no such application or role.
    """
    with transaction.atomic():
        group = role_group(role)
        require_group_permissions([group])
        find_application(id).user.groups.add(group)
        record_access_change(KIND, id, "add role", by, role=role)


def remove_role(id: str, role: str, by: str) -> None:
    """Remove a role from an application.

    Raises:
        NotFound: when there is no such application or role.
    """
    with transaction.atomic():
        find_application(id).user.groups.remove(role_group(role))
        record_access_change(KIND, id, "remove role", by, role=role)


def create_key(id: str, by: str) -> tuple[str, str]:
    """Create an access key of an application. Returns its id and its secret, which cannot be read again.

    Raises:
        Forbidden: when the current actor does not have the permissions of the application.
        NotFound: when there is no such application.
    """
    with transaction.atomic():
        application = find_application(id)
        # The holder of the key acts as the application.
        require_user_permissions(application.user_id)
        key_id, secret = access_keys.new_key(application)
        record_access_change(KIND, id, "create key", by, key=key_id)
    return key_id, secret


def create_key_of(name: str, roles: Sequence[str], by: str) -> tuple[str, str]:
    """Create an access key of the application with this name. A missing application is created with these roles.

    Raises:
        Forbidden: when the current actor does not have the permissions of the application.
        NotFound: when one of the roles does not exist.
    """
    with transaction.atomic():
        found = Application.objects.filter(name=name).order_by("created_at", "id").first()
        return create_key((found or create_application(name, by, *roles)).id, by)


def toggle_key(id: str, key_id: str, by: str) -> AccessKey:
    """Deactivate an active access key, or activate an inactive one.

    Raises:
        NotFound: when the application has no such key.
    """
    with transaction.atomic():
        key = _key(id, key_id)
        key.is_active = not key.is_active
        if key.is_active:
            require_user_permissions(key.application.user_id)
        key.save()
        record_access_change(KIND, id, "enable key" if key.is_active else "disable key", by, key=key_id)
    return key


def delete_key(id: str, key_id: str, by: str) -> None:
    """Delete an access key. Its tokens become invalid.

    Raises:
        NotFound: when the application has no such key.
    """
    with transaction.atomic():
        _key(id, key_id).delete()
        record_access_change(KIND, id, "delete key", by, key=key_id)


def _key(id: str, key_id: str) -> AccessKey:
    found = AccessKey.objects.select_for_update().filter(pk=key_id, application_id=id).first()
    if found is None:
        raise NotFound(f"Application {id} has no key {key_id}.")
    return found


FIRST_SCOPES_OF_ANYBODY = ["queue:get-artifact:public/*"]


def ensure_first_access() -> None:
    """Create the missing parts of the initial access, once the tables exist."""
    if not {Client._meta.db_table, ScopeRole._meta.db_table} <= set(connection.introspection.table_names()):
        return
    _ensure_first_role()
    _ensure_root_client()


def _ensure_first_role() -> None:
    """Let anonymous callers read public artifacts, if there are no roles and clients yet."""
    if not ScopeRole.objects.exists() and not Client.objects.exists():
        now, description = clock.now(), "Scopes of anonymous callers."
        role = ANONYMOUS_ROLE_SCOPE.removeprefix(ASSUME_PREFIX)
        ScopeRole.objects.create(
            id=role, scopes=FIRST_SCOPES_OF_ANYBODY, description=description, created_at=now, updated_at=now
        )


def _ensure_root_client() -> None:
    """Create the root client that the server's environment defines, with all scopes, or set its token."""
    id, token = conf.taskcluster_root_client_id, conf.taskcluster_root_access_token
    if not id:
        return
    row = Client.objects.filter(pk=id).first()
    if row is None:
        everything = ClientSettings(["*"], NEVER_EXPIRES, "Defined in the server's environment.")
        create_client(id, everything, "environment", token=token)
    elif not _has_token(row, token):
        reset_token(id, "environment", token=token)


def _has_token(row: Client, token: str) -> bool:
    try:
        return decrypt_token(row.id, row.sealed) == token
    except vault.DecryptionFailed:
        return False


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
