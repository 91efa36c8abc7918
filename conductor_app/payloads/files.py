"""Files of runs: their handles, and their content, which is uploaded whole or in parts and streamed in chunks."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile
from uuid import uuid4

from django.core.files.base import File
from django.db.models import QuerySet

from ..access.quotas import current_caller
from ..core.errors import Conflict, Forbidden, Invalid, NotFound, PayloadTooLarge
from ..db.database import transaction
from ..runs.models import Attempt, Run
from ..settings import conf
from ..utils import clock
from . import store
from .commands import DAY_MS, expire_content, require_storage, save_content, storage_errors
from .models import UPLOADED, UPLOADING, FileHandle

MAX_FILES = 100
MAX_FILES_PER_RUN = 1_000
MAX_FAMILY_DEPTH = 100
MAX_PARTS = 10_000


def files_of(run_id: str) -> QuerySet[FileHandle]:
    """Return the files of a run, newest first."""
    return FileHandle.objects.filter(run_id=run_id).defer("parts").order_by("-created_at", "id")[:MAX_FILES]


def create_handle(run_id: str, attempt_id: str, name: str, content_type: str) -> FileHandle:
    """Create a handle for a file that is uploaded later.

    Raises:
        NotFound: when the server has no payload storage, or there is no such run or task.
        Invalid: when the run has too many files.
        QuotaExceeded: when the current actor has stored too much.
    """
    if not store.is_storage_configured():
        raise NotFound("This server stores no files: PAYLOAD_STORAGE is not set.")
    if not _run_exists(run_id):
        raise NotFound(f"No such workflow found by id: {run_id}")
    if attempt_id and not Attempt.objects.filter(pk=attempt_id, run_id=run_id).exists():
        raise NotFound(f"Task not found for taskId: {attempt_id}")
    require_storage(uploader := current_caller())
    if FileHandle.objects.filter(run_id=run_id).count() >= MAX_FILES_PER_RUN:
        raise Invalid(f"A workflow can have at most {MAX_FILES_PER_RUN} files.")
    now = clock.now()
    facts = {"name": name, "content_type": content_type, "created_at": now, "updated_at": now}
    facts["uploader"] = uploader
    return FileHandle.objects.create(id=str(uuid4()), run_id=run_id, attempt_id=attempt_id, **facts)


def find_handle(run_id: str, file_id: str) -> FileHandle:
    """Return a file of this run, or of a run with the same root run.

    Raises:
        Forbidden: when the file belongs to an unrelated run.
    """
    row = _find_row(file_id)
    if row.run_id != run_id and not (_run_exists(run_id) and _root_run_id(row.run_id) == _root_run_id(run_id)):
        raise Forbidden(f"The workflow {run_id} cannot access the file, which belongs to an unrelated workflow.")
    return row


def find_unfinished(run_id: str, file_id: str) -> FileHandle:
    """Return a file of this run whose upload is not complete.

    Raises:
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
    store.keep_for_run(row.path, row.run_id)
    expire_content(*(part["path"] for part in parts.values()))


def delete_files_of_run(run_id: str) -> None:
    """Delete the files of a run. A sweep deletes their contents."""
    FileHandle.objects.filter(run_id=run_id).delete()


def delete_unfinished(limit: int) -> int:
    """Delete up to `limit` files whose upload was not completed within a day. Returns how many rows were deleted."""
    old = FileHandle.objects.filter(status=UPLOADING, created_at__lte=clock.now() - DAY_MS).order_by("created_at")
    return FileHandle.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:limit])).delete()[0]


def store_content(run_id: str, file_id: str, content: "File[bytes]", digest: str) -> None:
    """Store the content of an unfinished file. It replaces earlier content.

    Raises:
        Forbidden: when the file belongs to another run.
        Conflict: when the file is uploaded.
        Busy: when the storage cannot be reached.
    """
    uploader = find_unfinished(run_id, file_id).uploader
    path = save_content("files", content, clock.now() + DAY_MS, uploader)
    with _release_on_failure(path), transaction.atomic():
        row = lock_unfinished(file_id)
        before = row.path
        row.path, row.size, row.digest, row.updated_at = path, content.size, digest, clock.now()
        row.save()
        expire_content(before)


def stream_content(run_id: str, file_id: str) -> tuple[FileHandle, Iterator[bytes]]:
    """Return a file and its content in chunks.

    Raises:
        Forbidden: when the file belongs to an unrelated run.
        Invalid: when the file is not uploaded yet.
        Busy: when the storage cannot be reached.
    """
    row = find_uploaded(run_id, file_id)
    with storage_errors(row.path):
        return row, store.stream_payload(row.path)


def find_uploaded(run_id: str, file_id: str) -> FileHandle:
    """Return an uploaded file.

    Raises:
        Forbidden: when the file belongs to an unrelated run.
        Invalid: when the file is not uploaded yet.
    """
    row = find_handle(run_id, file_id)
    if row.status != UPLOADED:
        raise Invalid(f"File {file_id} is {row.status}: its upload is not complete.")
    return row


