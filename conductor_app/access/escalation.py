"""Protection against escalation: an actor cannot give permissions that it does not have itself."""

from collections.abc import Iterable

from django.contrib.auth.models import Group

from ..core.errors import Forbidden
from ..models import Grant
from . import permission_cache
from .access_types import TAG, Right
from .conductor_auth import Actor
from .current_actor import current_actor
from .permission_set import NO_PATTERNS, PermissionSet


def missing_permissions(holder: PermissionSet, wanted: PermissionSet) -> list[str]:
    """Return the permissions in `wanted` that the holder does not have, as texts."""
    if holder.is_admin:
        return []
    if wanted.is_admin:
        return ["the role ADMIN"]
    missing = [f"{access} on {target_type} (all)" for access, target_type in sorted(wanted.rights - holder.rights)]
    for right, patterns in wanted.names.items():
        names = [*patterns.exact, *(f"{prefix}*" for prefix in patterns.prefixes)]
        missing += [_describe(right, name) for name in sorted(names) if not _allows_pattern(holder, right, name)]
    return missing


def _allows_pattern(holder: PermissionSet, right: Right, name: str) -> bool:
    """Return True if the holder has the right on a name, or on all names with a prefix before a trailing `*`."""
    if not name.endswith("*"):
        return holder.allows(*right, name)
    held = holder.names.get(right, NO_PATTERNS)
    return holder.allows_all(right) or name[:-1].startswith(held.prefixes)


def _describe(right: Right, name: str) -> str:
    return f"{right[0]} on {right[1]} '{name[:200]}'"


def may_give(wanted: PermissionSet) -> bool:
    """Return True if the current actor has all of these permissions."""
    actor = current_actor()
    return actor is None or not missing_permissions(actor.permissions, wanted)


def require_held(wanted: PermissionSet) -> None:
    """Check that the current actor has all permissions that it is about to give, or to take over.

    Raises:
        Forbidden: when it lacks one of them; the message names it.
    """
    actor = current_actor()
    if actor is None:
        return
    if missing := missing_permissions(actor.permissions, wanted):
        raise _error(actor, missing)


def require_user_permissions(user_id: int) -> None:
    """Check that the current actor has all permissions of a user, whose keys or password it is about to set.

    Raises:
        Forbidden: when it lacks one of them.
    """
    if current_actor() is not None:
        require_held(permission_cache.read_permission_set(user_id))


def require_group_permissions(groups: Iterable[Group]) -> None:
    """Check that the current actor has all permissions of these groups and roles.

    Raises:
        Forbidden: when it lacks one of them.
    """
    if current_actor() is not None:
        for group in groups:
            require_held(permission_cache.read_group_permission_set(group.pk))


def require_rights(rights: Iterable[Right]) -> None:
    """Check that the current actor has these rights on all objects of their types.

    Raises:
        Forbidden: when it lacks one of them.
    """
    require_held(PermissionSet(rights=frozenset(rights)))


def require_grant(target_type: str, target_id: str, accesses: Iterable[str]) -> None:
    """Check that the current actor has the accesses to a target that it is about to grant.

    A grant on a tag applies to objects that get the tag later, so it requires the same grant.

    Raises:
        Forbidden: when it lacks one of them.
    """
    actor = current_actor()
    if actor is None or actor.permissions.is_admin:
        return
    if target_type == TAG:
        own = Grant.objects.filter(user_id=actor.user_id or 0, target_type=TAG, target_id=target_id)
        held = set(own.values_list("access", flat=True))
        missing = [_describe((access, TAG), target_id) for access in accesses if access not in held]
    else:
        rights = [(access, target_type) for access in accesses]
        missing = [_describe(r, target_id) for r in rights if not _allows_pattern(actor.permissions, r, target_id)]
    if missing:
        raise _error(actor, missing)


def require_tag(target_type: str, name: str, key: str, value: str) -> None:
    """Check that a tag gives the holders of grants on it only accesses that the current actor has to the object.

    Raises:
        Forbidden: when it lacks one of them.
    """
    if current_actor() is not None:
        granted = Grant.objects.filter(target_type=TAG, target_id=f"{key}:{value}")
        require_grant(target_type, name, sorted(set(granted.values_list("access", flat=True))))


def _error(actor: Actor, missing: list[str]) -> Forbidden:
    return Forbidden(
        f"{actor.name} cannot give a permission that it does not have: {', '.join(missing)[:500]}.", code="FORBIDDEN"
    )
