"""Permissions: target types and accesses, sets of permissions, roles, and their cache.

A right is an access to all objects of a type, such as (READ, WORKFLOW_DEF). A role is a set of rights. Django's tables
store a right as a permission, and a role as a group with its permissions.

The cache is compared with the revision in the database once per second. So most requests need no statement for
authorization, and a revoked key or grant loses its effect within one second.

A name stands for one actor: no application has the name of a user. Names that only differ in case, in the form of their
characters or in invisible characters count as the same. Several applications may share a name.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.db import router
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext_lazy

from ..core.errors import Conflict, Invalid, NotFound
from ..db.database import alias, connection, transaction
from ..db.fields import UserKey
from ..utils import clock, process_state
from .models import AccessKey, AccessRevision, Application, Grant, GroupProfile, Tag

CREATE, READ, UPDATE, DELETE, EXECUTE = ACCESSES = ("CREATE", "READ", "UPDATE", "DELETE", "EXECUTE")
USER_APP, USER_MODEL = settings.AUTH_USER_MODEL.lower().split(".")
Right = tuple[str, str]
"""(access, target type)"""

DJANGO_VERBS = {CREATE: "add", READ: "view", UPDATE: "change", DELETE: "delete", EXECUTE: "execute"}

WORKFLOW_DEF, TASK_DEF, WORKFLOW, APPLICATION = "WORKFLOW_DEF", "TASK_DEF", "WORKFLOW", "APPLICATION"
USER, GROUP, TAG, DOMAIN = "USER", "GROUP", "TAG", "DOMAIN"
SCHEDULE, EVENT_HANDLER, SECRET, VARIABLE = "WORKFLOW_SCHEDULE", "EVENT_HANDLER", "SECRET_NAME", "ENV_VARIABLE"
SCHEMA, WEBHOOK, FORM_TEMPLATE = "SCHEMA", "WEBHOOK", "USER_FORM_TEMPLATE"
INTEGRATION_PROVIDER, PROMPT = "INTEGRATION_PROVIDER", "PROMPT"
INTEGRATION = "INTEGRATION"
"""A model of an integration (`integration:model`), or a database of SQL_TASK_CONNECTIONS. It can only be granted."""

AGENT = "AGENT"
"""The tools of agents that change something (`/mcp`). They also require the right to what they change."""

DEBUG = "DEBUG"
"""The debugger: breakpoints, steps, changes of a stopped run. It also requires the right to the run or definition."""

CRUD_ACCESSES = (CREATE, READ, UPDATE, DELETE)
CRUD_VERBS = tuple(DJANGO_VERBS[access] for access in CRUD_ACCESSES)
TARGET_TYPES: dict[str, tuple[str, tuple[str, ...]]] = {
    WORKFLOW_DEF: ("conductor.{}_workflowdefinition", ACCESSES),
    TASK_DEF: ("conductor.{}_taskdefinition", ACCESSES),
    WORKFLOW: ("conductor.{}_run", (READ, UPDATE, DELETE)),
    APPLICATION: ("conductor.{}_application", CRUD_ACCESSES),
    USER: (f"{USER_APP}.{{}}_{USER_MODEL}", CRUD_ACCESSES),
    GROUP: ("auth.{}_group", CRUD_ACCESSES),
    DOMAIN: ("conductor.{}_domain", (EXECUTE,)),
    SCHEDULE: ("conductor.{}_schedule", ACCESSES),
    EVENT_HANDLER: ("conductor.{}_event_handler", ACCESSES),
    SECRET: ("conductor.{}_secret", ACCESSES),
    VARIABLE: ("conductor.{}_variable", ACCESSES),
    SCHEMA: ("conductor.{}_schema", ACCESSES),
    WEBHOOK: ("conductor.{}_webhook", ACCESSES),
    FORM_TEMPLATE: ("conductor.{}_formtemplate", CRUD_ACCESSES),
    INTEGRATION_PROVIDER: ("conductor.{}_integration", ACCESSES),
    PROMPT: ("conductor.{}_prompt", ACCESSES),
    AGENT: ("conductor.{}_agent", (EXECUTE,)),
    DEBUG: ("conductor.{}_debug", (EXECUTE,)),
}
"""The target types of rights, with the name in their Django permissions and the accesses that apply to them."""

PERMISSION_BY_RIGHT: dict[Right, str] = {
    (access, target): pattern.format(DJANGO_VERBS[access])
    for target, (pattern, accesses) in TARGET_TYPES.items()
    for access in accesses
}
RIGHT_BY_PERMISSION = {permission: right for right, permission in PERMISSION_BY_RIGHT.items()}
RIGHT_BY_NAME = {f"{access}_{target}": (access, target) for access, target in PERMISSION_BY_RIGHT}
"""Rights by the names that clients use for the permissions of a role."""

GRANTABLE_TARGET_TYPES = {
    *TARGET_TYPES, TAG, "TASK_REF_NAME", "TASK_ID", INTEGRATION, "CLUSTER_CONFIG",
} - {GROUP}  # fmt: skip
"""Target types that clients' grants may name."""
RUN_VIEW_RIGHTS: tuple[Right, ...] = ((READ, WORKFLOW_DEF), (READ, WORKFLOW))
RUN_CONTROL_RIGHTS: tuple[Right, ...] = ((EXECUTE, WORKFLOW_DEF), (UPDATE, WORKFLOW), (EXECUTE, WORKFLOW))
"""Rights of which one is needed to see, or to control, a run: on its definition or on the run itself."""
WORKER_RIGHTS: tuple[Right, ...] = ((EXECUTE, TASK_DEF), (EXECUTE, DOMAIN))
"""Rights of which one is needed to claim a task."""
TARGET_TYPE_ALIASES = {"SECRET": SECRET, "SCHEDULE": SCHEDULE}

