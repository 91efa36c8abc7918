"""The fields of workflow and task definitions (api §3.2-3.4)."""

from typing import Any

from ...step_structure import DEFAULT_TYPE, structure_of
from ...step_tree import MAX_DEPTH
from .document_fields import FieldSpec, FieldTable, ObjectOf, read_document
from .values import (
    ChoiceOf,
    DocumentPosition,
    IntegerOf,
    ListOf,
    MapOf,
    Reader,
    ValueRefused,
    read_any,
    read_boolean,
    read_mapping,
    read_name,
    read_queue_part,
    read_text,
    seconds,
    texts,
)


def read_step(value: Any, place: DocumentPosition) -> dict[str, Any]:
    """Return a step with its nested steps. `workflowTaskType` is another name of `type`.

    Raises:
        ValueRefused: when steps are nested too deeply.
    """
    if place.depth > MAX_DEPTH:
        raise ValueRefused(f"is nested more than {MAX_DEPTH} levels deep")
    given = dict(read_mapping(value, place))
    spelled = given.pop("workflowTaskType", None)
    if spelled is not None:
        given.setdefault("type", spelled)
    given_type = given.get("type")
    own = structure_of(given_type).fields if isinstance(given_type, str) else ()
    return read_document(given, (*WORKFLOW_TASK, *own), place.nested())


def read_sub_workflow(value: Any, place: DocumentPosition) -> Any:
    if isinstance(value, dict) or (isinstance(value, str) and value.startswith("${") and value.endswith("}")):
        return value
    raise ValueRefused("must be a workflow definition, or an expression that gives one: ${…}")


AUDIT: FieldTable = (
    FieldSpec("ownerApp", read_text),
    FieldSpec("createTime", IntegerOf(64), 0),
    FieldSpec("updateTime", IntegerOf(64), 0),
    FieldSpec("createdBy", read_text),
    FieldSpec("updatedBy", read_text),
)

SCHEMA: FieldTable = (
    *AUDIT,
    FieldSpec("name", read_text),
    FieldSpec("version", IntegerOf(), 1),
    FieldSpec("type", ChoiceOf("JSON", "AVRO", "PROTOBUF")),
    FieldSpec("data", read_mapping),
    FieldSpec("externalRef", read_text),
)

CACHE: FieldTable = (FieldSpec("key", read_text), FieldSpec("ttlInSecond", IntegerOf(), 0))

TASK_DEFINITION: FieldTable = (
    *AUDIT,
    FieldSpec("name", read_name),
    FieldSpec("description", read_text),
    FieldSpec("retryCount", IntegerOf(), 3),
    FieldSpec("timeoutSeconds", seconds, 0),
    FieldSpec("inputKeys", texts, list),
    FieldSpec("outputKeys", texts, list),
    FieldSpec("runtimeMetadata", texts, list),
    FieldSpec("timeoutPolicy", ChoiceOf("RETRY", "TIME_OUT_WF", "ALERT_ONLY"), "TIME_OUT_WF"),
    FieldSpec("retryLogic", ChoiceOf("FIXED", "EXPONENTIAL_BACKOFF", "LINEAR_BACKOFF"), "FIXED"),
    FieldSpec("retryDelaySeconds", IntegerOf(), 60),
    FieldSpec("responseTimeoutSeconds", seconds, 3600),
    FieldSpec("concurrentExecLimit", IntegerOf()),
    FieldSpec("inputTemplate", read_mapping, dict),
    FieldSpec("rateLimitPerFrequency", IntegerOf(), 0),
    FieldSpec("rateLimitFrequencyInSeconds", IntegerOf(), 1),
    FieldSpec("isolationGroupId", read_queue_part),
    FieldSpec("executionNameSpace", read_queue_part),
    FieldSpec("baseType", read_text),
    FieldSpec("ownerEmail", read_name),
    FieldSpec("pollTimeoutSeconds", IntegerOf()),
    FieldSpec("backoffScaleFactor", IntegerOf(), 1),
    FieldSpec("maxRetryDelaySeconds", IntegerOf(), 0),
    FieldSpec("backoffJitterMs", IntegerOf(), 0),
    FieldSpec("totalTimeoutSeconds", seconds, 0),
    FieldSpec("taskStatusListenerEnabled", read_boolean, True),
    FieldSpec("inputSchema", ObjectOf(SCHEMA)),
    FieldSpec("outputSchema", ObjectOf(SCHEMA)),
    FieldSpec("enforceSchema", read_boolean, False),
)

