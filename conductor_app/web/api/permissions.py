"""The permission rules of the API's operations.

Permission rules of API operations: the kinds of permission that an operation declares.

The permission rules of the API's operations. Each is checked once per request, before its handler runs.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ...access.authentication import Actor, Target, is_allowed, missing_permission_error, require_permission
from ...access.permissions import (
    APPLICATION,
    CREATE,
    DEBUG,
    DELETE,
    DOMAIN,
    EVENT_HANDLER,
    EXECUTE,
    FORM_TEMPLATE,
    INTEGRATION,
    INTEGRATION_PROVIDER,
    PROMPT,
    READ,
    SCHEDULE,
    SCHEMA,
    SECRET,
    TASK_DEF,
    UPDATE,
    USER,
    VARIABLE,
    WEBHOOK,
    WORKFLOW,
    WORKFLOW_DEF,
    Right,
)
from ...core.errors import Forbidden
from ...human_tasks.commands import COMPLETION_RIGHTS, VIEW_RIGHTS
from ...payloads.blob_storage import is_storage_configured
from ...payloads.commands import require_payload_read
from . import requests as request_body
from . import targets

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


def requires(access: str, target_type: str, find_targets: TargetFinder) -> RequiresAccess:
    """Return the rule that requires one access to targets of one type."""
    return RequiresAccess(((access, target_type),), find_targets)


can_view_schedule, can_update_schedule, can_run_schedule, can_update_schedules = (
    requires(READ, SCHEDULE, targets.named_in_address(SCHEDULE, "name")),
    requires(UPDATE, SCHEDULE, targets.named_in_address(SCHEDULE, "name")),
    requires(EXECUTE, SCHEDULE, targets.named_in_address(SCHEDULE, "name")),
    requires(UPDATE, SCHEDULE, targets.names_in_body(SCHEDULE)),
)

RUN_VIEW_RIGHTS = ((READ, WORKFLOW_DEF), (READ, WORKFLOW))
RUN_CONTROL_RIGHTS = ((EXECUTE, WORKFLOW_DEF), (UPDATE, WORKFLOW), (EXECUTE, WORKFLOW))
TASK_VIEW_RIGHTS = (*RUN_VIEW_RIGHTS, *WORKER_RIGHTS)
TASK_REPORT_RIGHTS = (*WORKER_RIGHTS, *RUN_CONTROL_RIGHTS)

can_view_run, can_control_run = (
    RequiresAccess(RUN_VIEW_RIGHTS, targets.run_in_address("workflow")),
    RequiresAccess(RUN_CONTROL_RIGHTS, targets.run_in_address("workflow")),
)
may_debug = requires(EXECUTE, DEBUG, targets.no_target)
can_debug_run = RequiresAll((may_debug, can_control_run))
can_debug_workflow = RequiresAll(
    (may_debug, RequiresAccess(((EXECUTE, WORKFLOW_DEF),), targets.named_in_address(WORKFLOW_DEF, "name")))
)
can_control_runs, can_remove_runs = (
    RequiresAccess(RUN_CONTROL_RIGHTS, targets.runs_in_body),
    requires(DELETE, WORKFLOW, targets.runs_in_body),
)
can_view_runs_of_workflow = requires(READ, WORKFLOW_DEF, targets.named_in_address(WORKFLOW_DEF, "workflow"))
can_validate_workflows = RequiresAnyAccess(((CREATE, WORKFLOW_DEF), (UPDATE, WORKFLOW_DEF)))
can_view_workflow = requires(READ, WORKFLOW_DEF, targets.named_in_address(WORKFLOW_DEF, "name"))
can_update_workflow = requires(UPDATE, WORKFLOW_DEF, targets.named_in_address(WORKFLOW_DEF, "name"))
can_update_task = requires(UPDATE, TASK_DEF, targets.named_in_address(TASK_DEF, "name"))
can_view_application = requires(READ, APPLICATION, targets.named_in_address(APPLICATION, "id"))
can_update_application = requires(UPDATE, APPLICATION, targets.named_in_address(APPLICATION, "id"))
can_view_users = requires(READ, USER, targets.no_target)
can_start_named_workflow = requires(EXECUTE, WORKFLOW_DEF, targets.named_in_address(WORKFLOW_DEF, "name"))
can_signal = RequiresAccess(RUN_CONTROL_RIGHTS, targets.run_in_address("workflow_id"))
can_view_queue = requires(READ, TASK_DEF, targets.named_in_query(TASK_DEF, "taskType"))
can_poll, can_start_workflow = RequiresPollAccess(), RequiresStartAccess()
can_view_human_task, can_complete_human_task = (
    RequiresAccess((*VIEW_RIGHTS, *COMPLETION_RIGHTS), targets.attempt_in_address("task_id")),
    RequiresAccess(COMPLETION_RIGHTS, targets.attempt_in_address("task_id")),
)
can_save_template = RequiresDefinitionAccess(FORM_TEMPLATE, targets.definitions_in_body(FORM_TEMPLATE))
can_upload_files, can_view_files = RequiresFileAccess(RUN_CONTROL_RIGHTS), RequiresFileAccess(RUN_VIEW_RIGHTS)
can_transfer_payload = RequiresPayloadAccess()
can_view_task = RequiresAccess(TASK_VIEW_RIGHTS, targets.attempt_in_address("task_id"))
can_report_by_reference = RequiresAccess(TASK_REPORT_RIGHTS, targets.open_tasks_by_reference("workflow_id"))
can_log_task = RequiresAccess(TASK_REPORT_RIGHTS, targets.attempt_in_address("task_id", must_exist=True))
can_start_workflow_in_address = requires(EXECUTE, WORKFLOW_DEF, targets.named_in_address(WORKFLOW_DEF, "workflow"))
can_view_correlated_workflows = requires(READ, WORKFLOW_DEF, targets.correlated_definitions)
can_remove_run = requires(DELETE, WORKFLOW, targets.run_in_address("workflow"))
can_view_runs = RequiresAccess(RUN_VIEW_RIGHTS, targets.runs_in_body)
can_requeue_task_type = requires(EXECUTE, TASK_DEF, targets.named_in_address(TASK_DEF, "task_type"))
can_report_task = RequiresAccess(TASK_REPORT_RIGHTS, targets.attempt_in_address("task_id"))
can_report_loaded_task = RequiresAccessLater(TASK_REPORT_RIGHTS)
can_complete_by_reference = RequiresAccess(TASK_REPORT_RIGHTS, targets.open_tasks_by_reference("workflow"))
can_save_workflows = RequiresDefinitionAccess(WORKFLOW_DEF, targets.definitions_in_body(WORKFLOW_DEF))
can_delete_workflow = requires(DELETE, WORKFLOW_DEF, targets.named_in_address(WORKFLOW_DEF, "name"))
can_save_task_definitions = RequiresDefinitionAccess(TASK_DEF, targets.definitions_in_body(TASK_DEF))
can_view_task_definition = requires(READ, TASK_DEF, targets.named_in_address(TASK_DEF, "name"))
can_delete_task_definition = requires(DELETE, TASK_DEF, targets.named_in_address(TASK_DEF, "name"))
can_create_application = requires(CREATE, APPLICATION, targets.no_target)
can_delete_application = requires(DELETE, APPLICATION, targets.named_in_address(APPLICATION, "id"))
can_view_application_of_key = requires(READ, APPLICATION, targets.application_of_key)
can_save_handlers = RequiresDefinitionAccess(EVENT_HANDLER, targets.definitions_in_body(EVENT_HANDLER))
can_view_handler = requires(READ, EVENT_HANDLER, targets.named_in_address(EVENT_HANDLER, "name"))
can_delete_handler = requires(DELETE, EVENT_HANDLER, targets.named_in_address(EVENT_HANDLER, "event"))
can_create_webhook = RequiresDefinitionAccess(WEBHOOK, targets.definitions_in_body(WEBHOOK))
can_update_webhook = RequiresDefinitionAccess(WEBHOOK, targets.webhooks_named_before_and_after)
can_view_webhook = requires(READ, WEBHOOK, targets.webhook_in_address)
can_delete_webhook = requires(DELETE, WEBHOOK, targets.webhook_in_address)
can_save_schedule = RequiresScheduleAccess()
can_delete_schedule = requires(DELETE, SCHEDULE, targets.named_in_address(SCHEDULE, "name"))
can_view_secret = requires(READ, SECRET, targets.named_in_address(SECRET, "key"))
can_save_secret = RequiresDefinitionAccess(SECRET, targets.named_in_address(SECRET, "key"))
can_delete_secret = requires(DELETE, SECRET, targets.named_in_address(SECRET, "key"))
can_update_secret = requires(UPDATE, SECRET, targets.named_in_address(SECRET, "key"))
can_view_variable = requires(READ, VARIABLE, targets.named_in_address(VARIABLE, "key"))
can_save_variable = RequiresDefinitionAccess(VARIABLE, targets.named_in_address(VARIABLE, "key"))
can_delete_variable = requires(DELETE, VARIABLE, targets.named_in_address(VARIABLE, "key"))
can_update_variable = requires(UPDATE, VARIABLE, targets.named_in_address(VARIABLE, "key"))
can_save_schemas = RequiresDefinitionAccess(SCHEMA, targets.definitions_in_body(SCHEMA))
can_view_schema = requires(READ, SCHEMA, targets.named_in_address(SCHEMA, "name"))
can_delete_schema = requires(DELETE, SCHEMA, targets.named_in_address(SCHEMA, "name"))
can_complete_human_task_in_query = RequiresAccess(COMPLETION_RIGHTS, targets.task_in_query)
can_view_human_task_by_name = RequiresAccess((*VIEW_RIGHTS, *COMPLETION_RIGHTS), targets.attempt_in_address("name"))
can_delete_template = requires(DELETE, FORM_TEMPLATE, targets.named_in_address(FORM_TEMPLATE, "name"))
can_view_template = requires(READ, FORM_TEMPLATE, targets.named_in_address(FORM_TEMPLATE, "name"))
can_view_integration = requires(READ, INTEGRATION_PROVIDER, targets.named_in_address(INTEGRATION_PROVIDER, "name"))
can_save_integration = RequiresDefinitionAccess(
    INTEGRATION_PROVIDER, targets.named_in_address(INTEGRATION_PROVIDER, "name")
)
can_save_integrations = RequiresDefinitionAccess(
    INTEGRATION_PROVIDER, targets.definitions_in_body(INTEGRATION_PROVIDER)
)
can_update_integration = requires(UPDATE, INTEGRATION_PROVIDER, targets.named_in_address(INTEGRATION_PROVIDER, "name"))
can_delete_integration = requires(DELETE, INTEGRATION_PROVIDER, targets.named_in_address(INTEGRATION_PROVIDER, "name"))
can_view_model = RequiresAccess(((READ, INTEGRATION_PROVIDER), (READ, INTEGRATION)), targets.model_in_address)
can_update_model = RequiresAccess(((UPDATE, INTEGRATION_PROVIDER), (UPDATE, INTEGRATION)), targets.model_in_address)
can_view_prompt = requires(READ, PROMPT, targets.named_in_address(PROMPT, "name"))
can_save_prompt = RequiresDefinitionAccess(PROMPT, targets.named_in_address(PROMPT, "name"))
can_save_prompts = RequiresDefinitionAccess(PROMPT, targets.definitions_in_body(PROMPT))
can_update_prompt = requires(UPDATE, PROMPT, targets.named_in_address(PROMPT, "name"))
can_delete_prompt = requires(DELETE, PROMPT, targets.named_in_address(PROMPT, "name"))
can_bind_prompt = requires(UPDATE, PROMPT, targets.named_in_address(PROMPT, "prompt"))
can_try_prompt = RequiresAccess(((EXECUTE, INTEGRATION_PROVIDER), (EXECUTE, INTEGRATION)), targets.model_in_body)
