"""Who may: asked once for a request, and once for a list, which then holds only what may be read."""

from collections.abc import Iterable, Mapping

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Left
from django.db.models.lookups import Exact

from ..core.errors import Forbidden
from .access_types import DOMAIN, READ, TASK_DEF, WORKFLOW, WORKFLOW_DEF, Right
from .conductor_auth import Actor
from .permission_set import NO_NAMES, NamePatterns

Thing = Mapping[str, str]
"""One thing that is acted on, by the target types that can name it: a run is a WORKFLOW and of a WORKFLOW_DEF."""


def task_target(queue: str, domain: str, name: str, run_id: str, definition: str) -> Thing:
    """A task: by the type that workers poll, or by its name where nobody polls it; by its domain and by its run."""
    task_type = queue.removeprefix(f"{domain}:") if domain else queue
    thing = {TASK_DEF: task_type or name, WORKFLOW: run_id, WORKFLOW_DEF: definition}
    return thing | {DOMAIN: domain} if domain else thing


def is_allowed(actor: Actor, ways: Iterable[Right], thing: Thing) -> bool:
    """Whether the actor may use the thing in one of these ways."""
    return any(actor.powers.over(access, target, thing[target]) for access, target in ways if target in thing)


def require_permission(actor: Actor, ways: Iterable[Right], things: Iterable[Thing]) -> None:
    """Raise Forbidden, saying what is missing, unless the actor may use all these things in one of the ways."""
    ways = tuple(ways)
    for thing in things:
        if not is_allowed(actor, ways, thing):
            raise missing_permission_error(actor, ways, thing)


def missing_permission_error(actor: Actor, ways: Iterable[Right], thing: Thing) -> Forbidden:
    """The refusal that says which permission is missing on what."""
    wanted = " or ".join(f"{access} on {target} {_quote_name(thing.get(target))}" for access, target in ways)
    return Forbidden(f"{actor.name} lacks the permission {wanted}.", code="FORBIDDEN")


def _quote_name(name: str | None) -> str:
    return f"'{name[:200]}'" if name else "(all)"


def filter_readable(actor: Actor, rows: QuerySet, target: str, field: str = "name") -> QuerySet:
    """The rows that the actor may read, by the name in this field; for whoever may read all, the rows as they are."""
    if actor.powers.over_all((READ, target)):
        return rows
    return rows.filter(_name_condition(actor.powers.names.get((READ, target), NO_NAMES), field))


def filter_readable_runs(actor: Actor, rows: QuerySet, prefix: str = "") -> QuerySet:
    """The runs that the actor may read: of definitions it may read, or allowed one by one.

    `prefix`: the way to the run from rows of another table, such as `run__`.
    """
    if actor.powers.over_all((READ, WORKFLOW_DEF), (READ, WORKFLOW)):
        return rows
    names = actor.powers.names
    of_definition = _name_condition(names.get((READ, WORKFLOW_DEF), NO_NAMES), f"{prefix}name")
    return rows.filter(of_definition | _name_condition(names.get((READ, WORKFLOW), NO_NAMES), f"{prefix}id"))


def filter_allowed(actor: Actor, rows: QuerySet, fields: Mapping[Right, str]) -> QuerySet:
    """The rows over which the actor holds one of these rights, each by the name in its field."""
    if actor.powers.over_all(*fields):
        return rows
    found = Q(pk__in=[])
    for right, field in fields.items():
        found |= _name_condition(actor.powers.names.get(right, NO_NAMES), field)
    return rows.filter(found)


def _name_condition(names: NamePatterns, field: str) -> Q:
    if "" in names.beginnings:
        return Q()
    found = Q(**{f"{field}__in": names.exact})
    for beginning in names.beginnings:
        # Not `startswith`, for which SQLite takes capital letters and small ones to be the same.
        found |= Q(Exact(Left(F(field), len(beginning)), beginning))
    return found