SUB_WORKFLOW: FieldTable = (
    FieldSpec("name", read_text),
    FieldSpec("version", IntegerOf()),
    FieldSpec("taskToDomain", MapOf(read_text)),
    FieldSpec("workflowDefinition", read_sub_workflow),
    FieldSpec("idempotencyKey", read_text),
    FieldSpec("idempotencyStrategy", read_text),
    FieldSpec("priority", read_any),
)

STATE_CHANGE: FieldTable = (FieldSpec("type", read_text), FieldSpec("payload", read_mapping))

STEPS: Reader = ListOf(read_step)

WORKFLOW_TASK: FieldTable = (
    FieldSpec("name", read_name),
    FieldSpec("taskReferenceName", read_name),
    FieldSpec("description", read_text),
    FieldSpec("dynamicTaskNameParam", read_text),
    FieldSpec("caseValueParam", read_text),
    FieldSpec("caseExpression", read_text),
    FieldSpec("scriptExpression", read_text),
    FieldSpec("dynamicForkJoinTasksParam", read_text),
    FieldSpec("dynamicForkTasksParam", read_text),
    FieldSpec("dynamicForkTasksInputParamName", read_text),
    FieldSpec("sink", read_text),
    FieldSpec("loopCondition", read_text),
    FieldSpec("items", read_text),
    FieldSpec("evaluatorType", read_text),
    FieldSpec("expression", read_text),
    FieldSpec("joinStatus", read_text),
    FieldSpec("type", read_name, DEFAULT_TYPE),
    FieldSpec("inputParameters", read_mapping, dict),
    FieldSpec("metadata", read_mapping, dict),
    FieldSpec("decisionCases", MapOf(STEPS), dict),
    FieldSpec("defaultCase", STEPS, list),
    FieldSpec("loopOver", STEPS, list),
    FieldSpec("forkTasks", ListOf(STEPS), list),
    FieldSpec("joinOn", texts, list),
    FieldSpec("defaultExclusiveJoinTask", texts, list),
    FieldSpec("startDelay", IntegerOf(), 0),
    FieldSpec("optional", read_boolean, False),
    FieldSpec("permissive", read_boolean, False),
    FieldSpec("asyncComplete", read_boolean, False),
    FieldSpec("rateLimited", read_boolean),
    FieldSpec("retryCount", IntegerOf()),
    FieldSpec("subWorkflowParam", ObjectOf(SUB_WORKFLOW)),
    FieldSpec("taskDefinition", ObjectOf(TASK_DEFINITION)),
    FieldSpec("onStateChange", MapOf(ListOf(ObjectOf(STATE_CHANGE))), dict),
    FieldSpec("cacheConfig", ObjectOf(CACHE)),
    FieldSpec("joinMode", ChoiceOf("SYNC", "ASYNC")),
)

RATE_LIMIT: FieldTable = (
    FieldSpec("rateLimitKey", read_text),
    FieldSpec("concurrentExecLimit", IntegerOf(), 0),
    FieldSpec("policy", ChoiceOf("QUEUE", "REJECT"), "QUEUE"),
)

WORKFLOW_DEFINITION: FieldTable = (
    *AUDIT,
    FieldSpec("name", read_name),
    FieldSpec("description", read_text),
    FieldSpec("version", IntegerOf(), 1),
    FieldSpec("tasks", STEPS, list),
    FieldSpec("inputParameters", texts, list),
    FieldSpec("outputParameters", read_mapping, dict),
    FieldSpec("variables", read_mapping, dict),
    FieldSpec("inputTemplate", read_mapping, dict),
    FieldSpec("metadata", read_mapping, dict),
    FieldSpec("failureWorkflow", read_name),
    FieldSpec("failureWorkflowVersion", IntegerOf()),
    FieldSpec("schemaVersion", IntegerOf(), 2),
    FieldSpec("restartable", read_boolean, True),
    FieldSpec("workflowStatusListenerEnabled", read_boolean, False),
    FieldSpec("workflowStatusListenerSink", read_text),
    FieldSpec("ownerEmail", read_name),
    FieldSpec("timeoutPolicy", ChoiceOf("TIME_OUT_WF", "ALERT_ONLY"), "ALERT_ONLY"),
    FieldSpec("timeoutSeconds", seconds, 0),
    FieldSpec("rateLimitConfig", ObjectOf(RATE_LIMIT)),
    FieldSpec("inputSchema", ObjectOf(SCHEMA)),
    FieldSpec("outputSchema", ObjectOf(SCHEMA)),
    FieldSpec("enforceSchema", read_boolean, True),
    FieldSpec("cacheConfig", ObjectOf(CACHE)),
    FieldSpec("maskedFields", texts, list),
)