RUN_PAGE_PERMISSIONS = tuple(
    f"conductor.view_{model}"
    for model in (
        "attempt",
        "task",
        "historyentry",
        "tasklog",
        "message",
        "poller",
        "sweeppass",
        "artifact",
        "auditentry",
        "scheduleexecution",
        "failuregroup",
        "bulkoperation",
        "retentionpolicy",
        "savedview",
        "modelusage",
        "modelbudget",
        "vectordocument",
    )
)

PAGE_ONLY_PERMISSIONS = (
    *(f"conductor.{verb}_{model}" for verb in CRUD_VERBS for model in ("client", "scoperole")),
    *(f"conductor.{verb}_{model}" for verb in ("add", "view", "delete") for model in ("accesskey", "grant")),
    *(f"conductor.view_{model}" for model in ("taskgroup", "standalonetask")),
    *(f"conductor.change_{model}" for model in ("accesskey", "callerquota", "retentionpolicy", "standalonetask")),
    "conductor.view_callerquota",
    "conductor.change_modelbudget",
    "conductor.delete_vectordocument",
)
"""Permissions on pages that are not rights of clients."""
USED_PERMISSIONS = frozenset((*PERMISSION_BY_RIGHT.values(), *RUN_PAGE_PERMISSIONS, *PAGE_ONLY_PERMISSIONS))
"""Every permission that the server checks. Django creates four for each table, most of which have no effect."""
AUTHORED_TARGET_TYPES = (WORKFLOW_DEF, TASK_DEF, SCHEDULE, EVENT_HANDLER, SCHEMA, WEBHOOK, FORM_TEMPLATE, PROMPT)
"""The target types that users create."""
ADMIN = "ADMIN"
RECHECK_MS = 1_000
MAX_AGE_MS = 30_000
"""The maximum age of the cache, in milliseconds. Manual changes of rows do not increase the revision."""
ADMINISTRATOR_APP_LABELS = ("conductor", "auth", "django_celery_beat")


@dataclass(frozen=True, slots=True)
class SystemRole:
    """A predefined role: its Django group, its rights, and additional permissions on pages."""

    group: str
    rights: frozenset[Right]
    page_permissions: tuple[str, ...] = ()


