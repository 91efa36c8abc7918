"""Commands on users, groups, roles and grants. The id of a user that clients use is Django's `username`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission, User
from django.db import IntegrityError
from django.db.models import Q, QuerySet

from ...core.definition import structure_of
from ...core.errors import Conflict, Forbidden, Invalid, NotFound
from ...core.step_types.base import type_of_queue
from ...db.database import transaction
from ...db.fields import UserKey
from ...utils import clock
from ..audit import announce_access_change, record_access_change
from ..authentication import Actor, current_actor
from ..grants import require_grant, require_group_permissions, require_rights, require_user_permissions
from ..models import Grant, GroupProfile, UserProfile
from ..permissions import (
    ACCESSES,
    ADMIN,
    APPLICATION_USER_PREFIX,
    EXECUTE,
    PERMISSION_BY_RIGHT,
    RIGHT_BY_NAME,
    SYSTEM_ROLES,
    TARGET_TYPES,
    TASK_DEF,
    means_prefix,
    require_free_user_name,
    role_group,
    users_named,
)

USER, GROUP, ROLE = "USER", "GROUP", "ROLE"
USER_KIND = "user"
MAX_ID_LENGTH = 150
GROUP_KIND = "group"
ROLE_KIND = "role"
MAX_NAME_LENGTH = 100


@dataclass(frozen=True, slots=True)
class Subject:
    """The id of a Django user or of a Django group; exactly one is set."""

    user_id: UserKey | None = None
    group_id: int | None = None


@contextmanager
def keep_administrator() -> Iterator[None]:
    """Run the block in a transaction, after which an administrator remains who can sign in, if there was one before.

    Raises:
        Conflict: when none would remain.
    """
    with transaction.atomic():
        # Two administrators who take the role from each other wait here.
        list(GroupProfile.objects.select_for_update().filter(role=ADMIN))
        able = administrators().filter(Q(external_identities__isnull=False) | ~Q(password__startswith="!"))
        before = [user.get_username() for user in able[:3]]
        yield
        if before and not able.exists():
            raise Conflict(
                f"{', '.join(before)} is the only administrator who can sign in. "
                "Make another person an administrator first."
            )


def administrators() -> "QuerySet[User]":
    """Return the people with all permissions who are not deactivated."""
    by_group = Q(groups__profile__role=ADMIN) | Q(groups__profile__roles__profile__role=ADMIN)
    people: QuerySet[User] = get_user_model().objects.filter(application=None, is_active=True, is_staff=True)
    return people.filter(Q(is_superuser=True) | by_group).distinct()


def find_subject(kind: str, id: str) -> Subject:
    if kind == USER:
        return Subject(user_id=find_user(id).pk)
    if kind == GROUP:
        return Subject(group_id=find_group(id).pk)
    if kind == ROLE:
        return Subject(group_id=role_group(id).pk)
    raise Invalid(f"A subject must be a USER, a GROUP or a ROLE (got '{kind[:100]}').")


def find_user(id: str) -> User:
    """Return the user with this name, or the user of the application with this id."""
    found = users_named(id).first() or users_named(f"{APPLICATION_USER_PREFIX}{id}").first()
    if found is None:
        raise NotFound(f"There is no user {id}.")
    return found


def find_group(id: str) -> Group:
    """Return the group with this name. Roles are not groups."""
    found = list_groups().filter(name=id).first()
    if found is None:
        raise NotFound(f"There is no group {id}.")
    return found


def list_groups() -> QuerySet[Group]:
    """Return all groups that are not roles, including those created in Django's admin."""
    return Group.objects.filter(profile__role=None)


def grant(subject: Subject, target_type: str, target_id: str, accesses: Iterable[str], to: str, by: str) -> None:
    """Grant accesses to a target. Existing grants stay.

    `target_id`: a name, a tag, or a prefix that ends with `*`. `to`: the name of the subject in the audit log.
    """
    accesses = [*accesses]
    require_grant(target_type, target_id, accesses, is_prefix=means_prefix(target_type, target_id))
    with transaction.atomic():
        insert_grants([subject], target_type, target_id, accesses, by, is_prefix=means_prefix(target_type, target_id))
        record_access_change("permission", f"{target_type}:{target_id}", "grant", by, to=to, access=sorted(accesses))


