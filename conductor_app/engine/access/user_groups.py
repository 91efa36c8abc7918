"""Commands on groups: their members, roles and default accesses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction

from ...access.escalation import require_group_permissions
from ...access.roles import role_group
from ...core.errors import Conflict, Invalid
from ...models import GroupProfile
from .access_audit import record_access_change
from .subjects import find_group, find_user, list_groups

KIND = "group"
MAX_ID_LENGTH = 150


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Properties of a group that a client sets. `roles`: None leaves them unchanged."""

    description: str
    roles: Sequence[str] | None = None
    default_access: Mapping[str, Sequence[str]] = field(default_factory=dict)
    contact: Mapping[str, str] = field(default_factory=dict)


def upsert_group(id: str, settings: GroupSettings, by: str) -> Group:
    """Create or update a group.

    Raises:
        Invalid: when the id is empty or too long.
        NotFound: when one of the roles does not exist.
        Conflict: when a role has the same name.
    """
    if not id or len(id) > MAX_ID_LENGTH:
        raise Invalid(f"The id of a group must have 1 to {MAX_ID_LENGTH} characters.")
    with transaction.atomic():
        group = list_groups().filter(name=id).first()
        is_new = group is None
        group = group or _new_group(id)
        facts, _ = GroupProfile.objects.get_or_create(group=group)
        facts.description, facts.default_access = settings.description, dict(settings.default_access)
        facts.contact = dict(settings.contact)
        facts.save()
        if settings.roles is not None:
            roles = [role_group(role) for role in settings.roles]
            require_group_permissions(roles)
            facts.roles.set(roles)
        record_access_change(
            KIND, id, "create" if is_new else "change", by, roles=settings.roles, shares=settings.default_access
        )
    return group


def _new_group(id: str) -> Group:
    try:
        with transaction.atomic():
            return Group.objects.create(name=id)
    except IntegrityError:
        raise Conflict(f"The name {id} is taken by a role.") from None


def delete_group(id: str, by: str) -> None:
    """Delete a group. Its members lose the accesses that they had through it.

    Raises:
        NotFound: when there is no such group.
    """
    with transaction.atomic():
        find_group(id).delete()
        record_access_change(KIND, id, "delete", by)


def add_users(id: str, user_ids: Sequence[str], by: str) -> None:
    """Add users to a group, all or none.

    Raises:
        NotFound: when there is no such group, or one of the users does not exist.
    """
    with transaction.atomic():
        group = find_group(id)
        require_group_permissions([group])
        group.user_set.add(*(find_user(each) for each in user_ids))
        record_access_change(KIND, id, "add users", by, users=list(user_ids))


def remove_users(id: str, user_ids: Sequence[str], by: str) -> None:
    """Remove users from a group. Users that are not members are ignored.

    Raises:
        NotFound: when there is no such group, or one of the users does not exist.
    """
    with transaction.atomic():
        find_group(id).user_set.remove(*(find_user(each) for each in user_ids))
        record_access_change(KIND, id, "remove users", by, users=list(user_ids))
