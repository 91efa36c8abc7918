"""The fields of what is only ever sent, and the names under which all tables are shown."""

from ....core.form_templates import FORM_TEMPLATE
from ....core.language.checks.event_handler import ACTION, EVENT_HANDLER, REPORT, START, TERMINATE, VARIABLES
from ....core.language.checks.fields import Field, Of, Table
from ....core.language.checks.tables import (
    AUDIT,
    CACHE,
    CATCH_CASE,
    RATE_LIMIT,
    SCHEMA,
    STATE_CHANGE,
    SUB_WORKFLOW,
    TASK_DEFINITION,
    WORKFLOW_DEFINITION,
    WORKFLOW_TASK,
)
from ....core.language.checks.values import Choice, ListOf, MapOf, Whole, anything, flag, mapping, text, texts
from ....core.language.checks.webhook import WEBHOOK
from ....insight.human_tasks import STATES as HUMAN_STATES
from ..serializers.detours import CORRELATION, SKIP_REQUEST, STATE_UPDATE, UPGRADE
from ..serializers.files import NEW_FILE, PARTS
from ..serializers.human_tasks import ASSIGNMENT as HUMAN_ASSIGNMENT
from ..serializers.human_tasks import SEARCH as HUMAN_SEARCH
from ..serializers.human_tasks import USER as HUMAN_USER
from ..serializers.reruns import RERUN_REQUEST
from ..serializers.schedules import CRON_ENTRY, EXECUTION, SHOWN
from ..serializers.simulations import TEST_REQUEST
from ..serializers.tags import TAG
from ..serializers.tasks import LOG, TASK_RESULT
from ..serializers.workflows import START_REQUEST

TASK_STATUS = Choice(
    "IN_PROGRESS", "SCHEDULED", "COMPLETED", "COMPLETED_WITH_ERRORS", "SKIPPED", "FAILED", "TIMED_OUT",
    "FAILED_WITH_TERMINAL_ERROR", "CANCELED",
)  # fmt: skip
WORKFLOW_STATUS = Choice("RUNNING", "PAUSED", "COMPLETED", "FAILED", "TIMED_OUT", "TERMINATED")


def fields(reader: object, *names: str) -> Table:
    """Fields of one type."""
    return tuple(Field(name, reader) for name in names)


TASK: Table = (
    Field("status", TASK_STATUS),
    *fields(text, "taskId", "taskType", "taskDefName", "referenceTaskName", "workflowInstanceId", "workflowType",
            "correlationId", "retriedTaskId", "reasonForIncompletion", "workerId", "domain", "isolationGroupId",
            "executionNameSpace", "subWorkflowId", "externalInputPayloadStoragePath",
            "externalOutputPayloadStoragePath"),
    *fields(mapping, "inputData", "outputData"),
    *fields(Whole(), "retryCount", "seq", "pollCount", "startDelayInSeconds", "iteration", "workflowPriority",
            "rateLimitPerFrequency", "rateLimitFrequencyInSeconds"),
    *fields(Whole(64), "scheduledTime", "startTime", "endTime", "updateTime", "firstStartTime", "queueWaitTime",
            "responseTimeoutSeconds", "callbackAfterSeconds"),
    *fields(flag, "retried", "executed", "subworkflowChanged", "callbackFromWorker", "loopOverTask"),
    Field("workflowTask", Of(WORKFLOW_TASK)),
    Field("taskDefinition", Of(TASK_DEFINITION)),
    Field("runtimeMetadata", MapOf(text)),
)  # fmt: skip

