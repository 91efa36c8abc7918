"""Payloads that clients keep outside their requests (api §1.2): where to, and what is there."""

from urllib.parse import quote, urlencode

from django.http import HttpResponse, StreamingHttpResponse

from .... import blob_storage, conf
from ....access.signed_links import sign_link, verify_link
from ....core.document.checks.values import read_mapping
from ....core.errors import Invalid
from ....engine.payloads import payload_storage
from ..api_operation import EMPTY_REPLY, LINK_QUERY, ApiOperation
from ..openapi import tables as shapes
from ..permission_rules import ALLOW_ALL
from ..replies import EmptyOk, Json
from ..uploads import receive_body
from ..view import ConductorRequest, ConductorView

PATH_BY_PAYLOAD_TYPE = {
    "WORKFLOW_INPUT": "workflow/input",
    "WORKFLOW_OUTPUT": "workflow/output",
    "TASK_INPUT": "task/input",
    "TASK_OUTPUT": "task/output",
}
METHOD_BY_OPERATION = {"READ": "GET", "WRITE": "PUT"}


class PayloadLocation(ConductorView):
    """GET /api/workflow/externalstoragelocation, and three more: where a payload is to be sent, or fetched from.

    The address is good for a while and carries its own permission; to write, the path in the reply is a new one.
    """

    operations = {
        # A path that nobody else is told is the key to what is kept there.
        "get": ApiOperation(
            "Get the address to upload or download a payload",
            permission=ALLOW_ALL,
            reply=shapes.LOCATION,
            query={"path!": str, "operation!": str, "payloadType!": str},
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        query = request.query
        path, operation = (
            query.required("path"),
            parse_choice("operation", query.required("operation"), METHOD_BY_OPERATION),
        )
        kind = parse_choice("payloadType", query.required("payloadType"), PATH_BY_PAYLOAD_TYPE)
        if not blob_storage.is_storage_configured():
            return Json({"path": path})
        if operation == "WRITE":
            path = payload_storage.reserve_path(PATH_BY_PAYLOAD_TYPE[kind])
        address = f"/api/payloads/{quote(path)}?{urlencode(sign_link(path, operation))}"
        return Json({"uri": request.build_absolute_uri(address), "path": path})


class PayloadContent(ConductorView):
    """PUT, GET /api/payloads/{path}: the bytes of a payload, at an address that was handed out for this."""

    operations = {
        "put": ApiOperation("Upload a payload", reply=EMPTY_REPLY, body=read_mapping, query=LINK_QUERY),
        "get": ApiOperation("Download a payload", reply=read_mapping, query=LINK_QUERY),
    }

    needs_login = False

    def put(self, request: ConductorRequest, path: str) -> HttpResponse:
        verify_address(request, path, "WRITE")
        with receive_body(request, conf.workflow_payload_max_bytes) as upload:
            if not upload.size:
                raise Invalid("The upload is empty, or its Content-Length is missing.")
            payload_storage.store_reserved(path, upload)
        return EmptyOk()

    def get(self, request: ConductorRequest, path: str) -> HttpResponse:
        verify_address(request, path, "READ")
        size, chunks = payload_storage.stream_payload(path)
        headers = {"Content-Length": str(size), "Cache-Control": "private, max-age=0"}
        return StreamingHttpResponse(chunks, content_type="application/json", headers=headers)


def parse_choice(name: str, choice: str, choices: dict[str, str]) -> str:
    """One of a few words, in any case; raises Invalid."""
    if choice.upper() not in choices:
        raise Invalid(f"{name} must be one of {', '.join(choices)}; it is '{choice[:100]}'.")
    return choice.upper()


def verify_address(request: ConductorRequest, path: str, operation: str) -> None:
    """Raise Forbidden unless the address was handed out for this."""
    verify_link(path, operation, {name: request.query.text(name) for name in ("expires", "signature")})
