"""Files of runs (api §1.12) and external payloads (api §1.2), at signed addresses or for permitted callers."""

from typing import Any, cast
from urllib.parse import quote, urlencode

from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse

from ..access.authentication import Target, is_allowed, missing_permission_error, server_address
from ..access.permissions import EXECUTE, UPDATE, WORKFLOW, WORKFLOW_DEF, Right
from ..access.tokens import file_address, file_path, sign_link, verify_file_link, verify_link
from ..core.document.fields import FieldSpec, IntegerOf, ListOf, NamedTable, read_mapping, read_name, read_text
from ..core.errors import Invalid
from ..runs.models import Attempt
from ..settings import conf
from ..web.api import permissions as targets
from ..web.api import requests as request_body
from ..web.api.documents import fields_of_type
from ..web.api.operations import BINARY, FILE_LINK_QUERY, LINK_QUERY, NO_CONTENT, ApiOperation, Json, NoContent
from ..web.api.permissions import (
    RUN_CONTROL_RIGHTS,
    RUN_VIEW_RIGHTS,
    WORKER_RIGHTS,
    describe_right,
    targets_of_attempts,
)
from ..web.api.requests import parse_integer, read_request, receive_body
from ..web.api.view import ConductorRequest, ConductorView
from . import commands, files
from .commands import require_payload_read
from .models import FileHandle
from .store import is_storage_configured

SCHEME = "conductor://file/"
NEW_FILE = NamedTable(
    "CreateFileRequest",
    FieldSpec("workflowId", read_text, ""),
    FieldSpec("fileName", read_name, ""),
    FieldSpec("contentType", read_name, "application/octet-stream"),
    FieldSpec("taskId", read_text, ""),
)
PART_TAGS = NamedTable("FilePartTags", FieldSpec("partETags", ListOf(read_text), list))
CREATED_FILE = NamedTable(
    "CreatedFile",
    *fields_of_type(read_text, "fileHandleId", "fileName", "contentType", "storageType", "uploadStatus", "uploadUrl"),
    *fields_of_type(IntegerOf(64), "uploadUrlExpiresAt", "createdAt"),
)
FILE = NamedTable(
    "File",
    *fields_of_type(read_text, "fileHandleId", "fileName", "contentType", "contentHash", "storageType", "uploadStatus",
            "workflowId", "taskId"),
    *fields_of_type(IntegerOf(64), "fileSize", "createdAt", "updatedAt"),
)  # fmt: skip
FILE_ADDRESS = NamedTable(
    "FileAddress",
    *fields_of_type(read_text, "fileHandleId", "uploadUrl", "downloadUrl"),
    FieldSpec("expiresAt", IntegerOf(64)),
)
FINISHED_FILE = NamedTable("FinishedFile", *fields_of_type(read_text, "fileHandleId", "uploadStatus", "contentHash"))
FILE_UPLOAD = NamedTable("FileUpload", *fields_of_type(read_text, "fileHandleId", "uploadId"))
LOCATION = NamedTable("ExternalStorageLocation", *fields_of_type(read_text, "uri", "path"))


def parse_new_file(document: dict[str, Any]) -> tuple[str, str, str, str]:
    """Return run, attempt, name and content type of a new file."""
    fields = read_request(document, NEW_FILE, "createFile.request")
    if not fields["workflowId"]:
        raise Invalid("workflowId is missing: it names the run that the file belongs to.")
    if not (fields["contentType"].isascii() and fields["contentType"].isprintable()):
        raise Invalid("Invalid contentType.")
    return (
        fields["workflowId"],
        fields["taskId"],
        fields["fileName"],
        fields["contentType"] or "application/octet-stream",
    )


def parse_part_tags(document: dict[str, Any]) -> list[str]:
    """Return the tags of the parts in order, without the quotes of their header."""
    fields = read_request(document, PART_TAGS, "completeMultipart.request")
    return [tag.strip().removeprefix("W/").strip('"') for tag in fields["partETags"]]


def file_handle_id(row: FileHandle) -> str:
    """Return the id by which inputs and outputs refer to the file."""
    return f"{SCHEME}{row.id}"


def created_document(row: FileHandle, origin: str) -> dict[str, Any]:
    """Return a new handle with the address for its upload."""
    address, expires = file_address(row.run_id, row.id, "PUT")
    return {
        "fileHandleId": file_handle_id(row),
        "fileName": row.name,
        "contentType": row.content_type,
        "storageType": "CONDUCTOR",
        "uploadStatus": row.status,
        "uploadUrl": origin + address,
        "uploadUrlExpiresAt": expires,
        "createdAt": row.created_at,
    }


