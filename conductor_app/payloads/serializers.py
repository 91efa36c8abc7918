"""Files of runs (api §1.12)."""

from typing import Any

from ..access.tokens import file_address
from ..core.document.fields import FieldSpec, FieldTable, IntegerOf, ListOf, read_name, read_text
from ..core.errors import Invalid
from ..web.api.documents import fields_of_type
from ..web.api.requests import read_request
from .models import FileHandle

SCHEME = "conductor://file/"
NEW_FILE: FieldTable = (
    FieldSpec("workflowId", read_text, ""),
    FieldSpec("fileName", read_name, ""),
    FieldSpec("contentType", read_name, "application/octet-stream"),
    FieldSpec("taskId", read_text, ""),
)
PART_TAGS: FieldTable = (FieldSpec("partETags", ListOf(read_text), list),)
CREATED_FILE: FieldTable = (
    *fields_of_type(read_text, "fileHandleId", "fileName", "contentType", "storageType", "uploadStatus", "uploadUrl"),
    *fields_of_type(IntegerOf(64), "uploadUrlExpiresAt", "createdAt"),
)
FILE: FieldTable = (
    *fields_of_type(read_text, "fileHandleId", "fileName", "contentType", "contentHash", "storageType", "uploadStatus",
            "workflowId", "taskId"),
    *fields_of_type(IntegerOf(64), "fileSize", "createdAt", "updatedAt"),
)  # fmt: skip
FILE_ADDRESS: FieldTable = (
    *fields_of_type(read_text, "fileHandleId", "uploadUrl", "downloadUrl"),
    FieldSpec("expiresAt", IntegerOf(64)),
)
FINISHED_FILE: FieldTable = fields_of_type(read_text, "fileHandleId", "uploadStatus", "contentHash")
FILE_UPLOAD: FieldTable = fields_of_type(read_text, "fileHandleId", "uploadId")
LOCATION: FieldTable = fields_of_type(read_text, "uri", "path")


def parse_new_file(document: dict[str, Any]) -> tuple[str, str, str, str]:
    """Return run, attempt, name and content type of a new file.

    Raises:
        ValidationFailed: when a field is invalid
        Invalid: when the run is missing, or the content type is invalid.
    """
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
    """Return the metadata of a file."""
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
