"""The access of people and programs as a role and a scope, and invitations.

A role on all objects is membership in the group of the role. A role on some objects is grants: the accesses of the
role, on the names, prefixes and tags of the scope. Other combinations of groups, permissions and grants are "custom".

An administrator may see the pages as another person, read-only, until they end it or sign out: the session has the id
of the other person. Only pages are affected: API requests of the browser act as its own user.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext as _

from ...core.definition import worker_tasks
from ...core.errors import Conflict, Forbidden, Invalid
from ...db.database import transaction
from ..audit import record_access_change
from ..grants import require_grant, require_group_permissions, require_user_permissions
from ..models import Application, Grant, Tag, UserProfile
from ..permissions import (
    ADMIN,
    READ,
    SYSTEM_ROLES,
    TAG,
    TASK_DEF,
    WORKFLOW,
    WORKFLOW_DEF,
    means_prefix,
    permission_set_of,
    require_free_user_name,
    role_group,
)
from ..visibility import visible, visible_names
from .applications import create_application, create_key
from .users import MAX_ID_LENGTH, USER_KIND, Subject, grant, insert_grants, keep_administrator, new_user

VIEWER, OPERATOR, AUTHOR, WORKER = "USER_READ_ONLY", "WORKFLOW_MANAGER", "METADATA_MANAGER", "WORKER"
PERSON_ROLES = (VIEWER, OPERATOR, AUTHOR, ADMIN)
PROGRAM_ROLES = (WORKER, *PERSON_ROLES)
CUSTOM = "custom"
"""Stands for groups, permissions and grants that no role and scope has."""
MAX_NAMES, MAX_NAME_LENGTH, MAX_TASKS = 100, 255, 500
GrantRow = tuple[str, str, str]
"""(target type, target id, access)"""
SHOWN_AS = "pages_shown_as"
PAGES = "/admin/"
STOP_PATH = "/admin/people/stop-showing/"
ALLOWED_COMMANDS = (STOP_PATH, "/admin/logout/")
OWN_ACCOUNT = ("/admin/second-factor/", "/admin/password_change/")
"""Pages that prepare changes of the user's own account when they are read."""


@dataclass(frozen=True, slots=True)
class Access:
    """A role on all objects, or on those with some names, prefixes (with a `*` at the end) or tags (`key:value`).

    `tasks`: further task types that it may read. Without a role: no access.
    """

    role: str = ""
    names: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()

    @property
    def is_on_all(self) -> bool:
        return bool(self.role) and not (self.names or self.tags)

    @property
    def is_custom(self) -> bool:
        return self.role == CUSTOM


NO_ACCESS = Access()


