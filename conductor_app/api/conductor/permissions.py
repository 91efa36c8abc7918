"""The permission rules of the API's operations. Each is checked once per request, before its handler runs."""

from ...access.access_types import (
    APPLICATION,
    CREATE,
    DEBUG,
    DELETE,
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
)
from ...access.human_tasks import COMPLETION_RIGHTS, VIEW_RIGHTS
from . import targets
from .permission_rules import (
    WORKER_RIGHTS,
    RequiresAccess,
    RequiresAccessLater,
    RequiresAll,
    RequiresAnyAccess,
    RequiresDefinitionAccess,
    RequiresFileAccess,
    RequiresPayloadAccess,
    RequiresPollAccess,
    RequiresScheduleAccess,
    RequiresStartAccess,
    TargetFinder,
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
