"""Content of files: uploaded whole or in parts, and streamed in chunks."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile
from uuid import uuid4

from django.core.files.base import File
from django.db import transaction

from ... import blob_storage, clock, conf
from ...core.errors import Invalid, NotFound, PayloadTooLarge
from ...models import FileHandle
from ...models.files import UPLOADED
from .content_files import release_content, save_content
from .file_handles import find_handle, find_unfinished, finish_locked, lock_unfinished
from .payload_storage import DAY_MS, storage_errors

MAX_PARTS = 10_000


def store_content(run_id: str, file_id: str, content: "File[bytes]", digest: str) -> None:
    """Store the content of an unfinished file. It replaces earlier content.

    Raises:
        NotFound: when there is no such file.
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
        release_content(before)


def stream_content(run_id: str, file_id: str) -> tuple[FileHandle, Iterator[bytes]]:
    """Return a file and its content in chunks.

    Raises:
        NotFound: when there is no such file.
        Forbidden: when the file belongs to an unrelated run.
        Invalid: when the file is not uploaded yet.
        Busy: when the storage cannot be reached.
    """
    row = find_uploaded(run_id, file_id)
    with storage_errors(row.path):
        return row, blob_storage.stream_payload(row.path)


def find_uploaded(run_id: str, file_id: str) -> FileHandle:
    """Return an uploaded file.

    Raises:
        NotFound: when there is no such file.
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
        NotFound: when there is no such file.
        Forbidden: when the file belongs to another run.
        Conflict: when the file is uploaded.
    """
    find_unfinished(run_id, file_id)
    return _lock_multipart(file_id, str(uuid4()))


def abort_multipart(run_id: str, file_id: str, upload_id: str) -> None:
    """Abort a multipart upload and discard its parts.

    Raises:
        NotFound: when there is no such file or multipart upload.
        Forbidden: when the file belongs to another run.
        Conflict: when the file is uploaded.
    """
    _require_multipart(find_unfinished(run_id, file_id), upload_id)
    _lock_multipart(file_id, "")


def _lock_multipart(file_id: str, upload_id: str) -> FileHandle:
    with transaction.atomic():
        row = lock_unfinished(file_id)
        release_content(*(part["path"] for part in row.parts.values()))
        row.upload_id, row.parts, row.updated_at = upload_id, {}, clock.now()
        row.save()
    return row


def find_part(run_id: str, file_id: str, upload_id: str, number: int) -> FileHandle:
    """Return the file of a multipart upload, and check that this part can be uploaded.

    Raises:
        NotFound: when there is no such file or multipart upload.
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
            release_content(before["path"])
        part = {"path": path, "size": content.size, "digest": digest}
        row.parts, row.updated_at = {**row.parts, str(number): part}, clock.now()
        _refuse_too_large(sum(part["size"] for part in row.parts.values()))
        row.save()


def complete_multipart(run_id: str, file_id: str, upload_id: str, digests: Sequence[str]) -> FileHandle:
    """Join the parts of a multipart upload into one file. `digests`: those of the parts, in order.

    Raises:
        NotFound: when there is no such file or multipart upload.
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
        release_content(row.path)
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
                for piece in blob_storage.stream_payload(path):
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
        release_content(path)
        raise


def _require_multipart(row: FileHandle, upload_id: str) -> FileHandle:
    if not upload_id or row.upload_id != upload_id:
        raise NotFound(f"File {row.id} has no upload {upload_id[:100]}.")
    return row


def _refuse_too_large(size: int) -> None:
    if size > conf.file_max_bytes:
        raise PayloadTooLarge(f"The file has {size} bytes; the limit is {conf.file_max_bytes} bytes.")
