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
from ..serializers.files import NEW_FILE, PARTS
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


class Many(NamedTuple):
    """A list of documents."""

    table: FieldTable


class ManyByKey(NamedTuple):
    """Lists of documents by a key."""

    table: FieldTable


TEXT, EMPTY, NOTHING = "bare text", "an empty reply", "204"
Shape = FieldTable | Many | ManyByKey | Reader | str


class OperationSpec(NamedTuple):
    """One method of one address. `query`: parameters with their types, required ones with an exclamation mark."""

    summary: str
    reply: Shape
    body: Shape | None = None
    query: Mapping[str, type] = {}
    may_be_nothing: bool = False
    status: int = 200


POLL = {"workerid": str, "domain": str}
WAIT = {"requestId": str, "waitUntilTaskRef": str, "waitForSeconds": int, "consistency": str, "returnStrategy": str}
TASKS = {"includeClosed": bool, "includeTasks": bool}
TYPE = {"taskType!": str}
QUEUE_PARTS = {"domain": str, "executionNamespace": str, "isolationGroupId": str}
FILE_LINK = {"part": str, "op": str, "exp": int, "sig": str}
LINK = {"expires!": int, "signature!": str}
VERSION = {"version": int}
REASON = {"reason": str}
CLAIM = {"overrideAssignment": bool, "withTemplate": bool}
COMPLETE = {"complete": bool}
REMOVAL = {"archiveWorkflow": bool, "cascade": bool}
PAGE = {"start": int, "size": int, "sort": str, "freeText": str}
SEARCH = {"start": int, "size": int, "sort": str, "freeText": str, "query": str}
MORE = SEARCH | {"classifier": str, "topLevelOnly": bool, "queryId": str, "skipCache": bool}

