"""Every operation of the API in a line or two: what it is for, what it takes and what it gives back."""

from collections.abc import Mapping
from typing import NamedTuple

from ....core.form_templates import FORM_TEMPLATE
from ....core.language.checks.event_handler import EVENT_HANDLER
from ....core.language.checks.fields import Table
from ....core.language.checks.tables import RATE_LIMIT, SCHEMA, TASK_DEFINITION, WORKFLOW_DEFINITION
from ....core.language.checks.values import ListOf, MapOf, Reader, Whole, flag, mapping, text, texts
from ....core.language.checks.webhook import WEBHOOK
from ..serializers.detours import SKIP_REQUEST, STATE_UPDATE, UPGRADE
from ..serializers.files import NEW_FILE, PARTS
from ..serializers.human_tasks import ASSIGNMENT
from ..serializers.human_tasks import SEARCH as HUMAN_SEARCH
from ..serializers.reruns import RERUN_REQUEST
from ..serializers.simulations import TEST_REQUEST
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

    table: Table


class ManyByKey(NamedTuple):
    """Lists of documents by a key."""

    table: Table


TEXT, EMPTY, NOTHING = "bare text", "an empty reply", "204"
Shape = Table | Many | ManyByKey | Reader | str


class Operation(NamedTuple):
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