def _rights_on(accesses: tuple[str, ...], *targets: str) -> frozenset[Right]:
    return frozenset((access, target) for target in targets for access in accesses)


SYSTEM_ROLES: dict[str, SystemRole] = {
    "ADMIN": SystemRole("Administrators", frozenset(PERMISSION_BY_RIGHT)),
    # The creator of an object gets all accesses to it; there is no other implicit access.
    "USER": SystemRole("Users", _rights_on((CREATE,), *AUTHORED_TARGET_TYPES, APPLICATION)),
    "USER_READ_ONLY": SystemRole(
        "Viewers", _rights_on((READ,), *AUTHORED_TARGET_TYPES, WORKFLOW), RUN_PAGE_PERMISSIONS
    ),
    "WORKER": SystemRole("Workers", _rights_on((READ, EXECUTE), TASK_DEF) | _rights_on((EXECUTE,), DOMAIN)),
    "METADATA_MANAGER": SystemRole(
        "Authors",
        _rights_on(CRUD_ACCESSES, *AUTHORED_TARGET_TYPES) | _rights_on((READ,), WORKFLOW),
        RUN_PAGE_PERMISSIONS,
    ),
    "WORKFLOW_MANAGER": SystemRole(
        "Operators",
        _rights_on((READ, EXECUTE), *AUTHORED_TARGET_TYPES) - _rights_on((EXECUTE,), TASK_DEF, SCHEMA, FORM_TEMPLATE)
        | _rights_on((READ, UPDATE, DELETE), WORKFLOW),
        RUN_PAGE_PERMISSIONS,
    ),
    "APPLICATION_MANAGER": SystemRole(
        "Application managers",
        _rights_on(CRUD_ACCESSES, APPLICATION),
        tuple(f"conductor.{verb}_accesskey" for verb in ("add", "view", "change", "delete")),
    ),
}
"""The predefined roles. ADMIN passes every check, regardless of its rights."""


def normalize_target_type(target_type: str) -> str:
    """Return the canonical name of a target type. Clients use two names for some types."""
    return TARGET_TYPE_ALIASES.get(target_type, target_type)


VERB_WORDS = {
    "add": gettext_lazy("create"),
    "view": gettext_lazy("view"),
    "change": gettext_lazy("change"),
    "delete": gettext_lazy("delete"),
    "execute": gettext_lazy("use"),
}
NOUNS = {
    "attempt": gettext_lazy("tasks"),
    "poller": gettext_lazy("workers"),
    "sweeppass": gettext_lazy("the state of the server"),
    "workflowdefinition": gettext_lazy("workflows"),
}
"""Words for what a permission is about, where the name of the model says something else."""
PERMISSION_WORDS = {
    "conductor.execute_workflowdefinition": gettext_lazy("start workflows"),
    "conductor.execute_debug": gettext_lazy("debug runs"),
    "conductor.execute_agent": gettext_lazy("change something through the tools of agents"),
}


def permission_words(permission: str) -> str:
    """Return what a permission permits, such as "view runs" for `conductor.view_run`. Other texts return ""."""
    app, _dot, codename = permission.partition(".")
    verb, _line, model = codename.partition("_")
    if verb not in VERB_WORDS or not model or not app.isidentifier():
        return ""
    if permission in PERMISSION_WORDS:
        return str(PERMISSION_WORDS[permission])
    try:
        noun = NOUNS.get(model) or apps.get_model(app, model)._meta.verbose_name_plural
    except LookupError:
        # Rights on objects that have no table.
        noun = f"{model.replace('_', ' ')}s"
    return f"{VERB_WORDS[verb]} {noun}"


def smallest_role_with(permission: str) -> str:
    """Return the name of the group of the first role that has a permission, from viewers to administrators."""
    roles = (SYSTEM_ROLES[name] for name in ("USER_READ_ONLY", "WORKFLOW_MANAGER", "METADATA_MANAGER"))
    right = RIGHT_BY_PERMISSION.get(permission)
    found = (role for role in roles if right in role.rights or permission in role.page_permissions)
    return next(found, SYSTEM_ROLES[ADMIN]).group


