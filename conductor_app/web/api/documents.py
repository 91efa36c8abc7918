"""Fields of documents that occur only in responses, and the schema names of all field tables."""

from ....core.document.checks.document_fields import FieldSpec, FieldTable, ObjectOf
from ....core.document.checks.event_handler import ACTION, REPORT, START, TERMINATE, VARIABLES
from ....core.document.checks.event_handler import EVENT_HANDLER as HANDLER_FIELDS
from ....core.document.checks.field_specs import (
    AUDIT,
    CACHE,
    RATE_LIMIT,
    SCHEMA,
    STATE_CHANGE,
    SUB_WORKFLOW,
    TASK_DEFINITION,
    WORKFLOW_DEFINITION,
)
from ....core.document.checks.step_fields import STEP_FIELDS
from ....core.document.checks.values import (
    ChoiceOf,
    IntegerOf,
    ListOf,
    MapOf,
    OrNull,
    read_boolean,
    read_mapping,
    read_text,
    texts,
)
from ....core.document.checks.webhook import WEBHOOK as WEBHOOK_FIELDS
from ....core.form_templates import FORM_TEMPLATE as TEMPLATE_FIELDS
from ....core.step_types.try_catch import CATCH_CASE
from ....insight.tasks.human_tasks import STATES as HUMAN_STATES
from ..ai.budget_serializers import BUDGET
from ..ai.integration_serializers import (
    INTEGRATION,
    INTEGRATION_FIELD,
    INTEGRATION_KIND,
    INTEGRATION_UPDATE,
    MODEL,
    MODEL_UPDATE,
    NAMED_INTEGRATION,
)
from ..ai.prompt_serializers import NEW_PROMPT, PROMPT, PROMPT_TEST
from ..definitions.simulation_serializers import TEST_REQUEST
from ..definitions.source_serializers import SOURCE_FOLDER
from ..definitions.tag_serializers import TAG
from ..payloads.file_serializers import NEW_FILE, PART_TAGS
from ..runs.debug_serializers import (
    BREAKPOINT,
    BREAKPOINT_ID,
    CONTINUE_REQUEST,
    DEBUGGED_RUN,
    EXPRESSION,
    EXPRESSION_VALUE,
    SET_BREAKPOINT,
    STOP,
)
from ..runs.rerun_serializers import RERUN_REQUEST
from ..runs.run_insight_serializers import APPLY_REQUEST, PLAN_REQUEST
from ..runs.skip_jump_serializers import CORRELATION, SKIP_REQUEST, STATE_UPDATE, UPGRADE
from ..runs.workflow_serializers import START_REQUEST
from ..schedules.schedule_serializers import CRON_ENTRY, EXECUTION, SCHEDULE_REPLY
from ..tasks.human_task_serializers import ASSIGNMENT as HUMAN_ASSIGNMENT
from ..tasks.human_task_serializers import SEARCH as HUMAN_SEARCH
from ..tasks.human_task_serializers import USER as HUMAN_USER
from ..tasks.task_serializers import LOG, TASK_RESULT

TASK_STATUS = ChoiceOf(
    "IN_PROGRESS", "SCHEDULED", "COMPLETED", "COMPLETED_WITH_ERRORS", "SKIPPED", "FAILED", "TIMED_OUT",
    "FAILED_WITH_TERMINAL_ERROR", "CANCELED",
)  # fmt: skip
WORKFLOW_STATUS = ChoiceOf("RUNNING", "PAUSED", "COMPLETED", "FAILED", "TIMED_OUT", "TERMINATED")


def fields_of_type(reader: object, *names: str) -> FieldTable:
    """Return the fields of one type."""
    return tuple(FieldSpec(name, reader) for name in names)


