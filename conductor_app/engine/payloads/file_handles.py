"""Handles of files: create, find, finish and delete."""

from uuid import uuid4

from django.db import transaction

from ... import blob_storage, clock
from ...access.quotas import current_caller
from ...core.errors import Conflict, Forbidden, Invalid, NotFound
from ...models import Attempt, FileHandle, Run
from ...models.files import UPLOADED, UPLOADING
from ...store import stored_payloads
from ..access import quota_checks
from .content_files import release_content
from .payload_storage import DAY_MS

MAX_FILES_PER_RUN = 1_000
MAX_FAMILY_DEPTH = 100


def create_handle(run_id: str, attempt_id: str, name: str, content_type: str) -> FileHandle:
    """Create a handle for a file that is uploaded later.

    Raises:
        NotFound: when the server has no payload storage, or there is no such run or task.
        Invalid: when the run has too many files.
        QuotaExceeded: when the current actor has stored too much.
    """
    if not blob_storage.is_storage_configured():
        raise NotFound("This server stores no files: PAYLOAD_STORAGE is not set.")
    if not _run_exists(run_id):
        raise NotFound(f"No such workflow found by id: {run_id}")
    if attempt_id and not Attempt.objects.filter(pk=attempt_id, run_id=run_id).exists():
        raise NotFound(f"Task not found for taskId: {attempt_id}")
    quota_checks.require_storage(uploader := current_caller())
    if FileHandle.objects.filter(run_id=run_id).count() >= MAX_FILES_PER_RUN:
        raise Invalid(f"A workflow can have at most {MAX_FILES_PER_RUN} files.")
    now = clock.now()
    facts = {"name": name, "content_type": content_type, "created_at": now, "updated_at": now}
    facts["uploader"] = uploader
    return FileHandle.objects.create(id=str(uuid4()), run_id=run_id, attempt_id=attempt_id, **facts)


def find_handle(run_id: str, file_id: str) -> FileHandle:
    """Return a file of this run, or of a run with the same root run.

    Raises:
        NotFound: when there is no such file.
        Forbidden: when the file belongs to an unrelated run.
    """
    row = _find_row(file_id)
    if row.run_id != run_id and not (_run_exists(run_id) and _root_run_id(row.run_id) == _root_run_id(run_id)):
        raise Forbidden(f"The workflow {run_id} cannot access the file, which belongs to an unrelated workflow.")
    return row


def find_unfinished(run_id: str, file_id: str) -> FileHandle:
    """Return a file of this run whose upload is not complete.

    Raises:
        NotFound: when there is no such file.
        Forbidden: when the file belongs to another run.
        Conflict: when the file is uploaded.
    """
    row = _find_row(file_id)
    if row.run_id != run_id:
        raise Forbidden(f"The file does not belong to workflow {run_id}.")
    if row.status != UPLOADING:
        raise Conflict(f"File {file_id} is {row.status}: its content cannot be changed.")
    return row


def lock_unfinished(file_id: str) -> FileHandle:
    """Lock a file whose upload is not complete, until the transaction ends.

    Raises:
        NotFound: when the file was deleted with its run.
        Conflict: when the file is uploaded.
    """
    row = FileHandle.objects.select_for_update().filter(pk=file_id).first()
    if row is None:
        raise NotFound(f"File {file_id} was removed with its workflow.")
    if row.status != UPLOADING:
        raise Conflict(f"File {file_id} is {row.status}: its content cannot be changed.")
    return row


def _find_row(file_id: str) -> FileHandle:
    row = FileHandle.objects.filter(pk=file_id).first()
    if row is None:
        raise NotFound(f"The file {file_id[:100]} is not found.")
    return row


def _run_exists(run_id: str) -> bool:
    # For a deleted run, the caller's permission cannot have been checked.
    return Run.objects.filter(pk=run_id).exists()


def _root_run_id(run_id: str) -> str:
    """Return the topmost ancestor of a run."""
    for _ in range(MAX_FAMILY_DEPTH):
        parent = Run.objects.filter(pk=run_id).values_list("parent_id", flat=True).first()
        if not parent:
            break
        run_id = parent
    return run_id


def finish_upload(run_id: str, file_id: str) -> FileHandle:
    """Complete the upload of a file.

    Raises:
        NotFound: when there is no such file.
        Forbidden: when the file belongs to another run.
        Conflict: when the file is uploaded.
        Invalid: when the file has no content.
    """
    find_unfinished(run_id, file_id)
    with transaction.atomic():
        row = lock_unfinished(file_id)
        if not row.path:
            raise Invalid(f"File {file_id} has no content. Upload it first.")
        finish_locked(row)
    return row


def finish_locked(row: FileHandle) -> None:
    """Mark a locked file as uploaded. Its content is deleted with its run."""
    row.status, row.updated_at, parts = UPLOADED, clock.now(), row.parts
    row.upload_id, row.parts = "", {}
    row.save()
    stored_payloads.keep_for_run(row.path, row.run_id)
    release_content(*(part["path"] for part in parts.values()))


def delete_files_of_run(run_id: str) -> None:
    """Delete the files of a run. A sweep deletes their contents."""
    FileHandle.objects.filter(run_id=run_id).delete()


def delete_unfinished(limit: int) -> int:
    """Delete up to `limit` files whose upload was not completed within a day. Returns how many rows were deleted."""
    old = FileHandle.objects.filter(status=UPLOADING, created_at__lte=clock.now() - DAY_MS).order_by("created_at")
    return FileHandle.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:limit])).delete()[0]