def _accesses_of_roles() -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the accesses to each target type that a role has.

    Without those to runs, which are named by their ids: grants on definitions apply to their runs.
    """
    table: dict[str, dict[str, tuple[str, ...]]] = {}
    for role in PROGRAM_ROLES:
        accesses = defaultdict(list)
        for access, target_type in sorted(SYSTEM_ROLES[role].rights):
            if target_type != WORKFLOW:
                accesses[target_type].append(access)
        table[role] = {target_type: tuple(found) for target_type, found in accesses.items()}
    return table


ACCESSES_OF_ROLES = _accesses_of_roles()


def grants_of(access: Access) -> set[GrantRow]:
    """Return the grants that stand for a role on some objects.

    A grant on a tag applies to each kind of object that has the tag. It has the accesses of the role to workflows.
    """
    by_type = ACCESSES_OF_ROLES[access.role]
    named = {(kind, name, each) for name in access.names for kind, accesses in by_type.items() for each in accesses}
    tagged = {(TAG, tag, each) for tag in access.tags for each in by_type[WORKFLOW_DEF]}
    return named | tagged | {(TASK_DEF, task, READ) for task in access.tasks}


def require_valid_access(access: Access, roles: Sequence[str]) -> None:
    """Check a role and its scope. `roles`: those that this kind of user may have.

    Raises:
        Invalid: when the role is unknown, or a name, prefix or tag is not valid, or they do not fit the role.
    """
    if access.role not in roles:
        raise Invalid("Choose a role.")
    if access.is_on_all:
        return
    if access.role == ADMIN:
        raise Invalid("An administrator has access to everything. Choose another role to limit it.")
    if access.role == WORKER and access.tags:
        raise Invalid("A worker has task types by names and prefixes, not by tags.")
    if len(access.names) + len(access.tags) > MAX_NAMES:
        raise Invalid(f"Enter at most {MAX_NAMES} names and tags. A prefix such as shop_* stands for many names.")
    for name in access.names:
        if name == "*":
            raise Invalid("The prefix '*' stands for every name. Choose all of them instead.")
        if len(name) > MAX_NAME_LENGTH or "*" in name[:-1]:
            raise Invalid(f"Not a name or prefix: '{name[:100]}'. A prefix ends with '*', as in shop_*.")
    for tag in access.tags:
        key, separator, value = tag.partition(":")
        if not (separator and key and value) or len(tag) > MAX_NAME_LENGTH or means_prefix(WORKFLOW_DEF, tag):
            raise Invalid(f"Not a tag: '{tag[:100]}'. Write key:value, as in team:shop.")


def access_of(user: User) -> Access:
    """Return the access of one user."""
    return accesses_of([user.pk])[user.pk]


def accesses_of(user_ids: Iterable[int]) -> dict[int, Access]:
    """Return the access of each user. The number of statements does not depend on the number of users."""
    users = get_user_model().objects.filter(pk__in=list(user_ids)).select_related("application")
    return {
        user.pk: _read_access(user) for user in users.prefetch_related("groups__profile", "grants", "user_permissions")
    }


def _read_access(user: User) -> Access:
    roles = PROGRAM_ROLES if (program := getattr(user, "application", None)) else PERSON_ROLES
    if user.is_superuser:
        return Access(ADMIN)
    groups, own_name = list(user.groups.all()), program.name if program else user.get_username()
    given = {
        (row.target_type, row.target_id, row.access)
        for row in cast(Any, user).grants.all()
        # Creators get all accesses to their objects.
        if row.is_prefix or row.granted_by != own_name
    }
    if user.user_permissions.all():
        return Access(CUSTOM)
    if not groups:
        return _access_with_grants(given, roles) if given else NO_ACCESS
    role = getattr(getattr(groups[0], "profile", None), "role", None) or ""
    return Access(role) if len(groups) == 1 and role in roles and not given else Access(CUSTOM)


def _access_with_grants(given: set[GrantRow], roles: Sequence[str]) -> Access:
    ids: dict[str, set[str]] = defaultdict(set)
    for kind, target_id, _access in given:
        ids[kind if kind in (TAG, TASK_DEF) else ""].add(target_id)
    names, tags, tasks = (tuple(sorted(found)) for found in (ids[""], ids[TAG], ids[TASK_DEF] - ids[""]))
    suitable = (role for role in roles if role != ADMIN and (names or tags) and not (tags and role == WORKER))
    candidates = (Access(role, names, tags, tasks) for role in suitable)
    return next((each for each in candidates if grants_of(each) == given), Access(CUSTOM))


def set_access(user_id: int, access: Access, by: str) -> None:
    """Replace the group and all grants of a person or program, including those on the objects that it has created.

    Raises:
        Forbidden: when the current actor does not have one of the permissions, before or after the change.
        Conflict: when the present access is custom, or no other administrator would remain.
    """
    with keep_administrator():
        user = get_user_model().objects.select_for_update().get(pk=user_id)
        program = Application.objects.filter(user=user).first()
        require_valid_access(access, PROGRAM_ROLES if program else PERSON_ROLES)
        require_user_permissions(user.pk)
        before = access_of(user)
        if user.is_superuser:
            raise Conflict(f"{user} is a superuser, whose access is changed on the page of the user only.")
        if before.is_custom:
            raise Conflict(f"The access of {user} fits no role and scope. Change its groups and grants instead.")
        _replace_access(user, access, by)
        if program is None:
            user.is_staff = True
            user.save(update_fields=["is_staff"])
            UserProfile.objects.update_or_create(user=user, defaults={"is_invited": not access.is_on_all})
        facts: dict[str, Any] = {"from": _as_facts(before), "to": _as_facts(access)}
        kind, id = ("application", program.pk) if program else (USER_KIND, user.get_username())
        record_access_change(kind, id, "set access", by, **facts)


def _replace_access(user: User, access: Access, by: str) -> None:
    Grant.objects.filter(user=user).delete()
    if access.is_on_all:
        group = role_group(access.role)
        require_group_permissions([group])
        user.groups.set([group])
        return
    user.groups.clear()
    accesses: dict[tuple[str, str], list[str]] = defaultdict(list)
    for target_type, target_id, each in sorted(grants_of(access)):
        accesses[target_type, target_id].append(each)
    for (target_type, target_id), given in accesses.items():
        is_prefix = means_prefix(target_type, target_id)
        require_grant(target_type, target_id, given, is_prefix=is_prefix)
        insert_grants([Subject(user_id=user.pk)], target_type, target_id, given, by, is_prefix=is_prefix)


def _as_facts(access: Access) -> dict[str, Any]:
    parts = {"names": access.names, "tags": access.tags, "tasks": access.tasks}
    facts: Mapping[str, Any] = {"role": access.role, **{name: [*part] for name, part in parts.items()}}
    return {name: value for name, value in facts.items() if value}


def invite(name: str, email: str, access: Access, by: str) -> User:
    """Create a person with access to the pages, who cannot sign in until a password is set or an identity linked.

    Raises:
        Invalid: when the name, the role or the scope is not valid.
        Conflict: when another user or an application has this name.
        Forbidden: when the current actor does not have a permission that it gives.
    """
    _require_valid_name(name)
    with transaction.atomic():
        require_free_user_name(name)
        user = new_user(name)
        user.email = email
        user.save(update_fields=["email"])
        record_access_change(USER_KIND, name, "invite", by, **({"email": email} if email else {}))
        set_access(user.pk, access, by)
    user.refresh_from_db()
    return user


def _require_valid_name(name: str) -> None:
    try:
        UnicodeUsernameValidator()(name)
    except ValidationError as error:
        raise Invalid(" ".join(error.messages)) from None
    if len(name) > MAX_ID_LENGTH:
        raise Invalid(f"A name must have at most {MAX_ID_LENGTH} characters.")


def add_program(name: str, access: Access, by: str) -> tuple[Application, str, str]:
    """Create an application with access and a key. Returns it, the id of the key and its secret.

    Raises:
        Conflict: when a user or another application has this name.
        Forbidden: when the current actor does not have a permission that it gives.
    """
    with transaction.atomic():
        if Application.objects.filter(name=name).exists():
            raise Conflict(f"Another application has the name {name[:200]}.")
        made = create_application(name, by)
        set_access(made.user_id, access, by)
        key_id, secret = create_key(made.id, by)
    return made, key_id, secret


def set_active(user_id: int, is_active: bool, by: str) -> None:
    """Deactivate a person, who is signed out and cannot sign in, or activate the person again.

    Raises:
        Forbidden: when the current actor does not have all permissions of the person.
        Conflict: when no other administrator would remain.
    """
    with keep_administrator():
        user = get_user_model().objects.select_for_update().get(pk=user_id)
        if not is_active:
            require_user_permissions(user.pk)
        user.is_active = is_active
        user.save(update_fields=["is_active"])
        # A deactivated user has no permissions.
        require_user_permissions(user.pk)
        record_access_change(USER_KIND, user.get_username(), "activate" if is_active else "deactivate", by)


def with_tasks(access: Access) -> Access:
    """Return the access with the task types that its workflows have now, of which the current actor may read both.

    Raises:
        Invalid: when there are too many.
    """
    rows = visible(apps.get_model("conductor", "WorkflowDefinition")._default_manager.order_by("version"))
    known = set(rows.order_by().values_list("name", flat=True))
    newest = dict(rows.filter(name__in=matching_names(access, WORKFLOW_DEF, known)).values_list("name", "document"))
    used = set[str]().union(*map(worker_tasks, newest.values()))
    tasks = visible_names(TASK_DEF, sorted(used - {*matching_names(access, TASK_DEF, used)}))
    if len(tasks) > MAX_TASKS:
        raise Invalid(f"These workflows have more than {MAX_TASKS} tasks. Enter a prefix of their names.")
    return replace(access, tasks=tuple(tasks))


def new_tasks(access: Access) -> tuple[str, ...]:
    """Return the task types that the workflows of a scope have now, and that it may not read."""
    if access.is_on_all or access.is_custom or not access.role:
        return ()
    try:
        return tuple(task for task in with_tasks(access).tasks if task not in access.tasks)
    except Invalid:
        return ()


def grant_new_tasks(user_id: int, by: str) -> None:
    """Let a person read the tasks that its workflows have now, as far as the current actor may read them."""
    with transaction.atomic():
        user = get_user_model().objects.select_for_update().get(pk=user_id)
        require_user_permissions(user.pk)
        for task in new_tasks(access_of(user)):
            grant(Subject(user_id=user.pk), TASK_DEF, task, [READ], user.get_username(), by)


def matching_names(access: Access, target_type: str, names: Iterable[str]) -> list[str]:
    """Return those of the names of a target type that the scope has."""
    exact = {name for name in access.names if not means_prefix(target_type, name)}
    for key, _colon, value in (tag.partition(":") for tag in access.tags):
        tagged = Tag.objects.filter(object_type=target_type, key=key, value=value)
        exact |= set(tagged.values_list("object_name", flat=True))
    prefixes = tuple(name[:-1] for name in access.names if means_prefix(target_type, name))
    return sorted(name for name in names if name in exact or (prefixes and name.startswith(prefixes)))


def may_show_as(viewer: User, person: User) -> bool:
    """Return True if the viewer is an administrator, and the other person may sign in and has no more permissions."""
    is_person = person.is_active and person.is_staff and not hasattr(person, "application")
    has_no_more = viewer.is_superuser or not person.is_superuser
    return viewer.pk != person.pk and is_person and has_no_more and permission_set_of(viewer.pk).is_admin


def start_showing(request: HttpRequest, person: User) -> None:
    """Show the pages of this session as the other person sees them.

    Raises:
        Forbidden: when the user is no administrator, or the other person cannot sign in or has more permissions.
    """
    viewer = cast(User, request.user)
    if not may_show_as(viewer, person):
        raise Forbidden(f"{viewer} may not see the pages as {person}.", code="FORBIDDEN")
    record_access_change(USER_KIND, person.get_username(), "start showing pages", viewer.get_username())
    request.session[SHOWN_AS] = person.pk


def stop_showing(request: HttpRequest) -> None:
    """Show the user's own pages again."""
    person = get_user_model().objects.filter(pk=request.session.pop(SHOWN_AS, None)).first()
    if person is not None:
        record_access_change(USER_KIND, person.get_username(), "stop showing pages", request.user.get_username())


def show_as_person(request: HttpRequest) -> None:
    """Make the other person the user of a request for a page. `request.viewer` is then the user of the session."""
    if not (request.path_info.startswith(PAGES) and request.user.is_authenticated):
        return
    person_id = request.session.get(SHOWN_AS)
    if person_id is None or request.path_info in ALLOWED_COMMANDS:
        return
    viewer, person = request.user, get_user_model().objects.filter(pk=person_id).first()
    if person is None or not may_show_as(viewer, person):
        del request.session[SHOWN_AS]
        return
    shown: Any = request
    shown.viewer, shown.user = viewer, person


def require_read_only(request: HttpRequest) -> None:
    """Raise PermissionDenied if a request may change something while it shows the pages as another person."""
    is_reading = request.method in ("GET", "HEAD") and request.path_info not in OWN_ACCOUNT
    if hasattr(request, "viewer") and not is_reading:
        name = request.user.get_username()
        raise PermissionDenied(_("Nothing can be changed while you see the pages as %(name)s.") % {"name": name})
