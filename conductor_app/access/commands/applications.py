"""Commands on applications, their roles and their keys; and the deletion of the grants of deleted objects."""

from collections.abc import Sequence

from django.db.models import Model
from django.db.models.signals import post_delete, pre_save

from ...core.errors import NotFound
from ...db.database import transaction
from ...utils import clock
from ..audit import record_access_change
from ..grants import require_group_permissions, require_user_permissions
from ..models import AccessKey, Application, Grant, Tag
from ..permissions import WEBHOOK, require_free_application_name, require_plain_name, role_group
from ..tokens import new_application, new_key

KIND = "application"


def find_application(id: str) -> Application:
    found = Application.objects.select_related("user").filter(pk=id).first()
    if found is None:
        raise NotFound(f"There is no application {id}.")
    return found


def find_managed_application(id: str) -> Application:
    """Return an application whose permissions the current actor has, so that it may change the application.

    Raises:
        Forbidden: when the current actor does not have all permissions of the application.
    """
    found = find_application(id)
    require_user_permissions(found.user_id)
    return found


def create_application(name: str, by: str, *roles: str) -> Application:
    """Create an application with the given roles. Without roles or grants it has no access.

    Raises:
        Conflict: when a user or an application has this name.
    """
    with transaction.atomic():
        created = new_application(name, by)
        record_access_change(KIND, created.id, "create", by, name=name)
        for role in roles:
            add_role(created.id, role, by)
    return created


def rename_application(id: str, name: str, by: str) -> Application:
    """Rename an application.

    Raises:
        Conflict: when a user or another application has this name.
        Forbidden: when it has permissions that the current actor does not have.
    """
    with transaction.atomic():
        found = find_managed_application(id)
        require_free_application_name(name, id)
        found.name, found.updated_at, found.updated_by = name, clock.now(), by
        found.user.first_name = name[:150]
        found.user.save()
        found.save()
        record_access_change(KIND, id, "rename", by, name=name)
    return found


def delete_application(id: str, by: str) -> None:
    """Delete an application with its keys and grants.

    Raises:
        Forbidden: when the current actor does not have all permissions of the application.
    """
    with transaction.atomic():
        found = find_managed_application(id)
        found.user.delete()
        record_access_change(KIND, id, "delete", by, name=found.name)


def add_role(id: str, role: str, by: str) -> None:
    """Add a role to an application.

    Raises:
        Forbidden: when the current actor does not have the permissions of the role and of the application.
    """
    with transaction.atomic():
        group = role_group(role)
        require_group_permissions([group])
        find_managed_application(id).user.groups.add(group)
        record_access_change(KIND, id, "add role", by, role=role)


def remove_role(id: str, role: str, by: str) -> None:
    """Remove a role from an application.

    Raises:
        Forbidden: when the current actor does not have all permissions of the application.
    """
    with transaction.atomic():
        find_managed_application(id).user.groups.remove(role_group(role))
        record_access_change(KIND, id, "remove role", by, role=role)


def create_key(id: str, by: str) -> tuple[str, str]:
    """Create an access key of an application. Returns its id and its secret, which cannot be read again.

    Raises:
        Forbidden: when the current actor does not have the permissions of the application.
    """
    with transaction.atomic():
        # The holder of the key acts as the application.
        application = find_managed_application(id)
        key_id, secret = new_key(application)
        record_access_change(KIND, id, "create key", by, key=key_id)
    return key_id, secret


def create_key_of(name: str, roles: Sequence[str], by: str) -> tuple[str, str]:
    """Create an access key of the application with this name. A missing application is created with these roles.

    Raises:
        Forbidden: when the current actor does not have the permissions of the application.
    """
    with transaction.atomic():
        found = Application.objects.filter(name=name).order_by("created_at", "id").first()
        return create_key((found or create_application(name, by, *roles)).id, by)


def toggle_key(id: str, key_id: str, by: str) -> AccessKey:
    """Deactivate an active access key, or activate an inactive one.

    Raises:
        Forbidden: when the current actor does not have all permissions of the application.
    """
    with transaction.atomic():
        key = _key(id, key_id)
        key.is_active = not key.is_active
        key.save()
        record_access_change(KIND, id, "enable key" if key.is_active else "disable key", by, key=key_id)
    return key


def delete_key(id: str, key_id: str, by: str) -> None:
    """Delete an access key. Its tokens become invalid.

    Raises:
        Forbidden: when the current actor does not have all permissions of the application.
    """
    with transaction.atomic():
        _key(id, key_id).delete()
        record_access_change(KIND, id, "delete key", by, key=key_id)


def _key(id: str, key_id: str) -> AccessKey:
    found = AccessKey.objects.select_for_update().filter(pk=key_id, application_id=id).first()
    if found is None:
        raise NotFound(f"Application {id} has no key {key_id}.")
    require_user_permissions(found.application.user_id)
    return found


def delete_grants_with(model: type[Model], target_type: str, column: str = "name") -> None:
    """Delete the grants and tags of an object with its row, so that a new object of its name does not inherit them.

    `column`: the column with the name that grants use.
    """

    def delete_leftovers(instance: Model, **_: object) -> None:
        name = getattr(instance, column)
        # A definition exists until its last version is deleted.
        if not model._default_manager.filter(**{column: name}).exists():
            Grant.objects.filter(target_type=target_type, target_id=name, is_prefix=False).delete()
            # Tags name a webhook by its id.
            tagged = instance.pk if target_type == WEBHOOK else name
            Tag.objects.filter(object_type=target_type, object_name=tagged).delete()

    uid = f"leftovers of {model.__name__}"
    post_delete.connect(delete_leftovers, sender=model, weak=False, dispatch_uid=uid)


def refuse_patterns_as_names(model: type[Model], column: str = "name") -> None:
    """Refuse new objects of this model whose name a client would write for a prefix, in whichever way they are made.

    A further version of an existing object may have its name.
    """

    def check_name(instance: Model, **_: object) -> None:
        name = str(getattr(instance, column))
        if "*" in name and instance._state.adding and not model._default_manager.filter(**{column: name}).exists():
            require_plain_name(name)

    uid = f"name of {model.__name__}"
    pre_save.connect(check_name, sender=model, weak=False, dispatch_uid=uid)
