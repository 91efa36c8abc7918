"""The permission rules that operations of the API declare. Each is checked once per request, before its handler."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from ...access.authentication import Actor, Target, require_permission
from ...access.permissions import (
    APPLICATION,
    CREATE,
    DEBUG,
    DOMAIN,
    EXECUTE,
    READ,
    TASK_DEF,
    UPDATE,
    USER,
    WORKFLOW,
    WORKFLOW_DEF,
    Right,
)
from ...core.errors import Forbidden
from . import targets
from .targets import TargetFinder

WORKER_RIGHTS = ((EXECUTE, TASK_DEF), (EXECUTE, DOMAIN))


class PermissionRule(Protocol):
    """What an operation requires of its caller."""

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not."""

    def describe(self) -> str:
        """Return the requirement as a phrase for the documentation."""


@dataclass(frozen=True, slots=True)
class RequiresAccess:
    """One of these rights, on each thing that the request is about.

    `find_targets`: finds the things; it is not called for an actor that has the right over all of them.
    """

    rights: tuple[Right, ...]
    find_targets: TargetFinder

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not."""
        # Not every object is in a domain: a permission on all domains is not one on all objects.
        if not request.actor.permissions.allows_all(*(right for right in self.rights if right[1] != DOMAIN)):
            require_permission(request.actor, self.rights, self.find_targets(request, url_kwargs))

    def describe(self) -> str:
        """Return the requirement as a phrase for the documentation."""
        return " or ".join(map(describe_right, self.rights))


@dataclass(frozen=True, slots=True)
class RequiresDefinitionAccess:
    """CREATE for new definitions, UPDATE for existing ones. The caller becomes the owner of a new definition."""

    target_type: str
    find_targets: TargetFinder

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        """Check the permission, and note the definitions that the request creates.

        Raises:
            Forbidden: when the actor lacks the permission.
        """
        permissions = request.actor.permissions
        if permissions.is_admin and request.actor.user_id is None:
            return
        new, old = targets.split_new_and_existing(self.target_type, list(self.find_targets(request, url_kwargs)))
        if not permissions.allows_all((CREATE, self.target_type)):
            require_permission(request.actor, [(CREATE, self.target_type)], new)
        if not permissions.allows_all((UPDATE, self.target_type)):
            require_permission(request.actor, [(UPDATE, self.target_type)], old)
        request.created_targets = [(self.target_type, target[self.target_type]) for target in new]

    def describe(self) -> str:
        """Return the requirement as a phrase for the documentation."""
        return f"CREATE on {self.target_type} for a new one, UPDATE for an existing one"


class RequiresPollAccess:
    """EXECUTE on the task type; in a domain, on the domain as well does."""

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not."""
        permissions = request.actor.permissions
        if not permissions.allows_all((EXECUTE, TASK_DEF)):
            found = targets.polled_queue(request, url_kwargs)
            require_permission(request.actor, WORKER_RIGHTS if DOMAIN in found else WORKER_RIGHTS[:1], [found])

    def describe(self) -> str:
        """Return the requirement as a phrase for the documentation."""
        return "EXECUTE on TASK_DEF, or for a poll in a domain on DOMAIN"


class RequiresStartAccess:
    """EXECUTE on the definition. An inline definition also requires the permission to create it."""

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not."""
        if request.actor.permissions.is_admin:
            return
        _require_start(request.actor, *targets.started_definitions(request, url_kwargs))

    def describe(self) -> str:
        """Return the requirement as a phrase for the documentation."""
        return "EXECUTE on WORKFLOW_DEF; for an inline definition also CREATE or UPDATE on it"


def describe_right(right: Right) -> str:
    access, target_type = right
    return f"{access} on {target_type}"


def _require_start(actor: Actor, started: Iterable[Target], written: Iterable[Target]) -> None:
    require_permission(actor, [(EXECUTE, WORKFLOW_DEF)], started)
    require_permission(actor, [(CREATE, WORKFLOW_DEF), (UPDATE, WORKFLOW_DEF)], written)


class AllowAll:
    """Any authenticated caller: the response has no protected data, or the view filters it."""

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        """Allow every caller."""

    def describe(self) -> str:
        """Return the requirement as a phrase for the documentation."""
        return "any authenticated caller; the reply has only what the caller may read"


class AdministratorsOnly:
    """Administrators alone."""

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        if not request.actor.permissions.is_admin:
            raise Forbidden(f"{request.actor.name} lacks the role ADMIN.", code="FORBIDDEN")

    def describe(self) -> str:
        """Return the requirement as a phrase for the documentation."""
        return "the role ADMIN"


ALLOW_ALL, ADMINISTRATORS_ONLY = AllowAll(), AdministratorsOnly()


def requires(access: str, target_type: str, find_targets: TargetFinder) -> RequiresAccess:
    """Return the rule that requires one access to targets of one type."""
    return RequiresAccess(((access, target_type),), find_targets)


RUN_VIEW_RIGHTS = ((READ, WORKFLOW_DEF), (READ, WORKFLOW))
RUN_CONTROL_RIGHTS = ((EXECUTE, WORKFLOW_DEF), (UPDATE, WORKFLOW), (EXECUTE, WORKFLOW))
TASK_REPORT_RIGHTS = (*WORKER_RIGHTS, *RUN_CONTROL_RIGHTS)

can_view_run, can_control_run = (
    RequiresAccess(RUN_VIEW_RIGHTS, targets.run_in_address("workflow")),
    RequiresAccess(RUN_CONTROL_RIGHTS, targets.run_in_address("workflow")),
)
may_debug = requires(EXECUTE, DEBUG, targets.no_target)
can_view_workflow = requires(READ, WORKFLOW_DEF, targets.named_in_address(WORKFLOW_DEF, "name"))
can_view_application = requires(READ, APPLICATION, targets.named_in_address(APPLICATION, "id"))
can_update_application = requires(UPDATE, APPLICATION, targets.named_in_address(APPLICATION, "id"))
can_view_users = requires(READ, USER, targets.no_target)
can_poll, can_start_workflow = RequiresPollAccess(), RequiresStartAccess()
can_view_task_definition = requires(READ, TASK_DEF, targets.named_in_address(TASK_DEF, "name"))