@dataclass(frozen=True, slots=True)
class NamePatterns:
    """A set of names and of prefixes of names."""

    exact: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.exact or name.startswith(self.prefixes)


NO_PATTERNS = NamePatterns()


@dataclass(frozen=True, slots=True)
class PermissionSet:
    """Rights on all objects of a type, and on objects by name."""

    is_admin: bool = False
    rights: frozenset[Right] = frozenset()
    names: Mapping[Right, NamePatterns] = field(default_factory=dict)

    def allows_all(self, *rights: Right) -> bool:
        """Return True if one of these rights applies to all objects of its type."""
        return self.is_admin or not self.rights.isdisjoint(rights)

    def allows_any(self, *rights: Right) -> bool:
        """Return True if one of these rights applies to any object."""
        return self.allows_all(*rights) or any(right in self.names for right in rights)

    def allows(self, access: str, target_type: str, name: str) -> bool:
        """Return True if the access applies to the object with this name."""
        right = (access, target_type)
        return self.is_admin or right in self.rights or name in self.names.get(right, NO_PATTERNS)


ALL_PERMISSIONS, NO_PERMISSIONS = PermissionSet(is_admin=True), PermissionSet()


def means_prefix(target_type: str, target_id: str) -> bool:
    """Return True if a client means all names with a prefix by the id of a grant: it ends with `*`, and is no tag."""
    return target_type != TAG and target_id.endswith("*")


def require_plain_name(name: str) -> None:
    """Raise Invalid if the name of a new object contains `*`, which a client would write for a prefix."""
    if "*" in name:
        raise Invalid(f"The name '{name[:200]}' must not contain '*': in a grant, it ends a prefix of names.")


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The application that a key belongs to."""

    name: str
    user_id: UserKey


class PermissionCache:
    """Keys, permissions and quotas as of one revision. `has_quotas`: there are quotas."""

    def __init__(self, revision: int, now: int, has_quotas: bool = False) -> None:
        self.revision, self.loaded_at, self.checked_at = revision, now, now
        self.has_quotas = has_quotas
        self.keys: dict[str, KeyHolder | None] = {}
        self.permissions: dict[UserKey, PermissionSet] = {}
        self.clients: dict[Hashable, Any] = {}
        """Values that `clients.py` has read at this revision."""
        self.quotas: Any = None
        """All quotas, which `quotas.py` has read at this revision."""


_known = process_state.slot(lambda: PermissionCache(-1, -MAX_AGE_MS))


def current_cache() -> PermissionCache:
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


def permission_set_of(user_id: UserKey) -> PermissionSet:
    """Return the permissions of a user: a person, or an application's own user."""
    cache = current_cache()
    if user_id not in cache.permissions:
        cache.permissions[user_id] = read_permission_set(user_id)
    return cache.permissions[user_id]


class PagePermissions(PermissionSet):
    """The permissions of a user of pages. Rights on all objects are those that pages have read; others are read here.

    Without grants, a page executes no statement to decide what it shows.
    """

    __slots__ = ("_user",)
    _user: User

    def __init__(self, user: User) -> None:
        object.__setattr__(self, "_user", user)

    def allows_all(self, *rights: Right) -> bool:
        known = (PERMISSION_BY_RIGHT[right] for right in rights if right in PERMISSION_BY_RIGHT)
        return any(map(self._user.has_perm, known)) or self._all.allows_all(*rights)

    @property
    def is_admin(self) -> bool:
        return self._user.is_superuser or self._all.is_admin

    @property
    def rights(self) -> frozenset[Right]:
        return self._all.rights

    @property
    def names(self) -> Mapping[Right, NamePatterns]:
        return self._all.names

    @property
    def _all(self) -> PermissionSet:
        return permission_set_of(self._user.pk)


def other_database_of_users() -> str:
    """Return the database of users, groups or permissions if it is not that of this app, otherwise ""."""
    found = {router.db_for_read(model) for model in (get_user_model(), Group, Permission)}
    return min(found - {alias()}, default="")


