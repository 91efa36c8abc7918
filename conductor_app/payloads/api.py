"""Views of files of runs (api §1.12): handles, and contents at signed addresses or for permitted callers."""

from urllib.parse import quote

from django.http import HttpResponse, StreamingHttpResponse

from .... import conf
from ....access.client_address import server_address
from ....access.signed_links import file_path, verify_file_link
from ....engine.payloads import file_contents, file_handles
from .. import request_body
from ..api_operation import BINARY, FILE_LINK_QUERY, NO_CONTENT, ApiOperation
from ..openapi import tables as shapes
from ..permissions import can_upload_files, can_view_files
from ..query_parameters import parse_integer
from ..replies import Json, NoContent
from ..uploads import receive_body
from ..view import ConductorRequest, ConductorView
from .file_serializers import (
    NEW_FILE,
    PART_TAGS,
    address_document,
    created_document,
    file_document,
    file_handle_id,
    finished_document,
    parse_new_file,
    parse_part_tags,
)

SANDBOX_POLICY = "default-src 'none'; sandbox"
"""The policy of downloads: an uploaded file may be a web page and must not act on behalf of its viewer."""


class Files(ConductorView):
    """POST /api/files: create a file whose content is uploaded later, and get the address of the upload."""

    operations = {
        "post": ApiOperation(
            "Create a file of a workflow",
            permission=can_upload_files,
            reply=shapes.CREATED_FILE,
            body=NEW_FILE,
            status=201,
        ),
    }

    def post(self, request: ConductorRequest) -> HttpResponse:
        return Json(
            created_document(
                file_handles.create_handle(*parse_new_file(request_body.read_object(request))), server_address(request)
            ),
            201,
        )


class FileOne(ConductorView):
    """GET /api/files/{workflow}/{file}: get a file without its content."""

    operations = {
        "get": ApiOperation("Get a file of a workflow", permission=can_view_files, reply=shapes.FILE),
    }

    def get(self, request: ConductorRequest, workflow: str, file: str) -> HttpResponse:
        return Json(file_document(file_handles.find_handle(workflow, file)))


class FileUploadAddress(ConductorView):
    """GET /api/files/{workflow}/{file}/upload-url: get the address to upload the content."""

    operations = {
        "get": ApiOperation("Get the address to upload a file", permission=can_upload_files, reply=shapes.FILE_ADDRESS),
    }

    def get(self, request: ConductorRequest, workflow: str, file: str) -> HttpResponse:
        return Json(
            address_document(file_handles.find_unfinished(workflow, file), workflow, "PUT", server_address(request))
        )


class FileDownloadAddress(ConductorView):
    """GET /api/files/{workflow}/{file}/download-url: get the address to download the content."""

    operations = {
        "get": ApiOperation("Get the address to download a file", permission=can_view_files, reply=shapes.FILE_ADDRESS),
    }

    def get(self, request: ConductorRequest, workflow: str, file: str) -> HttpResponse:
        return Json(
            address_document(file_contents.find_uploaded(workflow, file), workflow, "GET", server_address(request))
        )


class FileContent(ConductorView):
    """PUT, GET /api/files/content/{workflow}/{file}: upload or download a file, or a part of it."""

    operations = {
        "put": ApiOperation(
            "Upload a file", permission=can_upload_files, reply=NO_CONTENT, body=BINARY, query=FILE_LINK_QUERY
        ),
        "get": ApiOperation("Download a file", permission=can_view_files, reply=BINARY, query=FILE_LINK_QUERY),
    }

    @property
    def needs_login(self) -> bool:
        return not self.request.query.text("sig")

    def put(self, request: ConductorRequest, workflow: str, file: str) -> HttpResponse:
        part = verify_address(request, workflow, file, "PUT")
        # The body is not read before the request is authorized.
        file_handles.find_unfinished(workflow, file)
        with receive_body(request, conf.file_max_bytes) as upload:
            if part:
                file_contents.store_part(workflow, file, *parse_part(part), upload, upload.digest)
            else:
                file_contents.store_content(workflow, file, upload, upload.digest)
        reply = NoContent()
        reply.headers["ETag"] = f'"{upload.digest}"'
        return reply

    def get(self, request: ConductorRequest, workflow: str, file: str) -> HttpResponse:
        verify_address(request, workflow, file, "GET")
        row, chunks = file_contents.stream_content(workflow, file)
        headers = {
            "Content-Length": str(row.size),
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(row.name or row.id, safe='')}",
            "Content-Security-Policy": SANDBOX_POLICY,
            "Cache-Control": "private, max-age=0",
            "ETag": f'"{row.digest}"',
        }
        return StreamingHttpResponse(chunks, content_type=row.content_type, headers=headers)


def verify_address(request: ConductorRequest, workflow: str, file: str, operation: str) -> str:
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

    operations = {
        "post": ApiOperation("Complete the upload of a file", permission=can_upload_files, reply=shapes.FINISHED_FILE),
    }

    def post(self, request: ConductorRequest, workflow: str, file: str) -> HttpResponse:
        return Json(finished_document(file_handles.finish_upload(workflow, file)))


class FileParts(ConductorView):
    """POST /api/files/{workflow}/{file}/multipart: start an upload in parts."""

    operations = {
        "post": ApiOperation(
            "Start a multipart upload of a file", permission=can_upload_files, reply=shapes.FILE_UPLOAD
        ),
    }

    def post(self, request: ConductorRequest, workflow: str, file: str) -> HttpResponse:
        row = file_contents.begin_multipart(workflow, file)
        return Json({"fileHandleId": file_handle_id(row), "uploadId": row.upload_id})


class FilePart(ConductorView):
    """GET /api/files/{workflow}/{file}/multipart/{upload}/part/{number}: get the address to upload a part."""

    operations = {
        "get": ApiOperation(
            "Get the address to upload a part of a file", permission=can_upload_files, reply=shapes.FILE_ADDRESS
        ),
    }

    def get(self, request: ConductorRequest, workflow: str, file: str, upload: str, number: str) -> HttpResponse:
        row = file_contents.find_part(workflow, file, upload, parse_integer(number, "The number of a part", 32))
        return Json(address_document(row, workflow, "PUT", server_address(request), f"{upload}/{int(number)}"))


class FilePartsComplete(ConductorView):
    """POST /api/files/{workflow}/{file}/multipart/{upload}/complete: complete an upload in parts."""

    operations = {
        "post": ApiOperation(
            "Complete a multipart upload", permission=can_upload_files, reply=shapes.FINISHED_FILE, body=PART_TAGS
        ),
    }

    def post(self, request: ConductorRequest, workflow: str, file: str, upload: str) -> HttpResponse:
        return Json(
            finished_document(
                file_contents.complete_multipart(
                    workflow, file, upload, parse_part_tags(request_body.read_object(request))
                )
            )
        )


class FilePartsOne(ConductorView):
    """DELETE /api/files/{workflow}/{file}/multipart/{upload}: abort an upload in parts."""

    operations = {
        "delete": ApiOperation("Abort a multipart upload", permission=can_upload_files, reply=NO_CONTENT),
    }

    def delete(self, request: ConductorRequest, workflow: str, file: str, upload: str) -> HttpResponse:
        file_contents.abort_multipart(workflow, file, upload)
        return NoContent()
