"""The fields of definitions (api §3.2-3.4): their types, defaults and conversions.

Numbers are read from text and text from numbers, and nothing more. A field with a default is always present, others
only if they have a value; unknown fields are kept.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ..definition import DEFAULT_TYPE, MAX_DEPTH, STEP_STRUCTURES, structure_of
from ..errors import ValidationError
from ..primitives import JsonValue

WHOLE_NUMBER = re.compile(r"\s*[+-]?\d{1,20}\s*")
MAX_SECONDS = 10**12
"""The maximum of durations in seconds, 31,688 years: any of them can be added to a time without exceeding 64 bits."""


class ValueRefused(Exception):
    """The value cannot be converted. The message states the expected value."""


class DocumentPosition:
    """The position in a document, and the validation errors so far."""

    __slots__ = ("depth", "fills", "path", "refused", "validation_errors")

    def __init__(
        self, path: str = "", *, depth: int = 0, fills: bool = True, like: "DocumentPosition | None" = None
    ) -> None:
        """`fills`: defaults are filled in and invalid values omitted; otherwise both stay as they are."""
        self.path, self.depth = path, depth
        self.fills: bool = like.fills if like else fills
        self.validation_errors: list[ValidationError] = like.validation_errors if like else []
        self.refused: set[str] = like.refused if like else set()

    def at(self, step: str) -> "DocumentPosition":
        dot = "." if self.path and not step.startswith("[") else ""
        return DocumentPosition(f"{self.path}{dot}{step}", depth=self.depth, like=self)

    def nested(self) -> "DocumentPosition":
        """Return the same position, one level of nested steps deeper."""
        return DocumentPosition(self.path, depth=self.depth + 1, like=self)

    def add_error(self, message: str, value: Any = None) -> None:
        self.validation_errors.append(ValidationError(self.path, message, value))

    def add_missing(self, message: str, value: JsonValue = None) -> None:
        """Report a missing value, unless the existing one was reported already."""
        if self.path not in self.refused:
            self.add_error(message, value)


Reader = Callable[[Any, DocumentPosition], Any]
"""Gives the value as its type; raises Refused, or complains of its parts and leaves them out."""


def read_text(value: JsonValue, place: DocumentPosition) -> str:
    if isinstance(value, str):
        # PostgreSQL keeps no NUL in text.
        return value.replace("\0", "") if "\0" in value else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise ValueRefused("must be text")


def read_name(value: JsonValue, place: DocumentPosition, most: int = 255) -> str:
    read = read_text(value, place)
    if len(read) > most:
        raise ValueRefused(f"must have at most {most} characters")
    return read


def read_queue_part(value: JsonValue, place: DocumentPosition) -> str:
    """Return a part of a queue's name other than the task type."""
    return read_name(value, place, 128)


def read_boolean(value: JsonValue, place: DocumentPosition) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value != 0
    if isinstance(value, str) and value.strip().lower() in ("true", "false", ""):
        return value.strip().lower() == "true"
    raise ValueRefused("must be true or false")


def read_number(value: JsonValue, place: DocumentPosition) -> float:
    """Return a number as it is, or that of a text."""
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueRefused("must be a number")
    return number


LEAST_WEIGHT, MOST_WEIGHT = 0.001, 1000.0
"""The limits of fairness weights."""


def read_weight(value: JsonValue, place: DocumentPosition) -> float:
    """Return the weight of a fairness key."""
    number = read_number(value, place)
    if not LEAST_WEIGHT <= number <= MOST_WEIGHT:
        raise ValueRefused(f"must be a number from {LEAST_WEIGHT} to {MOST_WEIGHT:g}")
    return number


def read_weight_or_expression(value: JsonValue, place: DocumentPosition) -> float | str:
    """Return the weight of a fairness key, or the expression that gives one."""
    return value if isinstance(value, str) and "${" in value else read_weight(value, place)


class IntegerOf:
    """Reader of integers with a number of bits. Fractions are truncated."""

    def __init__(self, bits: int = 32) -> None:
        self.bits, self.least, self.most = bits, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def __call__(self, value: JsonValue, place: DocumentPosition) -> int:
        number = _number(value)
        if not self.least <= number <= self.most:
            raise ValueRefused(f"must be a whole number up to {self.most}")
        return number


def _number(value: JsonValue) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return int(value)
    if isinstance(value, str) and not value.strip():
        return 0
    if isinstance(value, str) and value.isascii() and WHOLE_NUMBER.fullmatch(value):
        return int(value)
    raise ValueRefused("must be a whole number")


