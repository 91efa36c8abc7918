"""The permission rules that operations of the API declare, and the targets of requests that they check.

A rule is checked once per request, before its handler. Targets are taken from the path, the query or the body.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from django.apps import apps

from ...access.authentication import (
    Actor,
    Target,
    is_allowed,
    missing_permission_error,
    require_permission,
    task_target,
)
from ...access.permissions import (
    APPLICATION,
    CREATE,
    DEBUG,
    DOMAIN,
    EVENT_HANDLER,
    EXECUTE,
    FORM_TEMPLATE,
    INTEGRATION_PROVIDER,
    PROMPT,
    READ,
    RUN_CONTROL_RIGHTS,
    RUN_VIEW_RIGHTS,
    SCHEDULE,
    SCHEMA,
    SECRET,
    TASK_DEF,
    UPDATE,
    USER,
    VARIABLE,
    WEBHOOK,
    WORKER_RIGHTS,
    WORKFLOW,
    WORKFLOW_DEF,
    Right,
)
from ...core.definition import possible_keys
from ...core.errors import Forbidden, Invalid
from ...core.primitives import JsonValue
from ...definitions.models import WorkflowTest
from ...runs.models import Attempt, Run
from . import requests as request_body

TargetFinder = Callable[[Any, dict[str, str]], Iterable[Target]]
CHUNK_SIZE = 500
"""Names that one query looks for."""
MODEL_BY_TARGET_TYPE = {
    WORKFLOW_DEF: "WorkflowDefinition",
    TASK_DEF: "TaskDefinition",
    SCHEDULE: "Schedule",
    SCHEMA: "SchemaDefinition",
    SECRET: "Secret",
    VARIABLE: "Variable",
    FORM_TEMPLATE: "FormTemplate",
    EVENT_HANDLER: "EventHandler",
    WEBHOOK: "Webhook",
    INTEGRATION_PROVIDER: "Integration",
    PROMPT: "Prompt",
}
"""The table of each target type, by name: the slices of most tables import this module."""


def named_in_address(target_type: str, url_kwarg: str) -> TargetFinder:
    """Find the target that a path parameter names."""
    return lambda request, url_kwargs: [{target_type: url_kwargs[url_kwarg]}]


def named_in_query(target_type: str, parameter: str) -> TargetFinder:
    """Find the targets that a query parameter names, once or several times."""
    return lambda request, url_kwargs: [{target_type: name} for name in request.query.texts(parameter)]


def no_target(request: Any, url_kwargs: dict[str, str]) -> list[Target]:
    """Return no target: only a permission on all objects is sufficient."""
    return [{}]


def polled_queue(request: Any, url_kwargs: dict[str, str]) -> Target:
    """Return the task type and the domain that a poll requests."""
    domain = request.query.text("domain")
    return {TASK_DEF: url_kwargs["task_type"]} | ({DOMAIN: domain} if domain else {})


def run_in_address(url_kwarg: str) -> TargetFinder:
    """Find the run, or the stored test, with this id. A missing one is reported by the view."""

    def find(request: Any, url_kwargs: dict[str, str]) -> list[Target]:
        found = find_run_names([url_kwargs[url_kwarg]]) or WorkflowTest.objects.filter(
            pk=url_kwargs[url_kwarg]
        ).values_list("id", "name")
        return [{WORKFLOW: id, WORKFLOW_DEF: name} for id, name in found]

    return find


def find_run_names(ids: list[str]) -> list[tuple[str, str]]:
    """Return ids and definition names of the existing runs."""
    return list(find_in_chunks(ids, lambda chunk: Run.objects.filter(pk__in=chunk).values_list("id", "name")))


def find_in_chunks(names: Iterable[str], find: Callable[[list[str]], Iterable[Any]]) -> Iterator[Any]:
    """Call `find` with chunks of the names, because a body may list more than one query can take."""
    remaining = iter(names)
    while chunk := list(islice(remaining, CHUNK_SIZE)):
        yield from find(chunk)


def names_in_body(target_type: str) -> TargetFinder:
    """Find the targets whose names the body lists. An invalid body is reported by the view."""

    def find(request: Any, url_kwargs: dict[str, str]) -> list[Target]:
        names = request_body.read_json(request)
        return [{target_type: normalize_name(each)} for each in names] if isinstance(names, list) else []

    return find


def attempt_in_address(url_kwarg: str, *, must_exist: bool = False) -> TargetFinder:
    """Find the attempt with this id: by its task and by its run. `must_exist`: a missing one matches no grant."""

    def find(request: Any, url_kwargs: dict[str, str]) -> list[Target]:
        return targets_of_attempts(Attempt.objects.of_runs().filter(pk=url_kwargs[url_kwarg])) or (
            [{}] if must_exist else []
        )

    return find


def tasks_by_reference(url_kwarg: str) -> TargetFinder:
    """Find the open tasks with the reference in the path, in the run that another path parameter names.

    Without an open one, an ended one stands for them, and otherwise the run: the refusal of a caller without rights
    must not tell whether there is such a task.
    """

    def find(request: Any, url_kwargs: dict[str, str]) -> list[Target]:
        refs = [key.ref for key in possible_keys(url_kwargs["ref"])]
        named = Attempt.objects.of_runs().filter(run_id=url_kwargs[url_kwarg], task__ref__in=refs)
        return (
            targets_of_attempts(named.open())
            or targets_of_attempts(named.order_by("-pk")[:1])
            or list(run_in_address(url_kwarg)(request, url_kwargs))
        )

    return find


def targets_of_attempts(attempts: Any) -> list[Target]:
    """Return the task and the run of each attempt of a QuerySet."""
    rows = attempts.values_list("queue", "domain", "task__name", "run_id", "run__name")
    return [task_target(*row) for row in rows]


def started_definitions(request: Any, url_kwargs: dict[str, str]) -> tuple[list[Target], list[Target]]:
    """Return the definitions that a start request names, and its inline definition."""
    document = request_body.read_object(request) if request_body.read_bytes(request) or "name" not in url_kwargs else {}
    return definitions_started_by(document, url_kwargs.get("name"))


def definitions_started_by(document: dict[str, Any], name: str | None = None) -> tuple[list[Target], list[Target]]:
    """Return the definitions of a start request's document.

    `name`: the name in the path, which replaces the document's.
    """
    own = document.get("workflowDef")
    given = [name or document.get("name"), own.get("name") if isinstance(own, dict) else ""]
    names = [normalize_name(each) for each in given]
    found: list[Target] = [{WORKFLOW_DEF: each} for each in names if each] or [{}]
    return found, found if isinstance(own, dict) else []


def definitions_in_body(target_type: str) -> TargetFinder:
    """Find the definitions in the body, one or many.

    Raises:
        Invalid: when the body does not consist of objects.
    """

    def find(request: Any, url_kwargs: dict[str, str]) -> list[Target]:
        sent = request_body.read_json(request)
        documents = sent if isinstance(sent, list) else [sent]
        if not all(isinstance(each, dict) for each in documents):
            raise Invalid("The request body must contain JSON objects.")
        return [{target_type: normalize_name(each.get("name"))} for each in documents]

    return find


def split_new_and_existing(target_type: str, found: list[Target]) -> tuple[list[Target], list[Target]]:
    """Return the targets that do not exist yet, and those that exist."""
    names = {target[target_type] for target in found}
    rows = apps.get_model("conductor", MODEL_BY_TARGET_TYPE[target_type]).objects
    known = set(find_in_chunks(names, lambda chunk: rows.filter(name__in=chunk).values_list("name", flat=True)))
    new = [target for target in found if target[target_type] not in known]
    return new, [target for target in found if target[target_type] in known]


def normalize_name(value: JsonValue) -> str:
    """Return a name from a body as the parser of the body reads it."""
    return value.replace("\0", "") if isinstance(value, str) else "" if value is None else str(value)


class PermissionRule(Protocol):
    """What an operation requires of its caller."""

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not. Note the definitions that the request creates."""

    def describe(self) -> str:
        """Return the requirement as a phrase for the documentation."""


