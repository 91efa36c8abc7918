"""Accesses and target types, each with the Django permission that grants the same access on pages.

A right is an access to all objects of a type, such as (READ, WORKFLOW_DEF). A role is a set of rights. Django's tables
store a right as a permission, and a role as a group with its permissions.
"""

from dataclasses import dataclass

CREATE, READ, UPDATE, DELETE, EXECUTE = ACCESSES = ("CREATE", "READ", "UPDATE", "DELETE", "EXECUTE")
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
    USER: ("auth.{}_user", CRUD_ACCESSES),
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
    *(f"django_celery_beat.view_{model}" for model in ("periodictask", "intervalschedule", "crontabschedule")),
)
"""Permissions on pages that are not rights of clients."""
USED_PERMISSIONS = frozenset((*PERMISSION_BY_RIGHT.values(), *RUN_PAGE_PERMISSIONS, *PAGE_ONLY_PERMISSIONS))
"""Every permission that the server checks. Django creates four for each table, most of which have no effect."""


@dataclass(frozen=True, slots=True)
class SystemRole:
    """A predefined role: its Django group, its rights, and additional permissions on pages."""

    group: str
    rights: frozenset[Right]
    page_permissions: tuple[str, ...] = ()


def _rights_on(accesses: tuple[str, ...], *targets: str) -> frozenset[Right]:
    return frozenset((access, target) for target in targets for access in accesses)


AUTHORED_TARGET_TYPES = (WORKFLOW_DEF, TASK_DEF, SCHEDULE, EVENT_HANDLER, SCHEMA, WEBHOOK, FORM_TEMPLATE, PROMPT)
"""The target types that users create."""
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
ADMIN = "ADMIN"


def normalize_target_type(target_type: str) -> str:
    """Return the canonical name of a target type. Clients use two names for some types."""
    return TARGET_TYPE_ALIASES.get(target_type, target_type)
