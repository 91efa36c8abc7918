"""Permission rules of API operations: the kinds of permission that an operation declares."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ...access.access_types import CREATE, DOMAIN, EXECUTE, SCHEDULE, TASK_DEF, UPDATE, WORKFLOW, WORKFLOW_DEF, Right
from ...access.conductor_auth import Actor
from ...access.payload_access import require_payload_read
from ...access.permissions import Target, is_allowed, missing_permission_error, require_permission
from ...blob_storage import is_storage_configured
from ...core.errors import Forbidden
from . import request_body, targets

TargetFinder = Callable[[Any, dict[str, str]], Iterable[Target]]
WORKER_RIGHTS = ((EXECUTE, TASK_DEF), (EXECUTE, DOMAIN))
PAYLOAD_UPLOAD_RIGHTS = ((EXECUTE, WORKFLOW_DEF), *WORKER_RIGHTS, (EXECUTE, WORKFLOW), (UPDATE, WORKFLOW))
"""One of these on any object permits uploads, because a client uploads before it names the workflow or task."""


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
        return " or ".join(map(_describe_right, self.rights))


@dataclass(frozen=True, slots=True)
class RequiresAll:
    """Every one of these rules."""

    rules: tuple[RequiresAccess, ...]

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not."""
        for rule in self.rules:
            rule.check(request, url_kwargs)

    def describe(self) -> str:
        """Return the requirement as a phrase for the documentation."""
        return ", and ".join(rule.describe() for rule in self.rules)


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


class RequiresFileAccess:
    """An access to the run of a file, or EXECUTE on the type of an open task, whose worker transfers the file."""

    def __init__(self, rights: tuple[Right, ...]) -> None:
        self.rights = rights

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        """Check the permission. A missing run is reported by the view.

        Raises:
            Forbidden: when the actor lacks the permission.
        """
        actor = request.actor
        if actor.permissions.allows_all(*self.rights, WORKER_RIGHTS[0]):
            return
        id = url_kwargs.get("workflow") or targets.normalize_name(request_body.read_object(request).get("workflowId"))
        for target in targets.run_in_address("workflow")(request, {"workflow": id}):
            if not is_allowed(actor, self.rights, target) and not any(
                is_allowed(actor, WORKER_RIGHTS, task) for task in targets.open_tasks_of_run(id)
            ):
                raise missing_permission_error(actor, self.rights, target)

    def describe(self) -> str:
        """Return the requirement as a phrase for the documentation."""
        rights = " or ".join(map(_describe_right, self.rights))
        return f"{rights}, or EXECUTE on the TASK_DEF or DOMAIN of an open task of the run"


class RequiresPayloadAccess:
    """For an upload, a right to use its payload: to start a workflow or to report on a task. For a download, READ."""

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not."""
        actor, path = request.actor, request.query.text("path")
        if request.query.text("operation").upper() == "WRITE":
            if not actor.permissions.allows_any(*PAYLOAD_UPLOAD_RIGHTS):
                raise missing_permission_error(actor, PAYLOAD_UPLOAD_RIGHTS, {})
        elif is_storage_configured():
            require_payload_read(actor, path)

    def describe(self) -> str:
        """Return the requirement as a phrase for the documentation."""
        uploads = " or ".join(map(_describe_right, PAYLOAD_UPLOAD_RIGHTS))
        return f"for an upload {uploads} on any object; for a download READ on the run of the payload"


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


def _describe_right(right: Right) -> str:
    access, target_type = right
    return f"{access} on {target_type}"


def _require_start(actor: Actor, started: Iterable[Target], written: Iterable[Target]) -> None:
    require_permission(actor, [(EXECUTE, WORKFLOW_DEF)], started)
    require_permission(actor, [(CREATE, WORKFLOW_DEF), (UPDATE, WORKFLOW_DEF)], written)


can_write_schedule = RequiresDefinitionAccess(SCHEDULE, targets.definitions_in_body(SCHEDULE))


class RequiresScheduleAccess:
    """Permission to write the schedule and to start its workflow, because the schedule starts it for its author."""

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not."""
        can_write_schedule.check(request, url_kwargs)
        document = request_body.read_object(request).get("startWorkflowRequest")
        if not request.actor.permissions.is_admin:
            _require_start(
                request.actor, *targets.definitions_started_by(document if isinstance(document, dict) else {})
            )

    def describe(self) -> str:
        """Return the requirement as a phrase for the documentation."""
        return f"{can_write_schedule.describe()}; and EXECUTE on the WORKFLOW_DEF that it starts"


@dataclass(frozen=True, slots=True)
class RequiresAnyAccess:
    """One of these rights on any object, for requests whose work is for those who have one."""

    rights: tuple[Right, ...]

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not."""
        if not request.actor.permissions.allows_any(*self.rights):
            raise missing_permission_error(request.actor, self.rights, {})

    def describe(self) -> str:
        """Return the requirement as a phrase for the documentation."""
        return f"{' or '.join(map(_describe_right, self.rights))}, on any object"


class AllowAll:
    """Any authenticated caller: the response has no protected data, or the view filters it."""

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        """Allow every caller."""

    def describe(self) -> str:
        """Return the requirement as a phrase for the documentation."""
        return "any authenticated caller; the reply has only what the caller may read"


@dataclass(frozen=True, slots=True)
class RequiresAccessLater:
    """One of these rights, which the engine checks when it has loaded what the request is about."""

    rights: tuple[Right, ...]

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        """Allow every caller for now."""

    def describe(self) -> str:
        """Return the requirement as a phrase for the documentation."""
        return " or ".join(map(_describe_right, self.rights))


class AdministratorsOnly:
    """Administrators alone."""

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        if not request.actor.permissions.is_admin:
            raise Forbidden(f"{request.actor.name} lacks the role ADMIN.", code="FORBIDDEN")

    def describe(self) -> str:
        """Return the requirement as a phrase for the documentation."""
        return "the role ADMIN"


ALLOW_ALL, ADMINISTRATORS_ONLY = AllowAll(), AdministratorsOnly()
PermissionRule = (
    RequiresAccess
    | RequiresAnyAccess
    | RequiresAccessLater
    | RequiresDefinitionAccess
    | RequiresPollAccess
    | RequiresStartAccess
    | RequiresFileAccess
    | RequiresPayloadAccess
    | RequiresAll
    | RequiresScheduleAccess
    | AllowAll
    | AdministratorsOnly
)
