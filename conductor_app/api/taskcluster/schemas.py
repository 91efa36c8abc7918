"""What the bodies of requests must look like (taskcluster §1.4, §1.5), as JSON schemas: one a method."""

from functools import cache
from itertools import islice
from typing import Any

import jsonschema_rs

from ...core.standalone.resolutions import EXCEPTIONS
from ...insight.standalone import PRIORITIES
from .slugid import SLUGID

MOST_COMPLAINTS = 20
LONGEST_TARGET = 65_536

Schema = dict[str, Any]


def _object(properties: Schema, required: tuple[str, ...] = ()) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _text(longest: int, least: int = 0, **more: Any) -> Schema:
    return {"type": "string", "minLength": least, "maxLength": longest, **more}


def _texts(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


SLUG = {"type": "string", "pattern": SLUGID}
NAME = _text(38, 1, pattern="^([a-zA-Z0-9-_]*)$")
MOMENT = {"type": "string", "format": "date-time"}
PRIORITY = {"type": "string", "enum": list(PRIORITIES)}
QUEUE = {"type": "string", "pattern": "^[a-zA-Z0-9-_]{1,38}/[a-z]([-a-z0-9]{0,36}[a-z0-9])?$"}
METADATA = _object(
    {
        "name": _text(255),
        "description": _text(32768),
        "owner": _text(255),
        "source": _text(4096, pattern="^(https?://|ssh://|git@)"),
    },
    ("name", "description", "owner", "source"),
)
TASK = _object(
    {
        "provisionerId": _text(38, 1, pattern="^[a-zA-Z0-9-_]{1,38}$"),
        "workerType": _text(38, 1, pattern="^[a-z]([-a-z0-9]{0,36}[a-z0-9])?$"),
        "taskQueueId": QUEUE,
        "schedulerId": {**NAME, "default": "-"},
        "projectId": _text(500, 1, pattern="^([a-zA-Z0-9._/-]*)$", default="none"),
        "taskGroupId": SLUG,
        "dependencies": _texts(SLUG, maxItems=10_000, uniqueItems=True, default=[]),
        "requires": {"type": "string", "enum": ["all-completed", "all-resolved"], "default": "all-completed"},
        "routes": _texts(_text(249, 1), maxItems=64, uniqueItems=True, default=[]),
        "priority": {**PRIORITY, "default": "lowest"},
        "retries": {"type": "integer", "minimum": 0, "maximum": 49, "default": 5},
        "created": MOMENT,
        "deadline": MOMENT,
        "expires": MOMENT,
        "scopes": _texts({"type": "string", "pattern": "^[\x20-\x7e]*$"}, default=[]),
        "payload": {"type": "object"},
        "metadata": METADATA,
        "tags": {"type": "object", "additionalProperties": _text(4096), "default": {}},
        "extra": {"type": "object", "default": {}},
    },
    ("created", "deadline", "payload", "metadata"),
)
TASK_IDS = _object({"taskIds": _texts({"type": "string"}, default=[])})
WORKER = {"workerGroup": NAME, "workerId": NAME}
SCOPES = _texts({"type": "string", "pattern": "^[\x20-\x7e]*$"})
CLIENT = _object(
    {
        "expires": MOMENT,
        "description": _text(10_240),
        "scopes": SCOPES,
        "deleteOnExpiration": {"type": "boolean", "default": False},
    },
    ("expires", "description"),
)
ROLE = _object({"description": _text(10_240), "scopes": SCOPES}, ("description", "scopes"))
REASONS = (
    "file-missing-on-worker",
    "invalid-resource-on-worker",
    "too-large-file-on-worker",
    "file-not-readable-on-worker",
)
NEW_PRIORITY = _object({"newPriority": PRIORITY}, ("newPriority",))

CONTENT_TYPE = _text(255, pattern="^[\x20-\x7e]*$")
OF_A_FILE: Schema = {"contentType": CONTENT_TYPE, "contentLength": {"type": "integer", "minimum": 0, "maximum": 2**53}}
ARTIFACTS: dict[str, tuple[Schema, tuple[str, ...]]] = {
    "s3": (OF_A_FILE, ("contentType",)),
    "object": (OF_A_FILE, ("contentType",)),
    "reference": (
        {"url": _text(8192, pattern="^[a-zA-Z][a-zA-Z0-9+.-]*:[\x21-\x7e]+$"), "contentType": CONTENT_TYPE},
        ("url", "contentType"),
    ),
    "link": ({"artifact": _text(1024, 1, pattern="^[\x20-\x7e]+$"), "contentType": CONTENT_TYPE}, ("artifact",)),
    "error": (
        {"reason": {"type": "string", "enum": list(REASONS)}, "message": _text(4096)},
        ("reason", "message"),
    ),
}
"""What each type of artifact has beside its type and its end."""


def _artifact() -> Schema:
    """An artifact: by its type, what else is said of it."""
    common: Schema = {"storageType": {"type": "string", "enum": list(ARTIFACTS)}, "expires": MOMENT}
    each = [
        {
            "if": {"properties": {"storageType": {"const": kind}}},
            "then": _object({**common, **properties}, required),
        }
        for kind, (properties, required) in ARTIFACTS.items()
    ]
    return {"type": "object", "properties": common, "required": ["storageType", "expires"], "allOf": each}


HASHES = {"type": "object", "additionalProperties": _text(128, pattern="^[0-9a-fA-F]*$"), "maxProperties": 10}
UPLOAD: Schema = {"projectId": _text(500, 1), "uploadId": SLUG, "hashes": HASHES}
LONGEST_INLINE = 10_926
"""Characters of base64: content of 8 kB may come with its announcement."""

SCHEMAS: dict[str, Schema] = {
    "createTask": TASK,
    "tasks": TASK_IDS,
    "statuses": TASK_IDS,
    "changeTaskPriority": NEW_PRIORITY,
    "changeTaskGroupPriority": NEW_PRIORITY,
    "claimWork": _object(
        {**WORKER, "tasks": {"type": "integer", "minimum": 1, "maximum": 32, "default": 1}},
        ("workerGroup", "workerId"),
    ),
    "claimTask": _object(WORKER, ("workerGroup", "workerId")),
    "reportException": _object({"reason": {"type": "string", "enum": list(EXCEPTIONS)}}, ("reason",)),
    "taskQueueCountsBatch": _object(
        {"taskQueueIds": _texts(QUEUE, maxItems=1000, uniqueItems=True)}, ("taskQueueIds",)
    ),
    "quarantineWorker": _object({"quarantineUntil": MOMENT, "quarantineInfo": _text(4000)}, ("quarantineUntil",)),
    "declareWorker": _object({"expires": MOMENT}, ("expires",)),
    "createArtifact": _artifact(),
    "finishArtifact": _object({"uploadId": SLUG}, ("uploadId",)),
    "createUpload": _object(
        {
            **UPLOAD,
            "expires": MOMENT,
            "proposedUploadMethods": _object(
                {
                    "dataInline": _object(
                        {"contentType": CONTENT_TYPE, "objectData": _text(LONGEST_INLINE)},
                        ("contentType", "objectData"),
                    ),
                    "putUrl": _object(OF_A_FILE, ("contentType", "contentLength")),
                }
            ),
        },
        ("projectId", "uploadId", "expires", "proposedUploadMethods"),
    ),
    "finishUpload": _object(UPLOAD, ("projectId", "uploadId")),
    "startDownload": _object(
        {"acceptDownloadMethods": _object({"getUrl": {"const": True}, "simple": {"const": True}})},
        ("acceptDownloadMethods",),
    ),
    "createClient": CLIENT,
    "updateClient": CLIENT,
    "createRole": ROLE,
    "updateRole": ROLE,
    "expandScopes": _object({"scopes": SCOPES}, ("scopes",)),
    "authenticateHawk": _object(
        {
            "method": _text(20),
            "resource": _text(LONGEST_TARGET),
            "host": _text(255),
            "port": {"type": "integer", "minimum": 0, "maximum": 65_535},
            "authorization": _text(LONGEST_TARGET),
            "sourceIp": _text(100),
        },
        ("method", "resource", "host", "port"),
    ),
}


def schema_errors(method: str, value: Any) -> list[str]:
    """Everything in which the body of a method is not as it must be; no complaint shows a value."""
    return [
        f"data{_place(e.instance_path)}: {e.message[:300]}" for e in islice(_errors(method, value), MOST_COMPLAINTS)
    ]


def _errors(method: str, value: Any) -> Any:
    return _validator(method).iter_errors(value)


@cache
def _validator(method: str) -> Any:
    return jsonschema_rs.Draft7Validator(SCHEMAS[method], validate_formats=True, mask="the value")


def _place(path: list[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)[:300]