HUMAN_TASK: Table = (
    *fields(text, "taskId", "taskRefName", "workflowId", "workflowName", "definitionName", "displayName", "createdBy",
            "updatedBy"),
    Field("state", Choice(*HUMAN_STATES)),
    Field("assignee", Of(HUMAN_USER)),
    Field("claimant", Of(HUMAN_USER)),
    *fields(mapping, "humanTaskDef", "input", "output"),
    *fields(Whole(64), "createdOn", "updatedOn"),
)  # fmt: skip
HUMAN_TASK_PAGE: Table = (
    *fields(Whole(64), "totalHits", "searchedSince"),
    *fields(Whole(), "start", "hits", "pageSizeLimit"),
    Field("totalHitsIsLowerBound", flag),
    Field("results", ListOf(Of(HUMAN_TASK))),
)
CREATED_FILE: Table = (
    *fields(text, "fileHandleId", "fileName", "contentType", "storageType", "uploadStatus", "uploadUrl"),
    *fields(Whole(64), "uploadUrlExpiresAt", "createdAt"),
)
FILE: Table = (
    *fields(text, "fileHandleId", "fileName", "contentType", "contentHash", "storageType", "uploadStatus",
            "workflowId", "taskId"),
    *fields(Whole(64), "fileSize", "createdAt", "updatedAt"),
)  # fmt: skip
FILE_ADDRESS: Table = (*fields(text, "fileHandleId", "uploadUrl", "downloadUrl"), Field("expiresAt", Whole(64)))
FINISHED_FILE: Table = fields(text, "fileHandleId", "uploadStatus", "contentHash")
FILE_UPLOAD: Table = fields(text, "fileHandleId", "uploadId")

WORKFLOW: Table = (
    *AUDIT,
    Field("status", WORKFLOW_STATUS),
    *fields(text, "workflowId", "workflowName", "parentWorkflowId", "parentWorkflowTaskId", "correlationId",
            "reasonForIncompletion", "event", "idempotencyKey", "rateLimitKey",
            "externalInputPayloadStoragePath", "externalOutputPayloadStoragePath"),
    *fields(Whole(), "workflowVersion", "priority"),
    *fields(Whole(64), "startTime", "endTime", "lastRetriedTime"),
    *fields(mapping, "input", "output", "variables"),
    Field("taskToDomain", MapOf(text)),
    *fields(texts, "failedReferenceTaskNames", "failedTaskNames"),
    Field("workflowDefinition", Of(WORKFLOW_DEFINITION)),
    Field("tasks", ListOf(Of(TASK))),
    Field("history", ListOf(mapping)),
    Field("rateLimited", flag),
)  # fmt: skip

SIGNAL_RESPONSE: Table = (
    Field("responseType", Choice("TARGET_WORKFLOW", "BLOCKING_WORKFLOW", "BLOCKING_TASK", "BLOCKING_TASK_INPUT")),
    Field("targetWorkflowStatus", WORKFLOW_STATUS),
    *fields(text, "targetWorkflowId", "requestId", "workflowId", "correlationId", "status", "createdBy", "taskType",
            "taskId", "referenceTaskName", "taskDefName", "retriedTaskId", "workflowType", "reasonForIncompletion"),
    *fields(mapping, "input", "output", "variables"),
    *fields(Whole(), "priority", "retryCount"),
    *fields(Whole(64), "createTime", "updateTime"),
    Field("tasks", ListOf(Of(TASK))),
    Field("signalTimeout", flag),
)  # fmt: skip

