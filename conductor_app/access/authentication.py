"""Authorization of requests, and filters of lists to readable objects."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from django.db.models import F, Model, Q, QuerySet
from django.db.models.functions import Left
from django.db.models.lookups import Exact

from ..core.errors import Forbidden
from .access_types import DOMAIN, READ, TASK_DEF, WORKFLOW, WORKFLOW_DEF, Right
from .conductor_auth import Actor
from .permission_set import NO_PATTERNS, NamePatterns

Target = Mapping[str, str]
"""The names of one object, by target type: a run has a WORKFLOW id and the name of its WORKFLOW_DEF."""

RowT = TypeVar("RowT", bound=Model)


def task_target(queue: str, domain: str, name: str, run_id: str, definition: str) -> Target:
    """Return the target of a task: its queue, or its name if it has none, its domain, its run, and its definition."""
    task_type = queue.removeprefix(f"{domain}:") if domain else queue
    target = {TASK_DEF: task_type or name, WORKFLOW: run_id, WORKFLOW_DEF: definition}
    return target | {DOMAIN: domain} if domain else target


def is_allowed(actor: Actor, rights: Iterable[Right], target: Target) -> bool:
    """Return True if the actor has one of these rights on the target."""
    return any(
        actor.permissions.allows(access, target_type, target[target_type])
        for access, target_type in rights
        if target_type in target
    )


def require_permission(actor: Actor, rights: Iterable[Right], targets: Iterable[Target]) -> None:
    """Check that the actor has one of these rights on all targets.

    Raises:
        Forbidden: when a permission is missing; the message names it.
    """
    rights = tuple(rights)
    for target in targets:
        if not is_allowed(actor, rights, target):
            raise missing_permission_error(actor, rights, target)


def missing_permission_error(actor: Actor, rights: Iterable[Right], target: Target) -> Forbidden:
    """Return the error that names the missing permission and its target."""
    missing = " or ".join(
        f"{access} on {target_type} {_quote_name(target.get(target_type))}" for access, target_type in rights
    )
    return Forbidden(f"{actor.name} lacks the permission {missing}.", code="FORBIDDEN")


def _quote_name(name: str | None) -> str:
    return f"'{name[:200]}'" if name else "(all)"


def filter_readable(actor: Actor, rows: QuerySet[RowT], target_type: str, field: str = "name") -> QuerySet[RowT]:
    """Return the rows that the actor may read, by the name in this field.

    If the actor may read all, return the rows unchanged.
    """
    if actor.permissions.allows_all((READ, target_type)):
        return rows
    return rows.filter(_name_condition(actor.permissions.names.get((READ, target_type), NO_PATTERNS), field))


def filter_readable_runs(actor: Actor, rows: QuerySet[RowT], prefix: str = "") -> QuerySet[RowT]:
    """Return the runs that the actor may read: those of readable definitions, and those with a grant.

    `prefix`: the path to the run from rows of another table, such as `run__`.
    """
    if actor.permissions.allows_all((READ, WORKFLOW_DEF), (READ, WORKFLOW)):
        return rows
    names = actor.permissions.names
    of_definition = _name_condition(names.get((READ, WORKFLOW_DEF), NO_PATTERNS), f"{prefix}name")
    return rows.filter(of_definition | _name_condition(names.get((READ, WORKFLOW), NO_PATTERNS), f"{prefix}id"))


def filter_allowed(actor: Actor, rows: QuerySet[RowT], fields: Mapping[Right, str]) -> QuerySet[RowT]:
    """Return the rows on which the actor has one of these rights. `fields`: the field with the name for each right."""
    if actor.permissions.allows_all(*fields):
        return rows
    condition = Q(pk__in=[])
    for right, field in fields.items():
        condition |= _name_condition(actor.permissions.names.get(right, NO_PATTERNS), field)
    return rows.filter(condition)


def _name_condition(names: NamePatterns, field: str) -> Q:
    if "" in names.prefixes:
        return Q()
    condition = Q(**{f"{field}__in": names.exact})
    for beginning in names.prefixes:
        # Not `startswith`, which ignores case on SQLite.
        condition |= Q(Exact(Left(F(field), len(beginning)), beginning))
    return condition
