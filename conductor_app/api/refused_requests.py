"""Replies to requests that no view receives, in the error format of the API that they address."""

import json
import re
import socket
from datetime import UTC, datetime

TASKCLUSTER_PATH = re.compile(r"/+api/+(queue|object|artifacts|auth)/v1(/|$)")
CONDUCTOR_PATH = re.compile(r"/+(api|webhook)(/|$)")
TASKCLUSTER_CODES = {413: "InputTooLarge", 404: "ResourceNotFound", 403: "InsufficientScopes"}
HOST_NAME = socket.gethostname()


def refusal(target: str, status: int, message: str) -> tuple[str, bytes]:
    """Return the content type and the body of a refusal. It is plain text unless the target is an address of an API."""
    path = target.partition("?")[0]
    if TASKCLUSTER_PATH.match(path):
        document = _taskcluster_document(status, message)
    elif CONDUCTOR_PATH.match(path):
        document = {"status": status, "message": message, "instance": HOST_NAME, "retryable": status == 503}
    else:
        return "text/plain; charset=utf-8", f"{message}\n".encode()
    return "application/json", json.dumps(document).encode()


def _taskcluster_document(status: int, message: str) -> dict[str, object]:
    code = TASKCLUSTER_CODES.get(status, "InputError" if status < 500 else "InternalServerError")
    time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    bullets = f"* errorCode:  {code}\n* statusCode: {status}\n* time:       {time}"
    return {
        "code": code,
        "message": f"{message}\n\n---\n\n{bullets}",
        "requestInfo": {"method": "", "params": {}, "payload": None, "time": time},
    }