def read_permission_set(user_id: UserKey) -> PermissionSet:
    """Read the permissions of a user from the database."""
    user = get_user_model()._default_manager.filter(pk=user_id, is_active=True).first()
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
    return PermissionSet(rights=rights, names=_names_by_right(grants))


def effective_groups(user_id: UserKey) -> "QuerySet[Any, tuple[int, str | None]]":
    """Return the groups and roles of a user, and the roles of its groups, as (id, role)."""
    groups = Group.objects.filter(Q(user=user_id) | Q(given_to__group__user=user_id))
    return groups.values_list("id", "profile__role").distinct()


def _names_by_right(grants: "QuerySet[Grant]") -> dict[Right, NamePatterns]:
    """Return the names of each right. A grant on a tag stands for the names of the objects that have the tag now."""
    exact: dict[Right, set[str]] = defaultdict(set)
    prefixes: dict[Right, set[str]] = defaultdict(set)
    tagged: dict[str, set[str]] = defaultdict(set)
    for access, target_type, target_id, is_prefix in grants.values_list(
        "access", "target_type", "target_id", "is_prefix"
    ):
        if target_type == TAG:
            tagged[target_id].add(access)
        elif is_prefix:
            prefixes[access, target_type].add(target_id[:-1])
        else:
            exact[access, target_type].add(target_id)
    for object_type, name, key, value in _tagged_names(tagged):
        for access in tagged[f"{key}:{value}"]:
            exact[access, object_type].add(name)
    return {
        right: NamePatterns(frozenset(exact[right]), tuple(sorted(prefixes[right]))) for right in {*exact, *prefixes}
    }


def _tagged_names(tags: Collection[str]) -> Iterable[tuple[str, str, str, str]]:
    """Return the objects that have one of these tags, each written as `key:value`."""
    condition = Q()
    for key, _, value in (tag.partition(":") for tag in tags):
        condition |= Q(key=key, value=value)
    return Tag.objects.filter(condition).values_list("object_type", "object_name", "key", "value") if tags else ()


def role_group(role: str) -> Group:
    group = Group.objects.filter(profile__role=role).first()
    if group is None and role in SYSTEM_ROLES:
        ensure_system_roles()
        group = Group.objects.filter(profile__role=role).first()
    if group is None:
        raise NotFound(f"There is no role {role}.")
    return group


def ensure_system_roles() -> None:
    """Create or update the groups of the predefined roles."""
    if GroupProfile._meta.db_table not in connection.introspection.table_names():
        return
    permissions = {
        f"{app}.{codename}": id
        for id, app, codename in Permission.objects.values_list("id", "content_type__app_label", "codename")
    }
    with transaction.atomic():
        for name, role in SYSTEM_ROLES.items():
            _save_role(name, role).permissions.set(_role_permissions(name, role, permissions))


def _save_role(name: str, role: SystemRole) -> Group:
    facts = GroupProfile.objects.filter(role=name).select_related("group").first()
    if facts is not None:
        return facts.group
    # If a user has created a group with this name, its members must not get the role.
    is_name_taken = Group.objects.filter(name=role.group).exists()
    group = Group.objects.create(name=f"{role.group} ({name})" if is_name_taken else role.group)
    GroupProfile.objects.create(group=group, role=name, description=f"The role {name}.")
    return group


def _role_permissions(name: str, role: SystemRole, permission_ids: dict[str, int]) -> list[int]:
    if name == ADMIN:
        return [id for permission, id in permission_ids.items() if permission.startswith(ADMINISTRATOR_APP_LABELS)]
    required = {PERMISSION_BY_RIGHT[right] for right in role.rights} | set(role.page_permissions)
    return [permission_ids[permission] for permission in sorted(required) if permission in permission_ids]