def revoke(subject: Subject, target_type: str, target_id: str, accesses: Iterable[str], to: str, by: str) -> None:
    """Revoke accesses to a target. Accesses that are not granted are ignored.

    Raises:
        Forbidden: when the current actor does not have them.
    """
    accesses = [*accesses]
    require_grant(target_type, target_id, accesses, is_prefix=means_prefix(target_type, target_id))
    with transaction.atomic():
        found = _filter_subject(subject).filter(target_type=target_type, target_id=target_id, access__in=accesses)
        found.delete()
        record_access_change("permission", f"{target_type}:{target_id}", "revoke", by, to=to, access=sorted(accesses))


def grant_to_creator(actor: Actor, made: Sequence[tuple[str, str]]) -> None:
    """Grant the creator of objects all accesses, and the creator's groups their default accesses, by exact name.

    A task definition with the name of a built-in type gives no right to claim the tasks of all authors.
    """
    with transaction.atomic():
        shared = _sharing_group_ids(actor.user_id) if actor.user_id else []
        for target_type, name in made:
            is_built_in = target_type == TASK_DEF and structure_of(type_of_queue(name)).is_built_in
            withheld = {EXECUTE} if is_built_in else set()
            if not actor.permissions.is_admin:
                accesses = [each for each in TARGET_TYPES[target_type][1] if each not in withheld]
                insert_grants([Subject(user_id=actor.user_id)], target_type, name, accesses, actor.name)
                record_access_change(
                    "permission", f"{target_type}:{name}", "grant", actor.name, to=actor.name, access=accesses
                )
            for group, access in shared:
                if given := [each for each in access.get(target_type) or () if each in {*ACCESSES} - withheld]:
                    insert_grants([Subject(group_id=group.pk)], target_type, name, given, actor.name)
                    record_access_change(
                        "permission", f"{target_type}:{name}", "grant", actor.name, to=group.name, access=given
                    )


def grant_to_current_actor(made: Sequence[tuple[str, str]]) -> None:
    """Grant the user of a page all accesses to the objects that it has created."""
    actor = current_actor()
    if actor is not None and actor.user_id is not None:
        grant_to_creator(actor, made)


def _sharing_group_ids(user_id: UserKey) -> list[tuple[Group, dict[str, Any]]]:
    """Return the groups of a user that have default accesses to their members' objects."""
    facts = GroupProfile.objects.filter(group__user__pk=user_id).select_related("group")
    return [(each.group, each.default_access) for each in facts if each.default_access]


def insert_grants(
    subjects: Sequence[Subject],
    target_type: str,
    target_id: str,
    accesses: Iterable[str],
    by: str,
    *,
    is_prefix: bool = False,
) -> None:
    """Add grants, without checks and without an audit entry. Those that exist stay."""
    now, accesses = clock.now(), [*accesses]
    if is_prefix:
        # A grant of the prefix includes the one of the object with this name.
        for subject in subjects:
            same = _filter_subject(subject).filter(target_type=target_type, target_id=target_id, access__in=accesses)
            same.update(is_prefix=True)
    Grant.objects.bulk_create(
        [
            Grant(
                user_id=subject.user_id,
                group_id=subject.group_id,
                target_type=target_type,
                target_id=target_id,
                is_prefix=is_prefix,
                access=access,
                granted_at=now,
                granted_by=by[:255],
            )
            for subject in subjects
            for access in accesses
        ],
        ignore_conflicts=True,
    )
    # `bulk_create` sends no signals.
    announce_access_change()