LOCATION: Table = fields(text, "uri", "path")
FINDING: Table = (Field("severity", Choice("error", "warning", "hint")), *fields(text, "kind", "path", "message"))
FINDINGS: Table = (Field("findings", ListOf(Of(FINDING))),)
STATUS: Table = (
    *fields(text, "workflowId", "correlationId"),
    *fields(mapping, "output", "variables"),
    Field("status", WORKFLOW_STATUS),
)
TASK_PAGE: Table = (Field("totalHits", Whole(64)), Field("results", ListOf(Of(TASK))))
PAGE: Table = (Field("totalHits", Whole(64)), Field("totalHitsIsLowerBound", flag), Field("searchedSince", anything))
WORKFLOW_PAGE: Table = (*PAGE, Field("results", ListOf(Of(WORKFLOW))))
WORKFLOW_SUMMARY: Table = (
    *fields(text, "workflowId", "workflowType", "correlationId", "startTime", "updateTime", "endTime", "input",
            "output", "reasonForIncompletion", "event", "failedReferenceTaskNames", "createdBy", "idempotencyKey",
            "parentWorkflowId", "classifier", "externalInputPayloadStoragePath",
            "externalOutputPayloadStoragePath"),
    *fields(Whole(), "version", "priority", "inputSize", "outputSize"),
    Field("status", WORKFLOW_STATUS),
    Field("executionTime", Whole(64)),
    Field("failedTaskNames", texts),
    Field("taskToDomain", MapOf(text)),
)  # fmt: skip
WORKFLOW_SUMMARY_PAGE: Table = (*PAGE, Field("queryId", text), Field("results", ListOf(Of(WORKFLOW_SUMMARY))))
TASK_SUMMARY: Table = (
    *fields(text, "workflowId", "workflowType", "correlationId", "scheduledTime", "startTime", "updateTime", "endTime",
            "reasonForIncompletion", "taskDefName", "taskType", "input", "output", "taskId", "domain",
            "externalInputPayloadStoragePath", "externalOutputPayloadStoragePath"),
    *fields(Whole(64), "executionTime", "queueWaitTime"),
    Field("workflowPriority", Whole()),
    Field("status", TASK_STATUS),
)  # fmt: skip
TASK_SUMMARY_PAGE: Table = (*PAGE, Field("results", ListOf(Of(TASK_SUMMARY))))
DEFINITION_SUMMARY: Table = (
    Field("name", text),
    Field("version", Whole()),
    *fields(Whole(64), "createTime", "updateTime"),
)
BULK: Table = (Field("bulkErrorResults", MapOf(text)), Field("bulkSuccessfulResults", texts))
BULK_WORKFLOWS: Table = (Field("bulkErrorResults", MapOf(text)), Field("bulkSuccessfulResults", ListOf(Of(WORKFLOW))))
POLL_DATA: Table = (*fields(text, "queueName", "domain", "workerId"), Field("lastPollTime", Whole(64)))
SENT_LOG: Table = (*LOG, Field("taskId", text))
SCHEDULE: Table = tuple(Field("tags", ListOf(Of(TAG))) if field.name == "tags" else field for field in SHOWN)
SCHEDULE_PAGE: Table = (Field("totalHits", Whole(64)), Field("results", ListOf(Of(SCHEDULE))))
EXECUTION_PAGE: Table = (Field("totalHits", Whole(64)), Field("results", ListOf(Of(EXECUTION))))
EVENT_EXECUTION: Table = (
    *fields(text, "id", "messageId", "name", "event", "action", "statusDescription"),
    Field("status", Choice("IN_PROGRESS", "COMPLETED", "FAILED", "SKIPPED")),
    Field("created", Whole(64)),
    *fields(mapping, "output", "fullMessagePayload"),
)
EVENT_MESSAGE: Table = (
    *fields(text, "id", "eventTarget"),
    Field("createdAt", Whole(64)),
    Field("eventType", Choice("WEBHOOK", "MESSAGE")),
    Field("fullPayload", mapping),
    Field("status", Choice("RECEIVED", "HANDLED", "REJECTED")),
    Field("eventExecutions", ListOf(Of(EVENT_EXECUTION))),
)
HANDLED_EVENT: Table = (
    *fields(text, "name", "event"),
    Field("active", flag),
    *fields(Whole(), "numberOfMessages", "numberOfActions"),
)
HANDLED_EVENT_PAGE: Table = (Field("totalHits", Whole(64)), Field("results", ListOf(Of(HANDLED_EVENT))))
BACKFILL: Table = (Field("slots", Whole()),)
SECRET: Table = (*fields(text, "name", "partial"), *fields(Whole(64), "created_at", "updated_at"))
SECRET_WITH_TAGS: Table = (Field("name", text), Field("tags", ListOf(Of(TAG))))
VARIABLE: Table = fields(text, "name", "value")
CREDENTIALS: Table = fields(text, "keyId", "keySecret")
TOKEN: Table = fields(text, "token")
PERMISSION: Table = fields(text, "name")
ROLE: Table = (Field("name", text), Field("permissions", ListOf(Of(PERMISSION))))
GROUP: Table = (
    *fields(text, "id", "description"),
    Field("roles", ListOf(Of(ROLE))),
    Field("defaultAccess", MapOf(texts)),
    Field("contactInformation", MapOf(text)),
)
USER: Table = (
    *fields(text, "id", "name", "uuid", "encryptedIdDisplayValue"),
    Field("roles", ListOf(Of(ROLE))),
    Field("groups", ListOf(Of(GROUP))),
    *fields(flag, "applicationUser", "encryptedId"),
    Field("contactInformation", MapOf(text)),
)
APPLICATION: Table = (
    *fields(text, "id", "name", "createdBy", "updatedBy"),
    *fields(Whole(64), "createTime", "updateTime"),
)
NEW_APPLICATION: Table = fields(text, "name")
NEW_USER: Table = (
    Field("name", text),
    *fields(texts, "roles", "groups"),
    Field("contactInformation", MapOf(text)),
)
NEW_GROUP: Table = (Field("description", text), Field("roles", texts), Field("defaultAccess", MapOf(texts)))
NEW_ROLE: Table = (Field("name", text), Field("permissions", texts))
ACCESS_KEY: Table = (*fields(text, "id", "status"), Field("createdAt", Whole(64)))
CREATED_KEY: Table = fields(text, "id", "secret")
REFERENCE: Table = fields(text, "type", "id")
AUTHORIZATION: Table = (
    Field("subject", Of(REFERENCE)),
    Field("target", Of(REFERENCE)),
    Field("access", texts),
)
GRANT: Table = (Field("target", Of(REFERENCE)), Field("access", texts))
GRANTED: Table = (Field("grantedAccess", ListOf(Of(GRANT))),)
CONFIGURATION: Table = fields(text, "version", "apiAccess", "ownerEmailMandatory")
COMPLAINT: Table = fields(text, "path", "message", "invalidValue")
ERROR: Table = (
    Field("status", Whole()),
    *fields(text, "message", "instance", "error"),
    Field("retryable", flag),
    Field("validationErrors", ListOf(Of(COMPLAINT))),
)