class PermissionPreload:
    """Loads the permissions of a user for the backend behind it, which decides. It grants nothing itself."""

    def authenticate(self) -> None:
        """Accept no credentials."""

    def has_perm(self, user: User | AnonymousUser, perm: str, obj: Any = None) -> bool:
        """Load the permissions if they have not been loaded. The next backend decides."""
        load_permissions(user)
        return False

    def has_module_perms(self, user: User | AnonymousUser, app_label: str) -> bool:
        """Load the permissions if they have not been loaded. The next backend decides."""
        load_permissions(user)
        return False


def load_permissions(user: Any) -> None:
    """Set the caches that `ModelBackend` reads: the permissions of the user, and those of the user's groups."""
    if not user.is_active or user.is_anonymous or user.is_superuser or hasattr(user, "_perm_cache"):
        return
    own = User.user_permissions.through.objects.filter(permission=OuterRef("pk"), user=user.pk)
    memberships = User.groups.through.objects.filter(user=user.pk)
    shared = Permission.group_set.through.objects.filter(
        permission=OuterRef("pk"), group__in=memberships.values("group")
    )
    rows = Permission.objects.order_by().annotate(is_own=Exists(own), is_shared=Exists(shared))
    granted = rows.filter(Q(is_own=True) | Q(is_shared=True))
    columns = granted.values_list("content_type__app_label", "codename", "is_own", "is_shared")
    names = [(f"{label}.{codename}", is_own, is_shared) for label, codename, is_own, is_shared in columns]
    user._user_perm_cache = {name for name, is_own, _ in names if is_own}
    user._group_perm_cache = {name for name, _, is_shared in names if is_shared}


INVISIBLE = ("Cc", "Cf")
"""Unicode's categories of characters that no page shows, such as the zero-width space."""


APPLICATION_USER_PREFIX = "app:"
RESERVED_NAMES = ("anonymous", "engine")
"""The names under which the server records callers without credentials, and its own changes."""


def name_field() -> str:
    """Return the field with the names of users: `username`, or another one in another Django project."""
    field: str = get_user_model().USERNAME_FIELD
    return field


def users_named(name: str) -> QuerySet[User]:
    """Return the user with this name, if there is one."""
    users: QuerySet[User] = get_user_model()._default_manager.filter(**{name_field(): name})
    return users


def comparable_name(name: str) -> str:
    """Return the form of a name in which names that look the same are equal."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return "".join(each for each in folded if unicodedata.category(each) not in INVISIBLE).strip()


def require_free_user_name(name: str, user_id: UserKey | None = None) -> None:
    """Check that no other user and no application has this name, and that it does not look like one of the server.

    `user_id`: the user itself, if it exists.

    Raises:
        Conflict: when it is taken.
    """
    _refuse_reserved(name)
    if _is_in(name, get_user_model()._default_manager.exclude(Q(pk=user_id)).values_list(name_field(), flat=True)):
        raise Conflict(f"Another user has the name {name[:200]}. Upper and lower case count as the same.")
    if _is_in(name, Application.objects.values_list("name", flat=True)):
        raise Conflict(f"An application has the name {name[:200]}. Rename the application first.")


def require_free_application_name(name: str, id: str = "") -> None:
    """Check that no user and no other application has this name, and that it does not look like one of the server.

    `id`: the application itself, if it exists.

    Raises:
        Conflict: when it is taken.
    """
    _refuse_reserved(name)
    if _is_in(name, get_user_model()._default_manager.values_list(name_field(), flat=True)):
        raise Conflict(f"A user has the name {name[:200]}. Choose another name for the application.")
    if _is_in(name, Application.objects.exclude(pk=id).values_list("name", flat=True)):
        raise Conflict(f"Another application has the name {name[:200]}. Upper and lower case count as the same.")


def _refuse_reserved(name: str) -> None:
    wanted = comparable_name(name)
    if wanted in RESERVED_NAMES or wanted.startswith(APPLICATION_USER_PREFIX):
        raise Conflict(f"The server itself uses the name {name[:200]}.")


def _is_in(name: str, names: QuerySet) -> bool:
    wanted = comparable_name(name)
    # Not by SQL, whose functions ignore only the case of ASCII letters on SQLite.
    return any(comparable_name(each) == wanted for each in names.iterator())
