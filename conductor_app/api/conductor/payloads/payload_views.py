"""Views of external payloads (api §1.2): their locations and their contents."""

from urllib.parse import quote, urlencode

from django.http import HttpResponse, StreamingHttpResponse

from .... import blob_storage, conf
from ....access.client_address import server_address
from ....access.signed_links import sign_link, verify_link
from ....core.document.checks.values import read_mapping
from ....core.errors import Invalid
from ....engine.payloads import payload_storage
from ..api_operation import EMPTY_REPLY, LINK_QUERY, ApiOperation
from ..openapi import tables as shapes
from ..permissions import can_transfer_payload
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
    """GET /api/workflow/externalstoragelocation, and three more: return the address to upload or download a payload.

    The address expires and carries its own permission. For an upload, the reply has a new path.
    """

    operations = {
        "get": ApiOperation(
            "Get the address to upload or download a payload",
            permission=can_transfer_payload,
            reply=shapes.LOCATION,
            query={"path!": str, "operation!": str, "payloadType!": str},
            changes_state=True,
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
            path = payload_storage.reserve_upload(PATH_BY_PAYLOAD_TYPE[kind])
        address = f"/api/payloads/{quote(path)}?{urlencode(sign_link(path, operation))}"
        return Json({"uri": f"{server_address(request)}{address}", "path": path})


class PayloadContent(ConductorView):
    """PUT, GET /api/payloads/{path}: upload or download a payload at a signed address."""

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
    """Return the choice in upper or lower case as listed.

    Raises:
        Invalid: when it is not one of the choices.
    """
    if choice.upper() not in choices:
        raise Invalid(f"{name} must be one of {', '.join(choices)}; it is '{choice[:100]}'.")
    return choice.upper()


def verify_address(request: ConductorRequest, path: str, operation: str) -> None:
    """Check the signature of an address.

    Raises:
        Forbidden: when the signature is invalid.
    """
    verify_link(path, operation, {name: request.query.text(name) for name in ("expires", "signature")})