NAMED: dict[str, Table] = {
    "TaskDef": TASK_DEFINITION,
    "HumanTaskTemplate": FORM_TEMPLATE,
    "HumanTaskUser": HUMAN_USER,
    "HumanTaskAssignment": HUMAN_ASSIGNMENT,
    "HumanTaskSearch": HUMAN_SEARCH,
    "HumanTaskEntry": HUMAN_TASK,
    "HumanTaskSearchResult": HUMAN_TASK_PAGE,
    "WorkflowDef": WORKFLOW_DEFINITION,
    "WorkflowTask": WORKFLOW_TASK,
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
    "FilePartTags": PARTS,
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
    "BulkResponseWorkflow": BULK_WORKFLOWS,
    "SkipTaskRequest": SKIP_REQUEST,
    "UpgradeWorkflowRequest": UPGRADE,
    "WorkflowStateUpdate": STATE_UPDATE,
    "CorrelationIdsSearchRequest": CORRELATION,
    "Tag": TAG,
    "WorkflowSchedule": SCHEDULE,
    "CronSchedule": CRON_ENTRY,
    "SearchResultWorkflowSchedule": SCHEDULE_PAGE,
    "WorkflowScheduleExecution": EXECUTION,
    "SearchResultWorkflowScheduleExecution": EXECUTION_PAGE,
    "Backfill": BACKFILL,
    "Secret": SECRET,
    "ExtendedSecret": SECRET_WITH_TAGS,
    "EnvironmentVariable": VARIABLE,
    "Credentials": CREDENTIALS,
    "Token": TOKEN,
    "Configuration": CONFIGURATION,
    "ErrorResponse": ERROR,
    "ValidationError": COMPLAINT,
}