def file_document(row: FileHandle) -> dict[str, Any]:
    document = {
        "fileHandleId": file_handle_id(row),
        "fileName": row.name,
        "contentType": row.content_type,
        "storageType": "CONDUCTOR",
        "uploadStatus": row.status,
        "workflowId": row.run_id,
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
    }
    optional_fields = {"fileSize": row.size, "contentHash": row.digest or None, "taskId": row.attempt_id or None}
    return document | {name: value for name, value in optional_fields.items() if value is not None}


def address_document(row: FileHandle, run_id: str, operation: str, origin: str, part: str = "") -> dict[str, Any]:
    """Return the address for the upload or download of a file or a part. `run_id`: the run of the caller."""
    address, expires = file_address(run_id, row.id, operation, part)
    name = "uploadUrl" if operation == "PUT" else "downloadUrl"
    return {"fileHandleId": file_handle_id(row), name: origin + address, "expiresAt": expires}


def finished_document(row: FileHandle) -> dict[str, Any]:
    """Return the document of a completely uploaded file."""
    return {"fileHandleId": file_handle_id(row), "uploadStatus": row.status, "contentHash": row.digest}


PAYLOAD_UPLOAD_RIGHTS = ((EXECUTE, WORKFLOW_DEF), *WORKER_RIGHTS, (EXECUTE, WORKFLOW), (UPDATE, WORKFLOW))
"""One of these on any object permits uploads, because a client uploads before it names the workflow or task."""
SANDBOX_POLICY = "default-src 'none'; sandbox"
"""The policy of downloads: an uploaded file may be a web page and must not act on behalf of its viewer."""
PATH_BY_PAYLOAD_TYPE = {
    "WORKFLOW_INPUT": "workflow/input",
    "WORKFLOW_OUTPUT": "workflow/output",
    "TASK_INPUT": "task/input",
    "TASK_OUTPUT": "task/output",
}
METHOD_BY_OPERATION = {"READ": "GET", "WRITE": "PUT"}


def open_tasks_of_run(run_id: str) -> list[Target]:
    return targets_of_attempts(Attempt.objects.open().filter(run_id=run_id).order_by().distinct())


class RequiresFileAccess:
    """An access to the run of a file, or EXECUTE on the type of an open task, whose worker transfers the file."""

    def __init__(self, rights: tuple[Right, ...]) -> None:
        self.rights = rights

    def check(self, request: ConductorRequest, url_kwargs: dict[str, str]) -> None:
        """Check the permission. A missing run is reported by the view.

        Raises:
            Forbidden: when the actor lacks the permission.
        """
        actor = request.actor
        if actor.permissions.allows_all(*self.rights, WORKER_RIGHTS[0]):
            return
        id = url_kwargs.get("workflow") or targets.normalize_name(request_body.read_object(request).get("workflowId"))
        for target in targets.run_in_address("workflow")(request, {"workflow": id}):
            if not is_allowed(actor, self.rights, target) and not any(
                is_allowed(actor, WORKER_RIGHTS, task) for task in open_tasks_of_run(id)
            ):
                raise missing_permission_error(actor, self.rights, target)

    def describe(self) -> str:
        rights = " or ".join(map(describe_right, self.rights))
        return f"{rights}, or EXECUTE on the TASK_DEF or DOMAIN of an open task of the run"


class RequiresPayloadAccess:
    """For an upload, a right to use its payload: to start a workflow or to report on a task. For a download, READ."""

    def check(self, request: ConductorRequest, url_kwargs: dict[str, str]) -> None:
        actor, path = request.actor, request.query.text("path")
        if request.query.text("operation").upper() == "WRITE":
            if not actor.permissions.allows_any(*PAYLOAD_UPLOAD_RIGHTS):
                raise missing_permission_error(actor, PAYLOAD_UPLOAD_RIGHTS, {})
        elif is_storage_configured():
            require_payload_read(actor, path)

    def describe(self) -> str:
        uploads = " or ".join(map(describe_right, PAYLOAD_UPLOAD_RIGHTS))
        return f"for an upload {uploads} on any object; for a download READ on the run of the payload"


can_upload_files, can_view_files = RequiresFileAccess(RUN_CONTROL_RIGHTS), RequiresFileAccess(RUN_VIEW_RIGHTS)
can_transfer_payload = RequiresPayloadAccess()


