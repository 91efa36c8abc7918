"""The content of files: it comes whole or in parts, and goes piece by piece."""

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
from ..content_files import keep_content, release_content
from ..payloads import DAY_MS, storage_errors
from .handles import find_handle, find_unfinished, finish_locked, lock_unfinished

MOST_PARTS = 10_000


def store_content(run_id: str, file_id: str, content: "File[bytes]", digest: str) -> None:
    """Keep what has come as the content of a file, in the place of what came before.

    Raises NotFound, Forbidden, Conflict and Busy.
    """
    find_unfinished(run_id, file_id)
    path = keep_content("files", content, clock.now() + DAY_MS)
    with _release_on_failure(path), transaction.atomic():
        row = lock_unfinished(file_id)
        before = row.path
        row.path, row.size, row.digest, row.updated_at = path, content.size, digest, clock.now()
        row.save()
        release_content(before)


def stream_content(run_id: str, file_id: str) -> tuple[FileHandle, Iterator[bytes]]:
    """A file and its content, piece by piece. Raises NotFound, Forbidden, Invalid where it has not come, and Busy."""
    row = find_uploaded(run_id, file_id)
    with storage_errors(row.path):
        return row, blob_storage.stream_payload(row.path)


def find_uploaded(run_id: str, file_id: str) -> FileHandle:
    """A file that has come; raises NotFound, Forbidden and Invalid."""
    row = find_handle(run_id, file_id)
    if row.status != UPLOADED:
        raise Invalid(f"File {file_id} is {row.status}: it has not come yet.")
    return row


def begin_multipart(run_id: str, file_id: str) -> FileHandle:
    """The file is about to come in parts; those of an earlier beginning are let go of."""
    find_unfinished(run_id, file_id)
    return _lock_multipart(file_id, str(uuid4()))


def abort_multipart(run_id: str, file_id: str, upload_id: str) -> None:
    """The file does not come in these parts. Raises NotFound where they were not begun."""
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
    """The file of which this part may come. Raises NotFound, Forbidden, Conflict and Invalid."""
    if not 1 <= number <= MOST_PARTS:
        raise Invalid(f"Parts are numbered from 1 to {MOST_PARTS}.")
    return _require_multipart(find_unfinished(run_id, file_id), upload_id)


def store_part(run_id: str, file_id: str, upload_id: str, number: int, content: "File[bytes]", digest: str) -> None:
    """Keep a part, in the place of what came before under its number."""
    find_part(run_id, file_id, upload_id, number)
    path = keep_content("files", content, clock.now() + DAY_MS)
    with _release_on_failure(path), transaction.atomic():
        row = _require_multipart(lock_unfinished(file_id), upload_id)
        if before := row.parts.get(str(number)):
            release_content(before["path"])
        part = {"path": path, "size": content.size, "digest": digest}
        row.parts, row.updated_at = {**row.parts, str(number): part}, clock.now()
        _refuse_too_large(sum(part["size"] for part in row.parts.values()))
        row.save()


def complete_multipart(run_id: str, file_id: str, upload_id: str, digests: Sequence[str]) -> FileHandle:
    """Make one file of the parts, which the digests name in their order. Raises Invalid where they are not those."""
    row = _require_multipart(find_unfinished(run_id, file_id), upload_id)
    parts = [row.parts[number] for number in sorted(row.parts, key=int)]
    if not parts or [part["digest"] for part in parts] != list(digests):
        raise Invalid(f"The tags are not those of the {len(parts)} parts that have come.")
    with _concatenate_parts(part["path"] for part in parts) as (whole, digest):
        path = keep_content("files", whole, clock.now() + DAY_MS)
    with _release_on_failure(path), transaction.atomic():
        row = _require_multipart(lock_unfinished(file_id), upload_id)
        release_content(row.path)
        row.path, row.size, row.digest = path, whole.size, digest
        finish_locked(row)
    return row


@contextmanager
def _concatenate_parts(paths: Iterator[str]) -> "Iterator[tuple[File[bytes], str]]":
    """One file of several, and its digest; it lies on the disk meanwhile."""
    with TemporaryFile() as kept:
        digest = hashlib.sha256()
        for path in paths:
            with storage_errors(path):
                for piece in blob_storage.stream_payload(path):
                    digest.update(piece)
                    kept.write(piece)
        size = kept.tell()
        kept.seek(0)
        whole = File(kept)
        whole.size = size
        yield whole, digest.hexdigest()


@contextmanager
def _release_on_failure(path: str) -> Iterator[None]:
    """What was kept for a file that does not want it any more is nobody's."""
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
        raise PayloadTooLarge(f"A file may have at most {conf.file_max_bytes} bytes.")