EXECUTION_METADATA: FieldTable = (
    *fields_of_type(read_mapping, "additionalContext", "additionalContextMap"),
    FieldSpec("empty", read_boolean),
)
TASK: FieldTable = (
    FieldSpec("status", TASK_STATUS),
    *fields_of_type(read_text, "taskId", "taskType", "taskDefName", "referenceTaskName", "workflowInstanceId",
                    "workflowType",
            "correlationId", "retriedTaskId", "reasonForIncompletion", "workerId", "domain", "isolationGroupId",
            "executionNameSpace", "subWorkflowId", "externalInputPayloadStoragePath",
            "externalOutputPayloadStoragePath"),
    *fields_of_type(read_mapping, "inputData", "outputData"),
    *fields_of_type(IntegerOf(), "retryCount", "seq", "pollCount", "startDelayInSeconds", "iteration",
                    "workflowPriority",
            "rateLimitPerFrequency", "rateLimitFrequencyInSeconds"),
    *fields_of_type(IntegerOf(64), "scheduledTime", "startTime", "endTime", "updateTime", "firstStartTime",
                    "queueWaitTime",
            "responseTimeoutSeconds", "callbackAfterSeconds"),
    *fields_of_type(read_boolean, "retried", "executed", "subworkflowChanged", "callbackFromWorker", "loopOverTask"),
    FieldSpec("workflowTask", ObjectOf(STEP_FIELDS)),
    FieldSpec("taskDefinition", ObjectOf(TASK_DEFINITION)),
    FieldSpec("runtimeMetadata", MapOf(read_text)),
    FieldSpec("executionMetadata", ObjectOf(EXECUTION_METADATA)),
)  # fmt: skip

TAGS = FieldSpec("tags", ListOf(ObjectOf(TAG)))
EVENT_HANDLER: FieldTable = (*HANDLER_FIELDS, TAGS)
TAGGED_WORKFLOW_DEFINITION: FieldTable = (*WORKFLOW_DEFINITION, TAGS)
TAGGED_TASK_DEFINITION: FieldTable = (*TASK_DEFINITION, TAGS)
WEBHOOK: FieldTable = (
    *WEBHOOK_FIELDS,
    FieldSpec("url", read_text),
    *fields_of_type(IntegerOf(64), "createTime", "updateTime"),
)
FORM_TEMPLATE: FieldTable = (
    *(TAGS if field.name == "tags" else field for field in TEMPLATE_FIELDS),
    *fields_of_type(read_text, "createdBy", "updatedBy"),
    *fields_of_type(IntegerOf(64), "createTime", "updateTime"),
)

HUMAN_TASK: FieldTable = (
    *fields_of_type(read_text, "taskId", "taskRefName", "workflowId", "workflowName", "definitionName", "displayName",
           "createdBy",
            "updatedBy"),
    FieldSpec("state", ChoiceOf(*HUMAN_STATES)),
    FieldSpec("assignee", ObjectOf(HUMAN_USER)),
    FieldSpec("claimant", ObjectOf(HUMAN_USER)),
    *fields_of_type(read_mapping, "humanTaskDef", "input", "output"),
    *fields_of_type(IntegerOf(64), "createdOn", "updatedOn"),
)  # fmt: skip
HUMAN_TASK_PAGE: FieldTable = (
    *fields_of_type(IntegerOf(64), "totalHits", "searchedSince"),
    *fields_of_type(IntegerOf(), "start", "hits", "pageSizeLimit"),
    FieldSpec("totalHitsIsLowerBound", read_boolean),
    FieldSpec("results", ListOf(ObjectOf(HUMAN_TASK))),
)
CREATED_FILE: FieldTable = (
    *fields_of_type(read_text, "fileHandleId", "fileName", "contentType", "storageType", "uploadStatus", "uploadUrl"),
    *fields_of_type(IntegerOf(64), "uploadUrlExpiresAt", "createdAt"),
)
FILE: FieldTable = (
    *fields_of_type(read_text, "fileHandleId", "fileName", "contentType", "contentHash", "storageType", "uploadStatus",
            "workflowId", "taskId"),
    *fields_of_type(IntegerOf(64), "fileSize", "createdAt", "updatedAt"),
)  # fmt: skip
FILE_ADDRESS: FieldTable = (
    *fields_of_type(read_text, "fileHandleId", "uploadUrl", "downloadUrl"),
    FieldSpec("expiresAt", IntegerOf(64)),
)
FINISHED_FILE: FieldTable = fields_of_type(read_text, "fileHandleId", "uploadStatus", "contentHash")
FILE_UPLOAD: FieldTable = fields_of_type(read_text, "fileHandleId", "uploadId")