class Files(ConductorView):
    """POST /api/files: create a file whose content is uploaded later, and get the address of the upload."""

    @ApiOperation("Create a file of a workflow", can_upload_files, reply=CREATED_FILE, body=NEW_FILE, status=201)
    def post(self, request: ConductorRequest) -> HttpResponse:
        return Json(
            created_document(
                files.create_handle(*parse_new_file(request_body.read_object(request))), server_address(request)
            ),
            201,
        )


class FileOne(ConductorView):
    """GET /api/files/{workflow}/{file}: get a file without its content."""

    @ApiOperation("Get a file of a workflow", can_view_files, reply=FILE)
    def get(self, request: ConductorRequest, workflow: str, file: str) -> HttpResponse:
        return Json(file_document(files.find_handle(workflow, file)))


class FileUploadAddress(ConductorView):
    """GET /api/files/{workflow}/{file}/upload-url: get the address to upload the content."""

    @ApiOperation("Get the address to upload a file", can_upload_files, reply=FILE_ADDRESS)
    def get(self, request: ConductorRequest, workflow: str, file: str) -> HttpResponse:
        return Json(address_document(files.find_unfinished(workflow, file), workflow, "PUT", server_address(request)))


class FileDownloadAddress(ConductorView):
    """GET /api/files/{workflow}/{file}/download-url: get the address to download the content."""

    @ApiOperation("Get the address to download a file", can_view_files, reply=FILE_ADDRESS)
    def get(self, request: ConductorRequest, workflow: str, file: str) -> HttpResponse:
        return Json(address_document(files.find_uploaded(workflow, file), workflow, "GET", server_address(request)))


class FileContent(ConductorView):
    """PUT, GET /api/files/content/{workflow}/{file}: upload or download a file, or a part of it."""

    @property
    def needs_login(self) -> bool:
        return not cast(ConductorRequest, self.request).query.text("sig")

    @ApiOperation("Upload a file", can_upload_files, reply=NO_CONTENT, body=BINARY, query=FILE_LINK_QUERY)
    def put(self, request: ConductorRequest, workflow: str, file: str) -> HttpResponse:
        part = verify_file_address(request, workflow, file, "PUT")
        # The body is not read before the request is authorized.
        files.find_unfinished(workflow, file)
        with receive_body(request, conf.file_max_bytes) as upload:
            if part:
                files.store_part(workflow, file, *parse_part(part), upload, upload.digest)
            else:
                files.store_content(workflow, file, upload, upload.digest)
        reply = NoContent()
        reply.headers["ETag"] = f'"{upload.digest}"'
        return reply

    @ApiOperation("Download a file", can_view_files, reply=BINARY, query=FILE_LINK_QUERY)
    def get(self, request: ConductorRequest, workflow: str, file: str) -> HttpResponseBase:
        verify_file_address(request, workflow, file, "GET")
        row, chunks = files.stream_content(workflow, file)
        headers = {
            "Content-Length": str(row.size),
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(row.name or row.id, safe='')}",
            "Content-Security-Policy": SANDBOX_POLICY,
            "Cache-Control": "private, max-age=0",
            "ETag": f'"{row.digest}"',
        }
        return StreamingHttpResponse(chunks, content_type=row.content_type, headers=headers)


def verify_file_address(request: ConductorRequest, workflow: str, file: str, operation: str) -> str:
    """Return the part in a signed address, or "" without one.

    Raises:
        Forbidden: when the signature of the address is invalid.
    """
    part, link_query = request.query.text("part"), {name: request.query.text(name) for name in ("exp", "sig")}
    if link_query["sig"]:
        verify_file_link(file_path(workflow, file, part), operation, link_query)
    return part


def parse_part(part: str) -> tuple[str, int]:
    """Return the upload id and the part number of `upload/number`."""
    upload, _, number = part.partition("/")
    return upload, parse_integer(number, "The number of a part", 32)


class FileUploadComplete(ConductorView):
    """POST /api/files/{workflow}/{file}/upload-complete: complete the upload."""

    @ApiOperation("Complete the upload of a file", can_upload_files, reply=FINISHED_FILE)
    def post(self, request: ConductorRequest, workflow: str, file: str) -> HttpResponse:
        return Json(finished_document(files.finish_upload(workflow, file)))


