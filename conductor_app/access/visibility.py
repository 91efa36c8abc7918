"""The rows that the current actor may see, and what it may do with a row: one decision for pages, API, agents, exports.

A model declares how its rows are named in grants, in one of two class attributes:

- `access_names`: the lookup of the name for each target type. A run is named by its definition and by its id:
  `{"WORKFLOW_DEF": "name", "WORKFLOW": "id"}`. The row of a child table follows its foreign key: `"run__name"`.
- `run_id_field`: the field that holds the id of the run to which the row belongs, if there is no foreign key.

An actor sees the rows on which it may READ one of these names. The engine, which acts on no one's behalf, sees all.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from django.apps import apps
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import FieldDoesNotExist
from django.db.models import CharField, Exists, F, Model, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Cast, Left, StrIndex, Substr
from django.db.models.lookups import Contains, Exact, In

from ..db.fields import user_key
from ..db.statements import fetch
from ..utils import process_state
from ..utils.process_state import Wiring
from .authentication import Actor, Target, current_actor, is_allowed
from .models import AuditEntry
from .permissions import (
    EVENT_HANDLER,
    EXECUTE,
    FORM_TEMPLATE,
    INTEGRATION_PROVIDER,
    NO_PATTERNS,
    PAGE_ONLY_PERMISSIONS,
    PROMPT,
    READ,
    RIGHT_BY_PERMISSION,
    RUN_CONTROL_RIGHTS,
    RUN_PAGE_PERMISSIONS,
    RUN_VIEW_RIGHTS,
    SCHEDULE,
    SCHEMA,
    SECRET,
    TASK_DEF,
    VARIABLE,
    WORKFLOW,
    WORKFLOW_DEF,
    NamePatterns,
    Right,
)

RowT = TypeVar("RowT", bound=Model)
RIGHTS_OF_RUN_PERMISSIONS: dict[str, tuple[Right, ...]] = {
    "conductor.view_run": RUN_VIEW_RIGHTS,
    "conductor.change_run": RUN_CONTROL_RIGHTS,
    **dict.fromkeys(RUN_PAGE_PERMISSIONS, RUN_VIEW_RIGHTS),
}
"""Permissions on pages whose grants are those of the API on runs: a grant on a definition applies to its runs."""
NAMED_OBJECT_TYPES = {
    "workflow_definition": WORKFLOW_DEF,
    "task_definition": TASK_DEF,
    "schedule": SCHEDULE,
    "event_handler": EVENT_HANDLER,
    "form_template": FORM_TEMPLATE,
    "schema": SCHEMA,
    "integration": INTEGRATION_PROVIDER,
    "integration_model": INTEGRATION_PROVIDER,
    "prompt": PROMPT,
    "secret": SECRET,
    "variable": VARIABLE,
}
"""Types of objects in the audit log whose id is their name in grants, alone or with `:` and a version or model."""
STORED_OBJECT_TYPES = {
    "run": "Run",
    "failure group": "FailureGroup",
    "message": "Message",
    "webhook": "Webhook",
    "application": "Application",
}
"""Types of objects in the audit log whose id is that of a row, with the table."""
_audited_rows: Wiring[Mapping[str, Callable[[Actor], QuerySet[Any]]]] = process_state.wiring({})
# It jumps from name to name in the index `run_by_definition`, so that its cost depends on the number of names only.
_RUN_NAMES_SQL = """
WITH RECURSIVE names (name) AS (
    SELECT MIN(r.name) FROM conductor_run r
    UNION ALL
    SELECT (SELECT MIN(r.name) FROM conductor_run r WHERE r.name > n.name) FROM names n WHERE n.name IS NOT NULL
)
SELECT n.name FROM names n WHERE n.name IS NOT NULL
"""


def register_audited_rows(object_type: str, find: Callable[[Actor], QuerySet[Any]]) -> None:
    """Register which rows an actor may see whose ids are those of a type of objects in the audit log."""
    _audited_rows.value = {**_audited_rows.value, object_type: find}


def visible(rows: QuerySet[RowT]) -> QuerySet[RowT]:
    """Return the rows that the current actor may see. For an actor who may see all, they are unchanged."""
    actor = current_actor()
    return rows if actor is None else visible_to(actor, rows)


def visible_to(actor: Actor, rows: QuerySet[RowT]) -> QuerySet[RowT]:
    """Return the rows that the actor may see."""
    if rows.model is AuditEntry:
        return rows if actor.permissions.is_admin else rows.filter(_is_entry_for(actor))
    if run_id_field := getattr(rows.model, "run_id_field", ""):
        if actor.permissions.allows_all(*RUN_VIEW_RIGHTS):
            return rows
        runs = visible_to(actor, apps.get_model("conductor", "Run")._default_manager.all())
        return rows.filter(**{f"{run_id_field}__in": runs.values("pk")})
    return allowed_to(actor, rows, {(READ, kind): lookup for kind, lookup in _access_names(rows.model).items()})


def _access_names(model: type[Model]) -> dict[str, str]:
    return getattr(model, "access_names")  # type: ignore[no-any-return]  # noqa: B009  # mypy does not know it.


def allowed_to(actor: Actor, rows: QuerySet[RowT], lookups: dict[Right, str]) -> QuerySet[RowT]:
    """Return the rows on which the actor has one of these rights. `lookups`: the lookup of the name for each right."""
    if actor.permissions.allows_all(*lookups):
        return rows
    condition = Q(pk__in=())
    for right, lookup in lookups.items():
        patterns = actor.permissions.names.get(right, NO_PATTERNS)
        if "" in patterns.prefixes:
            return rows
        condition |= _is_named(rows.model, lookup, patterns)
    return rows.filter(condition)


def _is_named(model: type[Model], lookup: str, patterns: NamePatterns) -> Q:
    """Return the condition that the name of a row matches the patterns.

    Prefixes of the names of runs, of which there may be millions, become the names that exist: the indexes have names.
    """
    if patterns.prefixes and _is_run_name(model, lookup):
        return Q(**{f"{lookup}__in": patterns.exact | matching_run_names(patterns)})
    condition = Q(**{f"{lookup}__in": patterns.exact})
    for prefix in patterns.prefixes:
        # Not `startswith`, which ignores case on SQLite.
        condition |= Q(Exact(Left(F(lookup), len(prefix)), prefix))
    return condition


def _is_entry_for(actor: Actor) -> Q:
    """Return the condition that an entry of the audit log is about an object that the actor sees, or an own action."""
    condition = Q(actor_id=actor.user_id) if actor.user_id else Q(pk__in=())
    for object_type, target_type in NAMED_OBJECT_TYPES.items():
        if actor.permissions.allows_all((READ, target_type)):
            condition |= Q(object_type=object_type)
            continue
        patterns = actor.permissions.names.get((READ, target_type), NO_PATTERNS)
        named = _is_named(AuditEntry, "object_id", patterns)
        for name in patterns.exact:
            # The name of another object may begin with this one and a colon: no version contains one.
            is_version = ~Q(Contains(Substr("object_id", len(name) + 2), ":")) | Q(object_type="integration_model")
            named |= Q(Exact(Left("object_id", len(name) + 1), f"{name}:")) & is_version
        condition |= Q(object_type=object_type) & named
    condition |= Q(object_type="queue") & _is_queue_of(actor)
    stored = {
        object_type: visible_to(actor, apps.get_model("conductor", model)._default_manager.all())
        for object_type, model in STORED_OBJECT_TYPES.items()
    }
    registered = {object_type: find(actor) for object_type, find in _audited_rows.value.items()}
    for object_type, rows in (stored | registered).items():
        if isinstance(rows.model._meta.pk, CharField):
            # It reads the row of each entry by its key: there may be a million runs.
            condition |= Q(Exists(rows.order_by().filter(pk=OuterRef("object_id"))), object_type=object_type)
        else:
            ids = rows.order_by().annotate(entry_id=Cast("pk", CharField())).values("entry_id")
            condition |= Q(object_type=object_type, object_id__in=ids)
    return condition


def _is_queue_of(actor: Actor) -> Q:
    """Return the condition that an id is the name of a queue of a task type that the actor sees: `[domain:]type`."""
    if actor.permissions.allows_all((READ, TASK_DEF)):
        return Q()
    patterns = actor.permissions.names.get((READ, TASK_DEF), NO_PATTERNS)
    task_type = Substr("object_id", StrIndex("object_id", Value(":")) + 1)
    condition = Q(In(task_type, patterns.exact)) if patterns.exact else Q(pk__in=())
    for prefix in patterns.prefixes:
        condition |= Q(Exact(Left(task_type, len(prefix)), prefix))
    # A domain with a colon would make a part of it look like the task type.
    return condition & ~Q(Contains(task_type, ":"))


def _is_run_name(model: type[Model], lookup: str) -> bool:
    *path, last = lookup.split("__")
    owner: Any = model
    try:
        for name in path:
            owner = owner._meta.get_field(name).related_model
        owner._meta.get_field(last)
    except FieldDoesNotExist:
        return False
    return owner._meta.label == "conductor.Run" and last == "name"


def matching_run_names(patterns: NamePatterns) -> set[str]:
    """Return the definition names of the existing runs that match the patterns."""
    return {name for (name,) in fetch(_RUN_NAMES_SQL) if name in patterns}


def sees_all_runs() -> bool:
    """Return True if the current actor may see all runs."""
    actor = current_actor()
    return actor is None or actor.permissions.allows_all(*RUN_VIEW_RIGHTS)


def usable(rows: QuerySet[RowT]) -> QuerySet[RowT]:
    """Return the rows whose names the current actor may know, to use them: those that it may READ or EXECUTE."""
    actor = current_actor()
    if actor is None:
        return rows
    names = _access_names(rows.model)
    lookups = {(access, kind): lookup for kind, lookup in names.items() for access in (READ, EXECUTE)}
    return allowed_to(actor, rows, lookups)


def visible_names(target_type: str, names: Iterable[str]) -> list[str]:
    """Return those of the names that the current actor may READ as objects of a target type."""
    actor = current_actor()
    return [name for name in names if actor is None or actor.permissions.allows(READ, target_type, name)]


def shown_to(user: User | AnonymousUser, permission: str, rows: QuerySet[RowT]) -> QuerySet[RowT]:
    """Return the rows of a page that requires a permission: all to users who have it, otherwise the visible ones."""
    return rows if user.has_perm(permission) else visible(rows)


def may(user: User | AnonymousUser, permission: str, row: Model | None = None) -> bool:
    """Return True if the user has a permission on a row, or without a row, on any row.

    A user has it on all rows by a Django permission, from a role, and on some by grants.
    """
    if user.has_perm(permission):
        return True
    actor = current_actor()
    if actor is None or actor.user_id != user_key(user.pk):
        return False
    names = actor.permissions.names
    rights = rights_of(permission)
    if row is None:
        return any(right in names for right in rights)
    target = target_of(row)
    return any(target.get(right[1], "") in names.get(right, NO_PATTERNS) for right in rights)


def rights_of(permission: str) -> tuple[Right, ...]:
    """Return the rights of which a grant gives this permission on some rows. Empty if no grant gives it."""
    if permission in RIGHTS_OF_RUN_PERMISSIONS:
        return RIGHTS_OF_RUN_PERMISSIONS[permission]
    if permission in PAGE_ONLY_PERMISSIONS or permission not in RIGHT_BY_PERMISSION:
        return ()
    return (RIGHT_BY_PERMISSION[permission],)


def controllable(rows: QuerySet[RowT]) -> QuerySet[RowT]:
    """Return the rows of runs that the current actor may control. For one who may control all, they are unchanged."""
    actor = current_actor()
    if actor is None:
        return rows
    lookups = _access_names(rows.model)
    return allowed_to(actor, rows, {right: lookups[right[1]] for right in RUN_CONTROL_RIGHTS if right[1] in lookups})


def may_see_run(definition: str, run_id: str) -> bool:
    """Return True if the current actor may see a run, which need not exist yet."""
    actor = current_actor()
    if actor is None or sees_all_runs():
        return True
    return is_allowed(actor, RUN_VIEW_RIGHTS, {WORKFLOW_DEF: definition, WORKFLOW: run_id})


def target_of(row: Model) -> Target:
    """Return the names of a row in grants, by target type. Empty if its run was deleted."""
    if run_id_field := getattr(row, "run_id_field", ""):
        runs = apps.get_model("conductor", "Run")._default_manager.only("name")
        run = runs.filter(pk=getattr(row, run_id_field)).first()
        return target_of(run) if run else {}
    lookups: dict[str, str] = getattr(row, "access_names", {})
    return {target_type: _value_at(row, lookup) for target_type, lookup in lookups.items()}


def _value_at(row: Model, lookup: str) -> str:
    value: Any = row
    for name in lookup.split("__"):
        value = getattr(value, name, None)
    return str(value) if value is not None else ""