@dataclass(frozen=True, slots=True)
class RequiresAccess:
    """One of these rights, on each thing that the request is about.

    `find_targets`: finds the things; it is not called for an actor that has the right over all of them.
    `names_targets`: False if the request has the id of a thing, whose name a refusal must not tell.
    """

    rights: tuple[Right, ...]
    find_targets: TargetFinder
    names_targets: bool = True

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        # Not every object is in a domain: a permission on all domains is not one on all objects.
        if request.actor.permissions.allows_all(*(right for right in self.rights if right[1] != DOMAIN)):
            return
        for target in self.find_targets(request, url_kwargs):
            if not is_allowed(request.actor, self.rights, target):
                raise missing_permission_error(request.actor, self.rights, target if self.names_targets else {})

    def describe(self) -> str:
        return " or ".join(map(describe_right, self.rights))


@dataclass(frozen=True, slots=True)
class RequiresDefinitionAccess:
    """CREATE for new definitions, UPDATE for existing ones. The caller becomes the owner of a new definition."""

    target_type: str
    find_targets: TargetFinder

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        permissions = request.actor.permissions
        if permissions.is_admin and request.actor.user_id is None:
            return
        found = list(self.find_targets(request, url_kwargs))
        if not permissions.allows_all((CREATE, self.target_type), (UPDATE, self.target_type)):
            # A caller with neither right does not learn from the refusal whether the object exists.
            require_permission(request.actor, [(CREATE, self.target_type), (UPDATE, self.target_type)], found)
        new, old = split_new_and_existing(self.target_type, found)
        if not permissions.allows_all((CREATE, self.target_type)):
            require_permission(request.actor, [(CREATE, self.target_type)], new)
        if not permissions.allows_all((UPDATE, self.target_type)):
            require_permission(request.actor, [(UPDATE, self.target_type)], old)
        request.created_targets = [(self.target_type, target[self.target_type]) for target in new]

    def describe(self) -> str:
        return f"CREATE on {self.target_type} for a new one, UPDATE for an existing one"