WORKFLOW: FieldTable = (
    *AUDIT,
    FieldSpec("status", WORKFLOW_STATUS),
    *fields_of_type(read_text, "workflowId", "workflowName", "parentWorkflowId", "parentWorkflowTaskId",
                    "correlationId",
            "reasonForIncompletion", "event", "idempotencyKey", "rateLimitKey",
            "externalInputPayloadStoragePath", "externalOutputPayloadStoragePath"),
    *fields_of_type(IntegerOf(), "workflowVersion", "priority"),
    *fields_of_type(IntegerOf(64), "startTime", "endTime", "lastRetriedTime"),
    *fields_of_type(read_mapping, "input", "output", "variables"),
    FieldSpec("taskToDomain", MapOf(read_text)),
    *fields_of_type(texts, "failedReferenceTaskNames", "failedTaskNames"),
    FieldSpec("workflowDefinition", ObjectOf(WORKFLOW_DEFINITION)),
    FieldSpec("tasks", ListOf(ObjectOf(TASK))),
    FieldSpec("history", ListOf(read_mapping)),
    FieldSpec("rateLimited", read_boolean),
)  # fmt: skip

SIGNAL_RESPONSE: FieldTable = (
    FieldSpec("responseType", ChoiceOf("TARGET_WORKFLOW", "BLOCKING_WORKFLOW", "BLOCKING_TASK", "BLOCKING_TASK_INPUT")),
    FieldSpec("targetWorkflowStatus", WORKFLOW_STATUS),
    *fields_of_type(read_text, "targetWorkflowId", "requestId", "workflowId", "correlationId", "status", "createdBy",
           "taskType",
            "taskId", "referenceTaskName", "taskDefName", "retriedTaskId", "workflowType", "reasonForIncompletion"),
    *fields_of_type(read_mapping, "input", "output", "variables"),
    *fields_of_type(IntegerOf(), "priority", "retryCount"),
    *fields_of_type(IntegerOf(64), "createTime", "updateTime"),
    FieldSpec("tasks", ListOf(ObjectOf(TASK))),
    FieldSpec("signalTimeout", read_boolean),
)  # fmt: skip

