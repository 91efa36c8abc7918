"""Commands on groups: who is in them, which roles they have, what their members share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction

from ...access.roles import role_group
from ...core.errors import Conflict, Invalid
from ...models import GroupProfile
from .access_audit import record_access_change
from .subjects import find_group, find_user, list_groups

KIND = "group"
LONGEST_ID = 150


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """What a client says of a group. `roles`: None leaves them as they are."""

    description: str
    roles: Sequence[str] | None = None
    default_access: Mapping[str, Sequence[str]] = field(default_factory=dict)
    contact: Mapping[str, str] = field(default_factory=dict)


def upsert_group(id: str, said: GroupSettings, by: str) -> Group:
    """A group that is new or as it is told now. Raises Conflict where the name is a role's."""
    if not id or len(id) > LONGEST_ID:
        raise Invalid(f"The id of a group has up to {LONGEST_ID} characters.")
    with transaction.atomic():
        group = list_groups().filter(name=id).first()
        is_new = group is None
        group = group or _new_group(id)
        facts, _ = GroupProfile.objects.get_or_create(group=group)
        facts.description, facts.default_access = said.description, dict(said.default_access)
        facts.contact = dict(said.contact)
        facts.save()
        if said.roles is not None:
            facts.roles.set([role_group(role) for role in said.roles])
        record_access_change(
            KIND, id, "create" if is_new else "change", by, roles=said.roles, shares=said.default_access
        )
    return group


def _new_group(id: str) -> Group:
    try:
        with transaction.atomic():
            return Group.objects.create(name=id)
    except IntegrityError:
        raise Conflict(f"The name {id} is taken: a role is kept under it.") from None


def delete_group(id: str, by: str) -> None:
    """Delete a group; its members lose what they had by it. Raises NotFound."""
    with transaction.atomic():
        find_group(id).delete()
        record_access_change(KIND, id, "delete", by)


def add_users(id: str, user_ids: Sequence[str], by: str) -> None:
    """Let users into a group, all or none. Raises NotFound."""
    with transaction.atomic():
        find_group(id).user_set.add(*(find_user(each) for each in user_ids))
        record_access_change(KIND, id, "add users", by, users=list(user_ids))


def remove_users(id: str, user_ids: Sequence[str], by: str) -> None:
    """Take users out of a group; who is not in it does not matter. Raises NotFound."""
    with transaction.atomic():
        find_group(id).user_set.remove(*(find_user(each) for each in user_ids))
        record_access_change(KIND, id, "remove users", by, users=list(user_ids))