class RequiresPollAccess:
    """EXECUTE on the task type; in a domain, on the domain as well does. People do not poll: tasks have secrets."""

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        if request.actor.is_person:
            raise Forbidden(
                "People cannot poll for tasks, whatever their role, because a worker receives the secrets of its "
                "tasks. An application with the permission can.",
                code="FORBIDDEN",
            )
        permissions = request.actor.permissions
        if not permissions.allows_all((EXECUTE, TASK_DEF)):
            found = polled_queue(request, url_kwargs)
            require_permission(request.actor, WORKER_RIGHTS if DOMAIN in found else WORKER_RIGHTS[:1], [found])

    def describe(self) -> str:
        return "EXECUTE on TASK_DEF, or for a poll in a domain on DOMAIN; for applications only"


class RequiresStartAccess:
    """EXECUTE on the definition. An inline definition also requires the permission to create it."""

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        if request.actor.permissions.is_admin:
            return
        require_start(request.actor, *started_definitions(request, url_kwargs))

    def describe(self) -> str:
        return "EXECUTE on WORKFLOW_DEF; for an inline definition also CREATE or UPDATE on it"


def describe_right(right: Right) -> str:
    """Return a right as text, such as `READ on WORKFLOW_DEF`."""
    access, target_type = right
    return f"{access} on {target_type}"


def require_start(actor: Actor, started: Iterable[Target], written: Iterable[Target]) -> None:
    """Raise Forbidden unless the actor may start the workflows, and write those that the request defines inline."""
    require_permission(actor, [(EXECUTE, WORKFLOW_DEF)], started)
    require_permission(actor, [(CREATE, WORKFLOW_DEF), (UPDATE, WORKFLOW_DEF)], written)


@dataclass(frozen=True, slots=True)
class RequiresAll:
    """Every one of these rules."""

    rules: tuple[PermissionRule, ...]

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        for rule in self.rules:
            rule.check(request, url_kwargs)

    def describe(self) -> str:
        return ", and ".join(rule.describe() for rule in self.rules)


class AllowAll:
    """Any authenticated caller: the response has no protected data, or the view filters it."""

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        pass

    def describe(self) -> str:
        return "any authenticated caller; the reply has only what the caller may read"


class AdministratorsOnly:
    """Administrators alone."""

    def check(self, request: Any, url_kwargs: dict[str, str]) -> None:
        if not request.actor.permissions.is_admin:
            raise Forbidden(f"{request.actor.name} lacks the role ADMIN.", code="FORBIDDEN")

    def describe(self) -> str:
        return "the role ADMIN"


ALLOW_ALL, ADMINISTRATORS_ONLY = AllowAll(), AdministratorsOnly()


def requires(access: str, target_type: str, find_targets: TargetFinder) -> RequiresAccess:
    """Return the rule that requires one access to targets of one type."""
    return RequiresAccess(((access, target_type),), find_targets)


TASK_REPORT_RIGHTS = (*WORKER_RIGHTS, *RUN_CONTROL_RIGHTS)

can_view_run, can_control_run = (
    RequiresAccess(RUN_VIEW_RIGHTS, run_in_address("workflow")),
    RequiresAccess(RUN_CONTROL_RIGHTS, run_in_address("workflow")),
)
can_control_and_view_run = RequiresAll((can_control_run, can_view_run))
"""For replies that have the run: the right to change it includes none to read it."""
can_view_run_of_task = RequiresAccess(RUN_VIEW_RIGHTS, run_in_address("workflow_id"))
may_debug = requires(EXECUTE, DEBUG, no_target)
can_view_workflow = requires(READ, WORKFLOW_DEF, named_in_address(WORKFLOW_DEF, "name"))
can_view_application = requires(READ, APPLICATION, named_in_address(APPLICATION, "id"))
can_update_application = requires(UPDATE, APPLICATION, named_in_address(APPLICATION, "id"))
can_view_users = requires(READ, USER, no_target)
can_poll, can_start_workflow = RequiresPollAccess(), RequiresStartAccess()
can_view_task_definition = requires(READ, TASK_DEF, named_in_address(TASK_DEF, "name"))