LOCATION: FieldTable = fields_of_type(read_text, "uri", "path")
FINDING: FieldTable = (
    FieldSpec("severity", ChoiceOf("error", "warning", "hint")),
    *fields_of_type(read_text, "kind", "path", "message"),
)
FINDINGS: FieldTable = (FieldSpec("findings", ListOf(ObjectOf(FINDING))),)
STATUS: FieldTable = (
    *fields_of_type(read_text, "workflowId", "correlationId"),
    *fields_of_type(read_mapping, "output", "variables"),
    FieldSpec("status", WORKFLOW_STATUS),
)
TASK_PAGE: FieldTable = (FieldSpec("totalHits", IntegerOf(64)), FieldSpec("results", ListOf(ObjectOf(TASK))))
PAGE: FieldTable = (
    FieldSpec("totalHits", IntegerOf(64)),
    FieldSpec("totalHitsIsLowerBound", read_boolean),
    FieldSpec("searchedSince", OrNull(IntegerOf(64))),
)
WORKFLOW_PAGE: FieldTable = (*PAGE, FieldSpec("results", ListOf(ObjectOf(WORKFLOW))))
WORKFLOW_SUMMARY: FieldTable = (
    *fields_of_type(read_text, "workflowId", "workflowType", "correlationId", "startTime", "updateTime",
           "endTime", "input",
            "output", "reasonForIncompletion", "event", "failedReferenceTaskNames", "createdBy", "idempotencyKey",
            "parentWorkflowId", "classifier", "externalInputPayloadStoragePath",
            "externalOutputPayloadStoragePath"),
    *fields_of_type(IntegerOf(), "version", "priority", "inputSize", "outputSize"),
    FieldSpec("status", WORKFLOW_STATUS),
    FieldSpec("executionTime", IntegerOf(64)),
    FieldSpec("failedTaskNames", texts),
    FieldSpec("taskToDomain", MapOf(read_text)),
)  # fmt: skip
WORKFLOW_SUMMARY_PAGE: FieldTable = (
    *PAGE,
    FieldSpec("queryId", read_text),
    FieldSpec("results", ListOf(ObjectOf(WORKFLOW_SUMMARY))),
)
TASK_SUMMARY: FieldTable = (
    *fields_of_type(read_text, "workflowId", "workflowType", "correlationId", "scheduledTime", "startTime",
                    "updateTime",
           "endTime",
            "reasonForIncompletion", "taskDefName", "taskType", "input", "output", "taskId", "domain",
            "externalInputPayloadStoragePath", "externalOutputPayloadStoragePath"),
    *fields_of_type(IntegerOf(64), "executionTime", "queueWaitTime"),
    FieldSpec("workflowPriority", IntegerOf()),
    FieldSpec("status", TASK_STATUS),
)  # fmt: skip
TASK_SUMMARY_PAGE: FieldTable = (*PAGE, FieldSpec("results", ListOf(ObjectOf(TASK_SUMMARY))))
DEFINITION_SUMMARY: FieldTable = (
    FieldSpec("name", read_text),
    FieldSpec("version", IntegerOf()),
    *fields_of_type(IntegerOf(64), "createTime", "updateTime"),
)
BULK: FieldTable = (FieldSpec("bulkErrorResults", MapOf(read_text)), FieldSpec("bulkSuccessfulResults", texts))
SAVED_DEFINITIONS: FieldTable = (*BULK, FieldSpec("findings", ListOf(ObjectOf(FINDING))))
FOUND_WORKFLOW: FieldTable = (*WORKFLOW, FieldSpec("updatedTime", IntegerOf(64)))
BULK_WORKFLOWS: FieldTable = (
    FieldSpec("bulkErrorResults", MapOf(read_text)),
    FieldSpec("bulkSuccessfulResults", ListOf(ObjectOf(FOUND_WORKFLOW))),
)
POLL_DATA: FieldTable = (
    *fields_of_type(read_text, "queueName", "domain", "workerId"),
    FieldSpec("lastPollTime", IntegerOf(64)),
)
SENT_LOG: FieldTable = (*LOG, FieldSpec("taskId", read_text))
SCHEDULE: FieldTable = tuple(TAGS if field.name == "tags" else field for field in SCHEDULE_REPLY)
SCHEDULE_PAGE: FieldTable = (FieldSpec("totalHits", IntegerOf(64)), FieldSpec("results", ListOf(ObjectOf(SCHEDULE))))
EXECUTION_PAGE: FieldTable = (FieldSpec("totalHits", IntegerOf(64)), FieldSpec("results", ListOf(ObjectOf(EXECUTION))))
EVENT_EXECUTION: FieldTable = (
    *fields_of_type(read_text, "id", "messageId", "name", "event", "action", "statusDescription"),
    FieldSpec("status", ChoiceOf("IN_PROGRESS", "COMPLETED", "FAILED", "SKIPPED")),
    FieldSpec("created", IntegerOf(64)),
    *fields_of_type(read_mapping, "output", "fullMessagePayload"),
)
EVENT_MESSAGE: FieldTable = (
    *fields_of_type(read_text, "id", "eventTarget"),
    FieldSpec("createdAt", IntegerOf(64)),
    FieldSpec("eventType", ChoiceOf("WEBHOOK", "MESSAGE")),
    FieldSpec("fullPayload", read_mapping),
    FieldSpec("status", ChoiceOf("RECEIVED", "HANDLED", "REJECTED")),
    FieldSpec("eventExecutions", ListOf(ObjectOf(EVENT_EXECUTION))),
)
HANDLED_EVENT: FieldTable = (
    *fields_of_type(read_text, "name", "event"),
    FieldSpec("active", read_boolean),
    *fields_of_type(IntegerOf(), "numberOfMessages", "numberOfActions"),
)
HANDLED_EVENT_PAGE: FieldTable = (
    FieldSpec("totalHits", IntegerOf(64)),
    FieldSpec("results", ListOf(ObjectOf(HANDLED_EVENT))),
)
BACKFILL: FieldTable = (FieldSpec("slots", IntegerOf()),)
REPAIR: FieldTable = (FieldSpec("recordIds.size", IntegerOf()), FieldSpec("sampleIds", texts))
SECRET: FieldTable = (
    *fields_of_type(read_text, "name", "partial"),
    *fields_of_type(IntegerOf(64), "created_at", "updated_at"),
)
SECRET_WITH_TAGS: FieldTable = (FieldSpec("name", read_text), TAGS)
VARIABLE: FieldTable = fields_of_type(read_text, "name", "value")
CREDENTIALS: FieldTable = fields_of_type(read_text, "keyId", "keySecret")
TOKEN: FieldTable = fields_of_type(read_text, "token")
PERMISSION: FieldTable = fields_of_type(read_text, "name")
ROLE: FieldTable = (FieldSpec("name", read_text), FieldSpec("permissions", ListOf(ObjectOf(PERMISSION))))
GROUP: FieldTable = (
    *fields_of_type(read_text, "id", "description"),
    FieldSpec("roles", ListOf(ObjectOf(ROLE))),
    FieldSpec("defaultAccess", MapOf(texts)),
    FieldSpec("contactInformation", MapOf(read_text)),
)
USER: FieldTable = (
    *fields_of_type(read_text, "id", "name", "uuid", "encryptedIdDisplayValue"),
    FieldSpec("roles", ListOf(ObjectOf(ROLE))),
    FieldSpec("groups", ListOf(ObjectOf(GROUP))),
    *fields_of_type(read_boolean, "applicationUser", "encryptedId"),
    FieldSpec("contactInformation", MapOf(read_text)),
)
APPLICATION: FieldTable = (
    *fields_of_type(read_text, "id", "name", "createdBy", "updatedBy"),
    *fields_of_type(IntegerOf(64), "createTime", "updateTime"),
)
NEW_APPLICATION: FieldTable = fields_of_type(read_text, "name")
NEW_USER: FieldTable = (
    FieldSpec("name", read_text),
    *fields_of_type(texts, "roles", "groups"),
    FieldSpec("contactInformation", MapOf(read_text)),
)
NEW_GROUP: FieldTable = (
    FieldSpec("description", read_text),
    FieldSpec("roles", texts),
    FieldSpec("defaultAccess", MapOf(texts)),
)
NEW_ROLE: FieldTable = (FieldSpec("name", read_text), FieldSpec("permissions", texts))
ACCESS_KEY: FieldTable = (*fields_of_type(read_text, "id", "status"), FieldSpec("createdAt", IntegerOf(64)))
CREATED_KEY: FieldTable = fields_of_type(read_text, "id", "secret")
REFERENCE: FieldTable = fields_of_type(read_text, "type", "id")
AUTHORIZATION: FieldTable = (
    FieldSpec("subject", ObjectOf(REFERENCE)),
    FieldSpec("target", ObjectOf(REFERENCE)),
    FieldSpec("access", texts),
)
GRANT: FieldTable = (FieldSpec("target", ObjectOf(REFERENCE)), FieldSpec("access", texts))
GRANTED: FieldTable = (FieldSpec("grantedAccess", ListOf(ObjectOf(GRANT))),)
CONFIGURATION: FieldTable = fields_of_type(read_text, "version", "apiAccess", "ownerEmailMandatory")
COMPLAINT: FieldTable = fields_of_type(read_text, "path", "message", "invalidValue")
ERROR: FieldTable = (
    FieldSpec("status", IntegerOf()),
    *fields_of_type(read_text, "message", "instance", "error"),
    FieldSpec("retryable", read_boolean),
    FieldSpec("validationErrors", ListOf(ObjectOf(COMPLAINT))),
)

