"""Validation of task definitions (api §3.2)."""

from typing import Any

from ...errors import ValidationError
from .normalization import normalize_task
from .values import DocumentPosition

MINIMUMS = {
    "retryCount": (0, "TaskDef retryCount: 0 must be >= 0"),
    "responseTimeoutSeconds": (1, "TaskDef responseTimeoutSeconds: {value} should be minimum 1 second"),
    "pollTimeoutSeconds": (0, "must be greater than or equal to 0"),
    "backoffScaleFactor": (1, "must be greater than or equal to 1"),
    "maxRetryDelaySeconds": (0, "must be greater than or equal to 0"),
    "backoffJitterMs": (0, "must be greater than or equal to 0"),
    "totalTimeoutSeconds": (0, "must be greater than or equal to 0"),
}
"""The minimum of each number, and the error message below it."""


def task_errors(document: Any, *, owner_email_mandatory: bool = False) -> list[ValidationError]:
    """Return all validation errors of a task definition."""
    place = DocumentPosition()
    read = normalize_task(document, place)
    if not isinstance(document, dict):
        return place.validation_errors
    if not read.get("name"):
        place.at("name").add_missing("TaskDef name cannot be null or empty", document.get("name"))
    if owner_email_mandatory and not read.get("ownerEmail"):
        place.at("ownerEmail").add_error("ownerEmail cannot be empty")
    _check_policy(read, place)
    return place.validation_errors


def _check_policy(read: dict[str, Any], place: DocumentPosition) -> None:
    """Check the numbers of a policy, each alone and in pairs."""
    for name, (least, message) in MINIMUMS.items():
        value = read.get(name)
        if value is not None and value < least:
            place.at(name).add_error(message.format(value=value), value)
    name, timeout = read.get("name", ""), read["timeoutSeconds"]
    response, total = read["responseTimeoutSeconds"], read["totalTimeoutSeconds"]
    if timeout > 0 and response > timeout:
        place.add_error(
            f"TaskDef: {name} responseTimeoutSeconds: {response} must be less than timeoutSeconds: {timeout}"
        )
    if 0 < total < timeout:
        place.add_error(
            f"TaskDef: {name} timeoutSeconds: {timeout} must be less than or equal to totalTimeoutSeconds: {total}"
        )