OPERATIONS: dict[str, Operation] = {
    "BatchPoll.get": Operation("Poll for several tasks", Many(TASK), query=POLL | {"count": int, "timeout": int}),
    "Poll.get": Operation("Poll for one task", TASK, query=POLL, may_be_nothing=True),
    "TaskUpdates.post": Operation("Report on a task", TEXT, TASK_RESULT),
    "TaskUpdatesWithNext.post": Operation("Report on a task, get the next", TASK, TASK_RESULT, may_be_nothing=True),
    "TaskOne.get": Operation("A task", TASK),
    "TaskByReference.post": Operation("End an open task by its name", TEXT, mapping, {"workerid": str}),
    "TaskByReferenceAndWorkflow.post": Operation(
        "End an open task by its name, get the workflow", WORKFLOW, mapping, {"workerid": str}
    ),
    "Signal.post": Operation("End the WAIT at which a workflow stands", EMPTY, mapping),
    "SignalAndWait.post": Operation(
        "End the WAIT at which a workflow stands, get what comes of it",
        SIGNAL_RESPONSE,
        mapping,
        {"returnStrategy": str, "timeoutMillis": int},
    ),
    "TaskLogs.get": Operation("The log of a task", Many(SENT_LOG), may_be_nothing=True),
    "TaskLogs.post": Operation("Log a line for a task", EMPTY, TEXT),
    "QueueSizes.get": Operation("Sizes of some queues", MapOf(Whole()), query=TYPE),
    "QueueSize.get": Operation("Size of one queue", Whole(), query=TYPE | QUEUE_PARTS),
    "AllQueues.get": Operation("Sizes of all queues", MapOf(Whole())),
    "AllQueuesInDetail.get": Operation("Sizes of all queues by shard", mapping),
    "PollData.get": Operation("Who polls a task type", Many(POLL_DATA), query=TYPE),
    "AllPollData.get": Operation("Who polls what", Many(POLL_DATA)),
    "Workflows.post": Operation("Start a workflow", TEXT, START_REQUEST),
    "Execution.post": Operation("Start a workflow and wait for it", SIGNAL_RESPONSE, START_REQUEST, WAIT),
    "ExecutionByName.post": Operation(
        "Start a workflow, wait, get its output", mapping, mapping, {"version": int, "correlationId": str}
    ),
    "ExecutionByName.get": Operation("Start a workflow without input, wait, get its output", mapping, query=VERSION),
    "StartVersion.post": Operation("Start a version of a workflow", TEXT, START_REQUEST),
    "PayloadLocation.get": Operation(
        "Where a payload is sent to or fetched from",
        LOCATION,
        query={"path!": str, "operation!": str, "payloadType!": str},
    ),
    "PayloadContent.put": Operation("Send a payload", EMPTY, mapping, LINK),
    "PayloadContent.get": Operation("Fetch a payload", mapping, query=LINK),
    "Files.post": Operation("Begin a file of a workflow", CREATED_FILE, NEW_FILE, status=201),
    "FileOne.get": Operation("A file of a workflow", FILE),
    "FileUploadAddress.get": Operation("Where a file is sent", FILE_ADDRESS),
    "FileDownloadAddress.get": Operation("Where a file is fetched from", FILE_ADDRESS),
    "FileContent.put": Operation("Send a file", NOTHING, TEXT, FILE_LINK),
    "FileContent.get": Operation("Fetch a file", TEXT, query=FILE_LINK),
    "FileUploadComplete.post": Operation("All of a file has come", FINISHED_FILE),
    "FileParts.post": Operation("Begin to send a file in parts", FILE_UPLOAD),
    "FilePart.get": Operation("Where a part of a file is sent", FILE_ADDRESS),
    "FilePartsComplete.post": Operation("All parts of a file have come", FINISHED_FILE, PARTS),
    "FilePartsOne.delete": Operation("Give up the parts of a file", NOTHING),
    "WorkflowTest.post": Operation("Try a workflow out", WORKFLOW, TEST_REQUEST),
    "WorkflowOne.post": Operation(
        "Start a workflow by name", TEXT, mapping, {"version": int, "correlationId": str, "priority": int}
    ),
    "WorkflowOne.get": Operation("A workflow", WORKFLOW, query={"includeTasks": bool}),
    "WorkflowOne.delete": Operation(
        "Terminate a workflow", EMPTY, query={"reason": str, "triggerFailureWorkflow": bool}
    ),
    "WorkflowStatus.get": Operation(
        "Status of a workflow", STATUS, query={"includeOutput": bool, "includeVariables": bool}
    ),
    "WorkflowTasks.get": Operation("Tasks of a workflow", TASK_PAGE, query={"start": int, "count": int, "status": str}),
    "Correlated.get": Operation("Workflows with a correlation id", Many(WORKFLOW), query=TASKS),
    "CorrelatedMany.post": Operation("Workflows with several correlation ids", ManyByKey(WORKFLOW), texts, TASKS),
    "CorrelatedMany.get": Operation(
        "Workflows with several correlation ids, without a body",
        ManyByKey(WORKFLOW),
        query=TASKS | {"correlationIds": str},
    ),
    "CorrelatedBatch.post": Operation(
        "Workflows of several names with several correlation ids", ManyByKey(WORKFLOW), CORRELATION, TASKS
    ),
    "Running.get": Operation("Ids of open workflows", texts, query={"version": int, "startTime": int, "endTime": int}),
    "WorkflowSearch.get": Operation("Search workflows", WORKFLOW_SUMMARY_PAGE, query=MORE),
    "WorkflowSearchV2.get": Operation("Search workflows, get them whole", WORKFLOW_PAGE, query=MORE),
    "WorkflowSearchByTasks.get": Operation("Search workflows by their tasks", WORKFLOW_SUMMARY_PAGE, query=SEARCH),
    "WorkflowSearchByTasksV2.get": Operation(
        "Search workflows by their tasks, get them whole", WORKFLOW_PAGE, query=SEARCH
    ),
    "TaskSearch.get": Operation("Search tasks", TASK_SUMMARY_PAGE, query=SEARCH),
    "TaskSearchV2.get": Operation("Search tasks, get them whole", TASK_PAGE, query=SEARCH),
    "Decide.put": Operation("Decide anew what comes next", EMPTY),
    "Pause.put": Operation("Pause a workflow", EMPTY),
    "Resume.put": Operation("Resume a workflow", EMPTY),
    "Rerun.post": Operation("Rerun a workflow from one of its tasks, or from its start", TEXT, RERUN_REQUEST),
    "Restart.post": Operation("Begin a workflow anew", NOTHING, query={"useLatestDefinitions": bool}),
    "WorkflowMessages.post": Operation("Send a message to a running workflow", TEXT, mapping),
    "Retry.post": Operation("Retry what failed", NOTHING, query={"resumeSubworkflowTasks": bool}),
    "Remove.delete": Operation("Remove a workflow", EMPTY, query=REMOVAL),
    "TerminateRemove.delete": Operation("Terminate a workflow, then remove it", EMPTY, query=REASON | REMOVAL),
    "ResetCallbacks.post": Operation("Hand out at once what was handed back for later", NOTHING),
    "Skip.put": Operation(
        "Skip a task that has not begun", EMPTY, SKIP_REQUEST, {"skipTaskRequest": str, "taskReferenceName": str}
    ),
    "Jump.post": Operation("Go on at a task further on", EMPTY, mapping, {"taskReferenceName": str}),
    "Upgrade.post": Operation("Move a running workflow to another version", EMPTY, UPGRADE),
    "WorkflowLabels.get": Operation("Labels of a workflow", texts),
    "WorkflowLabels.put": Operation("Put labels on a workflow", texts, texts),
    "WorkflowLabels.delete": Operation("Take labels off a workflow", texts, texts),
    "Variables.post": Operation("Update the variables of a workflow", WORKFLOW, mapping),
    "State.post": Operation(
        "Update variables and a task of a workflow",
        SIGNAL_RESPONSE,
        STATE_UPDATE,
        WAIT,
    ),
    "BulkPause.put": Operation("Pause several workflows", BULK, texts),
    "BulkResume.put": Operation("Resume several workflows", BULK, texts),
    "BulkRetry.post": Operation("Retry several workflows", BULK, texts),
    "BulkRestart.post": Operation("Begin several workflows anew", BULK, texts, {"useLatestDefinitions": bool}),
    "BulkTerminate.post": Operation(
        "Terminate several workflows", BULK, texts, REASON | {"triggerFailureWorkflow": bool}
    ),
    "BulkRemove.delete": Operation("Remove several workflows", BULK, texts, REMOVAL),
    "BulkDelete.post": Operation("Remove several workflows, without DELETE", BULK, texts, REMOVAL),
    "BulkTerminateRemove.delete": Operation(
        "Terminate several workflows, then remove them", BULK, texts, REASON | REMOVAL
    ),
    "BulkSearch.post": Operation("Several workflows by their ids", BULK_WORKFLOWS, texts, {"includeTasks": bool}),
    "OpenTasks.get": Operation("Open tasks of one name", Many(TASK), query={"start": int, "count": int}),
    "Requeue.post": Operation("Tell waiting workers of a task type", TEXT),
    "RequeueWorkflow.post": Operation("Look at a workflow now", TEXT),
    "VerifyAndRepair.post": Operation("Look at a workflow: was there anything to do?", TEXT),
    "AdminQueues.get": Operation("Sizes of all queues, for administrators", mapping, query={"verbose": bool}),
    "EventQueueSizes.get": Operation("Sizes of the queues that end waiting tasks", MapOf(Whole())),
    "EventQueues.get": Operation("Names of the queues that end waiting tasks", MapOf(text)),
    "EventForReference.post": Operation("End a waiting task by its reference name", EMPTY, mapping),
    "EventForTask.post": Operation("End a waiting task", EMPTY, mapping),
    "WorkflowDefinitions.get": Operation(
        "All workflow definitions", Many(WORKFLOW_DEFINITION), query={"classifier": str}
    ),
    "WorkflowDefinitions.post": Operation(
        "Keep a workflow definition", EMPTY, WORKFLOW_DEFINITION, {"overwrite": bool}
    ),
    "WorkflowDefinitions.put": Operation("Keep several workflow definitions", BULK, Many(WORKFLOW_DEFINITION)),
    "WorkflowDefinitionCheck.post": Operation(
        "Validate a workflow definition; the reply is empty where nothing is suspicious", FINDINGS, WORKFLOW_DEFINITION
    ),
    "WorkflowDefinitionOne.get": Operation("A workflow definition", WORKFLOW_DEFINITION, query={"version": int}),
    "WorkflowDefinitionVersion.delete": Operation("Forget a version of a workflow definition", EMPTY),
    "LatestVersions.get": Operation("Newest versions of workflow definitions", Many(WORKFLOW_DEFINITION)),
    "WorkflowNames.get": Operation("Names of workflow definitions", texts),
    "NamesAndVersions.get": Operation("Versions of all workflow definitions", ManyByKey(DEFINITION_SUMMARY)),
    "Versions.get": Operation("Versions of a workflow definition", Many(DEFINITION_SUMMARY)),
    "TaskDefinitions.get": Operation("All task definitions", Many(TASK_DEFINITION)),
    "TaskDefinitions.post": Operation("Keep several task definitions", EMPTY, Many(TASK_DEFINITION)),
    "TaskDefinitions.put": Operation("Keep a task definition", EMPTY, TASK_DEFINITION),
    "TaskDefinitionOne.get": Operation("A task definition", TASK_DEFINITION),
    "TaskDefinitionOne.delete": Operation("Forget a task definition", EMPTY),
    "Schedules.get": Operation("All schedules", Many(SCHEDULE), query={"workflowName": str}),
    "Schedules.post": Operation("Keep a schedule", SCHEDULE, SCHEDULE),
    "ScheduleSearch.get": Operation(
        "Search schedules", SCHEDULE_PAGE, query=PAGE | {"workflowName": str, "scheduleName": str, "paused": bool}
    ),
    "SchedulesByTag.get": Operation("Schedules with a tag", Many(SCHEDULE), query={"tag!": str}),
    "ScheduleOne.get": Operation("A schedule", SCHEDULE),
    "ScheduleOne.delete": Operation("Forget a schedule", EMPTY),
    "SchedulePause.get": Operation("Pause a schedule, as some clients ask", EMPTY, query={"reason": str}),
    "SchedulePause.put": Operation("Pause a schedule", EMPTY, query={"reason": str}),
    "ScheduleResume.get": Operation("Resume a schedule, as some clients ask", EMPTY),
    "ScheduleResume.put": Operation("Resume a schedule", EMPTY),
    "SchedulesPause.put": Operation("Pause several schedules", BULK, texts),
    "SchedulesResume.put": Operation("Resume several schedules", BULK, texts),
    "ScheduleRun.post": Operation("Run a schedule now", TEXT, query={"reason": str}),
    "ScheduleBackfill.post": Operation(
        "Run what a schedule missed", BACKFILL, query={"startTime!": int, "endTime": int, "reason": str}
    ),
    "ScheduleTags.get": Operation("Tags of a schedule", Many(TAG)),
    "ScheduleTags.put": Operation("Set the tags of a schedule", EMPTY, Many(TAG)),
    "ScheduleTags.delete": Operation("Take tags off a schedule", EMPTY),
    "NextFewSchedules.get": Operation(
        "Next moments of a cron expression",
        ListOf(Whole(64)),
        query={"cronExpression!": str, "zoneId": str, "limit": int, "scheduleStartTime": int, "scheduleEndTime": int},
    ),
    "ExecutionSearch.get": Operation("Search what schedules came to", EXECUTION_PAGE, query=PAGE | {"query": str}),
    "SchedulerPause.get": Operation("Let no schedule fire", mapping),
    "SchedulerPause.post": Operation("Let no schedule fire, as some clients ask", mapping),
    "SchedulerResume.get": Operation("Let schedules fire again", mapping),
    "SchedulerResume.post": Operation("Let schedules fire again, as some clients ask", mapping),
    "SchedulerRequeue.get": Operation("Mend schedules that lost their next moment", mapping),
    "EnvironmentVariables.get": Operation("All variables", Many(VARIABLE)),
    "EnvironmentVariable.get": Operation("A variable", TEXT),
    "EnvironmentVariable.put": Operation("Keep a variable", EMPTY, TEXT),
    "EnvironmentVariable.delete": Operation("Forget a variable", EMPTY),
    "EnvironmentTags.get": Operation("Tags of a variable", Many(TAG)),
    "EnvironmentTags.put": Operation("Set the tags of a variable", EMPTY, Many(TAG)),
    "EnvironmentTags.delete": Operation("Take tags off a variable", EMPTY),
    "Secrets.get": Operation("Names of secrets", texts),
    "Secrets.post": Operation("Names of secrets, as some clients ask", texts),
    "SecretsInDetail.get": Operation("Secrets with their moments", Many(SECRET)),
    "SecretsWithTags.get": Operation("Secrets with their tags", Many(SECRET_WITH_TAGS)),
    "SecretCaches.get": Operation("Read secrets anew", mapping),
    "SecretOne.get": Operation("A secret", TEXT),
    "SecretOne.put": Operation("Keep a secret", EMPTY, TEXT),
    "SecretOne.delete": Operation("Forget a secret", EMPTY),
    "SecretExists.get": Operation("Whether there is a secret", flag),
    "SecretTags.get": Operation("Tags of a secret", Many(TAG)),
    "SecretTags.put": Operation("Set the tags of a secret", EMPTY, Many(TAG)),
    "SecretTags.delete": Operation("Take tags off a secret", EMPTY),
    "EventHandlers.get": Operation("All event handlers", Many(EVENT_HANDLER)),
    "EventHandlers.post": Operation("Add an event handler", EMPTY, EVENT_HANDLER),
    "EventHandlers.put": Operation("Change an event handler", EMPTY, EVENT_HANDLER),
    "EventHandlerOne.get": Operation("The handlers of an event", Many(EVENT_HANDLER), query={"activeOnly": bool}),
    "EventHandlerOne.delete": Operation("Forget an event handler", EMPTY),
    "EventHandlerNamed.get": Operation("An event handler", EVENT_HANDLER),
    "IncomingEvent.post": Operation("Tell the server an event", EMPTY, mapping),
    "ActiveEventHandlers.get": Operation("The handlers that listen, with numbers", HANDLED_EVENT_PAGE),
    "EventHandlerNumbers.get": Operation("All handlers, with numbers", HANDLED_EVENT_PAGE, query={"from": int}),
    "EventExecutions.get": Operation("What a handler did lately", Many(EVENT_EXECUTION), query={"from": int}),
    "EventMessages.get": Operation("The events that came lately", Many(EVENT_MESSAGE), query={"from": int}),
    "EventTags.get": Operation("Tags of an event handler", Many(TAG)),
    "EventTags.put": Operation("Hang tags on an event handler", EMPTY, Many(TAG)),
    "EventTags.delete": Operation("Take tags off an event handler", EMPTY, Many(TAG)),
    "Schemas.get": Operation("All schemas", Many(SCHEMA), query={"short": bool}),
    "Schemas.post": Operation("Add or change schemas", EMPTY, Many(SCHEMA), {"newVersion": bool}),
    "SchemaNewest.get": Operation("The newest version of a schema", SCHEMA),
    "SchemaNewest.delete": Operation("Forget a schema in all its versions", EMPTY),
    "SchemaOne.get": Operation("A schema", SCHEMA),
    "SchemaOne.delete": Operation("Forget a version of a schema", EMPTY),
    "HumanTaskSearch.post": Operation("Search human tasks", HUMAN_TASK_PAGE, HUMAN_SEARCH),
    "HumanTaskDisplayNames.get": Operation("Display names of open human tasks", texts, query={"searchType": str}),
    "HumanTaskOne.get": Operation("A human task", HUMAN_TASK, query={"withTemplate": bool}),
    "HumanTaskAsTask.get": Operation("A human task as a task of its workflow", TASK),
    "HumanTaskClaim.post": Operation("Claim a human task", HUMAN_TASK, query=CLAIM),
    "HumanTaskExternalClaim.post": Operation("Claim a human task for an external user", HUMAN_TASK, query=CLAIM),
    "HumanTaskRelease.post": Operation("Release a claimed human task", EMPTY),
    "HumanTaskReassign.post": Operation("Reassign a human task", EMPTY, Many(ASSIGNMENT)),
    "HumanTaskSkip.post": Operation("Skip an assignment of a human task", EMPTY, query=REASON),
    "HumanTaskUpdate.post": Operation("Save the output of a human task, or complete it", EMPTY, mapping, COMPLETE),
    "HumanTaskUpdateByReference.post": Operation(
        "Save the output of a human task by its reference, or complete it",
        EMPTY,
        mapping,
        COMPLETE | {"workflowId!": str, "taskRefName!": str, "iteration": int},
    ),
    "HumanTaskRecords.delete": Operation("Delete records of human tasks whose workflow is gone", EMPTY, texts),
    "HumanTaskRecord.delete": Operation("Delete the record of a human task whose workflow is gone", EMPTY),
    "FormTemplates.get": Operation("User form templates", Many(FORM_TEMPLATE), query={"name": str, "version": int}),
    "FormTemplates.post": Operation("Save a user form template", FORM_TEMPLATE, FORM_TEMPLATE, {"newVersion": bool}),
    "FormTemplatesBulk.post": Operation(
        "Save several user form templates", Many(FORM_TEMPLATE), Many(FORM_TEMPLATE), {"newVersion": bool}
    ),
    "FormTemplateNamed.get": Operation("The user form template of a human task", FORM_TEMPLATE),
    "FormTemplateNamed.delete": Operation("Delete all versions of a user form template", EMPTY),
    "FormTemplateOne.get": Operation("A version of a user form template", FORM_TEMPLATE),
    "FormTemplateOne.delete": Operation("Delete a version of a user form template", EMPTY),
    "Webhooks.get": Operation("All webhooks", Many(WEBHOOK)),
    "Webhooks.post": Operation("Add a webhook", WEBHOOK, WEBHOOK),
    "WebhookOne.get": Operation("A webhook", WEBHOOK),
    "WebhookOne.put": Operation("Change a webhook", WEBHOOK, WEBHOOK),
    "WebhookOne.delete": Operation("Forget a webhook", EMPTY),
    "WebhookTags.get": Operation("Tags of a webhook", Many(TAG)),
    "WebhookTags.put": Operation("Hang tags on a webhook", EMPTY, Many(TAG)),
    "WebhookTags.delete": Operation("Take tags off a webhook", EMPTY, Many(TAG)),
    "IncomingWebhook.post": Operation("Tell an event by webhook", EMPTY, mapping),
    "WorkflowTags.get": Operation("Tags of a workflow definition", Many(TAG)),
    "WorkflowTags.post": Operation("Hang a tag on a workflow definition", EMPTY, TAG),
    "WorkflowTags.put": Operation("Set the tags of a workflow definition", EMPTY, Many(TAG)),
    "WorkflowTags.delete": Operation("Take a tag off a workflow definition", EMPTY),
    "WorkflowRateLimit.get": Operation("How many runs of a workflow go on at a time", RATE_LIMIT),
    "WorkflowRateLimit.put": Operation("Limit the runs of a workflow", EMPTY, RATE_LIMIT),
    "WorkflowRateLimit.delete": Operation("Take the limit off a workflow", EMPTY),
    "TaskTags.get": Operation("Tags of a task definition", Many(TAG)),
    "TaskTags.post": Operation("Hang a tag on a task definition", EMPTY, TAG),
    "TaskTags.put": Operation("Set the tags of a task definition", EMPTY, Many(TAG)),
    "TaskTags.delete": Operation("Take a tag off a task definition", EMPTY),
    "AllTags.get": Operation("All tags", Many(TAG)),
    "Tokens.post": Operation("A token for a key", TOKEN, CREDENTIALS),
    "TokenUser.get": Operation("Whose token it is", USER),
    "Applications.get": Operation("All applications", Many(APPLICATION)),
    "Applications.post": Operation("A new application", APPLICATION, NEW_APPLICATION),
    "ApplicationOne.get": Operation("An application", APPLICATION),
    "ApplicationOne.put": Operation("Rename an application", APPLICATION, NEW_APPLICATION),
    "ApplicationOne.delete": Operation("Delete an application", EMPTY),
    "ApplicationOfKey.get": Operation("The application of a key", APPLICATION),
    "AccessKeys.get": Operation("Keys of an application", Many(ACCESS_KEY)),
    "AccessKeys.post": Operation("A new key of an application, with its secret", CREATED_KEY),
    "AccessKeyOne.delete": Operation("Delete a key", EMPTY),
    "AccessKeyStatus.post": Operation("Withdraw a key, or let it be used again", ACCESS_KEY),
    "ApplicationRole.post": Operation("Give an application a role", EMPTY),
    "ApplicationRole.delete": Operation("Take a role from an application", EMPTY),
    "ApplicationTags.get": Operation("Tags of an application", Many(TAG)),
    "ApplicationTags.put": Operation("Hang tags on an application", EMPTY, Many(TAG)),
    "ApplicationTags.delete": Operation("Take tags off an application", EMPTY),
    "Users.get": Operation("All users", Many(USER), query={"apps": bool}),
    "UserOne.get": Operation("A user", USER),
    "UserOne.put": Operation("Make or change a user", USER, NEW_USER),
    "UserOne.delete": Operation("Delete a user", EMPTY),
    "UserPermissions.get": Operation("What was granted to a user", GRANTED),
    "PermissionCheck.get": Operation("What a user may do to one thing", MapOf(flag), query={"type!": str, "id!": str}),
    "Groups.get": Operation("All groups", Many(GROUP)),
    "GroupOne.get": Operation("A group", GROUP),
    "GroupOne.put": Operation("Make or change a group", GROUP, NEW_GROUP),
    "GroupOne.delete": Operation("Delete a group", EMPTY),
    "GroupPermissions.get": Operation("What was granted to a group", GRANTED),
    "GroupUsers.get": Operation("Who is in a group", Many(USER)),
    "GroupUsers.post": Operation("Let users into a group", EMPTY, texts),
    "GroupUsers.delete": Operation("Take users out of a group", EMPTY),
    "GroupUser.post": Operation("Let a user into a group", EMPTY),
    "GroupUser.delete": Operation("Take a user out of a group", EMPTY),
    "Authorizations.post": Operation("Grant accesses to a target", EMPTY, AUTHORIZATION),
    "Authorizations.delete": Operation("Take accesses to a target back", EMPTY),
    "TargetPermissions.get": Operation("Who was granted what on a target", ManyByKey(REFERENCE)),
    "Roles.get": Operation("All roles", Many(ROLE)),
    "Roles.post": Operation("A new role", ROLE, NEW_ROLE),
    "SystemRoles.get": Operation("The roles that every server has", mapping),
    "CustomRoles.get": Operation("The roles that were made here", Many(ROLE)),
    "AvailablePermissions.get": Operation("What a role can be made of", mapping),
    "RoleOne.get": Operation("A role", ROLE),
    "RoleOne.put": Operation("Change a role", ROLE, NEW_ROLE),
    "RoleOne.delete": Operation("Delete a role", EMPTY),
    "Version.get": Operation("Version of the server", TEXT),
    "Configuration.get": Operation("Configuration of the server", CONFIGURATION),
}
