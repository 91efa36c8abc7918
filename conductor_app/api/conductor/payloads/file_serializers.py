"""Files of runs (api §1.12)."""

from typing import Any

from ....access.signed_links import file_address
from ....core.document.checks.document_fields import FieldSpec, FieldTable
from ....core.document.checks.values import DocumentPosition, ListOf, read_name, read_text
from ....core.errors import Invalid
from ....models import FileHandle
from ..request_fields import read_request

SCHEME = "conductor://file/"
NEW_FILE: FieldTable = (
    FieldSpec("workflowId", read_text, ""),
    FieldSpec("fileName", read_name, ""),
    FieldSpec("contentType", read_name, "application/octet-stream"),
    FieldSpec("taskId", read_text, ""),
)
PART_TAGS: FieldTable = (FieldSpec("partETags", ListOf(read_text), list),)


def parse_new_file(document: dict[str, Any]) -> tuple[str, str, str, str]:
    """The run, the attempt, the name and the type of a file that is to come; raises ValidationFailed and Invalid."""
    fields = read_request(document, NEW_FILE, "createFile.request", _check_new_file)
    if not (fields["contentType"].isascii() and fields["contentType"].isprintable()):
        raise Invalid("The contentType of a file is none.")
    return (
        fields["workflowId"],
        fields["taskId"],
        fields["fileName"],
        fields["contentType"] or "application/octet-stream",
    )


def _check_new_file(fields: dict[str, Any], position: DocumentPosition) -> None:
    if not fields["workflowId"]:
        position.at("workflowId").add_missing("Workflow Id cannot be null or empty")


def parse_part_tags(document: dict[str, Any]) -> list[str]:
    """The tags of the parts in their order, without the quotes that a header has round them."""
    fields = read_request(document, PART_TAGS, "completeMultipart.request", lambda fields, position: None)
    return [tag.strip().removeprefix("W/").strip('"') for tag in fields["partETags"]]


def file_handle_id(row: FileHandle) -> str:
    """What inputs and outputs call the file."""
    return f"{SCHEME}{row.id}"


def created_document(row: FileHandle, origin: str) -> dict[str, Any]:
    """A handle that was just made, with where its content is sent."""
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
    """A file, without its content."""
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
    """Where the content of a file, or a part of it, is sent or fetched from. `run_id`: whose member asks."""
    address, expires = file_address(run_id, row.id, operation, part)
    name = "uploadUrl" if operation == "PUT" else "downloadUrl"
    return {"fileHandleId": file_handle_id(row), name: origin + address, "expiresAt": expires}


def finished_document(row: FileHandle) -> dict[str, Any]:
    """A file all of which has come."""
    return {"fileHandleId": file_handle_id(row), "uploadStatus": row.status, "contentHash": row.digest}
