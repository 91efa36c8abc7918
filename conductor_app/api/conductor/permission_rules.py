"""How an operation of the API asks whether the actor may: the kinds of need that the table in `needs.py` is made of."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ...access.access_types import CREATE, DOMAIN, EXECUTE, SCHEDULE, TASK_DEF, UPDATE, WORKFLOW_DEF, Right
from ...access.conductor_auth import Actor
from ...access.permissions import Thing, is_allowed, missing_permission_error, require_permission
from ...core.errors import Forbidden
from . import request_body, targets

Finder = Callable[[Any, dict[str, str]], Iterable[Thing]]
WORKS = ((EXECUTE, TASK_DEF), (EXECUTE, DOMAIN))


@dataclass(frozen=True, slots=True)
class RequiresAccess:
    """One of these rights, on each thing that the request is about.

    `of`: finds the things; it is not called for an actor that has the right over all of them.
    """

    ways: tuple[Right, ...]
    of: Finder

    def check(self, request: Any, named: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not."""
        # Not everything is in a domain: a right over all domains is none over all things.
        if not request.actor.powers.over_all(*(way for way in self.ways if way[1] != DOMAIN)):
            require_permission(request.actor, self.ways, self.of(request, named))


@dataclass(frozen=True, slots=True)
class RequiresDefinitionAccess:
    """CREATE for what is new, UPDATE for what is there; what is new becomes its maker's."""

    target: str
    of: Finder

    def check(self, request: Any, named: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not; note what will be new."""
        powers = request.actor.powers
        if powers.is_admin and request.actor.user_id is None:
            return
        new, old = targets.new_and_old(self.target, list(self.of(request, named)))
        if not powers.over_all((CREATE, self.target)):
            require_permission(request.actor, [(CREATE, self.target)], new)
        if not powers.over_all((UPDATE, self.target)):
            require_permission(request.actor, [(UPDATE, self.target)], old)
        request.makes = [(self.target, thing[self.target]) for thing in new]


class RequiresPollAccess:
    """EXECUTE on the task type; in a domain, on the domain as well does."""

    def check(self, request: Any, named: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not."""
        powers = request.actor.powers
        if not powers.over_all((EXECUTE, TASK_DEF)):
            found = targets.queue(request, named)
            require_permission(request.actor, WORKS if DOMAIN in found else WORKS[:1], [found])


class RequiresFileAccess:
    """What steers or sees the run; or EXECUTE on the type of one of its open tasks, whose worker brings or fetches."""

    def __init__(self, ways: tuple[Right, ...]) -> None:
        self.ways = ways

    def check(self, request: Any, named: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not; a run that does not exist is left to the handler."""
        actor = request.actor
        if actor.powers.over_all(*self.ways, WORKS[0]):
            return
        id = named.get("workflow") or targets.name_in(request_body.read_object(request).get("workflowId"))
        for thing in targets.run("workflow")(request, {"workflow": id}):
            if not is_allowed(actor, self.ways, thing) and not any(
                is_allowed(actor, WORKS, task) for task in targets.open_tasks(id)
            ):
                raise missing_permission_error(actor, self.ways, thing)


class RequiresStartAccess:
    """EXECUTE on the definition; who brings a definition of its own must be allowed to write it, too."""

    def check(self, request: Any, named: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not."""
        if request.actor.powers.is_admin:
            return
        _require_start(request.actor, *targets.started_definitions(request, named))


def _require_start(actor: Actor, started: Iterable[Thing], written: Iterable[Thing]) -> None:
    require_permission(actor, [(EXECUTE, WORKFLOW_DEF)], started)
    require_permission(actor, [(CREATE, WORKFLOW_DEF), (UPDATE, WORKFLOW_DEF)], written)


writes_schedule = RequiresDefinitionAccess(SCHEDULE, targets.definitions_in_body(SCHEDULE))


class RequiresScheduleAccess:
    """To write the schedule, and to start what it starts: it does so for whoever wrote it."""

    def check(self, request: Any, named: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not."""
        writes_schedule.check(request, named)
        document = request_body.read_object(request).get("startWorkflowRequest")
        if not request.actor.powers.is_admin:
            _require_start(
                request.actor, *targets.definitions_started_by(document if isinstance(document, dict) else {})
            )


class AllowAll:
    """Whoever is let in: nothing that belongs to somebody is shown, or the handler shows what may be read."""

    def check(self, request: Any, named: dict[str, str]) -> None:
        """Nothing to ask."""


class AdministratorsOnly:
    """Administrators alone."""

    def check(self, request: Any, named: dict[str, str]) -> None:
        if not request.actor.powers.is_admin:
            raise Forbidden(f"{request.actor.name} lacks the role ADMIN.", code="FORBIDDEN")


ANYBODY, ADMINISTRATORS = AllowAll(), AdministratorsOnly()
Need = (
    RequiresAccess
    | RequiresDefinitionAccess
    | RequiresPollAccess
    | RequiresStartAccess
    | RequiresFileAccess
    | RequiresScheduleAccess
    | AllowAll
    | AdministratorsOnly
)
