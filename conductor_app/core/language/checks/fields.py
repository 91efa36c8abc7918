"""The fields of workflow and task definitions, table by table (api §3.2-3.4): name, type, default.

A field with a default is always shown, one without only if it has a value.
"""

from typing import Any, NamedTuple

from .values import (
    Place,
    Reader,
    Refused,
    anything,
    choice,
    flag,
    list_of,
    map_of,
    mapping,
    read_at,
    seconds,
    short_text,
    text,
    texts,
    whole,
)


class Field(NamedTuple):
    """One field. `default`: a value, or `dict` or `list` for an empty one; None where there is no default."""

    name: str
    read: Reader
    default: Any = None


Table = tuple[Field, ...]


def read_document(document: dict[str, Any], table: Table, place: Place) -> dict[str, Any]:
    """The document with every field of the table as its type or as its default; other fields survive as they are."""
    result = {name: value for name, value in document.items() if value is not None}
    for name, reader, default in table:
        value = read_at(place.at(name), reader, result[name]) if name in result else None
        if value is None and default is not None:
            value = default() if isinstance(default, type) else default
        if value is None:
            result.pop(name, None)
        else:
            result[name] = value
    return result


def of(table: Table) -> Reader:
    """An object with the fields of a table."""
    return lambda value, place: read_document(mapping(value, place), table, place)


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
    Field("createTime", whole(64), 0),
    Field("updateTime", whole(64), 0),
    Field("createdBy", text),
    Field("updatedBy", text),
)

SCHEMA: Table = (
    *AUDIT,
    Field("name", text),
    Field("version", whole(), 1),
    Field("type", choice("JSON", "AVRO", "PROTOBUF")),
    Field("data", mapping),
    Field("externalRef", text),
)

CACHE: Table = (Field("key", text), Field("ttlInSecond", whole(), 0))

TASK_DEFINITION: Table = (
    *AUDIT,
    Field("name", short_text),
    Field("description", text),
    Field("retryCount", whole(), 3),
    Field("timeoutSeconds", seconds, 0),
    Field("inputKeys", texts, list),
    Field("outputKeys", texts, list),
    Field("runtimeMetadata", texts, list),
    Field("timeoutPolicy", choice("RETRY", "TIME_OUT_WF", "ALERT_ONLY"), "TIME_OUT_WF"),
    Field("retryLogic", choice("FIXED", "EXPONENTIAL_BACKOFF", "LINEAR_BACKOFF"), "FIXED"),
    Field("retryDelaySeconds", whole(), 60),
    Field("responseTimeoutSeconds", seconds, 3600),
    Field("concurrentExecLimit", whole()),
    Field("inputTemplate", mapping, dict),
    Field("rateLimitPerFrequency", whole(), 0),
    Field("rateLimitFrequencyInSeconds", whole(), 1),
    Field("isolationGroupId", text),
    Field("executionNameSpace", text),
    Field("baseType", text),
    Field("ownerEmail", short_text),
    Field("pollTimeoutSeconds", whole()),
    Field("backoffScaleFactor", whole(), 1),
    Field("maxRetryDelaySeconds", whole(), 0),
    Field("backoffJitterMs", whole(), 0),
    Field("totalTimeoutSeconds", seconds, 0),
    Field("taskStatusListenerEnabled", flag, True),
    Field("inputSchema", of(SCHEMA)),
    Field("outputSchema", of(SCHEMA)),
    Field("enforceSchema", flag, False),
)

SUB_WORKFLOW: Table = (
    Field("name", text),
    Field("version", whole()),
    Field("taskToDomain", map_of(text)),
    Field("workflowDefinition", sub_workflow_document),
    Field("idempotencyKey", text),
    Field("idempotencyStrategy", text),
    Field("priority", anything),
)

STATE_CHANGE: Table = (Field("type", text), Field("payload", mapping))

STEPS: Reader = list_of(a_step)

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
    Field("decisionCases", map_of(STEPS), dict),
    Field("defaultCase", STEPS, list),
    Field("loopOver", STEPS, list),
    Field("forkTasks", list_of(STEPS), list),
    Field("joinOn", texts, list),
    Field("defaultExclusiveJoinTask", texts, list),
    Field("startDelay", whole(), 0),
    Field("optional", flag, False),
    Field("permissive", flag, False),
    Field("asyncComplete", flag, False),
    Field("rateLimited", flag),
    Field("retryCount", whole()),
    Field("subWorkflowParam", of(SUB_WORKFLOW)),
    Field("taskDefinition", of(TASK_DEFINITION)),
    Field("onStateChange", map_of(list_of(of(STATE_CHANGE))), dict),
    Field("cacheConfig", of(CACHE)),
    Field("joinMode", choice("SYNC", "ASYNC")),
)

RATE_LIMIT: Table = (
    Field("rateLimitKey", text),
    Field("concurrentExecLimit", whole(), 0),
    Field("policy", choice("QUEUE", "REJECT"), "QUEUE"),
)

WORKFLOW_DEFINITION: Table = (
    *AUDIT,
    Field("name", short_text),
    Field("description", text),
    Field("version", whole(), 1),
    Field("tasks", STEPS, list),
    Field("inputParameters", texts, list),
    Field("outputParameters", mapping, dict),
    Field("variables", mapping, dict),
    Field("inputTemplate", mapping, dict),
    Field("metadata", mapping, dict),
    Field("failureWorkflow", short_text),
    Field("failureWorkflowVersion", whole()),
    Field("schemaVersion", whole(), 2),
    Field("restartable", flag, True),
    Field("workflowStatusListenerEnabled", flag, False),
    Field("workflowStatusListenerSink", text),
    Field("ownerEmail", short_text),
    Field("timeoutPolicy", choice("TIME_OUT_WF", "ALERT_ONLY"), "ALERT_ONLY"),
    Field("timeoutSeconds", seconds, 0),
    Field("rateLimitConfig", of(RATE_LIMIT)),
    Field("inputSchema", of(SCHEMA)),
    Field("outputSchema", of(SCHEMA)),
    Field("enforceSchema", flag, True),
    Field("cacheConfig", of(CACHE)),
    Field("maskedFields", texts, list),
)
