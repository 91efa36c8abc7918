"""What can be allowed: one table of accesses and targets, each with the Django permission that says the same on pages.

A right is an access to all things of a type (READ, WORKFLOW_DEF); a role is a set of rights. Both are kept in Django's
tables: a right as a permission, a role as a group that has it.
"""

from dataclasses import dataclass

CREATE, READ, UPDATE, DELETE, EXECUTE = ACCESSES = ("CREATE", "READ", "UPDATE", "DELETE", "EXECUTE")
Right = tuple[str, str]
"""(access, target type)"""

VERBS = {CREATE: "add", READ: "view", UPDATE: "change", DELETE: "delete", EXECUTE: "execute"}

WORKFLOW_DEF, TASK_DEF, WORKFLOW, APPLICATION = "WORKFLOW_DEF", "TASK_DEF", "WORKFLOW", "APPLICATION"
USER, GROUP, TAG, DOMAIN = "USER", "GROUP", "TAG", "DOMAIN"
SCHEDULE, EVENT_HANDLER, SECRET, VARIABLE = "WORKFLOW_SCHEDULE", "EVENT_HANDLER", "SECRET_NAME", "ENV_VARIABLE"
SCHEMA, WEBHOOK, FORM_TEMPLATE = "SCHEMA", "WEBHOOK", "USER_FORM_TEMPLATE"

CHANGES = (CREATE, READ, UPDATE, DELETE)
CHANGING = tuple(VERBS[access] for access in CHANGES)
TARGETS: dict[str, tuple[str, tuple[str, ...]]] = {
    WORKFLOW_DEF: ("conductor.{}_workflowdefinition", ACCESSES),
    TASK_DEF: ("conductor.{}_taskdefinition", ACCESSES),
    WORKFLOW: ("conductor.{}_run", (READ, UPDATE, DELETE)),
    APPLICATION: ("conductor.{}_application", CHANGES),
    USER: ("auth.{}_user", CHANGES),
    GROUP: ("auth.{}_group", CHANGES),
    DOMAIN: ("conductor.{}_domain", (EXECUTE,)),
    SCHEDULE: ("conductor.{}_schedule", ACCESSES),
    EVENT_HANDLER: ("conductor.{}_event_handler", ACCESSES),
    SECRET: ("conductor.{}_secret", CHANGES),
    VARIABLE: ("conductor.{}_variable", CHANGES),
    SCHEMA: ("conductor.{}_schema", ACCESSES),
    WEBHOOK: ("conductor.{}_webhook", ACCESSES),
    FORM_TEMPLATE: ("conductor.{}_formtemplate", CHANGES),
}
"""What there are rights over: how Django names the permission, and which accesses make sense."""

RIGHTS: dict[Right, str] = {
    (access, target): pattern.format(VERBS[access])
    for target, (pattern, accesses) in TARGETS.items()
    for access in accesses
}
BY_PERMISSION = {permission: right for right, permission in RIGHTS.items()}
BY_NAME = {f"{access}_{target}": (access, target) for access, target in RIGHTS}
"""Rights under the names that clients give to the permissions of a role."""

GRANTABLE = {
    *TARGETS, TAG, "TASK_REF_NAME", "TASK_ID", "INTEGRATION_PROVIDER", "INTEGRATION", "PROMPT", "CLUSTER_CONFIG",
} - {GROUP}  # fmt: skip
"""Target types that clients' grants may name."""
ALIASES = {"SECRET": SECRET, "SCHEDULE": SCHEDULE}

PAGES_OF_RUNS = tuple(
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
    )
)

OF_PAGES_ALONE = (
    *(f"conductor.{verb}_{model}" for verb in CHANGING for model in ("client", "scoperole")),
    *(f"conductor.{verb}_{model}" for verb in ("add", "view", "delete") for model in ("accesskey", "grant")),
    *(f"conductor.view_{model}" for model in ("taskgroup", "standalonetask")),
    *(f"conductor.change_{model}" for model in ("accesskey", "retentionpolicy", "standalonetask")),
    *(f"django_celery_beat.view_{model}" for model in ("periodictask", "intervalschedule", "crontabschedule")),
)
"""What pages ask for that is no right of a client's."""
ASKED = frozenset((*RIGHTS.values(), *PAGES_OF_RUNS, *OF_PAGES_ALONE))
"""Every permission that anything asks for: the framework makes four for each table, most of which nothing does."""


@dataclass(frozen=True, slots=True)
class SystemRole:
    """A role that every server has: the Django group that it is kept as, its rights, and pages that go with them."""

    group: str
    rights: frozenset[Right]
    pages: tuple[str, ...] = ()


def _on(accesses: tuple[str, ...], *targets: str) -> frozenset[Right]:
    return frozenset((access, target) for target in targets for access in accesses)


DESIGNED = (WORKFLOW_DEF, TASK_DEF, SCHEDULE, EVENT_HANDLER, SCHEMA, WEBHOOK, FORM_TEMPLATE)
"""What authors write."""
SYSTEM_ROLES: dict[str, SystemRole] = {
    "ADMIN": SystemRole("Administrators", frozenset(RIGHTS)),
    # Whoever creates a thing is given all accesses to it: nothing else is a user's by itself.
    "USER": SystemRole("Users", _on((CREATE,), *DESIGNED, APPLICATION)),
    "USER_READ_ONLY": SystemRole("Viewers", _on((READ,), *DESIGNED, WORKFLOW), PAGES_OF_RUNS),
    "WORKER": SystemRole("Workers", _on((READ, EXECUTE), TASK_DEF) | _on((EXECUTE,), DOMAIN)),
    "METADATA_MANAGER": SystemRole("Authors", _on(CHANGES, *DESIGNED) | _on((READ,), WORKFLOW), PAGES_OF_RUNS),
    "WORKFLOW_MANAGER": SystemRole(
        "Operators",
        _on((READ, EXECUTE), *DESIGNED) - _on((EXECUTE,), TASK_DEF, SCHEMA, FORM_TEMPLATE)
        | _on((READ, UPDATE, DELETE), WORKFLOW),
        PAGES_OF_RUNS,
    ),
}
"""ADMIN passes everywhere, whatever its rights say."""
ADMIN = "ADMIN"


def normalize_target_type(given: str) -> str:
    """The one name of a target type that clients call by two."""
    return ALIASES.get(given, given)
