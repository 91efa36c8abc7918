"""JSON schemas of request bodies, one per method (taskcluster §1.4, §1.5)."""

from functools import cache
from itertools import islice
from typing import Any

import jsonschema_rs

from ...core.primitives import JsonValue
from ...utils.json_values import schema_message
from ..core.snapshot import EXCEPTIONS
from ..queries import PRIORITIES

SLUGID_PATTERN = r"^[A-Za-z0-9_-]{8}[Q-T][A-Za-z0-9_-][CGKOSWaeimquy26-][A-Za-z0-9_-]{10}[AQgw]$"
"""A UUID of version 4 in URL-safe base64, as Taskcluster names tasks and groups."""
MAX_ERRORS = 20
MAX_TARGET_LENGTH = 65_536

Schema = dict[str, Any]


def _object_schema(properties: Schema, required: tuple[str, ...] = ()) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _text_schema(max_length: int, min_length: int = 0, **keywords: Any) -> Schema:
    return {"type": "string", "minLength": min_length, "maxLength": max_length, **keywords}


def _array_schema(items: Schema, **keywords: Any) -> Schema:
    return {"type": "array", "items": items, **keywords}


SLUG = {"type": "string", "pattern": SLUGID_PATTERN}
NAME = _text_schema(38, 1, pattern="^([a-zA-Z0-9-_]*)$")
TIMESTAMP = {"type": "string", "format": "date-time"}
PRIORITY = {"type": "string", "enum": list(PRIORITIES)}
QUEUE = {"type": "string", "pattern": "^[a-zA-Z0-9-_]{1,38}/[a-z]([-a-z0-9]{0,36}[a-z0-9])?$"}
METADATA = _object_schema(
    {
        "name": _text_schema(255),
        "description": _text_schema(32768),
        "owner": _text_schema(255),
        "source": _text_schema(4096, pattern="^(https?://|ssh://|git@)"),
    },
    ("name", "description", "owner", "source"),
)
TASK = _object_schema(
    {
        "provisionerId": _text_schema(38, 1, pattern="^[a-zA-Z0-9-_]{1,38}$"),
        "workerType": _text_schema(38, 1, pattern="^[a-z]([-a-z0-9]{0,36}[a-z0-9])?$"),
        "taskQueueId": QUEUE,
        "schedulerId": {**NAME, "default": "-"},
        "projectId": _text_schema(500, 1, pattern="^([a-zA-Z0-9._/-]*)$", default="none"),
        "taskGroupId": SLUG,
        "dependencies": _array_schema(SLUG, maxItems=10_000, uniqueItems=True, default=[]),
        "requires": {"type": "string", "enum": ["all-completed", "all-resolved"], "default": "all-completed"},
        "routes": _array_schema(_text_schema(249, 1), maxItems=64, uniqueItems=True, default=[]),
        "priority": {**PRIORITY, "default": "lowest"},
        "retries": {"type": "integer", "minimum": 0, "maximum": 49, "default": 5},
        "created": TIMESTAMP,
        "deadline": TIMESTAMP,
        "expires": TIMESTAMP,
        "scopes": _array_schema({"type": "string", "pattern": "^[\x20-\x7e]*$"}, default=[]),
        "payload": {"type": "object"},
        "metadata": METADATA,
        "tags": {"type": "object", "additionalProperties": _text_schema(4096), "default": {}},
        "extra": {"type": "object", "default": {}},
    },
    ("created", "deadline", "payload", "metadata"),
)
TASK_IDS = _object_schema({"taskIds": _array_schema({"type": "string"}, default=[])})
WORKER = {"workerGroup": NAME, "workerId": NAME}
SCOPES = _array_schema({"type": "string", "pattern": "^[\x20-\x7e]*$"})
CLIENT = _object_schema(
    {
        "expires": TIMESTAMP,
        "description": _text_schema(10_240),
        "scopes": SCOPES,
        "deleteOnExpiration": {"type": "boolean", "default": False},
    },
    ("expires", "description"),
)
ROLE = _object_schema({"description": _text_schema(10_240), "scopes": SCOPES}, ("description", "scopes"))
REASONS = (
    "file-missing-on-worker",
    "invalid-resource-on-worker",
    "too-large-file-on-worker",
    "file-not-readable-on-worker",
)
NEW_PRIORITY = _object_schema({"newPriority": PRIORITY}, ("newPriority",))