TABLE_BY_NAME: dict[str, FieldTable] = {
    "TaskDef": TASK_DEFINITION,
    "ExtendedTaskDef": TAGGED_TASK_DEFINITION,
    "HumanTaskTemplate": FORM_TEMPLATE,
    "HumanTaskUser": HUMAN_USER,
    "HumanTaskAssignment": HUMAN_ASSIGNMENT,
    "HumanTaskSearch": HUMAN_SEARCH,
    "HumanTaskEntry": HUMAN_TASK,
    "HumanTaskSearchResult": HUMAN_TASK_PAGE,
    "WorkflowDef": WORKFLOW_DEFINITION,
    "ExtendedWorkflowDef": TAGGED_WORKFLOW_DEFINITION,
    "WorkflowTask": STEP_FIELDS,
    "SubWorkflowParams": SUB_WORKFLOW,
    "StateChangeEvent": STATE_CHANGE,
    "Permission": PERMISSION,
    "Role": ROLE,
    "Group": GROUP,
    "ConductorUser": USER,
    "ConductorApplication": APPLICATION,
    "CreateOrUpdateApplicationRequest": NEW_APPLICATION,
    "UpsertUserRequest": NEW_USER,
    "UpsertGroupRequest": NEW_GROUP,
    "CreateOrUpdateRoleRequest": NEW_ROLE,
    "AccessKey": ACCESS_KEY,
    "CreatedAccessKey": CREATED_KEY,
    "Reference": REFERENCE,
    "AuthorizationRequest": AUTHORIZATION,
    "GrantedAccess": GRANT,
    "GrantedAccessResponse": GRANTED,
    "CatchCase": CATCH_CASE,
    "RateLimitConfig": RATE_LIMIT,
    "CacheConfig": CACHE,
    "SchemaDef": SCHEMA,
    "WebhookConfig": WEBHOOK,
    "EventHandler": EVENT_HANDLER,
    "Action": ACTION,
    "StartWorkflowAction": START,
    "ExtendedEventExecution": EVENT_EXECUTION,
    "EventMessage": EVENT_MESSAGE,
    "HandledEventResponse": HANDLED_EVENT,
    "SearchResultHandledEventResponse": HANDLED_EVENT_PAGE,
    "TaskDetails": REPORT,
    "TerminateWorkflowAction": TERMINATE,
    "UpdateWorkflowVariablesAction": VARIABLES,
    "WorkflowDefSummary": DEFINITION_SUMMARY,
    "StartWorkflowRequest": START_REQUEST,
    "WorkflowTestRequest": TEST_REQUEST,
    "RerunWorkflowRequest": RERUN_REQUEST,
    "Breakpoint": BREAKPOINT,
    "SetBreakpoint": SET_BREAKPOINT,
    "BreakpointId": BREAKPOINT_ID,
    "Stop": STOP,
    "DebuggedRun": DEBUGGED_RUN,
    "ExpressionValue": EXPRESSION_VALUE,
    "ModelBudget": BUDGET,
    "ContinueRequest": CONTINUE_REQUEST,
    "ExpressionRequest": EXPRESSION,
    "PlanOperationRequest": PLAN_REQUEST,
    "ApplyPlanRequest": APPLY_REQUEST,
    "Workflow": WORKFLOW,
    "WorkflowStatus": STATUS,
    "ExternalStorageLocation": LOCATION,
    "WorkflowDefFinding": FINDING,
    "WorkflowDefFindings": FINDINGS,
    "SignalResponse": SIGNAL_RESPONSE,
    "CreateFileRequest": NEW_FILE,
    "CreatedFile": CREATED_FILE,
    "File": FILE,
    "FileAddress": FILE_ADDRESS,
    "FinishedFile": FINISHED_FILE,
    "FileUpload": FILE_UPLOAD,
    "FilePartTags": PART_TAGS,
    "ExecutionMetadata": EXECUTION_METADATA,
    "Task": TASK,
    "SearchResultTask": TASK_PAGE,
    "SearchResultWorkflow": WORKFLOW_PAGE,
    "WorkflowSummary": WORKFLOW_SUMMARY,
    "SearchResultWorkflowSummary": WORKFLOW_SUMMARY_PAGE,
    "TaskSummary": TASK_SUMMARY,
    "SearchResultTaskSummary": TASK_SUMMARY_PAGE,
    "TaskResult": TASK_RESULT,
    "TaskExecLogLine": LOG,
    "TaskExecLog": SENT_LOG,
    "PollData": POLL_DATA,
    "BulkResponse": BULK,
    "BulkResponseWorkflowDef": SAVED_DEFINITIONS,
    "WorkflowModel": FOUND_WORKFLOW,
    "BulkResponseWorkflow": BULK_WORKFLOWS,
    "SkipTaskRequest": SKIP_REQUEST,
    "UpgradeWorkflowRequest": UPGRADE,
    "WorkflowStateUpdate": STATE_UPDATE,
    "CorrelationIdsSearchRequest": CORRELATION,
    "Tag": TAG,
    "DefinitionFolder": SOURCE_FOLDER,
    "WorkflowSchedule": SCHEDULE,
    "CronSchedule": CRON_ENTRY,
    "SearchResultWorkflowSchedule": SCHEDULE_PAGE,
    "WorkflowScheduleExecution": EXECUTION,
    "SearchResultWorkflowScheduleExecution": EXECUTION_PAGE,
    "Backfill": BACKFILL,
    "ScheduleRepair": REPAIR,
    "Secret": SECRET,
    "ExtendedSecret": SECRET_WITH_TAGS,
    "EnvironmentVariable": VARIABLE,
    "Credentials": CREDENTIALS,
    "Token": TOKEN,
    "Integration": INTEGRATION,
    "IntegrationUpdate": INTEGRATION_UPDATE,
    "NamedIntegration": NAMED_INTEGRATION,
    "IntegrationApi": MODEL,
    "IntegrationApiUpdate": MODEL_UPDATE,
    "IntegrationDef": INTEGRATION_KIND,
    "IntegrationDefFormField": INTEGRATION_FIELD,
    "MessageTemplate": PROMPT,
    "NewMessageTemplate": NEW_PROMPT,
    "PromptTemplateTestRequest": PROMPT_TEST,
    "Configuration": CONFIGURATION,
    "ErrorResponse": ERROR,
    "ValidationError": COMPLAINT,
}