class FileParts(ConductorView):
    """POST /api/files/{workflow}/{file}/multipart: start an upload in parts."""

    @ApiOperation("Start a multipart upload of a file", can_upload_files, reply=FILE_UPLOAD)
    def post(self, request: ConductorRequest, workflow: str, file: str) -> HttpResponse:
        row = files.begin_multipart(workflow, file)
        return Json({"fileHandleId": file_handle_id(row), "uploadId": row.upload_id})


class FilePart(ConductorView):
    """GET /api/files/{workflow}/{file}/multipart/{upload}/part/{number}: get the address to upload a part."""

    @ApiOperation("Get the address to upload a part of a file", can_upload_files, reply=FILE_ADDRESS)
    def get(self, request: ConductorRequest, workflow: str, file: str, upload: str, number: str) -> HttpResponse:
        row = files.find_part(workflow, file, upload, parse_integer(number, "The number of a part", 32))
        return Json(address_document(row, workflow, "PUT", server_address(request), f"{upload}/{int(number)}"))


class FilePartsComplete(ConductorView):
    """POST /api/files/{workflow}/{file}/multipart/{upload}/complete: complete an upload in parts."""

    @ApiOperation("Complete a multipart upload", can_upload_files, reply=FINISHED_FILE, body=PART_TAGS)
    def post(self, request: ConductorRequest, workflow: str, file: str, upload: str) -> HttpResponse:
        return Json(
            finished_document(
                files.complete_multipart(workflow, file, upload, parse_part_tags(request_body.read_object(request)))
            )
        )


class FilePartsOne(ConductorView):
    """DELETE /api/files/{workflow}/{file}/multipart/{upload}: abort an upload in parts."""

    @ApiOperation("Abort a multipart upload", can_upload_files, reply=NO_CONTENT)
    def delete(self, request: ConductorRequest, workflow: str, file: str, upload: str) -> None:
        files.abort_multipart(workflow, file, upload)


class PayloadLocation(ConductorView):
    """GET /api/workflow/externalstoragelocation, and three more: return the address to upload or download a payload.

    The address expires and carries its own permission. For an upload, the reply has a new path.
    """

    @ApiOperation(
        "Get the address to upload or download a payload",
        can_transfer_payload,
        reply=LOCATION,
        query={"path!": str, "operation!": str, "payloadType!": str},
        changes_state=True,
    )
    def get(self, request: ConductorRequest) -> HttpResponse:
        query = request.query
        path, operation = (
            query.required("path"),
            parse_choice("operation", query.required("operation"), METHOD_BY_OPERATION),
        )
        kind = parse_choice("payloadType", query.required("payloadType"), PATH_BY_PAYLOAD_TYPE)
        if not is_storage_configured():
            return Json({"path": path})
        if operation == "WRITE":
            path = commands.reserve_upload(PATH_BY_PAYLOAD_TYPE[kind])
        address = f"/api/payloads/{quote(path)}?{urlencode(sign_link(path, operation))}"
        return Json({"uri": f"{server_address(request)}{address}", "path": path})


class PayloadContent(ConductorView):
    """PUT, GET /api/payloads/{path}: upload or download a payload at a signed address."""

    needs_login = False

    @ApiOperation("Upload a payload", body=read_mapping, query=LINK_QUERY)
    def put(self, request: ConductorRequest, path: str) -> None:
        verify_payload_address(request, path, "WRITE")
        with receive_body(request, conf.workflow_payload_max_bytes) as upload:
            if not upload.size:
                raise Invalid("The upload is empty, or its Content-Length is missing.")
            commands.store_reserved(path, upload)

    @ApiOperation("Download a payload", reply=read_mapping, query=LINK_QUERY)
    def get(self, request: ConductorRequest, path: str) -> HttpResponseBase:
        verify_payload_address(request, path, "READ")
        size, chunks = commands.stream_payload(path)
        headers = {"Content-Length": str(size), "Cache-Control": "private, max-age=0"}
        return StreamingHttpResponse(chunks, content_type="application/json", headers=headers)


def parse_choice(name: str, choice: str, choices: dict[str, str]) -> str:
    """Return the choice in upper or lower case as listed."""
    if choice.upper() not in choices:
        raise Invalid(f"{name} must be one of {', '.join(choices)}; it is '{choice[:100]}'.")
    return choice.upper()


def verify_payload_address(request: ConductorRequest, path: str, operation: str) -> None:
    """Check the signature of an address.

    Raises:
        Forbidden: when the signature is invalid.
    """
    verify_link(path, operation, {name: request.query.text(name) for name in ("expires", "signature")})