def _filter_subject(subject: Subject) -> QuerySet[Grant]:
    return Grant.objects.filter(Q(user_id=subject.user_id), Q(group_id=subject.group_id))


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
        Conflict: when another user or an application has this name, a concurrent request creates the same user, or no
            other administrator would remain.
        Forbidden: when the current actor does not have all permissions of the user.
    """
    if not id or len(id) > MAX_ID_LENGTH or id.startswith(APPLICATION_USER_PREFIX):
        raise Invalid(
            f"A user id must have 1 to {MAX_ID_LENGTH} characters and not begin with '{APPLICATION_USER_PREFIX}'."
        )
    with keep_administrator():
        user = users_named(id).select_for_update().first()
        is_new = user is None
        if user is None:
            require_free_user_name(id)
            user = new_user(id)
        else:
            require_user_permissions(user.pk)
        first, _, last = facts.name.partition(" ")
        user.first_name, user.last_name = first, last
        user.save()
        _assign_memberships(user, facts)
        UserProfile.objects.update_or_create(user=user, defaults={"contact": facts.contact})
        audited: dict[str, Any] = {"name": facts.name, "roles": facts.roles, "groups": facts.groups}
        record_access_change(
            USER_KIND,
            id,
            "create" if is_new else "change",
            by,
            **{key: value for key, value in audited.items() if value},
        )
    return user


def new_user(id: str) -> User:
    """Create a user without access, who cannot sign in.

    Raises:
        Conflict: when a concurrent request creates the same user.
    """
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
        Conflict: when the user is a superuser, belongs to an application, or is the last administrator.
        Forbidden: when the current actor does not have all permissions of the user.
    """
    with keep_administrator():
        found = users_named(id).first()
        if found is None:
            raise NotFound(f"There is no user {id}.")
        if found.is_superuser:
            raise Conflict(f"{id} is a superuser. Delete superusers on the admin pages.")
        if id.startswith(APPLICATION_USER_PREFIX):
            raise Conflict(f"{id} is the user of an application. Delete the application instead.")
        require_user_permissions(found.pk)
        found.delete()
        record_access_change(USER_KIND, id, "delete", by)


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
        Conflict: when a role has the same name, or no administrator would remain.
        Forbidden: when the current actor does not have all permissions of the group.
    """
    if not id or len(id) > MAX_ID_LENGTH:
        raise Invalid(f"The id of a group must have 1 to {MAX_ID_LENGTH} characters.")
    with keep_administrator():
        group = list_groups().filter(name=id).first()
        is_new = group is None
        group = group or _new_group(id)
        require_group_permissions([group])
        facts, _ = GroupProfile.objects.get_or_create(group=group)
        facts.description, facts.default_access = settings.description, dict(settings.default_access)
        facts.contact = dict(settings.contact)
        facts.save()
        if settings.roles is not None:
            roles = [role_group(role) for role in settings.roles]
            require_group_permissions(roles)
            facts.roles.set(roles)
        record_access_change(
            GROUP_KIND,
            id,
            "create" if is_new else "change",
            by,
            roles=settings.roles,
            shares=settings.default_access,
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
        Forbidden: when the current actor does not have all permissions of the group.
        Conflict: when no administrator would remain.
    """
    with keep_administrator():
        group = find_group(id)
        require_group_permissions([group])
        group.delete()
        record_access_change(GROUP_KIND, id, "delete", by)


def add_users(id: str, user_ids: Sequence[str], by: str) -> None:
    """Add users to a group, all or none."""
    with transaction.atomic():
        group = find_group(id)
        require_group_permissions([group])
        group.user_set.add(*(find_user(each) for each in user_ids))
        record_access_change(GROUP_KIND, id, "add users", by, users=list(user_ids))


def remove_users(id: str, user_ids: Sequence[str], by: str) -> None:
    """Remove users from a group. Users that are not members are ignored.

    Raises:
        Forbidden: when the current actor does not have all permissions of the group.
        Conflict: when no administrator would remain.
    """
    with keep_administrator():
        group = find_group(id)
        require_group_permissions([group])
        group.user_set.remove(*(find_user(each) for each in user_ids))
        record_access_change(GROUP_KIND, id, "remove users", by, users=list(user_ids))


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
            record_access_change(ROLE_KIND, name, "create", by, reason, permissions=sorted(permissions))
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
        Forbidden: when the role is built in, or has permissions that the current actor does not have.
    """
    check_role(name, permissions)
    wanted = _find_permissions(permissions)
    require_rights(RIGHT_BY_NAME[each] for each in permissions)
    with transaction.atomic():
        role = _find_custom_role(name)
        require_group_permissions([role])
        role.permissions.set(wanted)
        record_access_change(ROLE_KIND, name, "change", by, reason, permissions=sorted(permissions))


def delete_role(name: str, by: str, reason: str = "") -> None:
    """Delete a role.

    Raises:
        Forbidden: when the role is built in, or has permissions that the current actor does not have.
    """
    with transaction.atomic():
        role = _find_custom_role(name)
        require_group_permissions([role])
        role.delete()
        record_access_change(ROLE_KIND, name, "delete", by, reason)


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
