"""Roles as Django groups: the predefined ones of `access_types`, and those that users define."""

from django.contrib.auth.models import Group, Permission
from django.db import connection, transaction

from ..core.errors import NotFound
from ..models import GroupProfile
from .access_types import ADMIN, PERMISSION_BY_RIGHT, SYSTEM_ROLES, SystemRole

ADMINISTRATOR_APP_LABELS = ("conductor", "auth", "django_celery_beat")


def role_group(role: str) -> Group:
    """Return the group of a role.

    Raises:
        NotFound: when there is no such role.
    """
    group = Group.objects.filter(profile__role=role).first()
    if group is None and role in SYSTEM_ROLES:
        ensure_system_roles()
        group = Group.objects.filter(profile__role=role).first()
    if group is None:
        raise NotFound(f"There is no role {role}.")
    return group


def ensure_system_roles() -> None:
    """Create or update the groups of the predefined roles."""
    if GroupProfile._meta.db_table not in connection.introspection.table_names():
        return
    permissions = {
        f"{app}.{codename}": id
        for id, app, codename in Permission.objects.values_list("id", "content_type__app_label", "codename")
    }
    with transaction.atomic():
        for name, role in SYSTEM_ROLES.items():
            _save_role(name, role).permissions.set(_role_permissions(name, role, permissions))


def _save_role(name: str, role: SystemRole) -> Group:
    facts = GroupProfile.objects.filter(role=name).select_related("group").first()
    if facts is not None:
        return facts.group
    # If a user has created a group with this name, its members must not get the role.
    is_name_taken = Group.objects.filter(name=role.group).exists()
    group = Group.objects.create(name=f"{role.group} ({name})" if is_name_taken else role.group)
    GroupProfile.objects.create(group=group, role=name, description=f"The role {name}.")
    return group


def _role_permissions(name: str, role: SystemRole, permission_ids: dict[str, int]) -> list[int]:
    if name == ADMIN:
        return [id for permission, id in permission_ids.items() if permission.startswith(ADMINISTRATOR_APP_LABELS)]
    required = {PERMISSION_BY_RIGHT[right] for right in role.rights} | set(role.page_permissions)
    return [permission_ids[permission] for permission in sorted(required) if permission in permission_ids]
