"""Fields of documents that occur only in responses, and the schema names of all field tables.

Parsing of tags, each with a key and a value.

Fields of responses that only this server has: explanations, plans, comparisons, usage and folders of definitions.
"""

from typing import Any

from django.http import HttpRequest

from ...ai.api.serializers import (
    BUDGET,
    INTEGRATION,
    INTEGRATION_FIELD,
    INTEGRATION_KIND,
    INTEGRATION_UPDATE,
    MODEL,
    MODEL_UPDATE,
    NAMED_INTEGRATION,
    NEW_PROMPT,
    PROMPT,
    PROMPT_TEST,
)
from ...core.document.fields import (
    AUDIT,
    CACHE,
    RATE_LIMIT,
    SCHEMA,
    STATE_CHANGE,
    SUB_WORKFLOW,
    TASK_DEFINITION,
    WORKFLOW_DEFINITION,
    ChoiceOf,
    DocumentPosition,
    FieldSpec,
    FieldTable,
    IntegerOf,
    ListOf,
    MapOf,
    ObjectOf,
    OrNull,
    read_any,
    read_boolean,
    read_document,
    read_mapping,
    read_number,
    read_text,
    texts,
)
from ...core.errors import ValidationFailed
from ...core.human_tasks import FORM_TEMPLATE as TEMPLATE_FIELDS
from ...core.step_types.try_catch import CATCH_CASE
from ...core.validation.checks import ACTION, REPORT, START, TERMINATE, VARIABLES
from ...core.validation.checks import EVENT_HANDLER as HANDLER_FIELDS
from ...core.validation.checks import WEBHOOK as WEBHOOK_FIELDS
from ...core.validation.step_fields import STEP_FIELDS
from ...definitions.api.serializers import TEST_REQUEST
from ...definitions.sources.api import SOURCE_FOLDER
from ...explanations.serializers import APPLY_REQUEST, PLAN_REQUEST
from ...human_tasks.queries import STATES as HUMAN_STATES
from ...human_tasks.serializers import ASSIGNMENT as HUMAN_ASSIGNMENT
from ...human_tasks.serializers import SEARCH as HUMAN_SEARCH
from ...human_tasks.serializers import USER as HUMAN_USER
from ...payloads.serializers import NEW_FILE, PART_TAGS
from ...runs.api.debugger import (
    BREAKPOINT,
    BREAKPOINT_ID,
    CONTINUE_REQUEST,
    DEBUGGED_RUN,
    EXPRESSION,
    EXPRESSION_VALUE,
    SET_BREAKPOINT,
    STOP,
)
from ...runs.api.serializers import CORRELATION, RERUN_REQUEST, SKIP_REQUEST, START_REQUEST, STATE_UPDATE, UPGRADE
from ...schedules.serializers import CRON_ENTRY, EXECUTION, SCHEDULE_REPLY
from ...tasks.api.serializers import LOG, TASK_RESULT
from . import requests as request_body


def read_tag_value(value: Any, position: DocumentPosition) -> str:
    """Return the value of a tag. Numbers are read as texts; the tag of a limit is shown with a number."""
    return read_text(value, position)


TAG: FieldTable = (
    FieldSpec("key", read_text),
    FieldSpec("value", read_tag_value, ""),
    FieldSpec("type", read_text, "METADATA"),
)
MAX_TAGS = 1_000


def parse_tags(value: Any, position: DocumentPosition) -> list[dict[str, Any]]:
    """Return the tags without duplicates."""
    if not isinstance(value, list) or len(value) > MAX_TAGS or not all(isinstance(each, dict) for each in value):
        position.add_error(f"tags must be a list of at most {MAX_TAGS} objects with a key and a value")
        return []
    parsed = [_parse_tag(each, position.at(f"[{number}]")) for number, each in enumerate(value)]
    return list({(tag["key"], tag["value"]): tag for tag in parsed}.values())


