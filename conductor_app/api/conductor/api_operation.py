"""Describe an operation of the API: its summary, permission, request and response.

A view declares the operations of its methods; authorization and the OpenAPI document read them there.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ...core.document.checks.document_fields import FieldTable
from ...core.document.checks.values import Reader
from ...engine.access.token_buckets import Rate
from .permission_rules import ADMINISTRATORS_ONLY, PermissionRule


class ArrayOf(NamedTuple):
    """A list of documents with these fields."""

    table: FieldTable


class ArraysByKey(NamedTuple):
    """An object whose values are lists of documents with these fields."""

    table: FieldTable


PLAIN_TEXT, BINARY, EMPTY_REPLY, NO_CONTENT = "bare text", "bytes", "an empty reply", "204"
Shape = FieldTable | ArrayOf | ArraysByKey | Reader | str


class ApiOperation(NamedTuple):
    """One method of one address.

    `permission`: what the caller needs; administrators only unless it is declared. `reply`, `body`: the shape of the
    response and of the request; an operation without a reply is not published in the OpenAPI document.
    `query`: parameters with their types, required ones with an exclamation mark. `changes_state`: a GET that changes
    something; a browser session may send it only with a CSRF token. `rate`: the quota of callers that it counts for.
    `reports_findings`: a header of the reply has the findings on the document that was sent.
    `empty_when`: when the reply has status 200 and neither a body nor a type, as the original's.
    """

    summary: str
    permission: PermissionRule = ADMINISTRATORS_ONLY
    reply: Shape | None = None
    body: Shape | None = None
    query: Mapping[str, type] = {}
    can_be_empty: bool = False
    empty_when: str = ""
    status: int = 200
    changes_state: bool = False
    rate: Rate | None = None
    reports_findings: bool = False


POLL_QUERY = {"workerid": str, "domain": str}
WAIT_QUERY = {
    "requestId": str,
    "waitUntilTaskRef": str,
    "waitForSeconds": int,
    "consistency": str,
    "returnStrategy": str,
}
INCLUDE_QUERY = {"includeClosed": bool, "includeTasks": bool}
TASK_TYPE_QUERY = {"taskType!": str}
QUEUE_QUERY = {"domain": str, "executionNamespace": str, "isolationGroupId": str}
FILE_LINK_QUERY = {"part": str, "op": str, "exp": int, "sig": str}
LINK_QUERY = {"expires!": int, "signature!": str}
VERSION_QUERY = {"version": int}
REASON_QUERY = {"reason": str}
CLAIM_QUERY = {"overrideAssignment": bool, "withTemplate": bool}
COMPLETE_QUERY = {"complete": bool}
REMOVAL_QUERY = {"archiveWorkflow": bool, "cascade": bool}
PAGE_QUERY = {"start": int, "size": int, "sort": str, "freeText": str}
SEARCH_QUERY = {"start": int, "size": int, "sort": str, "freeText": str, "query": str}
RUN_SEARCH_QUERY = SEARCH_QUERY | {"classifier": str, "topLevelOnly": bool, "queryId": str, "skipCache": bool}
