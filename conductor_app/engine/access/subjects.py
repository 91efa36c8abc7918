"""Who is given something: a user, a group or a role, found by the names that clients have for them."""

from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from ...access.access_keys import APPLICATION_USER_PREFIX
from ...access.roles import role_group
from ...core.errors import Invalid, NotFound

USER, GROUP, ROLE = "USER", "GROUP", "ROLE"


@dataclass(frozen=True, slots=True)
class Subject:
    """A row of Django's: exactly one of the two."""

    user_id: int | None = None
    group_id: int | None = None


def find_subject(kind: str, id: str) -> Subject:
    """The subject with this id; raises NotFound, and Invalid for a kind that nothing can be granted to."""
    if kind == USER:
        return Subject(user_id=find_user(id).pk)
    if kind == GROUP:
        return Subject(group_id=find_group(id).pk)
    if kind == ROLE:
        return Subject(group_id=role_group(id).pk)
    raise Invalid(f"A subject is a USER, a GROUP or a ROLE; it is '{kind[:100]}'.")


def find_user(id: str):
    """The user with this name, or the user of the application with this id; raises NotFound."""
    users = get_user_model().objects
    found = users.filter(username=id).first() or users.filter(username=f"{APPLICATION_USER_PREFIX}{id}").first()
    if found is None:
        raise NotFound(f"There is no user {id}.")
    return found


def find_group(id: str) -> Group:
    """The group with this name, which is no role; raises NotFound."""
    found = list_groups().filter(name=id).first()
    if found is None:
        raise NotFound(f"There is no group {id}.")
    return found


def list_groups():
    """All groups that are no roles, those made on Django's own pages too."""
    return Group.objects.filter(facts__role=None)