OPERATIONS: dict[str, OperationSpec] = {
    "BatchPoll.get": OperationSpec("Poll for several tasks", Many(TASK), query=POLL | {"count": int, "timeout": int}),
    "Poll.get": OperationSpec("Poll for one task", TASK, query=POLL, may_be_nothing=True),
    "TaskUpdates.post": OperationSpec("Report on a task", TEXT, TASK_RESULT),
    "TaskUpdatesWithNext.post": OperationSpec("Report on a task, get the next", TASK, TASK_RESULT, may_be_nothing=True),
    "TaskOne.get": OperationSpec("A task", TASK),
    "TaskByReference.post": OperationSpec("End an open task by its name", TEXT, read_mapping, {"workerid": str}),
    "TaskByReferenceAndWorkflow.post": OperationSpec(
        "End an open task by its name, get the workflow", WORKFLOW, read_mapping, {"workerid": str}
    ),
    "Signal.post": OperationSpec("End the WAIT at which a workflow stands", EMPTY, read_mapping),
    "SignalAndWait.post": OperationSpec(
        "End the WAIT at which a workflow stands, get what comes of it",
        SIGNAL_RESPONSE,
        read_mapping,
        {"returnStrategy": str, "timeoutMillis": int},
    ),
    "TaskLogs.get": OperationSpec("The log of a task", Many(SENT_LOG), may_be_nothing=True),
    "TaskLogs.post": OperationSpec("Log a line for a task", EMPTY, TEXT),
    "QueueSizes.get": OperationSpec("Sizes of some queues", MapOf(IntegerOf()), query=TYPE),
    "QueueSize.get": OperationSpec("Size of one queue", IntegerOf(), query=TYPE | QUEUE_PARTS),
    "AllQueues.get": OperationSpec("Sizes of all queues", MapOf(IntegerOf())),
    "AllQueuesInDetail.get": OperationSpec("Sizes of all queues by shard", read_mapping),
    "PollData.get": OperationSpec("Who polls a task type", Many(POLL_DATA), query=TYPE),
    "AllPollData.get": OperationSpec("Who polls what", Many(POLL_DATA)),
    "Workflows.post": OperationSpec("Start a workflow", TEXT, START_REQUEST),
    "Execution.post": OperationSpec("Start a workflow and wait for it", SIGNAL_RESPONSE, START_REQUEST, WAIT),
    "ExecutionByName.post": OperationSpec(
        "Start a workflow, wait, get its output", read_mapping, read_mapping, {"version": int, "correlationId": str}
    ),
    "ExecutionByName.get": OperationSpec(
        "Start a workflow without input, wait, get its output", read_mapping, query=VERSION
    ),
    "StartVersion.post": OperationSpec("Start a version of a workflow", TEXT, START_REQUEST),
    "PayloadLocation.get": OperationSpec(
        "Where a payload is sent to or fetched from",
        LOCATION,
        query={"path!": str, "operation!": str, "payloadType!": str},
    ),
    "PayloadContent.put": OperationSpec("Send a payload", EMPTY, read_mapping, LINK),
    "PayloadContent.get": OperationSpec("Fetch a payload", read_mapping, query=LINK),
    "Files.post": OperationSpec("Begin a file of a workflow", CREATED_FILE, NEW_FILE, status=201),
    "FileOne.get": OperationSpec("A file of a workflow", FILE),
    "FileUploadAddress.get": OperationSpec("Where a file is sent", FILE_ADDRESS),
    "FileDownloadAddress.get": OperationSpec("Where a file is fetched from", FILE_ADDRESS),
    "FileContent.put": OperationSpec("Send a file", NOTHING, TEXT, FILE_LINK),
    "FileContent.get": OperationSpec("Fetch a file", TEXT, query=FILE_LINK),
    "FileUploadComplete.post": OperationSpec("All of a file has come", FINISHED_FILE),
    "FileParts.post": OperationSpec("Begin to send a file in parts", FILE_UPLOAD),
    "FilePart.get": OperationSpec("Where a part of a file is sent", FILE_ADDRESS),
    "FilePartsComplete.post": OperationSpec("All parts of a file have come", FINISHED_FILE, PARTS),
    "FilePartsOne.delete": OperationSpec("Give up the parts of a file", NOTHING),
    "TestWorkflow.post": OperationSpec("Try a workflow out", WORKFLOW, TEST_REQUEST),
    "WorkflowOne.post": OperationSpec(
        "Start a workflow by name", TEXT, read_mapping, {"version": int, "correlationId": str, "priority": int}
    ),
    "WorkflowOne.get": OperationSpec("A workflow", WORKFLOW, query={"includeTasks": bool}),
    "WorkflowOne.delete": OperationSpec(
        "Terminate a workflow", EMPTY, query={"reason": str, "triggerFailureWorkflow": bool}
    ),
    "WorkflowStatus.get": OperationSpec(
        "Status of a workflow", STATUS, query={"includeOutput": bool, "includeVariables": bool}
    ),
    "WorkflowTasks.get": OperationSpec(
        "Tasks of a workflow", TASK_PAGE, query={"start": int, "count": int, "status": str}
    ),
    "Correlated.get": OperationSpec("Workflows with a correlation id", Many(WORKFLOW), query=TASKS),
    "CorrelatedMany.post": OperationSpec("Workflows with several correlation ids", ManyByKey(WORKFLOW), texts, TASKS),
    "CorrelatedMany.get": OperationSpec(
        "Workflows with several correlation ids, without a body",
        ManyByKey(WORKFLOW),
        query=TASKS | {"correlationIds": str},
    ),
    "CorrelatedBatch.post": OperationSpec(
        "Workflows of several names with several correlation ids", ManyByKey(WORKFLOW), CORRELATION, TASKS
    ),
    "Running.get": OperationSpec(
        "Ids of open workflows", texts, query={"version": int, "startTime": int, "endTime": int}
    ),
    "WorkflowSearch.get": OperationSpec("Search workflows", WORKFLOW_SUMMARY_PAGE, query=MORE),
    "WorkflowSearchV2.get": OperationSpec("Search workflows, get them whole", WORKFLOW_PAGE, query=MORE),
    "WorkflowSearchByTasks.get": OperationSpec("Search workflows by their tasks", WORKFLOW_SUMMARY_PAGE, query=SEARCH),
    "WorkflowSearchByTasksV2.get": OperationSpec(
        "Search workflows by their tasks, get them whole", WORKFLOW_PAGE, query=SEARCH
    ),
    "TaskSearch.get": OperationSpec("Search tasks", TASK_SUMMARY_PAGE, query=SEARCH),
    "TaskSearchV2.get": OperationSpec("Search tasks, get them whole", TASK_PAGE, query=SEARCH),
    "Decide.put": OperationSpec("Decide anew what comes next", EMPTY),
    "Pause.put": OperationSpec("Pause a workflow", EMPTY),
    "Resume.put": OperationSpec("Resume a workflow", EMPTY),
    "RerunWorkflow.post": OperationSpec(
        "Rerun a workflow from one of its tasks, or from its start", TEXT, RERUN_REQUEST
    ),
    "Restart.post": OperationSpec("Begin a workflow anew", NOTHING, query={"useLatestDefinitions": bool}),
    "WorkflowMessages.post": OperationSpec("Send a message to a running workflow", TEXT, read_mapping),
    "RetryWorkflow.post": OperationSpec("Retry what failed", NOTHING, query={"resumeSubworkflowTasks": bool}),
    "Remove.delete": OperationSpec("Remove a workflow", EMPTY, query=REMOVAL),
    "TerminateRemove.delete": OperationSpec("Terminate a workflow, then remove it", EMPTY, query=REASON | REMOVAL),
    "ResetCallbacks.post": OperationSpec("Hand out at once what was handed back for later", NOTHING),
    "Skip.put": OperationSpec(
        "Skip a task that has not begun", EMPTY, SKIP_REQUEST, {"skipTaskRequest": str, "taskReferenceName": str}
    ),
    "Jump.post": OperationSpec("Go on at a task further on", EMPTY, read_mapping, {"taskReferenceName": str}),
    "Upgrade.post": OperationSpec("Move a running workflow to another version", EMPTY, UPGRADE),
    "WorkflowLabels.get": OperationSpec("Labels of a workflow", texts),
    "WorkflowLabels.put": OperationSpec("Put labels on a workflow", texts, texts),
    "WorkflowLabels.delete": OperationSpec("Take labels off a workflow", texts, texts),
    "Variables.post": OperationSpec("Update the variables of a workflow", WORKFLOW, read_mapping),
    "State.post": OperationSpec(
        "Update variables and a task of a workflow",
        SIGNAL_RESPONSE,
        STATE_UPDATE,
        WAIT,
    ),
    "BulkPause.put": OperationSpec("Pause several workflows", BULK, texts),
    "BulkResume.put": OperationSpec("Resume several workflows", BULK, texts),
    "BulkRetry.post": OperationSpec("Retry several workflows", BULK, texts),
    "BulkRestart.post": OperationSpec("Begin several workflows anew", BULK, texts, {"useLatestDefinitions": bool}),
    "BulkTerminate.post": OperationSpec(
        "Terminate several workflows", BULK, texts, REASON | {"triggerFailureWorkflow": bool}
    ),
    "BulkRemove.delete": OperationSpec("Remove several workflows", BULK, texts, REMOVAL),
    "BulkDelete.post": OperationSpec("Remove several workflows, without DELETE", BULK, texts, REMOVAL),
    "BulkTerminateRemove.delete": OperationSpec(
        "Terminate several workflows, then remove them", BULK, texts, REASON | REMOVAL
    ),
    "BulkSearch.post": OperationSpec("Several workflows by their ids", BULK_WORKFLOWS, texts, {"includeTasks": bool}),
    "OpenTasks.get": OperationSpec("Open tasks of one name", Many(TASK), query={"start": int, "count": int}),
    "Requeue.post": OperationSpec("Tell waiting workers of a task type", TEXT),
    "RequeueWorkflow.post": OperationSpec("Look at a workflow now", TEXT),
    "VerifyAndRepair.post": OperationSpec("Look at a workflow: was there anything to do?", TEXT),
    "AdminQueues.get": OperationSpec("Sizes of all queues, for administrators", read_mapping, query={"verbose": bool}),
    "EventQueueSizes.get": OperationSpec("Sizes of the queues that end waiting tasks", MapOf(IntegerOf())),
    "EventQueues.get": OperationSpec("Names of the queues that end waiting tasks", MapOf(read_text)),
    "EventForReference.post": OperationSpec("End a waiting task by its reference name", EMPTY, read_mapping),
    "EventForTask.post": OperationSpec("End a waiting task", EMPTY, read_mapping),
    "WorkflowDefinitions.get": OperationSpec(
        "All workflow definitions", Many(WORKFLOW_DEFINITION), query={"classifier": str}
    ),
    "WorkflowDefinitions.post": OperationSpec(
        "Keep a workflow definition", EMPTY, WORKFLOW_DEFINITION, {"overwrite": bool}
    ),
    "WorkflowDefinitions.put": OperationSpec("Keep several workflow definitions", BULK, Many(WORKFLOW_DEFINITION)),
    "WorkflowDefinitionCheck.post": OperationSpec(
        "Validate a workflow definition; the reply is empty where nothing is suspicious", FINDINGS, WORKFLOW_DEFINITION
    ),
    "WorkflowDefinitionOne.get": OperationSpec("A workflow definition", WORKFLOW_DEFINITION, query={"version": int}),
    "WorkflowDefinitionVersion.delete": OperationSpec("Forget a version of a workflow definition", EMPTY),
    "LatestVersions.get": OperationSpec("Newest versions of workflow definitions", Many(WORKFLOW_DEFINITION)),
    "WorkflowNames.get": OperationSpec("Names of workflow definitions", texts),
    "NamesAndVersions.get": OperationSpec("Versions of all workflow definitions", ManyByKey(DEFINITION_SUMMARY)),
    "Versions.get": OperationSpec("Versions of a workflow definition", Many(DEFINITION_SUMMARY)),
    "TaskDefinitions.get": OperationSpec("All task definitions", Many(TASK_DEFINITION)),
    "TaskDefinitions.post": OperationSpec("Keep several task definitions", EMPTY, Many(TASK_DEFINITION)),
    "TaskDefinitions.put": OperationSpec("Keep a task definition", EMPTY, TASK_DEFINITION),
    "TaskDefinitionOne.get": OperationSpec("A task definition", TASK_DEFINITION),
    "TaskDefinitionOne.delete": OperationSpec("Forget a task definition", EMPTY),
    "Schedules.get": OperationSpec("All schedules", Many(SCHEDULE), query={"workflowName": str}),
    "Schedules.post": OperationSpec("Keep a schedule", SCHEDULE, SCHEDULE),
    "ScheduleSearch.get": OperationSpec(
        "Search schedules", SCHEDULE_PAGE, query=PAGE | {"workflowName": str, "scheduleName": str, "paused": bool}
    ),
    "SchedulesByTag.get": OperationSpec("Schedules with a tag", Many(SCHEDULE), query={"tag!": str}),
    "ScheduleOne.get": OperationSpec("A schedule", SCHEDULE),
    "ScheduleOne.delete": OperationSpec("Forget a schedule", EMPTY),
    "SchedulePause.get": OperationSpec("Pause a schedule, as some clients ask", EMPTY, query={"reason": str}),
    "SchedulePause.put": OperationSpec("Pause a schedule", EMPTY, query={"reason": str}),
    "ScheduleResume.get": OperationSpec("Resume a schedule, as some clients ask", EMPTY),
    "ScheduleResume.put": OperationSpec("Resume a schedule", EMPTY),
    "SchedulesPause.put": OperationSpec("Pause several schedules", BULK, texts),
    "SchedulesResume.put": OperationSpec("Resume several schedules", BULK, texts),
    "ScheduleRun.post": OperationSpec("Run a schedule now", TEXT, query={"reason": str}),
    "ScheduleBackfill.post": OperationSpec(
        "Run what a schedule missed", BACKFILL, query={"startTime!": int, "endTime": int, "reason": str}
    ),
    "ScheduleTags.get": OperationSpec("Tags of a schedule", Many(TAG)),
    "ScheduleTags.put": OperationSpec("Set the tags of a schedule", EMPTY, Many(TAG)),
    "ScheduleTags.delete": OperationSpec("Take tags off a schedule", EMPTY),
    "NextFewSchedules.get": OperationSpec(
        "Next moments of a cron expression",
        ListOf(IntegerOf(64)),
        query={"cronExpression!": str, "zoneId": str, "limit": int, "scheduleStartTime": int, "scheduleEndTime": int},
    ),
    "ExecutionSearch.get": OperationSpec("Search what schedules came to", EXECUTION_PAGE, query=PAGE | {"query": str}),
    "SchedulerPause.get": OperationSpec("Let no schedule fire", read_mapping),
    "SchedulerPause.post": OperationSpec("Let no schedule fire, as some clients ask", read_mapping),
    "SchedulerResume.get": OperationSpec("Let schedules fire again", read_mapping),
    "SchedulerResume.post": OperationSpec("Let schedules fire again, as some clients ask", read_mapping),
    "SchedulerRequeue.get": OperationSpec("Mend schedules that lost their next moment", read_mapping),
    "EnvironmentVariables.get": OperationSpec("All variables", Many(VARIABLE)),
    "EnvironmentVariable.get": OperationSpec("A variable", TEXT),
    "EnvironmentVariable.put": OperationSpec("Keep a variable", EMPTY, TEXT),
    "EnvironmentVariable.delete": OperationSpec("Forget a variable", EMPTY),
    "EnvironmentTags.get": OperationSpec("Tags of a variable", Many(TAG)),
    "EnvironmentTags.put": OperationSpec("Set the tags of a variable", EMPTY, Many(TAG)),
    "EnvironmentTags.delete": OperationSpec("Take tags off a variable", EMPTY),
    "Secrets.get": OperationSpec("Names of secrets", texts),
    "Secrets.post": OperationSpec("Names of secrets, as some clients ask", texts),
    "SecretsInDetail.get": OperationSpec("Secrets with their moments", Many(SECRET)),
    "SecretsWithTags.get": OperationSpec("Secrets with their tags", Many(SECRET_WITH_TAGS)),
    "SecretCaches.get": OperationSpec("Read secrets anew", read_mapping),
    "SecretOne.get": OperationSpec("A secret", TEXT),
    "SecretOne.put": OperationSpec("Keep a secret", EMPTY, TEXT),
    "SecretOne.delete": OperationSpec("Forget a secret", EMPTY),
    "SecretExists.get": OperationSpec("Whether there is a secret", read_boolean),
    "SecretTags.get": OperationSpec("Tags of a secret", Many(TAG)),
    "SecretTags.put": OperationSpec("Set the tags of a secret", EMPTY, Many(TAG)),
    "SecretTags.delete": OperationSpec("Take tags off a secret", EMPTY),
    "EventHandlers.get": OperationSpec("All event handlers", Many(EVENT_HANDLER)),
    "EventHandlers.post": OperationSpec("Add an event handler", EMPTY, EVENT_HANDLER),
    "EventHandlers.put": OperationSpec("Change an event handler", EMPTY, EVENT_HANDLER),
    "EventHandlerOne.get": OperationSpec("The handlers of an event", Many(EVENT_HANDLER), query={"activeOnly": bool}),
    "EventHandlerOne.delete": OperationSpec("Forget an event handler", EMPTY),
    "EventHandlerNamed.get": OperationSpec("An event handler", EVENT_HANDLER),
    "IncomingEvent.post": OperationSpec("Tell the server an event", EMPTY, read_mapping),
    "ActiveEventHandlers.get": OperationSpec("The handlers that listen, with numbers", HANDLED_EVENT_PAGE),
    "EventHandlerNumbers.get": OperationSpec("All handlers, with numbers", HANDLED_EVENT_PAGE, query={"from": int}),
    "EventExecutions.get": OperationSpec("What a handler did lately", Many(EVENT_EXECUTION), query={"from": int}),
    "EventMessages.get": OperationSpec("The events that came lately", Many(EVENT_MESSAGE), query={"from": int}),
    "EventTags.get": OperationSpec("Tags of an event handler", Many(TAG)),
    "EventTags.put": OperationSpec("Hang tags on an event handler", EMPTY, Many(TAG)),
    "EventTags.delete": OperationSpec("Take tags off an event handler", EMPTY, Many(TAG)),
    "Schemas.get": OperationSpec("All schemas", Many(SCHEMA), query={"short": bool}),
    "Schemas.post": OperationSpec("Add or change schemas", EMPTY, Many(SCHEMA), {"newVersion": bool}),
    "SchemaNewest.get": OperationSpec("The newest version of a schema", SCHEMA),
    "SchemaNewest.delete": OperationSpec("Forget a schema in all its versions", EMPTY),
    "SchemaOne.get": OperationSpec("A schema", SCHEMA),
    "SchemaOne.delete": OperationSpec("Forget a version of a schema", EMPTY),
    "HumanTaskSearch.post": OperationSpec("Search human tasks", HUMAN_TASK_PAGE, HUMAN_SEARCH),
    "HumanTaskDisplayNames.get": OperationSpec("Display names of open human tasks", texts, query={"searchType": str}),
    "HumanTaskOne.get": OperationSpec("A human task", HUMAN_TASK, query={"withTemplate": bool}),
    "HumanTaskAsTask.get": OperationSpec("A human task as a task of its workflow", TASK),
    "HumanTaskClaim.post": OperationSpec("Claim a human task", HUMAN_TASK, query=CLAIM),
    "HumanTaskExternalClaim.post": OperationSpec("Claim a human task for an external user", HUMAN_TASK, query=CLAIM),
    "HumanTaskRelease.post": OperationSpec("Release a claimed human task", EMPTY),
    "HumanTaskReassign.post": OperationSpec("Reassign a human task", EMPTY, Many(ASSIGNMENT)),
    "HumanTaskSkip.post": OperationSpec("Skip an assignment of a human task", EMPTY, query=REASON),
    "HumanTaskUpdate.post": OperationSpec(
        "Save the output of a human task, or complete it", EMPTY, read_mapping, COMPLETE
    ),
    "HumanTaskUpdateByReference.post": OperationSpec(
        "Save the output of a human task by its reference, or complete it",
        EMPTY,
        read_mapping,
        COMPLETE | {"workflowId!": str, "taskRefName!": str, "iteration": int},
    ),
    "HumanTaskRecords.delete": OperationSpec("Delete records of human tasks whose workflow is gone", EMPTY, texts),
    "HumanTaskRecord.delete": OperationSpec("Delete the record of a human task whose workflow is gone", EMPTY),
    "FormTemplates.get": OperationSpec("User form templates", Many(FORM_TEMPLATE), query={"name": str, "version": int}),
    "FormTemplates.post": OperationSpec(
        "Save a user form template", FORM_TEMPLATE, FORM_TEMPLATE, {"newVersion": bool}
    ),
    "FormTemplatesBulk.post": OperationSpec(
        "Save several user form templates", Many(FORM_TEMPLATE), Many(FORM_TEMPLATE), {"newVersion": bool}
    ),
    "FormTemplateNamed.get": OperationSpec("The user form template of a human task", FORM_TEMPLATE),
    "FormTemplateNamed.delete": OperationSpec("Delete all versions of a user form template", EMPTY),
    "FormTemplateOne.get": OperationSpec("A version of a user form template", FORM_TEMPLATE),
    "FormTemplateOne.delete": OperationSpec("Delete a version of a user form template", EMPTY),
    "Webhooks.get": OperationSpec("All webhooks", Many(WEBHOOK)),
    "Webhooks.post": OperationSpec("Add a webhook", WEBHOOK, WEBHOOK),
    "WebhookOne.get": OperationSpec("A webhook", WEBHOOK),
    "WebhookOne.put": OperationSpec("Change a webhook", WEBHOOK, WEBHOOK),
    "WebhookOne.delete": OperationSpec("Forget a webhook", EMPTY),
    "WebhookTags.get": OperationSpec("Tags of a webhook", Many(TAG)),
    "WebhookTags.put": OperationSpec("Hang tags on a webhook", EMPTY, Many(TAG)),
    "WebhookTags.delete": OperationSpec("Take tags off a webhook", EMPTY, Many(TAG)),
    "IncomingWebhook.post": OperationSpec("Tell an event by webhook", EMPTY, read_mapping),
    "WorkflowTags.get": OperationSpec("Tags of a workflow definition", Many(TAG)),
    "WorkflowTags.post": OperationSpec("Hang a tag on a workflow definition", EMPTY, TAG),
    "WorkflowTags.put": OperationSpec("Set the tags of a workflow definition", EMPTY, Many(TAG)),
    "WorkflowTags.delete": OperationSpec("Take a tag off a workflow definition", EMPTY),
    "WorkflowRateLimit.get": OperationSpec("How many runs of a workflow go on at a time", RATE_LIMIT),
    "WorkflowRateLimit.put": OperationSpec("Limit the runs of a workflow", EMPTY, RATE_LIMIT),
    "WorkflowRateLimit.delete": OperationSpec("Take the limit off a workflow", EMPTY),
    "TaskTags.get": OperationSpec("Tags of a task definition", Many(TAG)),
    "TaskTags.post": OperationSpec("Hang a tag on a task definition", EMPTY, TAG),
    "TaskTags.put": OperationSpec("Set the tags of a task definition", EMPTY, Many(TAG)),
    "TaskTags.delete": OperationSpec("Take a tag off a task definition", EMPTY),
    "AllTags.get": OperationSpec("All tags", Many(TAG)),
    "Tokens.post": OperationSpec("A token for a key", TOKEN, CREDENTIALS),
    "TokenUser.get": OperationSpec("Whose token it is", USER),
    "Applications.get": OperationSpec("All applications", Many(APPLICATION)),
    "Applications.post": OperationSpec("A new application", APPLICATION, NEW_APPLICATION),
    "ApplicationOne.get": OperationSpec("An application", APPLICATION),
    "ApplicationOne.put": OperationSpec("Rename an application", APPLICATION, NEW_APPLICATION),
    "ApplicationOne.delete": OperationSpec("Delete an application", EMPTY),
    "ApplicationOfKey.get": OperationSpec("The application of a key", APPLICATION),
    "AccessKeys.get": OperationSpec("Keys of an application", Many(ACCESS_KEY)),
    "AccessKeys.post": OperationSpec("A new key of an application, with its secret", CREATED_KEY),
    "AccessKeyOne.delete": OperationSpec("Delete a key", EMPTY),
    "AccessKeyStatus.post": OperationSpec("Withdraw a key, or let it be used again", ACCESS_KEY),
    "ApplicationRole.post": OperationSpec("Give an application a role", EMPTY),
    "ApplicationRole.delete": OperationSpec("Take a role from an application", EMPTY),
    "ApplicationTags.get": OperationSpec("Tags of an application", Many(TAG)),
    "ApplicationTags.put": OperationSpec("Hang tags on an application", EMPTY, Many(TAG)),
    "ApplicationTags.delete": OperationSpec("Take tags off an application", EMPTY),
    "Users.get": OperationSpec("All users", Many(USER), query={"apps": bool}),
    "UserOne.get": OperationSpec("A user", USER),
    "UserOne.put": OperationSpec("Make or change a user", USER, NEW_USER),
    "UserOne.delete": OperationSpec("Delete a user", EMPTY),
    "UserPermissions.get": OperationSpec("What was granted to a user", GRANTED),
    "PermissionCheck.get": OperationSpec(
        "What a user may do to one thing", MapOf(read_boolean), query={"type!": str, "id!": str}
    ),
    "Groups.get": OperationSpec("All groups", Many(GROUP)),
    "GroupOne.get": OperationSpec("A group", GROUP),
    "GroupOne.put": OperationSpec("Make or change a group", GROUP, NEW_GROUP),
    "GroupOne.delete": OperationSpec("Delete a group", EMPTY),
    "GroupPermissions.get": OperationSpec("What was granted to a group", GRANTED),
    "GroupUsers.get": OperationSpec("Who is in a group", Many(USER)),
    "GroupUsers.post": OperationSpec("Let users into a group", EMPTY, texts),
    "GroupUsers.delete": OperationSpec("Take users out of a group", EMPTY),
    "GroupUser.post": OperationSpec("Let a user into a group", EMPTY),
    "GroupUser.delete": OperationSpec("Take a user out of a group", EMPTY),
    "Authorizations.post": OperationSpec("Grant accesses to a target", EMPTY, AUTHORIZATION),
    "Authorizations.delete": OperationSpec("Take accesses to a target back", EMPTY),
    "TargetPermissions.get": OperationSpec("Who was granted what on a target", ManyByKey(REFERENCE)),
    "RoleList.get": OperationSpec("All roles", Many(ROLE)),
    "RoleList.post": OperationSpec("A new role", ROLE, NEW_ROLE),
    "SystemRoles.get": OperationSpec("The roles that every server has", read_mapping),
    "CustomRoles.get": OperationSpec("The roles that were made here", Many(ROLE)),
    "AvailablePermissions.get": OperationSpec("What a role can be made of", read_mapping),
    "RoleOne.get": OperationSpec("A role", ROLE),
    "RoleOne.put": OperationSpec("Change a role", ROLE, NEW_ROLE),
    "RoleOne.delete": OperationSpec("Delete a role", EMPTY),
    "ServerVersion.get": OperationSpec("Version of the server", TEXT),
    "Configuration.get": OperationSpec("Configuration of the server", CONFIGURATION),
}
