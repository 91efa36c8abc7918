"""Subjects of grants: users, groups and roles, found by the ids that clients use."""

from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet

from ...access.access_keys import APPLICATION_USER_PREFIX
from ...access.roles import role_group
from ...core.errors import Invalid, NotFound

USER, GROUP, ROLE = "USER", "GROUP", "ROLE"


@dataclass(frozen=True, slots=True)
class Subject:
    """The id of a Django user or of a Django group; exactly one is set."""

    user_id: int | None = None
    group_id: int | None = None


def find_subject(kind: str, id: str) -> Subject:
    """Return a subject by kind and id.

    Raises:
        NotFound: when there is no such subject.
        Invalid: when the kind is unknown.
    """
    if kind == USER:
        return Subject(user_id=find_user(id).pk)
    if kind == GROUP:
        return Subject(group_id=find_group(id).pk)
    if kind == ROLE:
        return Subject(group_id=role_group(id).pk)
    raise Invalid(f"A subject must be a USER, a GROUP or a ROLE (got '{kind[:100]}').")


def find_user(id: str) -> User:
    """Return the user with this name, or the user of the application with this id.

    Raises:
        NotFound: when there is neither.
    """
    users = get_user_model().objects
    found = users.filter(username=id).first() or users.filter(username=f"{APPLICATION_USER_PREFIX}{id}").first()
    if found is None:
        raise NotFound(f"There is no user {id}.")
    return found


def find_group(id: str) -> Group:
    """Return the group with this name. Roles are not groups.

    Raises:
        NotFound: when there is no such group.
    """
    found = list_groups().filter(name=id).first()
    if found is None:
        raise NotFound(f"There is no group {id}.")
    return found


def list_groups() -> QuerySet[Group]:
    """Return all groups that are not roles, including those created in Django's admin."""
    return Group.objects.filter(profile__role=None)
