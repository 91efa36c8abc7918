"""Replies to requests that no view receives, in the error format of the API that they address."""

import json
import re
import socket
from datetime import UTC, datetime
from typing import Any

TASKCLUSTER_PATH = re.compile(r"/+api/+(queue|object|artifacts|auth)/v1(/|$)")
CONDUCTOR_PATH = re.compile(r"/+(api|webhook)(/|$)")
TASKCLUSTER_CODES = {413: "InputTooLarge", 404: "ResourceNotFound", 403: "InsufficientScopes"}
HOST_NAME = socket.gethostname()


def refusal(target: str, status: int, message: str) -> tuple[str, bytes]:
    """Return the content type and the body of a refusal. It is plain text unless the target is an address of an API."""
    path = target.partition("?")[0]
    if TASKCLUSTER_PATH.match(path):
        code = TASKCLUSTER_CODES.get(status, "InputError" if status < 500 else "InternalServerError")
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        document = taskcluster_error(code, status, message, time)
    elif CONDUCTOR_PATH.match(path):
        document = {"status": status, "message": message, "instance": HOST_NAME, "retryable": status == 503}
    else:
        return "text/plain; charset=utf-8", f"{message}\n".encode()
    return "application/json", json.dumps(document).encode()


def taskcluster_error(
    code: str, status: int, message: str, time: str, method: str = "", params: Any = None, payload: Any = None
) -> dict[str, Any]:
    """Return an error in Taskcluster's format (taskcluster §1.1). `method`: empty if no method received the request."""
    bullets = f"* errorCode:  {code}\n* statusCode: {status}\n* time:       {time}"
    if method:
        bullets = f"* method:     {method}\n{bullets}"
    return {
        "code": code,
        "message": f"{message}\n\n---\n\n{bullets}",
        "requestInfo": {"method": method, "params": dict(params or {}), "payload": payload, "time": time},
    }
