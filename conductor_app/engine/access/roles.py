"""Commands on custom roles. Each role is a Django group with the role's permissions."""

from collections.abc import Sequence

from django.contrib.auth.models import Group, Permission
from django.db import IntegrityError, transaction
from django.db.models import Q

from ...access.access_types import PERMISSION_BY_RIGHT, RIGHT_BY_NAME, SYSTEM_ROLES
from ...access.escalation import require_rights
from ...core.errors import Conflict, Forbidden, Invalid, NotFound
from ...models import GroupProfile
from .access_audit import record_access_change

KIND = "role"
MAX_NAME_LENGTH = 100


def create_role(name: str, permissions: Sequence[str], by: str, reason: str = "") -> None:
    """Create a role.

    Raises:
        Invalid: when the name is invalid, or one of the permissions does not exist.
        Conflict: when the role exists.
    """
    check_role(name, permissions)
    wanted = _find_permissions(permissions)
    require_rights(RIGHT_BY_NAME[name] for name in permissions)
    if name in SYSTEM_ROLES:
        raise Conflict(f"The role {name} already exists.")
    try:
        with transaction.atomic():
            group = Group.objects.create(name=f"Role {name}")
            GroupProfile.objects.create(group=group, role=name)
            group.permissions.set(wanted)
            record_access_change(KIND, name, "create", by, reason, permissions=sorted(permissions))
    except IntegrityError:
        raise Conflict(f"The role {name} already exists.") from None


def check_role(name: str, permissions: Sequence[str]) -> None:
    """Check the name and the permissions of a role.

    Raises:
        Invalid: when the name is invalid, or one of the permissions does not exist.
    """
    if not name or len(name) > MAX_NAME_LENGTH:
        raise Invalid(f"The name of a role must have 1 to {MAX_NAME_LENGTH} characters.")
    if unknown := sorted(set(permissions) - RIGHT_BY_NAME.keys()):
        raise Invalid(f"Unknown permissions: {', '.join(unknown)[:300]}. Use one of: {', '.join(RIGHT_BY_NAME)}.")


def update_role(name: str, permissions: Sequence[str], by: str, reason: str = "") -> None:
    """Replace the permissions of a role.

    Raises:
        Invalid: when one of the permissions does not exist.
        NotFound: when there is no such role.
        Forbidden: when the role is built in.
    """
    check_role(name, permissions)
    wanted = _find_permissions(permissions)
    require_rights(RIGHT_BY_NAME[each] for each in permissions)
    with transaction.atomic():
        _find_custom_role(name).permissions.set(wanted)
        record_access_change(KIND, name, "change", by, reason, permissions=sorted(permissions))


def delete_role(name: str, by: str, reason: str = "") -> None:
    """Delete a role.

    Raises:
        NotFound: when there is no such role.
        Forbidden: when the role is built in.
    """
    with transaction.atomic():
        _find_custom_role(name).delete()
        record_access_change(KIND, name, "delete", by, reason)


def _find_custom_role(name: str) -> Group:
    if name in SYSTEM_ROLES:
        raise Forbidden(f"The role {name} is built in and cannot be changed.", code="FORBIDDEN")
    found = Group.objects.filter(profile__role=name).first()
    if found is None:
        raise NotFound(f"There is no role {name}.")
    return found


def _find_permissions(names: Sequence[str]) -> list[Permission]:
    """Return the Django permissions of these names, which are known."""
    wanted = Q(pk__in=())
    for app, codename in (PERMISSION_BY_RIGHT[RIGHT_BY_NAME[name]].split(".") for name in names):
        wanted |= Q(content_type__app_label=app, codename=codename)
    return list(Permission.objects.filter(wanted))
