"""Commands on users. The id that clients use is Django's `username`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from ...access.access_keys import APPLICATION_USER_PREFIX
from ...access.escalation import require_group_permissions
from ...access.roles import role_group
from ...core.errors import Conflict, Invalid, NotFound
from ...models import UserProfile
from .access_audit import record_access_change
from .subjects import find_group

KIND = "user"
MAX_ID_LENGTH = 150


@dataclass(frozen=True, slots=True)
class UserSettings:
    """Properties of a user that a client sets. None leaves a property unchanged."""

    name: str
    roles: Sequence[str] | None = None
    groups: Sequence[str] | None = None
    contact: dict[str, str] = field(default_factory=dict)


def upsert_user(id: str, facts: UserSettings, by: str) -> User:
    """Create or update a user. A new user cannot sign in until an operator sets a password.

    Raises:
        Invalid: when the id is invalid.
        NotFound: when one of the roles or groups does not exist.
        Conflict: when a concurrent request creates the same user.
    """
    if not id or len(id) > MAX_ID_LENGTH or id.startswith(APPLICATION_USER_PREFIX):
        raise Invalid(
            f"A user id must have 1 to {MAX_ID_LENGTH} characters and not begin with '{APPLICATION_USER_PREFIX}'."
        )
    with transaction.atomic():
        user = get_user_model().objects.select_for_update().filter(username=id).first()
        is_new = user is None
        user = user or _new_user(id)
        first, _, last = facts.name.partition(" ")
        user.first_name, user.last_name = first, last
        user.save()
        _assign_memberships(user, facts)
        UserProfile.objects.update_or_create(user=user, defaults={"contact": facts.contact})
        audited: dict[str, Any] = {"name": facts.name, "roles": facts.roles, "groups": facts.groups}
        record_access_change(
            KIND, id, "create" if is_new else "change", by, **{key: value for key, value in audited.items() if value}
        )
    return user


def _new_user(id: str) -> User:
    user = get_user_model()(username=id, email=id if "@" in id else "")
    user.set_unusable_password()
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError:
        raise Conflict(f"The user {id} was created by a concurrent request.") from None
    return user


def _assign_memberships(user: User, facts: UserSettings) -> None:
    """Replace the roles and groups of a user by the given ones."""
    if facts.roles is not None:
        role_groups = Group.objects.exclude(profile__role=None)
        _replace_memberships(user, role_groups, [role_group(role) for role in facts.roles])
    if facts.groups is not None:
        _replace_memberships(
            user, Group.objects.filter(profile__role=None), [find_group(group) for group in facts.groups]
        )


def _replace_memberships(user: User, among: QuerySet[Group], wanted: list[Group]) -> None:
    require_group_permissions(group for group in wanted if not user.groups.filter(pk=group.pk).exists())
    leaves = among.filter(user=user).exclude(pk__in=[group.pk for group in wanted])
    user.groups.remove(*leaves)
    user.groups.add(*wanted)


def delete_user(id: str, by: str) -> None:
    """Delete a user with the user's grants.

    Raises:
        NotFound: when there is no such user.
        Conflict: when the user is a superuser or belongs to an application.
    """
    with transaction.atomic():
        found = get_user_model().objects.filter(username=id).first()
        if found is None:
            raise NotFound(f"There is no user {id}.")
        if found.is_superuser:
            raise Conflict(f"{id} is a superuser. Delete superusers on the admin pages.")
        if id.startswith(APPLICATION_USER_PREFIX):
            raise Conflict(f"{id} is the user of an application. Delete the application instead.")
        found.delete()
        record_access_change(KIND, id, "delete", by)
