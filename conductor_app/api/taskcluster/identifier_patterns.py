"""Patterns of identifiers in paths, and the query options of methods (taskcluster §1.2, §1.3)."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl

from .errors import InvalidRequestArguments
from .slugid import SLUGID_PATTERN

QUEUE_PATTERN = r"^[a-zA-Z0-9-_]{1,38}/[a-z]([-a-z0-9]{0,36}[a-z0-9])?$"
NAME_PATTERN = r"^[a-zA-Z0-9-_]{1,38}$"

PATTERN_BY_PARAM = {
    "taskId": SLUGID_PATTERN,
    "taskGroupId": SLUGID_PATTERN,
    "runId": r"^[1-9]*[0-9]+$",
    "taskQueueId": QUEUE_PATTERN,
    "provisionerId": NAME_PATTERN,
    "workerType": NAME_PATTERN,
    "workerGroup": NAME_PATTERN,
    "workerId": NAME_PATTERN,
    "clientId": r"^[A-Za-z0-9!@/:.+|_-]+$",
    "roleId": r"^[\x20-\x7e]+$",
    "objectName": r"^[\x20-\x7e]+$",
    "name": r"^[\x20-\x7e]+$",
}
PATTERN_BY_OPTION = {
    "continuationToken": r"^.*$",
    "limit": r"^[0-9]+$",
    "quarantined": r"^(true|false)$",
    "prefix": r"^[A-Za-z0-9!@/:.+|_-]*$",
}
MAX_LENGTHS = {"name": 1024, "runId": 9}
"""Characters of a part of an address: run numbers are shorter, and databases refuse longer ones."""


def check_params(params: Mapping[str, str]) -> None:
    """Check the path parameters of a request.

    Raises:
        InvalidRequestArguments: when one does not match its pattern.
    """
    for name, value in params.items():
        is_too_long = len(value) > MAX_LENGTHS.get(name, len(value))
        if not matches_fully(PATTERN_BY_PARAM[name], value) or is_too_long:
            raise InvalidRequestArguments(
                f"URL parameter '{name}' given as '{value[:100]}' must match {PATTERN_BY_PARAM[name]}"
            )


def parse_options(query: str, known_options: Iterable[str]) -> dict[str, str]:
    """Return the query options.

    Raises:
        InvalidRequestArguments: when one is unknown or does not match its pattern.
    """
    options = dict(parse_qsl(query, keep_blank_values=True, errors="replace"))
    options.pop("bewit", None)
    for name, value in options.items():
        if name not in known_options:
            raise InvalidRequestArguments(f"Query string option '{name[:100]}' is unknown.")
        if not matches_fully(PATTERN_BY_OPTION[name], value):
            raise InvalidRequestArguments(f"Query string option '{name}' must match {PATTERN_BY_OPTION[name]}")
    return options


def matches_fully(pattern: str, text: str) -> bool:
    """Return True if the pattern matches the complete text; `$` alone would allow a trailing line break."""
    return re.fullmatch(pattern.removesuffix("$"), text) is not None