class ChoiceOf:
    """Reads one of a few words."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __call__(self, value: JsonValue, place: DocumentPosition) -> str:
        if value not in self.names:
            raise ValueRefused(f"must be one of {', '.join(self.names)}")
        return value


def read_any(value: JsonValue, place: DocumentPosition) -> Any:
    return value


def read_mapping(value: JsonValue, place: DocumentPosition) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueRefused("must be an object")
    return value


class ListOf:
    """Reader of lists. An invalid item is reported and becomes None."""

    def __init__(self, item: Reader) -> None:
        self.item = item

    def __call__(self, value: JsonValue, place: DocumentPosition) -> list[Any]:
        if not isinstance(value, list):
            raise ValueRefused("must be a list")
        return [_read_item(place.at(f"[{index}]"), self.item, each) for index, each in enumerate(value)]


class OrNull:
    """Reads null, or what another reader reads."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def __call__(self, value: JsonValue, place: DocumentPosition) -> Any:
        return None if value is None else self.reader(value, place)


class MapOf:
    """Reads an object whose values all have one type."""

    def __init__(self, item: Reader) -> None:
        self.item = item

    def __call__(self, value: JsonValue, place: DocumentPosition) -> dict[str, Any]:
        return {
            key: _read_item(place.at(f"[{key}]"), self.item, each) for key, each in read_mapping(value, place).items()
        }


def _read_item(place: DocumentPosition, reader: Reader, value: JsonValue) -> Any:
    if value is None:
        _refuse(place, "must not be null", value)
    return read_at(place, reader, value)


def read_at(place: DocumentPosition, reader: Reader, value: JsonValue) -> Any:
    """Return the converted value; None if it is absent or invalid, which is reported."""
    if value is None:
        return None
    try:
        return reader(value, place)
    except ValueRefused as refused:
        _refuse(place, str(refused), value)
        return None if place.fills else value


def _refuse(place: DocumentPosition, problem: str, value: JsonValue) -> None:
    place.add_error(f"{place.path.rpartition('.')[2] or 'The document'} {problem}", value)
    place.refused.add(place.path)


class _Seconds(IntegerOf):
    """Reader of durations. Definitions that say "never" have numbers such as 2^53 - 1, which count as the maximum."""

    def __call__(self, value: JsonValue, place: DocumentPosition) -> int:
        return max(-MAX_SECONDS, min(super().__call__(value, place), MAX_SECONDS))


seconds = _Seconds(64)
texts = ListOf(read_text)


class FieldSpec(NamedTuple):
    """A field. `default`: a value, or `dict` or `list` for an empty one; None for no default."""

    name: str
    read: Reader
    default: Any = None


FieldTable = Iterable[FieldSpec]


def fields_of_type(reader: Reader, *names: str) -> tuple[FieldSpec, ...]:
    """Return fields without defaults that are read alike."""
    return tuple(FieldSpec(name, reader) for name in names)


class NamedTable(tuple[FieldSpec, ...]):
    """A table with its name in the OpenAPI document."""

    name: str

    def __new__(cls, name: str, *fields: FieldSpec) -> "NamedTable":
        table = super().__new__(cls, fields)
        table.name = name
        return table


def read_document(document: dict[str, Any], table: FieldTable, place: DocumentPosition) -> dict[str, Any]:
    """Return the document with every field of the table converted or set to its default. Other fields are kept."""
    if not place.fills:
        return document | {
            name: read_at(place.at(name), read, document[name]) for name, read, _ in table if name in document
        }
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


class ObjectOf:
    """Reads an object with the fields of a table."""

    def __init__(self, table: FieldTable) -> None:
        self.table = table

    def __call__(self, value: JsonValue, place: DocumentPosition) -> dict[str, Any]:
        return read_document(read_mapping(value, place), self.table, place)


def read_step(value: JsonValue, place: DocumentPosition) -> dict[str, Any]:
    """Return a step with its nested steps. `workflowTaskType` is another name of `type`."""
    if place.depth > MAX_DEPTH:
        raise ValueRefused(f"is nested more than {MAX_DEPTH} levels deep")
    given = dict(read_mapping(value, place))
    spelled = given.pop("workflowTaskType", None)
    if spelled is not None:
        given.setdefault("type", spelled)
    given_type = given.get("type")
    own = structure_of(given_type).fields if isinstance(given_type, str) else ()
    return read_document(given, (*WORKFLOW_TASK, *own), place.nested())


def read_sub_workflow(value: JsonValue, place: DocumentPosition) -> Any:
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

SCHEMA = NamedTable(
    "SchemaDef",
    *AUDIT,
    FieldSpec("name", read_text),
    FieldSpec("version", IntegerOf(), 1),
    FieldSpec("type", ChoiceOf("JSON", "AVRO", "PROTOBUF")),
    FieldSpec("data", read_mapping),
    FieldSpec("externalRef", read_text),
)

CACHE = NamedTable("CacheConfig", FieldSpec("key", read_text), FieldSpec("ttlInSecond", IntegerOf(), 0))

