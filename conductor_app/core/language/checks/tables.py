"""The fields of workflow and task definitions (api §3.2-3.4)."""

from typing import Any

from .fields import Field, Of, Table, read_document
from .values import (
    Choice,
    ListOf,
    MapOf,
    Place,
    Reader,
    Refused,
    Whole,
    anything,
    flag,
    mapping,
    part_of_queue,
    seconds,
    short_text,
    text,
    texts,
)


def a_step(value: Any, place: Place) -> dict[str, Any]:
    """A step with the steps inside it; `workflowTaskType` is another spelling of `type`."""
    if place.depth > DEEPEST:
        raise Refused(f"is nested more than {DEEPEST} levels deep")
    given = dict(mapping(value, place))
    spelled = given.pop("workflowTaskType", None)
    if spelled is not None:
        given.setdefault("type", spelled)
    return read_document(given, WORKFLOW_TASK, place.deeper())


def sub_workflow_document(value: Any, place: Place) -> Any:
    if isinstance(value, dict) or (isinstance(value, str) and value.startswith("${") and value.endswith("}")):
        return value
    raise Refused("must be a workflow definition, or an expression that gives one: ${…}")


DEEPEST = 60
"""How deep steps may be nested in one another; the layout of a definition stops there too."""

AUDIT: Table = (
    Field("ownerApp", text),
    Field("createTime", Whole(64), 0),
    Field("updateTime", Whole(64), 0),
    Field("createdBy", text),
    Field("updatedBy", text),
)

SCHEMA: Table = (
    *AUDIT,
    Field("name", text),
    Field("version", Whole(), 1),
    Field("type", Choice("JSON", "AVRO", "PROTOBUF")),
    Field("data", mapping),
    Field("externalRef", text),
)

CACHE: Table = (Field("key", text), Field("ttlInSecond", Whole(), 0))

TASK_DEFINITION: Table = (
    *AUDIT,
    Field("name", short_text),
    Field("description", text),
    Field("retryCount", Whole(), 3),
    Field("timeoutSeconds", seconds, 0),
    Field("inputKeys", texts, list),
    Field("outputKeys", texts, list),
    Field("runtimeMetadata", texts, list),
    Field("timeoutPolicy", Choice("RETRY", "TIME_OUT_WF", "ALERT_ONLY"), "TIME_OUT_WF"),
    Field("retryLogic", Choice("FIXED", "EXPONENTIAL_BACKOFF", "LINEAR_BACKOFF"), "FIXED"),
    Field("retryDelaySeconds", Whole(), 60),
    Field("responseTimeoutSeconds", seconds, 3600),
    Field("concurrentExecLimit", Whole()),
    Field("inputTemplate", mapping, dict),
    Field("rateLimitPerFrequency", Whole(), 0),
    Field("rateLimitFrequencyInSeconds", Whole(), 1),
    Field("isolationGroupId", part_of_queue),
    Field("executionNameSpace", part_of_queue),
    Field("baseType", text),
    Field("ownerEmail", short_text),
    Field("pollTimeoutSeconds", Whole()),
    Field("backoffScaleFactor", Whole(), 1),
    Field("maxRetryDelaySeconds", Whole(), 0),
    Field("backoffJitterMs", Whole(), 0),
    Field("totalTimeoutSeconds", seconds, 0),
    Field("taskStatusListenerEnabled", flag, True),
    Field("inputSchema", Of(SCHEMA)),
    Field("outputSchema", Of(SCHEMA)),
    Field("enforceSchema", flag, False),
)

SUB_WORKFLOW: Table = (
    Field("name", text),
    Field("version", Whole()),
    Field("taskToDomain", MapOf(text)),
    Field("workflowDefinition", sub_workflow_document),
    Field("idempotencyKey", text),
    Field("idempotencyStrategy", text),
    Field("priority", anything),
)

STATE_CHANGE: Table = (Field("type", text), Field("payload", mapping))

STEPS: Reader = ListOf(a_step)

CATCH_CASE: Table = (Field("match", mapping), Field("tasks", STEPS))

WORKFLOW_TASK: Table = (
    Field("name", short_text),
    Field("taskReferenceName", short_text),
    Field("description", text),
    Field("dynamicTaskNameParam", text),
    Field("caseValueParam", text),
    Field("caseExpression", text),
    Field("scriptExpression", text),
    Field("dynamicForkJoinTasksParam", text),
    Field("dynamicForkTasksParam", text),
    Field("dynamicForkTasksInputParamName", text),
    Field("sink", text),
    Field("loopCondition", text),
    Field("items", text),
    Field("evaluatorType", text),
    Field("expression", text),
    Field("joinStatus", text),
    Field("type", short_text, "SIMPLE"),
    Field("inputParameters", mapping, dict),
    Field("metadata", mapping, dict),
    Field("decisionCases", MapOf(STEPS), dict),
    Field("defaultCase", STEPS, list),
    Field("loopOver", STEPS, list),
    Field("tryTasks", STEPS),
    Field("catchCases", ListOf(Of(CATCH_CASE))),
    Field("catchDefault", STEPS),
    Field("finallyTasks", STEPS),
    Field("forkTasks", ListOf(STEPS), list),
    Field("joinOn", texts, list),
    Field("defaultExclusiveJoinTask", texts, list),
    Field("startDelay", Whole(), 0),
    Field("optional", flag, False),
    Field("permissive", flag, False),
    Field("asyncComplete", flag, False),
    Field("rateLimited", flag),
    Field("retryCount", Whole()),
    Field("subWorkflowParam", Of(SUB_WORKFLOW)),
    Field("taskDefinition", Of(TASK_DEFINITION)),
    Field("onStateChange", MapOf(ListOf(Of(STATE_CHANGE))), dict),
    Field("cacheConfig", Of(CACHE)),
    Field("joinMode", Choice("SYNC", "ASYNC")),
)

RATE_LIMIT: Table = (
    Field("rateLimitKey", text),
    Field("concurrentExecLimit", Whole(), 0),
    Field("policy", Choice("QUEUE", "REJECT"), "QUEUE"),
)

WORKFLOW_DEFINITION: Table = (
    *AUDIT,
    Field("name", short_text),
    Field("description", text),
    Field("version", Whole(), 1),
    Field("tasks", STEPS, list),
    Field("inputParameters", texts, list),
    Field("outputParameters", mapping, dict),
    Field("variables", mapping, dict),
    Field("inputTemplate", mapping, dict),
    Field("metadata", mapping, dict),
    Field("failureWorkflow", short_text),
    Field("failureWorkflowVersion", Whole()),
    Field("schemaVersion", Whole(), 2),
    Field("restartable", flag, True),
    Field("workflowStatusListenerEnabled", flag, False),
    Field("workflowStatusListenerSink", text),
    Field("ownerEmail", short_text),
    Field("timeoutPolicy", Choice("TIME_OUT_WF", "ALERT_ONLY"), "ALERT_ONLY"),
    Field("timeoutSeconds", seconds, 0),
    Field("rateLimitConfig", Of(RATE_LIMIT)),
    Field("inputSchema", Of(SCHEMA)),
    Field("outputSchema", Of(SCHEMA)),
    Field("enforceSchema", flag, True),
    Field("cacheConfig", Of(CACHE)),
    Field("maskedFields", texts, list),
)