def begin_multipart(run_id: str, file_id: str) -> FileHandle:
    """Start a multipart upload of a file. Parts of an earlier multipart upload are discarded.

    Raises:
        Forbidden: when the file belongs to another run.
        Conflict: when the file is uploaded.
    """
    find_unfinished(run_id, file_id)
    return _lock_multipart(file_id, str(uuid4()))


def abort_multipart(run_id: str, file_id: str, upload_id: str) -> None:
    """Abort a multipart upload and discard its parts.

    Raises:
        Forbidden: when the file belongs to another run.
        Conflict: when the file is uploaded.
    """
    _require_multipart(find_unfinished(run_id, file_id), upload_id)
    _lock_multipart(file_id, "")


def _lock_multipart(file_id: str, upload_id: str) -> FileHandle:
    with transaction.atomic():
        row = lock_unfinished(file_id)
        expire_content(*(part["path"] for part in row.parts.values()))
        row.upload_id, row.parts, row.updated_at = upload_id, {}, clock.now()
        row.save()
    return row


def find_part(run_id: str, file_id: str, upload_id: str, number: int) -> FileHandle:
    """Return the file of a multipart upload, and check that this part can be uploaded.

    Raises:
        Forbidden: when the file belongs to another run.
        Conflict: when the file is uploaded.
        Invalid: when the number is out of range.
    """
    if not 1 <= number <= MAX_PARTS:
        raise Invalid(f"The number of a part must be 1 to {MAX_PARTS} (got {number}).")
    return _require_multipart(find_unfinished(run_id, file_id), upload_id)


def store_part(run_id: str, file_id: str, upload_id: str, number: int, content: "File[bytes]", digest: str) -> None:
    """Store a part of a multipart upload. It replaces an earlier part of the same number.

    Raises:
        NotFound, Forbidden, Conflict, Invalid: as `find_part`.
        PayloadTooLarge: when the parts exceed the size limit of files.
        Busy: when the storage cannot be reached.
    """
    uploader = find_part(run_id, file_id, upload_id, number).uploader
    path = save_content("files", content, clock.now() + DAY_MS, uploader)
    with _release_on_failure(path), transaction.atomic():
        row = _require_multipart(lock_unfinished(file_id), upload_id)
        if before := row.parts.get(str(number)):
            expire_content(before["path"])
        part = {"path": path, "size": content.size, "digest": digest}
        row.parts, row.updated_at = {**row.parts, str(number): part}, clock.now()
        _refuse_too_large(sum(part["size"] for part in row.parts.values()))
        row.save()


def complete_multipart(run_id: str, file_id: str, upload_id: str, digests: Sequence[str]) -> FileHandle:
    """Join the parts of a multipart upload into one file. `digests`: those of the parts, in order.

    Raises:
        Forbidden: when the file belongs to another run.
        Conflict: when the file is uploaded.
        Invalid: when the digests do not match the uploaded parts.
        Busy: when the storage cannot be reached.
    """
    row = _require_multipart(find_unfinished(run_id, file_id), upload_id)
    parts = [row.parts[number] for number in sorted(row.parts, key=int)]
    if not parts or [part["digest"] for part in parts] != list(digests):
        raise Invalid(f"The tags do not match the {len(parts)} uploaded parts.")
    with _concatenate_parts(part["path"] for part in parts) as (whole, digest):
        path = save_content("files", whole, clock.now() + DAY_MS, row.uploader)
    with _release_on_failure(path), transaction.atomic():
        row = _require_multipart(lock_unfinished(file_id), upload_id)
        expire_content(row.path)
        row.path, row.size, row.digest = path, whole.size, digest
        finish_locked(row)
    return row


@contextmanager
def _concatenate_parts(paths: Iterator[str]) -> Iterator["tuple[File[bytes], str]"]:
    """Join stored files in a temporary file, and yield it with its digest."""
    with TemporaryFile() as joined:
        digest = hashlib.sha256()
        for path in paths:
            with storage_errors(path):
                for piece in store.stream_payload(path):
                    digest.update(piece)
                    joined.write(piece)
        size = joined.tell()
        joined.seek(0)
        whole = File(joined)
        whole.size = size
        yield whole, digest.hexdigest()


@contextmanager
def _release_on_failure(path: str) -> Iterator[None]:
    """Release stored content if the transaction that should refer to it fails."""
    try:
        yield
    except BaseException:
        expire_content(path)
        raise


def _require_multipart(row: FileHandle, upload_id: str) -> FileHandle:
    if not upload_id or row.upload_id != upload_id:
        raise NotFound(f"File {row.id} has no upload {upload_id[:100]}.")
    return row


def _refuse_too_large(size: int) -> None:
    if size > conf.file_max_bytes:
        raise PayloadTooLarge(f"The file has {size} bytes; the limit is {conf.file_max_bytes} bytes.")