TASK_DEFINITION = NamedTable(
    "TaskDef",
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

SUB_WORKFLOW = NamedTable(
    "SubWorkflowParams",
    FieldSpec("name", read_text),
    FieldSpec("version", IntegerOf()),
    FieldSpec("taskToDomain", MapOf(read_text)),
    FieldSpec("workflowDefinition", read_sub_workflow),
    FieldSpec("idempotencyKey", read_text),
    FieldSpec("idempotencyStrategy", read_text),
    FieldSpec("priority", read_any),
)

STATE_CHANGE = NamedTable("StateChangeEvent", FieldSpec("type", read_text), FieldSpec("payload", read_mapping))

STEPS: Reader = ListOf(read_step)

FAIRNESS: FieldTable = (FieldSpec("fairnessKey", read_name), FieldSpec("fairnessWeight", read_weight_or_expression))

WORKFLOW_TASK: FieldTable = (
    FieldSpec("name", read_name),
    FieldSpec("taskReferenceName", read_name),
    *fields_of_type(read_text, "description", "dynamicTaskNameParam", "caseValueParam", "caseExpression"),
    *fields_of_type(read_text, "scriptExpression", "dynamicForkJoinTasksParam", "dynamicForkTasksParam"),
    *fields_of_type(read_text, "dynamicForkTasksInputParamName", "sink", "loopCondition", "items", "evaluatorType"),
    *fields_of_type(read_text, "expression", "joinStatus"),
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
    *FAIRNESS,
)


class _StepFields:
    """The fields of steps of all types that are registered when it is read."""

    name = "WorkflowTask"

    def __iter__(self) -> Iterator[FieldSpec]:
        yield from WORKFLOW_TASK
        for structure in STEP_STRUCTURES.values():
            yield from structure.fields


STEP_FIELDS: FieldTable = _StepFields()
RATE_LIMIT = NamedTable(
    "RateLimitConfig",
    FieldSpec("rateLimitKey", read_text),
    FieldSpec("concurrentExecLimit", IntegerOf(), 0),
    FieldSpec("policy", ChoiceOf("QUEUE", "REJECT"), "QUEUE"),
)

WORKFLOW_DEFINITION = NamedTable(
    "WorkflowDef",
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
    *FAIRNESS,
)


def normalize_workflow(document: JsonValue, place: DocumentPosition | None = None) -> dict[str, Any]:
    """Return a normalized workflow definition. Invalid values are omitted and reported at `place`."""
    return _normalize(ObjectOf(WORKFLOW_DEFINITION), document, place)


def normalize_task(document: JsonValue, place: DocumentPosition | None = None) -> dict[str, Any]:
    """Return a normalized task definition. Invalid values are omitted and reported at `place`."""
    return _normalize(ObjectOf(TASK_DEFINITION), document, place)


def coerce_workflow(document: JsonValue) -> Any:
    """Return a workflow definition without defaults and with known fields converted. Invalid values stay."""
    return read_at(DocumentPosition(fills=False), ObjectOf(WORKFLOW_DEFINITION), document)


def coerce_task(document: JsonValue) -> Any:
    """Return a task definition without defaults and with known fields converted. Invalid values stay."""
    return read_at(DocumentPosition(fills=False), ObjectOf(TASK_DEFINITION), document)


def coerce_step(document: JsonValue) -> tuple[Any, list[ValidationError]]:
    """Return a dynamically created step with known fields converted, and its validation errors."""
    place = DocumentPosition(fills=False)
    return read_at(place, read_step, document), place.validation_errors


def normalize_step(document: JsonValue) -> dict[str, Any]:
    return _normalize(read_step, document, None)


def _normalize(reader: Reader, document: JsonValue, place: DocumentPosition | None) -> dict[str, Any]:
    place = place or DocumentPosition()
    read = read_at(place, reader, document)
    if document is None:
        place.add_error("The document must be an object")
    return read if isinstance(read, dict) else {}


MAX_NAME_LENGTH = 255


def read_schema(document: dict[str, Any]) -> tuple[dict[str, Any], list[ValidationError]]:
    """Return the schema with converted fields, and the validation errors except those of the JSON schema itself."""
    place = DocumentPosition()
    read = read_document(document, SCHEMA, place)
    name = read.get("name") or ""
    if not name.strip():
        place.at("name").add_missing("Schema name cannot be null or empty", document.get("name"))
    elif len(name) > MAX_NAME_LENGTH:
        place.at("name").add_error(f"must have at most {MAX_NAME_LENGTH} characters", name)
    if not read.get("type"):
        place.at("type").add_missing("Schema type cannot be null: JSON, AVRO or PROTOBUF")
    if read["version"] < 1:
        place.at("version").add_error("must be greater than or equal to 1", read["version"])
    return read, place.validation_errors
