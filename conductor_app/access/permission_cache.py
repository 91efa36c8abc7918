"""Cache of keys, permissions and quotas, which is compared with the revision in the database once per second.

So most requests need no statement for authorization, and a revoked key or grant loses its effect within one second.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.db.models import Q, QuerySet

from .. import clock, process_state
from ..models import AccessKey, AccessRevision, Grant, Tag
from .access_types import ADMIN, RIGHT_BY_PERMISSION, TAG, Right
from .permission_set import ALL_PERMISSIONS, NO_PERMISSIONS, PermissionSet, name_patterns

RECHECK_MS = 1_000
MAX_AGE_MS = 30_000
"""The maximum age of the cache, in milliseconds. Manual changes of rows do not increase the revision."""


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The application that a key belongs to."""

    name: str
    user_id: int


class PermissionCache:
    """Keys, permissions and quotas as of one revision. `has_quotas`: there are quotas."""

    def __init__(self, revision: int, now: int, has_quotas: bool = False) -> None:
        self.revision, self.loaded_at, self.checked_at = revision, now, now
        self.has_quotas = has_quotas
        self.keys: dict[str, KeyHolder | None] = {}
        self.permissions: dict[int, PermissionSet] = {}
        self.clients: dict[Hashable, Any] = {}
        """Values that `clients.py` has read at this revision."""
        self.quotas: Any = None
        """All quotas, which `quotas.py` has read at this revision."""


_known = process_state.slot(lambda: PermissionCache(-1, -MAX_AGE_MS))


def current_cache() -> PermissionCache:
    """Return the current cache."""
    now, cache = clock.now(), _known.value
    if 0 <= now - cache.checked_at < RECHECK_MS:
        return cache
    revision, has_quotas = AccessRevision.objects.values_list("revision", "has_quotas").first() or (0, False)
    if revision != cache.revision or not 0 <= now - cache.loaded_at < MAX_AGE_MS:
        _known.value = cache = PermissionCache(revision, now, has_quotas)
    cache.checked_at = now
    return cache


def clear_cache() -> None:
    """Discard the cache after a change by this process."""
    _known.reset()


def find_key_holder(key_id: str) -> KeyHolder | None:
    """Return the holder of a key, or None if the key is invalid."""
    cache = current_cache()
    if key_id not in cache.keys:
        rows = AccessKey.objects.filter(pk=key_id, is_active=True, application__user__is_active=True)
        holder = rows.values_list("application__name", "application__user_id").first()
        cache.keys[key_id] = KeyHolder(*holder) if holder else None
    return cache.keys[key_id]


def permission_set_of(user_id: int) -> PermissionSet:
    """Return the permissions of a user: a person, or an application's own user."""
    cache = current_cache()
    if user_id not in cache.permissions:
        cache.permissions[user_id] = read_permission_set(user_id)
    return cache.permissions[user_id]


def read_permission_set(user_id: int) -> PermissionSet:
    """Read the permissions of a user from the database."""
    user = get_user_model().objects.filter(pk=user_id, is_active=True).first()
    if user is None:
        return NO_PERMISSIONS
    if user.is_superuser:
        return ALL_PERMISSIONS
    return _build_permission_set(Q(user=user_id), dict(effective_groups(user_id)))


def read_group_permission_set(group_id: int) -> PermissionSet:
    """Read the permissions that a group or a role gives its members from the database."""
    groups = Group.objects.filter(Q(pk=group_id) | Q(given_to__group=group_id))
    return _build_permission_set(Q(pk__in=()), dict(groups.values_list("id", "profile__role").distinct()))


def _build_permission_set(of_user: Q, groups: Mapping[int, str | None]) -> PermissionSet:
    """Return the permissions of a user and of its groups. `groups`: the role of each group by id."""
    if ADMIN in groups.values():
        return ALL_PERMISSIONS
    permissions = Permission.objects.filter(of_user | Q(group__in=groups)).distinct()
    permission_names = (f"{app}.{name}" for app, name in permissions.values_list("content_type__app_label", "codename"))
    rights = frozenset(RIGHT_BY_PERMISSION[name] for name in permission_names if name in RIGHT_BY_PERMISSION)
    grants = Grant.objects.filter(of_user | Q(group__in=groups))
    names_by_right = _names_by_right(grants.values_list("access", "target_type", "target_id"))
    return PermissionSet(rights=rights, names={right: name_patterns(ids) for right, ids in names_by_right.items()})


def effective_groups(user_id: int) -> "QuerySet[Any, tuple[int, str | None]]":
    """Return the groups and roles of a user, and the roles of its groups, as (id, role)."""
    groups = Group.objects.filter(Q(user=user_id) | Q(given_to__group__user=user_id))
    return groups.values_list("id", "profile__role").distinct()


def _names_by_right(grants: Iterable[tuple[str, str, str]]) -> dict[Right, set[str]]:
    """Return the names of each right. A grant on a tag stands for the names of the objects that have the tag now."""
    names_by_right: dict[Right, set[str]] = defaultdict(set)
    tagged: dict[str, set[str]] = defaultdict(set)
    for access, target_type, target_id in grants:
        if target_type == TAG:
            tagged[target_id].add(access)
        else:
            names_by_right[access, target_type].add(target_id)
    for object_type, name, key, value in _tagged_names(tagged):
        for access in tagged[f"{key}:{value}"]:
            names_by_right[access, object_type].add(name)
    return names_by_right


def _tagged_names(tags: Collection[str]) -> Iterable[tuple[str, str, str, str]]:
    """Return the objects that have one of these tags, each written as `key:value`."""
    condition = Q()
    for key, _, value in (tag.partition(":") for tag in tags):
        condition |= Q(key=key, value=value)
    return Tag.objects.filter(condition).values_list("object_type", "object_name", "key", "value") if tags else ()
