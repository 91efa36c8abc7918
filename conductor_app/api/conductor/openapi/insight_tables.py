"""Fields of responses that only this server has: explanations, plans, comparisons, usage and folders of definitions."""

from ....core.document.checks.document_fields import FieldSpec, FieldTable, ObjectOf
from ....core.document.checks.values import (
    ChoiceOf,
    IntegerOf,
    ListOf,
    MapOf,
    OrNull,
    read_any,
    read_boolean,
    read_mapping,
    read_number,
    read_text,
    texts,
)
from ..ai.budget_serializers import BUDGET
from .tables import WORKFLOW_STATUS, fields_of_type

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
APPLICATION: FieldTable = (
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
    "DefinitionApplication": APPLICATION,
    "DefinitionDrift": DRIFT,
    "DefinitionDrifts": DRIFTS,
}