def _parse_tag(value: dict[str, Any], position: DocumentPosition) -> dict[str, Any]:
    parsed = read_document(value, TAG, position)
    if not parsed.get("key"):
        position.at("key").add_missing("A tag needs a key")
    return {name: parsed.get(name, "") for name in ("key", "value", "type")}


def read_tags(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the tags in a request's body: a list, or a single one.

    Raises:
        ValidationFailed: when a tag is invalid.
    """
    value, position = request_body.read_json(request), DocumentPosition("tags")
    parsed = parse_tags([value] if isinstance(value, dict) else value, position)
    if position.validation_errors:
        raise ValidationFailed(position.validation_errors)
    return parsed


def take_tags(document: Any) -> tuple[list[dict[str, Any]], bool] | None:
    """Remove the tags from the document of a definition, and return them and whether they replace the present ones.

    The Go SDK sends `tags` and `overwriteTags` inside definitions.

    Raises:
        ValidationFailed: when a tag is invalid.
    """
    overwrites = document.pop("overwriteTags", False) if isinstance(document, dict) else False
    value = document.pop("tags", None) if isinstance(document, dict) else None
    if value is None:
        return None
    position = DocumentPosition("tags")
    parsed = parse_tags(value, position)
    if position.validation_errors:
        raise ValidationFailed(position.validation_errors)
    return parsed, overwrites is True


def subtract_tags(existing: list[dict[str, Any]], removed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tags without those that have the key and value of a removed one."""
    removed_keys = {(tag["key"], tag["value"]) for tag in removed}
    return [tag for tag in existing if (tag["key"], tag["value"]) not in removed_keys]


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


LONG = IntegerOf(64)
TASK_OF_RUN: FieldTable = fields_of_type(read_text, "workflowId", "taskReferenceName")
GATE_HOLDER: FieldTable = (
    *fields_of_type(read_text, "workflowId", "taskId", "workerId"),
    FieldSpec("since", OrNull(LONG)),
)
GATE: FieldTable = (
    *fields_of_type(read_text, "gate", "sentence"),
    FieldSpec("isOpen", read_boolean),
    FieldSpec("holders", ListOf(ObjectOf(GATE_HOLDER))),
)
POSITION: FieldTable = (
    *fields_of_type(LONG, "tasksAhead", "earliestMs", "estimatedMs"),
    FieldSpec("isLowerBound", read_boolean),
    FieldSpec("sentence", read_text),
    FieldSpec("ratePerSecond", read_number),
)
CAUSE: FieldTable = (
    *fields_of_type(read_text, "workflowId", "workflowName", "sentence", "taskReferenceName", "taskId",
                    "subWorkflowId"),
    FieldSpec("version", IntegerOf()),
    FieldSpec("status", WORKFLOW_STATUS),
    FieldSpec("isWaiting", read_boolean),
    FieldSpec("undeliveredMessageId", LONG),
    FieldSpec("gates", ListOf(ObjectOf(GATE))),
    FieldSpec("operations", texts),
    FieldSpec("queuePosition", ObjectOf(POSITION)),
)  # fmt: skip

IMPACT: FieldTable = (
    *fields_of_type(read_text, "taskReferenceName", "type", "status", "impact", "taskId", "subWorkflowId"),
    FieldSpec("repeatsEffects", read_boolean),
)
PLANNED_WORKFLOW: FieldTable = (
    *fields_of_type(read_text, "workflowId", "workflowName", "status", "statusAfter"),
    FieldSpec("version", IntegerOf()),
    *fields_of_type(read_boolean, "isNew", "isReplaced"),
    FieldSpec("tasks", ListOf(ObjectOf(IMPACT))),
)
PLAN: FieldTable = (
    *fields_of_type(read_text, "workflowId", "changedWorkflowId", "operation", "confirmationToken"),
    *fields_of_type(LONG, "revision", "expiresAt"),
    FieldSpec("counts", MapOf(IntegerOf())),
    FieldSpec("repeatsExternalEffects", ListOf(ObjectOf(TASK_OF_RUN))),
    FieldSpec("isIncomplete", read_boolean),
    FieldSpec("workflows", ListOf(ObjectOf(PLANNED_WORKFLOW))),
)

DIFFERENCE: FieldTable = (
    *fields_of_type(read_text, "path", "kind"),
    *fields_of_type(read_any, "before", "after"),
)
COMPARED_TASK: FieldTable = (
    *fields_of_type(read_text, "status", "workerId", "taskId"),
    FieldSpec("attempts", IntegerOf()),
    *fields_of_type(LONG, "queueMs", "durationMs"),
)
COMPARED_TASKS: FieldTable = (
    FieldSpec("taskReferenceName", read_text),
    FieldSpec("differs", read_boolean),
    *fields_of_type(OrNull(ObjectOf(COMPARED_TASK)), "one", "other"),
    FieldSpec("deltaMs", LONG),
)
COMPARISON: FieldTable = (
    *fields_of_type(read_text, "workflowId", "otherWorkflowId"),
    *fields_of_type(read_boolean, "haveSameDefinition", "haveSameVersion", "areIdentical", "isIncomplete"),
    FieldSpec("tasks", ListOf(ObjectOf(COMPARED_TASKS))),
    FieldSpec("payloads", MapOf(OrNull(ListOf(ObjectOf(DIFFERENCE))))),
)

INPUT_ORIGIN: FieldTable = (
    *fields_of_type(read_text, "parameter", "expression", "source", "taskReferenceName", "hint"),
    FieldSpec("isFound", read_boolean),
    FieldSpec("value", read_any),
)
PROVENANCE: FieldTable = (FieldSpec("taskId", read_text), FieldSpec("inputs", ListOf(ObjectOf(INPUT_ORIGIN))))

USED_LIMIT: FieldTable = fields_of_type(LONG, "used", "allowed")
QUEUE_STATE: FieldTable = (
    FieldSpec("name", read_text),
    *fields_of_type(LONG, "pending", "inProgress", "pollers", "oldestPendingSince", "lastPollTime"),
    *fields_of_type(read_boolean, "pendingIsLowerBound", "isPolled", "isNeglected"),
    FieldSpec("limit", ObjectOf(USED_LIMIT)),
)
QUEUE_STATES: FieldTable = (FieldSpec("queues", ListOf(ObjectOf(QUEUE_STATE))),)
QUEUE_HOLD: FieldTable = (*fields_of_type(read_text, "by", "reason"), FieldSpec("since", LONG))
QUEUE_LIMIT: FieldTable = (FieldSpec("sentence", read_text), *fields_of_type(LONG, "used", "allowed", "reopensAt"))
TASK_IN_QUEUE = fields_of_type(read_text, "taskId", "taskReferenceName", "workflowId", "workflowName")
PENDING_TASK: FieldTable = (
    *TASK_IN_QUEUE,
    *fields_of_type(LONG, "position", "pendingSince", "estimatedMs"),
    FieldSpec("priority", IntegerOf()),
)
CLAIMED_TASK: FieldTable = (*TASK_IN_QUEUE, FieldSpec("workerId", read_text), FieldSpec("claimedAt", OrNull(LONG)))
QUEUE_POLLER: FieldTable = (
    FieldSpec("workerId", read_text),
    FieldSpec("lastPollTime", LONG),
    FieldSpec("isPolling", read_boolean),
)
QUEUE_DETAIL: FieldTable = (
    FieldSpec("name", read_text),
    *fields_of_type(LONG, "pending", "delayed", "inProgress", "drainsInMs"),
    FieldSpec("ratePerSecond", read_number),
    FieldSpec("paused", ObjectOf(QUEUE_HOLD)),
    FieldSpec("limits", ListOf(ObjectOf(QUEUE_LIMIT))),
    FieldSpec("pendingTasks", ListOf(ObjectOf(PENDING_TASK))),
    FieldSpec("tasksInProgress", ListOf(ObjectOf(CLAIMED_TASK))),
    FieldSpec("pollers", ListOf(ObjectOf(QUEUE_POLLER))),
)

FAILURE_GROUP_FIELDS: FieldTable = (
    *fields_of_type(LONG, "id", "count", "firstAt", "lastAt"),
    *fields_of_type(read_text, "definition", "message", "state", "sampleWorkflowId", "assignee", "note",
                    "taskReferenceName"),
)  # fmt: skip
LAST_DAY: FieldTable = fields_of_type(LONG, "failures", "affectedRuns", "lostRuns")
FAILURE_GROUP: FieldTable = (*FAILURE_GROUP_FIELDS, FieldSpec("lastDay", ObjectOf(LAST_DAY)))
FAILURE_GROUPS: FieldTable = (
    FieldSpec("isIncomplete", read_boolean),
    FieldSpec("groups", ListOf(ObjectOf(FAILURE_GROUP))),
)
FAILURE_SHARE: FieldTable = (
    FieldSpec("value", read_text),
    *fields_of_type(LONG, "count", "percent", "basePercent"),
    FieldSpec("isNotable", read_boolean),
)
COUNTS: FieldTable = (*fields_of_type(LONG, "since", "stepMs"), FieldSpec("values", ListOf(LONG)))
FAILURE_SAMPLE: FieldTable = (
    FieldSpec("at", LONG),
    *fields_of_type(read_text, "message", "workflowId", "taskId", "workerId"),
)
FAILURE_DETAIL: FieldTable = (
    *FAILURE_GROUP_FIELDS,
    FieldSpec("firstVersion", IntegerOf()),
    *fields_of_type(read_text, "firstBuild", "trace"),
    *fields_of_type(LONG, "examined", "affectedRuns"),
    FieldSpec("breakdown", MapOf(ListOf(ObjectOf(FAILURE_SHARE)))),
    FieldSpec("counts", ObjectOf(COUNTS)),
    FieldSpec("samples", ListOf(ObjectOf(FAILURE_SAMPLE))),
)

SUMS: FieldTable = fields_of_type(LONG, "calls", "failures", "promptTokens", "completionTokens", "cost", "durationMs")
USAGE_ROW: FieldTable = (
    *fields_of_type(read_text, "integration", "model", "definition", "caller", "workflowId"),
    *SUMS,
)
USAGE: FieldTable = (
    FieldSpec("currency", read_text),
    *fields_of_type(LONG, "since", "stepMs"),
    FieldSpec("total", ObjectOf(SUMS)),
    FieldSpec("steps", ListOf(ObjectOf(SUMS))),
    *fields_of_type(ListOf(ObjectOf(USAGE_ROW)), "models", "definitions", "callers", "runs"),
)
SAVED_BUDGET: FieldTable = (
    *(field for field in BUDGET if field.name != "reason"),
    *fields_of_type(LONG, "id", "updatedAt"),
    FieldSpec("updatedBy", read_text),
    FieldSpec("isOfIntegration", read_boolean),
)
BUDGET_STATE: FieldTable = (
    *SAVED_BUDGET,
    *fields_of_type(LONG, "spentCost", "spentTokens", "reservedCost", "reservedTokens", "periodEndsAt",
                    "waitingTasks"),
    FieldSpec("isSpent", read_boolean),
)  # fmt: skip
BUDGETS: FieldTable = (FieldSpec("currency", read_text), FieldSpec("budgets", ListOf(ObjectOf(BUDGET_STATE))))

SLOT: FieldTable = (FieldSpec("at", LONG), *fields_of_type(read_text, "local", "zoneId", "note"))
FORECAST: FieldTable = (
    FieldSpec("name", read_text),
    FieldSpec("isPaused", read_boolean),
    FieldSpec("slots", ListOf(ObjectOf(SLOT))),
)

SOURCE_ERROR: FieldTable = fields_of_type(read_text, "path", "message")
SOURCE_ITEM: FieldTable = (
    *fields_of_type(read_text, "kind", "name", "action", "problem"),
    *fields_of_type(IntegerOf(), "version", "document"),
    *fields_of_type(texts, "changes", "edits"),
    FieldSpec("validationErrors", ListOf(ObjectOf(SOURCE_ERROR))),
)
SOURCE_PLAN: FieldTable = (
    *fields_of_type(read_text, "label", "planDigest"),
    *fields_of_type(read_boolean, "changesSomething", "isRefused"),
    FieldSpec("items", ListOf(ObjectOf(SOURCE_ITEM))),
)
APPLIED_ITEM: FieldTable = (*SOURCE_ITEM, FieldSpec("error", read_text))
INSIGHT_TABLES_APPLICATION: FieldTable = (
    FieldSpec("label", read_text),
    FieldSpec("items", ListOf(ObjectOf(APPLIED_ITEM))),
    FieldSpec("failed", IntegerOf()),
)
DRIFT: FieldTable = (
    *fields_of_type(read_text, "kind", "name", "label", "commit", "appliedBy", "changedBy"),
    FieldSpec("state", ChoiceOf("deleted", "edited", "unchanged")),
    *fields_of_type(LONG, "appliedAt", "changedAt"),
    *fields_of_type(IntegerOf(), "version", "statedVersion", "newerVersion"),
    FieldSpec("edits", texts),
    FieldSpec("current", read_mapping),
)
DRIFTS: FieldTable = (FieldSpec("definitions", ListOf(ObjectOf(DRIFT))),)

INSIGHT_TABLES: dict[str, FieldTable] = {
    "TaskOfWorkflow": TASK_OF_RUN,
    "GateHolder": GATE_HOLDER,
    "Gate": GATE,
    "QueuePosition": POSITION,
    "WorkflowCause": CAUSE,
    "TaskImpact": IMPACT,
    "PlannedWorkflow": PLANNED_WORKFLOW,
    "OperationPlan": PLAN,
    "ComparedTasks": COMPARED_TASKS,
    "WorkflowComparison": COMPARISON,
    "InputOrigin": INPUT_ORIGIN,
    "InputProvenance": PROVENANCE,
    "UsedLimit": USED_LIMIT,
    "QueueState": QUEUE_STATE,
    "QueueStates": QUEUE_STATES,
    "QueueHold": QUEUE_HOLD,
    "QueueLimit": QUEUE_LIMIT,
    "PendingTask": PENDING_TASK,
    "ClaimedTask": CLAIMED_TASK,
    "QueuePoller": QUEUE_POLLER,
    "QueueDetail": QUEUE_DETAIL,
    "FailuresOfLastDay": LAST_DAY,
    "FailureGroup": FAILURE_GROUP,
    "FailureGroups": FAILURE_GROUPS,
    "FailureCounts": COUNTS,
    "FailureSample": FAILURE_SAMPLE,
    "FailureGroupDetail": FAILURE_DETAIL,
    "ModelUsageSums": SUMS,
    "ModelUsageRow": USAGE_ROW,
    "ModelUsage": USAGE,
    "SavedModelBudget": SAVED_BUDGET,
    "ModelBudgetState": BUDGET_STATE,
    "ModelBudgets": BUDGETS,
    "ScheduleSlot": SLOT,
    "ScheduleForecast": FORECAST,
    "DefinitionError": SOURCE_ERROR,
    "DefinitionPlanItem": SOURCE_ITEM,
    "DefinitionPlan": SOURCE_PLAN,
    "AppliedDefinition": APPLIED_ITEM,
    "DefinitionApplication": INSIGHT_TABLES_APPLICATION,
    "DefinitionDrift": DRIFT,
    "DefinitionDrifts": DRIFTS,
}