CONTENT_TYPE = _text_schema(255, pattern="^[\x20-\x7e]*$")
FILE_PROPERTIES: Schema = {
    "contentType": CONTENT_TYPE,
    "contentLength": {"type": "integer", "minimum": 0, "maximum": 2**53},
}
PROPERTIES_BY_ARTIFACT_TYPE: dict[str, tuple[Schema, tuple[str, ...]]] = {
    "s3": (FILE_PROPERTIES, ("contentType",)),
    "object": (FILE_PROPERTIES, ("contentType",)),
    "reference": (
        {"url": _text_schema(8192, pattern="^[a-zA-Z][a-zA-Z0-9+.-]*:[\x21-\x7e]+$"), "contentType": CONTENT_TYPE},
        ("url", "contentType"),
    ),
    "link": ({"artifact": _text_schema(1024, 1, pattern="^[\x20-\x7e]+$"), "contentType": CONTENT_TYPE}, ("artifact",)),
    "error": (
        {"reason": {"type": "string", "enum": list(REASONS)}, "message": _text_schema(4096)},
        ("reason", "message"),
    ),
}
"""The members of each type of artifact, besides its type and expiry."""


def _artifact_schema() -> Schema:
    """Return the schema of an artifact, whose type determines its other members."""
    common: Schema = {
        "storageType": {"type": "string", "enum": list(PROPERTIES_BY_ARTIFACT_TYPE)},
        "expires": TIMESTAMP,
    }
    each = [
        {
            "if": {"properties": {"storageType": {"const": kind}}},
            "then": _object_schema({**common, **properties}, required),
        }
        for kind, (properties, required) in PROPERTIES_BY_ARTIFACT_TYPE.items()
    ]
    return {"type": "object", "properties": common, "required": ["storageType", "expires"], "allOf": each}


HASHES = {"type": "object", "additionalProperties": _text_schema(128, pattern="^[0-9a-fA-F]*$"), "maxProperties": 10}
UPLOAD: Schema = {"projectId": _text_schema(500, 1), "uploadId": SLUG, "hashes": HASHES}
MAX_INLINE_LENGTH = 10_926
"""Characters of base64: content of 8 kB may come with its announcement."""

SCHEMAS: dict[str, Schema] = {
    "createTask": TASK,
    "tasks": TASK_IDS,
    "statuses": TASK_IDS,
    "changeTaskPriority": NEW_PRIORITY,
    "changeTaskGroupPriority": NEW_PRIORITY,
    "claimWork": _object_schema(
        {**WORKER, "tasks": {"type": "integer", "minimum": 1, "maximum": 32, "default": 1}},
        ("workerGroup", "workerId"),
    ),
    "claimTask": _object_schema(WORKER, ("workerGroup", "workerId")),
    "reportException": _object_schema({"reason": {"type": "string", "enum": list(EXCEPTIONS)}}, ("reason",)),
    "taskQueueCountsBatch": _object_schema(
        {"taskQueueIds": _array_schema(QUEUE, maxItems=1000, uniqueItems=True)}, ("taskQueueIds",)
    ),
    "quarantineWorker": _object_schema(
        {"quarantineUntil": TIMESTAMP, "quarantineInfo": _text_schema(4000)}, ("quarantineUntil",)
    ),
    "declareWorker": _object_schema({"expires": TIMESTAMP}, ("expires",)),
    "createArtifact": _artifact_schema(),
    "finishArtifact": _object_schema({"uploadId": SLUG}, ("uploadId",)),
    "createUpload": _object_schema(
        {
            **UPLOAD,
            "expires": TIMESTAMP,
            "proposedUploadMethods": _object_schema(
                {
                    "dataInline": _object_schema(
                        {"contentType": CONTENT_TYPE, "objectData": _text_schema(MAX_INLINE_LENGTH)},
                        ("contentType", "objectData"),
                    ),
                    "putUrl": _object_schema(FILE_PROPERTIES, ("contentType", "contentLength")),
                }
            ),
        },
        ("projectId", "uploadId", "expires", "proposedUploadMethods"),
    ),
    "finishUpload": _object_schema(UPLOAD, ("projectId", "uploadId")),
    "startDownload": _object_schema(
        {"acceptDownloadMethods": _object_schema({"getUrl": {"const": True}, "simple": {"const": True}})},
        ("acceptDownloadMethods",),
    ),
    "createClient": CLIENT,
    "updateClient": CLIENT,
    "createRole": ROLE,
    "updateRole": ROLE,
    "expandScopes": _object_schema({"scopes": SCOPES}, ("scopes",)),
    "authenticateHawk": _object_schema(
        {
            "method": _text_schema(20),
            "resource": _text_schema(MAX_TARGET_LENGTH),
            "host": _text_schema(255),
            "port": {"type": "integer", "minimum": 0, "maximum": 65_535},
            "authorization": _text_schema(MAX_TARGET_LENGTH),
            "sourceIp": _text_schema(100),
        },
        ("method", "resource", "host", "port"),
    ),
}


def schema_errors(method: str, value: JsonValue) -> list[str]:
    """Return all schema errors of a method's body. The errors do not contain values of the body."""
    return [
        f"data{_format_path(e.instance_path)}: {schema_message(e)[:300]}"
        for e in islice(_validator(method).iter_errors(value), MAX_ERRORS)
    ]


@cache
def _validator(method: str) -> Any:
    return jsonschema_rs.Draft7Validator(SCHEMAS[method], validate_formats=True, mask="the value")


def _format_path(path: list[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)[:300]
