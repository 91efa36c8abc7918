"""Every operation of the API in a line or two: what it is for, what it takes and what it gives back."""

from collections.abc import Mapping
from typing import NamedTuple

from ....core.document.checks.event_handler import EVENT_HANDLER
from ....core.document.checks.field_specs import RATE_LIMIT, SCHEMA, TASK_DEFINITION, WORKFLOW_DEFINITION
from ....core.document.checks.fields import FieldTable
from ....core.document.checks.values import (
    IntegerOf,
    ListOf,
    MapOf,
    Reader,
    read_boolean,
    read_mapping,
    read_text,
    texts,
)
from ....core.document.checks.webhook import WEBHOOK
from ....core.form_templates import FORM_TEMPLATE
from ..serializers.files import NEW_FILE, PART_TAGS
from ..serializers.human_tasks import ASSIGNMENT
from ..serializers.human_tasks import SEARCH as HUMAN_SEARCH
from ..serializers.reruns import RERUN_REQUEST
from ..serializers.simulations import TEST_REQUEST
from ..serializers.skip_jump import SKIP_REQUEST, STATE_UPDATE, UPGRADE
from ..serializers.tags import TAG
from ..serializers.tasks import TASK_RESULT
from ..serializers.workflows import START_REQUEST
from .tables import (
    ACCESS_KEY,
    APPLICATION,
    AUTHORIZATION,
    BACKFILL,
    BULK,
    BULK_WORKFLOWS,
    CONFIGURATION,
    CORRELATION,
    CREATED_FILE,
    CREATED_KEY,
    CREDENTIALS,
    DEFINITION_SUMMARY,
    EVENT_EXECUTION,
    EVENT_MESSAGE,
    EXECUTION_PAGE,
    FILE,
    FILE_ADDRESS,
    FILE_UPLOAD,
    FINDINGS,
    FINISHED_FILE,
    GRANTED,
    GROUP,
    HANDLED_EVENT_PAGE,
    HUMAN_TASK,
    HUMAN_TASK_PAGE,
    LOCATION,
    NEW_APPLICATION,
    NEW_GROUP,
    NEW_ROLE,
    NEW_USER,
    POLL_DATA,
    REFERENCE,
    ROLE,
    SCHEDULE,
    SCHEDULE_PAGE,
    SECRET,
    SECRET_WITH_TAGS,
    SENT_LOG,
    SIGNAL_RESPONSE,
    STATUS,
    TASK,
    TASK_PAGE,
    TASK_SUMMARY_PAGE,
    TOKEN,
    USER,
    VARIABLE,
    WORKFLOW,
    WORKFLOW_PAGE,
    WORKFLOW_SUMMARY_PAGE,
)


class ArrayOf(NamedTuple):
    """A list of documents."""

    table: FieldTable


class ArraysByKey(NamedTuple):
    """Lists of documents by a key."""

    table: FieldTable


PLAIN_TEXT, EMPTY_REPLY, NO_CONTENT = "bare text", "an empty reply", "204"
Shape = FieldTable | ArrayOf | ArraysByKey | Reader | str


class OperationSpec(NamedTuple):
    """One method of one address. `query`: parameters with their types, required ones with an exclamation mark."""

    summary: str
    reply: Shape
    body: Shape | None = None
    query: Mapping[str, type] = {}
    can_be_empty: bool = False
    status: int = 200


POLL_QUERY = {"workerid": str, "domain": str}
WAIT_QUERY = {
    "requestId": str,
    "waitUntilTaskRef": str,
    "waitForSeconds": int,
    "consistency": str,
    "returnStrategy": str,
}
INCLUDE_QUERY = {"includeClosed": bool, "includeTasks": bool}
TASK_TYPE_QUERY = {"taskType!": str}
QUEUE_QUERY = {"domain": str, "executionNamespace": str, "isolationGroupId": str}
FILE_LINK_QUERY = {"part": str, "op": str, "exp": int, "sig": str}
LINK_QUERY = {"expires!": int, "signature!": str}
VERSION_QUERY = {"version": int}
REASON_QUERY = {"reason": str}
CLAIM_QUERY = {"overrideAssignment": bool, "withTemplate": bool}
COMPLETE_QUERY = {"complete": bool}
REMOVAL_QUERY = {"archiveWorkflow": bool, "cascade": bool}
PAGE_QUERY = {"start": int, "size": int, "sort": str, "freeText": str}
SEARCH_QUERY = {"start": int, "size": int, "sort": str, "freeText": str, "query": str}
RUN_SEARCH_QUERY = SEARCH_QUERY | {"classifier": str, "topLevelOnly": bool, "queryId": str, "skipCache": bool}

OPERATIONS: dict[str, OperationSpec] = {
    "BatchPoll.get": OperationSpec(
        "Poll for several tasks", ArrayOf(TASK), query=POLL_QUERY | {"count": int, "timeout": int}
    ),
    "Poll.get": OperationSpec("Poll for one task", TASK, query=POLL_QUERY, can_be_empty=True),
    "TaskUpdates.post": OperationSpec("Report on a task", PLAIN_TEXT, TASK_RESULT),
    "TaskUpdatesWithNext.post": OperationSpec("Report on a task, get the next", TASK, TASK_RESULT, can_be_empty=True),
    "TaskOne.get": OperationSpec("A task", TASK),
    "TaskByReference.post": OperationSpec("End an open task by its name", PLAIN_TEXT, read_mapping, {"workerid": str}),
    "TaskByReferenceAndWorkflow.post": OperationSpec(
        "End an open task by its name, get the workflow", WORKFLOW, read_mapping, {"workerid": str}
    ),
    "Signal.post": OperationSpec("End the WAIT at which a workflow stands", EMPTY_REPLY, read_mapping),
    "SignalAndWait.post": OperationSpec(
        "End the WAIT at which a workflow stands, get what comes of it",
        SIGNAL_RESPONSE,
        read_mapping,
        {"returnStrategy": str, "timeoutMillis": int},
    ),
    "TaskLogs.get": OperationSpec("The log of a task", ArrayOf(SENT_LOG), can_be_empty=True),
    "TaskLogs.post": OperationSpec("Log a line for a task", EMPTY_REPLY, PLAIN_TEXT),
    "QueueSizes.get": OperationSpec("Sizes of some queues", MapOf(IntegerOf()), query=TASK_TYPE_QUERY),
    "QueueSize.get": OperationSpec("Size of one queue", IntegerOf(), query=TASK_TYPE_QUERY | QUEUE_QUERY),
    "AllQueues.get": OperationSpec("Sizes of all queues", MapOf(IntegerOf())),
    "AllQueuesInDetail.get": OperationSpec("Sizes of all queues by shard", read_mapping),
    "PollData.get": OperationSpec("Who polls a task type", ArrayOf(POLL_DATA), query=TASK_TYPE_QUERY),
    "AllPollData.get": OperationSpec("Who polls what", ArrayOf(POLL_DATA)),
    "Workflows.post": OperationSpec("Start a workflow", PLAIN_TEXT, START_REQUEST),
    "Execution.post": OperationSpec("Start a workflow and wait for it", SIGNAL_RESPONSE, START_REQUEST, WAIT_QUERY),
    "ExecutionByName.post": OperationSpec(
        "Start a workflow, wait, get its output", read_mapping, read_mapping, {"version": int, "correlationId": str}
    ),
    "ExecutionByName.get": OperationSpec(
        "Start a workflow without input, wait, get its output", read_mapping, query=VERSION_QUERY
    ),
    "StartVersion.post": OperationSpec("Start a version of a workflow", PLAIN_TEXT, START_REQUEST),
    "PayloadLocation.get": OperationSpec(
        "Where a payload is sent to or fetched from",
        LOCATION,
        query={"path!": str, "operation!": str, "payloadType!": str},
    ),
    "PayloadContent.put": OperationSpec("Send a payload", EMPTY_REPLY, read_mapping, LINK_QUERY),
    "PayloadContent.get": OperationSpec("Fetch a payload", read_mapping, query=LINK_QUERY),
    "Files.post": OperationSpec("Begin a file of a workflow", CREATED_FILE, NEW_FILE, status=201),
    "FileOne.get": OperationSpec("A file of a workflow", FILE),
    "FileUploadAddress.get": OperationSpec("Where a file is sent", FILE_ADDRESS),
    "FileDownloadAddress.get": OperationSpec("Where a file is fetched from", FILE_ADDRESS),
    "FileContent.put": OperationSpec("Send a file", NO_CONTENT, PLAIN_TEXT, FILE_LINK_QUERY),
    "FileContent.get": OperationSpec("Fetch a file", PLAIN_TEXT, query=FILE_LINK_QUERY),
    "FileUploadComplete.post": OperationSpec("All of a file has come", FINISHED_FILE),
    "FileParts.post": OperationSpec("Begin to send a file in parts", FILE_UPLOAD),
    "FilePart.get": OperationSpec("Where a part of a file is sent", FILE_ADDRESS),
    "FilePartsComplete.post": OperationSpec("All parts of a file have come", FINISHED_FILE, PART_TAGS),
    "FilePartsOne.delete": OperationSpec("Give up the parts of a file", NO_CONTENT),
    "TestWorkflow.post": OperationSpec("Try a workflow out", WORKFLOW, TEST_REQUEST),
    "WorkflowOne.post": OperationSpec(
        "Start a workflow by name", PLAIN_TEXT, read_mapping, {"version": int, "correlationId": str, "priority": int}
    ),
    "WorkflowOne.get": OperationSpec("A workflow", WORKFLOW, query={"includeTasks": bool}),
    "WorkflowOne.delete": OperationSpec(
        "Terminate a workflow", EMPTY_REPLY, query={"reason": str, "triggerFailureWorkflow": bool}
    ),
    "WorkflowStatus.get": OperationSpec(
        "Status of a workflow", STATUS, query={"includeOutput": bool, "includeVariables": bool}
    ),
    "WorkflowTasks.get": OperationSpec(
        "Tasks of a workflow", TASK_PAGE, query={"start": int, "count": int, "status": str}
    ),
    "Correlated.get": OperationSpec("Workflows with a correlation id", ArrayOf(WORKFLOW), query=INCLUDE_QUERY),
    "CorrelatedMany.post": OperationSpec(
        "Workflows with several correlation ids", ArraysByKey(WORKFLOW), texts, INCLUDE_QUERY
    ),
    "CorrelatedMany.get": OperationSpec(
        "Workflows with several correlation ids, without a body",
        ArraysByKey(WORKFLOW),
        query=INCLUDE_QUERY | {"correlationIds": str},
    ),
    "CorrelatedBatch.post": OperationSpec(
        "Workflows of several names with several correlation ids", ArraysByKey(WORKFLOW), CORRELATION, INCLUDE_QUERY
    ),
    "Running.get": OperationSpec(
        "Ids of open workflows", texts, query={"version": int, "startTime": int, "endTime": int}
    ),
    "WorkflowSearch.get": OperationSpec("Search workflows", WORKFLOW_SUMMARY_PAGE, query=RUN_SEARCH_QUERY),
    "WorkflowSearchV2.get": OperationSpec("Search workflows, get them whole", WORKFLOW_PAGE, query=RUN_SEARCH_QUERY),
    "WorkflowSearchByTasks.get": OperationSpec(
        "Search workflows by their tasks", WORKFLOW_SUMMARY_PAGE, query=SEARCH_QUERY
    ),
    "WorkflowSearchByTasksV2.get": OperationSpec(
        "Search workflows by their tasks, get them whole", WORKFLOW_PAGE, query=SEARCH_QUERY
    ),
    "TaskSearch.get": OperationSpec("Search tasks", TASK_SUMMARY_PAGE, query=SEARCH_QUERY),
    "TaskSearchV2.get": OperationSpec("Search tasks, get them whole", TASK_PAGE, query=SEARCH_QUERY),
    "Decide.put": OperationSpec("Decide anew what comes next", EMPTY_REPLY),
    "Pause.put": OperationSpec("Pause a workflow", EMPTY_REPLY),
    "Resume.put": OperationSpec("Resume a workflow", EMPTY_REPLY),
    "RerunWorkflow.post": OperationSpec(
        "Rerun a workflow from one of its tasks, or from its start", PLAIN_TEXT, RERUN_REQUEST
    ),
    "Restart.post": OperationSpec("Begin a workflow anew", NO_CONTENT, query={"useLatestDefinitions": bool}),
    "WorkflowMessages.post": OperationSpec("Send a message to a running workflow", PLAIN_TEXT, read_mapping),
    "RetryWorkflow.post": OperationSpec("Retry what failed", NO_CONTENT, query={"resumeSubworkflowTasks": bool}),
    "Remove.delete": OperationSpec("Remove a workflow", EMPTY_REPLY, query=REMOVAL_QUERY),
    "TerminateRemove.delete": OperationSpec(
        "Terminate a workflow, then remove it", EMPTY_REPLY, query=REASON_QUERY | REMOVAL_QUERY
    ),
    "ResetCallbacks.post": OperationSpec("Hand out at once what was handed back for later", NO_CONTENT),
    "Skip.put": OperationSpec(
        "Skip a task that has not begun", EMPTY_REPLY, SKIP_REQUEST, {"skipTaskRequest": str, "taskReferenceName": str}
    ),
    "Jump.post": OperationSpec("Go on at a task further on", EMPTY_REPLY, read_mapping, {"taskReferenceName": str}),
    "Upgrade.post": OperationSpec("Move a running workflow to another version", EMPTY_REPLY, UPGRADE),
    "WorkflowLabels.get": OperationSpec("Labels of a workflow", texts),
    "WorkflowLabels.put": OperationSpec("Put labels on a workflow", texts, texts),
    "WorkflowLabels.delete": OperationSpec("Take labels off a workflow", texts, texts),
    "Variables.post": OperationSpec("Update the variables of a workflow", WORKFLOW, read_mapping),
    "State.post": OperationSpec(
        "Update variables and a task of a workflow",
        SIGNAL_RESPONSE,
        STATE_UPDATE,
        WAIT_QUERY,
    ),
    "BulkPause.put": OperationSpec("Pause several workflows", BULK, texts),
    "BulkResume.put": OperationSpec("Resume several workflows", BULK, texts),
    "BulkRetry.post": OperationSpec("Retry several workflows", BULK, texts),
    "BulkRestart.post": OperationSpec("Begin several workflows anew", BULK, texts, {"useLatestDefinitions": bool}),
    "BulkTerminate.post": OperationSpec(
        "Terminate several workflows", BULK, texts, REASON_QUERY | {"triggerFailureWorkflow": bool}
    ),
    "BulkRemove.delete": OperationSpec("Remove several workflows", BULK, texts, REMOVAL_QUERY),
    "BulkDelete.post": OperationSpec("Remove several workflows, without DELETE", BULK, texts, REMOVAL_QUERY),
    "BulkTerminateRemove.delete": OperationSpec(
        "Terminate several workflows, then remove them", BULK, texts, REASON_QUERY | REMOVAL_QUERY
    ),
    "BulkSearch.post": OperationSpec("Several workflows by their ids", BULK_WORKFLOWS, texts, {"includeTasks": bool}),
    "OpenTasks.get": OperationSpec("Open tasks of one name", ArrayOf(TASK), query={"start": int, "count": int}),
    "Requeue.post": OperationSpec("Tell waiting workers of a task type", PLAIN_TEXT),
    "RequeueWorkflow.post": OperationSpec("Look at a workflow now", PLAIN_TEXT),
    "VerifyAndRepair.post": OperationSpec("Look at a workflow: was there anything to do?", PLAIN_TEXT),
    "AdminQueues.get": OperationSpec("Sizes of all queues, for administrators", read_mapping, query={"verbose": bool}),
    "EventQueueSizes.get": OperationSpec("Sizes of the queues that end waiting tasks", MapOf(IntegerOf())),
    "EventQueues.get": OperationSpec("Names of the queues that end waiting tasks", MapOf(read_text)),
    "EventForReference.post": OperationSpec("End a waiting task by its reference name", EMPTY_REPLY, read_mapping),
    "EventForTask.post": OperationSpec("End a waiting task", EMPTY_REPLY, read_mapping),
    "WorkflowDefinitions.get": OperationSpec(
        "All workflow definitions", ArrayOf(WORKFLOW_DEFINITION), query={"classifier": str}
    ),
    "WorkflowDefinitions.post": OperationSpec(
        "Keep a workflow definition", EMPTY_REPLY, WORKFLOW_DEFINITION, {"overwrite": bool}
    ),
    "WorkflowDefinitions.put": OperationSpec("Keep several workflow definitions", BULK, ArrayOf(WORKFLOW_DEFINITION)),
    "WorkflowDefinitionCheck.post": OperationSpec(
        "Validate a workflow definition; the reply is empty where nothing is suspicious", FINDINGS, WORKFLOW_DEFINITION
    ),
    "WorkflowDefinitionOne.get": OperationSpec("A workflow definition", WORKFLOW_DEFINITION, query={"version": int}),
    "WorkflowDefinitionVersion.delete": OperationSpec("Forget a version of a workflow definition", EMPTY_REPLY),
    "LatestVersions.get": OperationSpec("Newest versions of workflow definitions", ArrayOf(WORKFLOW_DEFINITION)),
    "WorkflowNames.get": OperationSpec("Names of workflow definitions", texts),
    "NamesAndVersions.get": OperationSpec("Versions of all workflow definitions", ArraysByKey(DEFINITION_SUMMARY)),
    "Versions.get": OperationSpec("Versions of a workflow definition", ArrayOf(DEFINITION_SUMMARY)),
    "TaskDefinitions.get": OperationSpec("All task definitions", ArrayOf(TASK_DEFINITION)),
    "TaskDefinitions.post": OperationSpec("Keep several task definitions", EMPTY_REPLY, ArrayOf(TASK_DEFINITION)),
    "TaskDefinitions.put": OperationSpec("Keep a task definition", EMPTY_REPLY, TASK_DEFINITION),
    "TaskDefinitionOne.get": OperationSpec("A task definition", TASK_DEFINITION),
    "TaskDefinitionOne.delete": OperationSpec("Forget a task definition", EMPTY_REPLY),
    "Schedules.get": OperationSpec("All schedules", ArrayOf(SCHEDULE), query={"workflowName": str}),
    "Schedules.post": OperationSpec("Keep a schedule", SCHEDULE, SCHEDULE),
    "ScheduleSearch.get": OperationSpec(
        "Search schedules", SCHEDULE_PAGE, query=PAGE_QUERY | {"workflowName": str, "scheduleName": str, "paused": bool}
    ),
    "SchedulesByTag.get": OperationSpec("Schedules with a tag", ArrayOf(SCHEDULE), query={"tag!": str}),
    "ScheduleOne.get": OperationSpec("A schedule", SCHEDULE),
    "ScheduleOne.delete": OperationSpec("Forget a schedule", EMPTY_REPLY),
    "SchedulePause.get": OperationSpec("Pause a schedule, as some clients ask", EMPTY_REPLY, query={"reason": str}),
    "SchedulePause.put": OperationSpec("Pause a schedule", EMPTY_REPLY, query={"reason": str}),
    "ScheduleResume.get": OperationSpec("Resume a schedule, as some clients ask", EMPTY_REPLY),
    "ScheduleResume.put": OperationSpec("Resume a schedule", EMPTY_REPLY),
    "SchedulesPause.put": OperationSpec("Pause several schedules", BULK, texts),
    "SchedulesResume.put": OperationSpec("Resume several schedules", BULK, texts),
    "ScheduleRun.post": OperationSpec("Run a schedule now", PLAIN_TEXT, query={"reason": str}),
    "ScheduleBackfill.post": OperationSpec(
        "Run what a schedule missed", BACKFILL, query={"startTime!": int, "endTime": int, "reason": str}
    ),
    "ScheduleTags.get": OperationSpec("Tags of a schedule", ArrayOf(TAG)),
    "ScheduleTags.put": OperationSpec("Set the tags of a schedule", EMPTY_REPLY, ArrayOf(TAG)),
    "ScheduleTags.delete": OperationSpec("Take tags off a schedule", EMPTY_REPLY),
    "NextFewSchedules.get": OperationSpec(
        "Next moments of a cron expression",
        ListOf(IntegerOf(64)),
        query={"cronExpression!": str, "zoneId": str, "limit": int, "scheduleStartTime": int, "scheduleEndTime": int},
    ),
    "ExecutionSearch.get": OperationSpec(
        "Search what schedules came to", EXECUTION_PAGE, query=PAGE_QUERY | {"query": str}
    ),
    "SchedulerPause.get": OperationSpec("Let no schedule fire", read_mapping),
    "SchedulerPause.post": OperationSpec("Let no schedule fire, as some clients ask", read_mapping),
    "SchedulerResume.get": OperationSpec("Let schedules fire again", read_mapping),
    "SchedulerResume.post": OperationSpec("Let schedules fire again, as some clients ask", read_mapping),
    "SchedulerRequeue.get": OperationSpec("Mend schedules that lost their next moment", read_mapping),
    "EnvironmentVariables.get": OperationSpec("All variables", ArrayOf(VARIABLE)),
    "EnvironmentVariable.get": OperationSpec("A variable", PLAIN_TEXT),
    "EnvironmentVariable.put": OperationSpec("Keep a variable", EMPTY_REPLY, PLAIN_TEXT),
    "EnvironmentVariable.delete": OperationSpec("Forget a variable", EMPTY_REPLY),
    "EnvironmentTags.get": OperationSpec("Tags of a variable", ArrayOf(TAG)),
    "EnvironmentTags.put": OperationSpec("Set the tags of a variable", EMPTY_REPLY, ArrayOf(TAG)),
    "EnvironmentTags.delete": OperationSpec("Take tags off a variable", EMPTY_REPLY),
    "Secrets.get": OperationSpec("Names of secrets", texts),
    "Secrets.post": OperationSpec("Names of secrets, as some clients ask", texts),
    "SecretsInDetail.get": OperationSpec("Secrets with their moments", ArrayOf(SECRET)),
    "SecretsWithTags.get": OperationSpec("Secrets with their tags", ArrayOf(SECRET_WITH_TAGS)),
    "SecretCaches.get": OperationSpec("Read secrets anew", read_mapping),
    "SecretOne.get": OperationSpec("A secret", PLAIN_TEXT),
    "SecretOne.put": OperationSpec("Keep a secret", EMPTY_REPLY, PLAIN_TEXT),
    "SecretOne.delete": OperationSpec("Forget a secret", EMPTY_REPLY),
    "SecretExists.get": OperationSpec("Whether there is a secret", read_boolean),
    "SecretTags.get": OperationSpec("Tags of a secret", ArrayOf(TAG)),
    "SecretTags.put": OperationSpec("Set the tags of a secret", EMPTY_REPLY, ArrayOf(TAG)),
    "SecretTags.delete": OperationSpec("Take tags off a secret", EMPTY_REPLY),
    "EventHandlers.get": OperationSpec("All event handlers", ArrayOf(EVENT_HANDLER)),
    "EventHandlers.post": OperationSpec("Add an event handler", EMPTY_REPLY, EVENT_HANDLER),
    "EventHandlers.put": OperationSpec("Change an event handler", EMPTY_REPLY, EVENT_HANDLER),
    "EventHandlerOne.get": OperationSpec(
        "The handlers of an event", ArrayOf(EVENT_HANDLER), query={"activeOnly": bool}
    ),
    "EventHandlerOne.delete": OperationSpec("Forget an event handler", EMPTY_REPLY),
    "EventHandlerNamed.get": OperationSpec("An event handler", EVENT_HANDLER),
    "IncomingEvent.post": OperationSpec("Tell the server an event", EMPTY_REPLY, read_mapping),
    "ActiveEventHandlers.get": OperationSpec("The handlers that listen, with numbers", HANDLED_EVENT_PAGE),
    "EventHandlerNumbers.get": OperationSpec("All handlers, with numbers", HANDLED_EVENT_PAGE, query={"from": int}),
    "EventExecutions.get": OperationSpec("What a handler did lately", ArrayOf(EVENT_EXECUTION), query={"from": int}),
    "EventMessages.get": OperationSpec("The events that came lately", ArrayOf(EVENT_MESSAGE), query={"from": int}),
    "EventTags.get": OperationSpec("Tags of an event handler", ArrayOf(TAG)),
    "EventTags.put": OperationSpec("Hang tags on an event handler", EMPTY_REPLY, ArrayOf(TAG)),
    "EventTags.delete": OperationSpec("Take tags off an event handler", EMPTY_REPLY, ArrayOf(TAG)),
    "Schemas.get": OperationSpec("All schemas", ArrayOf(SCHEMA), query={"short": bool}),
    "Schemas.post": OperationSpec("Add or change schemas", EMPTY_REPLY, ArrayOf(SCHEMA), {"newVersion": bool}),
    "SchemaNewest.get": OperationSpec("The newest version of a schema", SCHEMA),
    "SchemaNewest.delete": OperationSpec("Forget a schema in all its versions", EMPTY_REPLY),
    "SchemaOne.get": OperationSpec("A schema", SCHEMA),
    "SchemaOne.delete": OperationSpec("Forget a version of a schema", EMPTY_REPLY),
    "HumanTaskSearch.post": OperationSpec("Search human tasks", HUMAN_TASK_PAGE, HUMAN_SEARCH),
    "HumanTaskDisplayNames.get": OperationSpec("Display names of open human tasks", texts, query={"searchType": str}),
    "HumanTaskOne.get": OperationSpec("A human task", HUMAN_TASK, query={"withTemplate": bool}),
    "HumanTaskAsTask.get": OperationSpec("A human task as a task of its workflow", TASK),
    "HumanTaskClaim.post": OperationSpec("Claim a human task", HUMAN_TASK, query=CLAIM_QUERY),
    "HumanTaskExternalClaim.post": OperationSpec(
        "Claim a human task for an external user", HUMAN_TASK, query=CLAIM_QUERY
    ),
    "HumanTaskRelease.post": OperationSpec("Release a claimed human task", EMPTY_REPLY),
    "HumanTaskReassign.post": OperationSpec("Reassign a human task", EMPTY_REPLY, ArrayOf(ASSIGNMENT)),
    "HumanTaskSkip.post": OperationSpec("Skip an assignment of a human task", EMPTY_REPLY, query=REASON_QUERY),
    "HumanTaskUpdate.post": OperationSpec(
        "Save the output of a human task, or complete it", EMPTY_REPLY, read_mapping, COMPLETE_QUERY
    ),
    "HumanTaskUpdateByReference.post": OperationSpec(
        "Save the output of a human task by its reference, or complete it",
        EMPTY_REPLY,
        read_mapping,
        COMPLETE_QUERY | {"workflowId!": str, "taskRefName!": str, "iteration": int},
    ),
    "HumanTaskRecords.delete": OperationSpec(
        "Delete records of human tasks whose workflow is gone", EMPTY_REPLY, texts
    ),
    "HumanTaskRecord.delete": OperationSpec("Delete the record of a human task whose workflow is gone", EMPTY_REPLY),
    "FormTemplates.get": OperationSpec(
        "User form templates", ArrayOf(FORM_TEMPLATE), query={"name": str, "version": int}
    ),
    "FormTemplates.post": OperationSpec(
        "Save a user form template", FORM_TEMPLATE, FORM_TEMPLATE, {"newVersion": bool}
    ),
    "FormTemplatesBulk.post": OperationSpec(
        "Save several user form templates", ArrayOf(FORM_TEMPLATE), ArrayOf(FORM_TEMPLATE), {"newVersion": bool}
    ),
    "FormTemplateNamed.get": OperationSpec("The user form template of a human task", FORM_TEMPLATE),
    "FormTemplateNamed.delete": OperationSpec("Delete all versions of a user form template", EMPTY_REPLY),
    "FormTemplateOne.get": OperationSpec("A version of a user form template", FORM_TEMPLATE),
    "FormTemplateOne.delete": OperationSpec("Delete a version of a user form template", EMPTY_REPLY),
    "Webhooks.get": OperationSpec("All webhooks", ArrayOf(WEBHOOK)),
    "Webhooks.post": OperationSpec("Add a webhook", WEBHOOK, WEBHOOK),
    "WebhookOne.get": OperationSpec("A webhook", WEBHOOK),
    "WebhookOne.put": OperationSpec("Change a webhook", WEBHOOK, WEBHOOK),
    "WebhookOne.delete": OperationSpec("Forget a webhook", EMPTY_REPLY),
    "WebhookTags.get": OperationSpec("Tags of a webhook", ArrayOf(TAG)),
    "WebhookTags.put": OperationSpec("Hang tags on a webhook", EMPTY_REPLY, ArrayOf(TAG)),
    "WebhookTags.delete": OperationSpec("Take tags off a webhook", EMPTY_REPLY, ArrayOf(TAG)),
    "IncomingWebhook.post": OperationSpec("Tell an event by webhook", EMPTY_REPLY, read_mapping),
    "WorkflowTags.get": OperationSpec("Tags of a workflow definition", ArrayOf(TAG)),
    "WorkflowTags.post": OperationSpec("Hang a tag on a workflow definition", EMPTY_REPLY, TAG),
    "WorkflowTags.put": OperationSpec("Set the tags of a workflow definition", EMPTY_REPLY, ArrayOf(TAG)),
    "WorkflowTags.delete": OperationSpec("Take a tag off a workflow definition", EMPTY_REPLY),
    "WorkflowRateLimit.get": OperationSpec("How many runs of a workflow go on at a time", RATE_LIMIT),
    "WorkflowRateLimit.put": OperationSpec("Limit the runs of a workflow", EMPTY_REPLY, RATE_LIMIT),
    "WorkflowRateLimit.delete": OperationSpec("Take the limit off a workflow", EMPTY_REPLY),
    "TaskTags.get": OperationSpec("Tags of a task definition", ArrayOf(TAG)),
    "TaskTags.post": OperationSpec("Hang a tag on a task definition", EMPTY_REPLY, TAG),
    "TaskTags.put": OperationSpec("Set the tags of a task definition", EMPTY_REPLY, ArrayOf(TAG)),
    "TaskTags.delete": OperationSpec("Take a tag off a task definition", EMPTY_REPLY),
    "AllTags.get": OperationSpec("All tags", ArrayOf(TAG)),
    "Tokens.post": OperationSpec("A token for a key", TOKEN, CREDENTIALS),
    "TokenUser.get": OperationSpec("Whose token it is", USER),
    "Applications.get": OperationSpec("All applications", ArrayOf(APPLICATION)),
    "Applications.post": OperationSpec("A new application", APPLICATION, NEW_APPLICATION),
    "ApplicationOne.get": OperationSpec("An application", APPLICATION),
    "ApplicationOne.put": OperationSpec("Rename an application", APPLICATION, NEW_APPLICATION),
    "ApplicationOne.delete": OperationSpec("Delete an application", EMPTY_REPLY),
    "ApplicationOfKey.get": OperationSpec("The application of a key", APPLICATION),
    "AccessKeys.get": OperationSpec("Keys of an application", ArrayOf(ACCESS_KEY)),
    "AccessKeys.post": OperationSpec("A new key of an application, with its secret", CREATED_KEY),
    "AccessKeyOne.delete": OperationSpec("Delete a key", EMPTY_REPLY),
    "AccessKeyStatus.post": OperationSpec("Withdraw a key, or let it be used again", ACCESS_KEY),
    "ApplicationRole.post": OperationSpec("Give an application a role", EMPTY_REPLY),
    "ApplicationRole.delete": OperationSpec("Take a role from an application", EMPTY_REPLY),
    "ApplicationTags.get": OperationSpec("Tags of an application", ArrayOf(TAG)),
    "ApplicationTags.put": OperationSpec("Hang tags on an application", EMPTY_REPLY, ArrayOf(TAG)),
    "ApplicationTags.delete": OperationSpec("Take tags off an application", EMPTY_REPLY),
    "Users.get": OperationSpec("All users", ArrayOf(USER), query={"apps": bool}),
    "UserOne.get": OperationSpec("A user", USER),
    "UserOne.put": OperationSpec("Make or change a user", USER, NEW_USER),
    "UserOne.delete": OperationSpec("Delete a user", EMPTY_REPLY),
    "UserPermissions.get": OperationSpec("What was granted to a user", GRANTED),
    "PermissionCheck.get": OperationSpec(
        "What a user may do to one thing", MapOf(read_boolean), query={"type!": str, "id!": str}
    ),
    "Groups.get": OperationSpec("All groups", ArrayOf(GROUP)),
    "GroupOne.get": OperationSpec("A group", GROUP),
    "GroupOne.put": OperationSpec("Make or change a group", GROUP, NEW_GROUP),
    "GroupOne.delete": OperationSpec("Delete a group", EMPTY_REPLY),
    "GroupPermissions.get": OperationSpec("What was granted to a group", GRANTED),
    "GroupUsers.get": OperationSpec("Who is in a group", ArrayOf(USER)),
    "GroupUsers.post": OperationSpec("Let users into a group", EMPTY_REPLY, texts),
    "GroupUsers.delete": OperationSpec("Take users out of a group", EMPTY_REPLY),
    "GroupUser.post": OperationSpec("Let a user into a group", EMPTY_REPLY),
    "GroupUser.delete": OperationSpec("Take a user out of a group", EMPTY_REPLY),
    "Authorizations.post": OperationSpec("Grant accesses to a target", EMPTY_REPLY, AUTHORIZATION),
    "Authorizations.delete": OperationSpec("Take accesses to a target back", EMPTY_REPLY),
    "TargetPermissions.get": OperationSpec("Who was granted what on a target", ArraysByKey(REFERENCE)),
    "RoleList.get": OperationSpec("All roles", ArrayOf(ROLE)),
    "RoleList.post": OperationSpec("A new role", ROLE, NEW_ROLE),
    "SystemRoles.get": OperationSpec("The roles that every server has", read_mapping),
    "CustomRoles.get": OperationSpec("The roles that were made here", ArrayOf(ROLE)),
    "AvailablePermissions.get": OperationSpec("What a role can be made of", read_mapping),
    "RoleOne.get": OperationSpec("A role", ROLE),
    "RoleOne.put": OperationSpec("Change a role", ROLE, NEW_ROLE),
    "RoleOne.delete": OperationSpec("Delete a role", EMPTY_REPLY),
    "ServerVersion.get": OperationSpec("Version of the server", PLAIN_TEXT),
    "Configuration.get": OperationSpec("Configuration of the server", CONFIGURATION),
}
