"""Commands on artifacts and their content, and the deletion of expired tasks and groups.

Content is uploaded and downloaded in chunks. The content of artifacts of the type object is uploaded through the Object
service, with its hashes. The admin pages read text artifacts in pages, from the end.
"""

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

from django.core.files.base import File

from ... import notifications
from ...core.errors import Conflict, Invalid, NotFound
from ...db.database import transaction
from ...failures.models import Failure
from ...payloads import store as payload_store
from ...payloads.commands import expire_content, save_content, storage_errors
from ...payloads.store import set_expiry
from ...runs.store.writing import StatementBatch
from ...settings import conf
from ...tasks.models import Queue, Worker
from ...utils import clock
from .. import store
from ..core import decisions
from ..core.decisions import LINK, OBJECT, S3, ArtifactValue
from ..core.snapshot import PublishMessage, StandaloneTask
from ..models import Artifact, TaskGroup
from ..models import StandaloneTask as StandaloneTaskRow
from ..queries import format_timestamp
from .rows import ARTIFACT_CREATED, PUBLISHERS, pulse_message

Hashes = Mapping[str, str]
Key = tuple[str, int, str]
"""Task id, number of the attempt, name."""


def new_upload(project_id: str) -> dict[str, str]:
    """Return the details of a new object artifact for its upload."""
    upload_id = base64.urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
    return {"uploadId": upload_id, "projectId": project_id}


def find_object(key: Key) -> Artifact:
    """Return an object artifact."""
    task_id, number, name = key
    row = Artifact.objects.of(task_id, number).filter(name=name, kind=OBJECT).first()
    if row is None:
        raise NotFound("There is no such object.")
    return row


def begin_upload(key: Key, upload_id: str, project_id: str, hashes: Hashes) -> Artifact:
    """Start the upload of an object.

    Raises:
        Conflict: when the upload is finished, or the upload id, project or hashes do not match.
    """
    with transaction.atomic():
        row = _lock_object(key, upload_id, project_id)
        if row.details.get("isFinished"):
            raise Conflict("The upload of this object is already finished.")
        _record_hashes(row, hashes)
    return row


def finish_upload(key: Key, upload_id: str, project_id: str, hashes: Hashes) -> None:
    """Finish the upload of an object. A repeated request changes nothing.

    Raises:
        Invalid: when the object has no content.
        Conflict: when the upload id, project or hashes do not match.
    """
    with transaction.atomic():
        row = _lock_object(key, upload_id, project_id)
        if row.details.get("isFinished"):
            if not hashes.items() <= row.details["hashes"].items():
                raise Conflict("The upload of this object is already finished with other hashes.")
            return
        if not row.path:
            raise Invalid("The object has no content. Upload it first.")
        _record_hashes(row, hashes, isFinished=True)


def _lock_object(key: Key, upload_id: str, project_id: str) -> Artifact:
    row = Artifact.objects.select_for_update().filter(pk=find_object(key).pk).get()
    if (row.details["uploadId"], row.details["projectId"]) != (upload_id, project_id):
        raise Conflict("The object belongs to another upload or project.")
    return row


def _record_hashes(row: Artifact, hashes: Hashes, **facts: bool) -> None:
    known = row.details.get("hashes", {})
    if any(known.get(name, value) != value for name, value in hashes.items()):
        raise Conflict("The hashes differ from those given before.")
    row.details = {**row.details, "hashes": {**known, **hashes}, **facts}
    row.save(update_fields=["details"])


def create(task_id: str, number: int, name: str, new: ArtifactValue) -> Artifact:
    """Create an artifact. A repeated request updates it.

    Raises:
        Invalid: when the task does not exist, or a value is invalid.
        Conflict: when the attempt or the existing artifact does not allow it.
    """
    if new.kind in (S3, OBJECT) and not payload_store.is_storage_configured():
        raise Invalid("This server stores no artifacts: PAYLOAD_STORAGE is not set.")
    with transaction.atomic():
        standalone, now = _lock_task(task_id), clock.now()
        decisions.require_writable_attempt(standalone, number, new.expires_at, now)
        row = Artifact.objects.of(task_id, number).filter(name=name).first()
        if row is None:
            row = Artifact(task_id=task_id, number=number, name=name, created_at=now, is_present=new.kind != OBJECT)
            if new.kind == OBJECT:
                row.details = new_upload(standalone.project_id)
        else:
            new = decisions.replace_artifact(to_artifact(row), new)
        _save_artifact(row, new)
        if new.kind not in (S3, OBJECT):
            publish_artifact_message(standalone, row, now)
    return row


def _lock_task(task_id: str) -> StandaloneTask:
    try:
        return store.load_for_update(task_id)
    except NotFound as missing:
        # Invalid instead of NotFound: the URL exists, its task id is wrong.
        raise Invalid(missing.message) from None


def _save_artifact(row: Artifact, new: ArtifactValue) -> None:
    row.kind, row.content_type, row.expires_at = new.kind, new.content_type, new.expires_at
    row.details = {**row.details, **new.details} if row.kind == OBJECT else dict(new.details)
    row.content_length = new.content_length
    row.save()
    if row.path:
        set_expiry([row.path], content_deleted_at(row))


def to_artifact(row: Artifact) -> ArtifactValue:
    return ArtifactValue(row.kind, row.content_type, row.expires_at, row.details, row.content_length)


def find(task_id: str, number: int, name: str) -> Artifact:
    """Return an artifact, with or without content."""
    row = Artifact.objects.of(task_id, number).filter(name=name).first()
    if row is None:
        raise NotFound(f"Run {number} of task {task_id} has no artifact {name}.")
    return row


def finish(task_id: str, number: int, name: str, upload_id: str) -> None:
    """Complete the upload of an object artifact.

    Raises:
        Invalid: when it is not an object, has another upload id, or has no content.
    """
    with transaction.atomic():
        row = find(task_id, number, name)
        if row.kind != OBJECT:
            raise Invalid(f"Artifact {name} has the storage type {row.kind}; only objects can be finished.")
        if row.details.get("uploadId") != upload_id:
            raise Invalid("The uploadId does not match the artifact.")
        if not row.details.get("isFinished"):
            raise Invalid(f"The upload of artifact {name} is not finished.")
        row.is_present = True
        row.save(update_fields=["is_present"])
        publish_artifact_message(store.load_for_update(task_id), row, clock.now())


def publish_artifact_message(standalone: StandaloneTask, row: Artifact, now: int) -> None:
    """Save the Pulse message about a new artifact."""
    effect = PublishMessage(ARTIFACT_CREATED, row.number, {"artifact": artifact_document(row)})
    writes = StatementBatch()
    store.insert_pulse_messages(writes, [pulse_message(standalone, ARTIFACT_CREATED, effect, now)], repeats=True)
    writes.send()
    if conf.taskcluster_amqp_url:
        transaction.on_commit(partial(notifications.announce, [PUBLISHERS]))


def artifact_document(row: Artifact) -> dict[str, Any]:
    """Return an artifact as clients and Pulse messages show it."""
    length = {} if row.content_length is None else {"contentLength": row.content_length}
    facts = {"storageType": row.kind, "name": row.name, "expires": format_timestamp(row.expires_at)}
    return {**facts, "contentType": row.content_type, **length}


def content_deleted_at(row: Artifact) -> int:
    """Return the time at which the content of an artifact is deleted: with its task, if both expire together."""
    return row.expires_at + conf.taskcluster_expiration_delay * 1000


def delete_expired_artifacts(limit: int) -> int:
    """Delete expired artifacts, in batches of `limit`. Returns how many. Their content expires at the same time."""
    expired, count = limit, 0
    while expired == limit:
        before = clock.now() - conf.taskcluster_expiration_delay * 1000
        ids = (
            Artifact.objects.filter(expires_at__lte=before).order_by("expires_at").values_list("pk", flat=True)[:limit]
        )
        expired, _ = Artifact.objects.filter(pk__in=list(ids)).delete()
        count += expired
    return count


def store_content(task_id: str, number: int, name: str, content: "File[bytes]", encoding: str = "") -> Artifact:
    """Store the content of an artifact. It replaces earlier content.

    Raises:
        NotFound: when there is no such artifact.
        Busy: when the storage cannot be reached.
    """
    row = find(task_id, number, name)
    path = save_content("artifacts", content, content_deleted_at(row))
    with transaction.atomic():
        locked = Artifact.objects.select_for_update().filter(pk=row.pk).first()
        if locked is None:
            raise NotFound(f"Artifact {name} of task {task_id} was deleted during the upload.")
        expire_content(row.path)
        row.path, row.size, row.content_encoding = path, content.size, encoding
        row.save(update_fields=["path", "size", "content_encoding"])
    return row


def find_present(task_id: str, number: int, name: str) -> Artifact:
    """Return an artifact whose content is stored on this server."""
    row = find(task_id, number, name)
    if not row.path:
        raise NotFound(f"Artifact {name} has no content yet.")
    return row


def stream_content(row: Artifact, part: range | None = None) -> Iterator[bytes]:
    """Return the content of an artifact, or a range of it, in chunks.

    Raises:
        PayloadMissing: when the file is missing in the storage.
        Busy: when the storage cannot be reached.
    """
    with storage_errors(row.path):
        return payload_store.stream_payload(row.path, part)


PAGE = 64 * 1024
MAX_UNPACKED = 32 * 1024 * 1024
"""The limit up to which compressed logs are decompressed. Users must download the others to see their ends."""
MAX_LINKS = 5
GZIP = 31
"""The `wbits` of zlib for the gzip format."""


@dataclass(frozen=True, slots=True)
class TextPage:
    """A part of a text with its position in bytes. `is_cut`: the text continues after the decompressed part."""

    content: bytes
    begin: int
    end: int
    total: int
    is_cut: bool = False


def resolve_link(task_id: str, number: int, name: str) -> Artifact:
    """Return the artifact of a name, following links.

    Raises:
        NotFound: when there is no such artifact, or there are too many links.
    """
    for _ in range(MAX_LINKS):
        row = find(task_id, number, name)
        if row.kind != LINK:
            return row
        name = row.details["artifact"]
    raise NotFound(f"The links of artifact {name} do not lead to an artifact.")


def read_page(row: Artifact, until: int | None = None) -> TextPage:
    """Return the last page of an artifact's content, or the page that ends at the byte `until`.

    Raises:
        NotFound: when the content is not stored on this server.
        Invalid: when the content has an unknown encoding, or is corrupt.
        Busy: when the storage cannot be reached.
    """
    if not row.path:
        raise NotFound(f"The content of artifact {row.name} is not stored on this server.")
    if row.content_encoding not in ("", "identity", "gzip"):
        raise Invalid(f"Artifact {row.name} has the encoding {row.content_encoding}, which cannot be shown.")
    with storage_errors(row.path):
        return _read_compressed_page(row, until) if row.content_encoding == "gzip" else _read_plain_page(row, until)


def _read_plain_page(row: Artifact, until: int | None) -> TextPage:
    end = row.size if until is None else min(until, row.size)
    begin = max(end - PAGE, 0)
    return _text_page(payload_store.read_payload_range(row.path, begin, end - begin), end, row.size)


def _read_compressed_page(row: Artifact, until: int | None) -> TextPage:
    """Decompress the content from its start, keeping only one page in memory."""
    tail, total = bytearray(), 0
    stop = MAX_UNPACKED if until is None else min(until, MAX_UNPACKED)
    try:
        for some in _decompress(payload_store.stream_payload(row.path)):
            some = some[: stop - total]
            total += len(some)
            tail += some
            del tail[:-PAGE]
            if total >= stop:
                break
    except zlib.error as broken:
        raise Invalid(f"Artifact {row.name} is not valid gzip data.") from broken
    is_cut = until is None and total >= MAX_UNPACKED
    return _text_page(bytes(tail), total, total, is_cut)


def _text_page(content: bytes, end: int, total: int, is_cut: bool = False) -> TextPage:
    """Return a page that starts with a complete line, if it has one. The previous page has the rest of a cut line."""
    if len(content) < end:
        content = content.partition(b"\n")[2] or content
    return TextPage(content, end - len(content), end, total, is_cut)


def _decompress(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the decompressed content in chunks of at most PAGE bytes. Concatenated gzip members are one text."""
    unpacker = zlib.decompressobj(wbits=GZIP)
    for chunk in chunks:
        while chunk:
            if unpacker.eof:
                unpacker = zlib.decompressobj(wbits=GZIP)
            yield unpacker.decompress(chunk, PAGE)
            chunk = unpacker.unused_data or unpacker.unconsumed_tail


def delete_expired_tasks(limit: int) -> int:
    """Delete up to `limit` tasks whose retention after expiry is over. Returns how many.

    If there are fewer, expired groups, workers and queues are deleted too.
    """
    before = clock.now() - conf.taskcluster_expiration_delay * 1000
    ids = list(
        StandaloneTaskRow.objects.filter(expires_at__lt=before)
        .order_by("expires_at")
        .values_list("pk", flat=True)[:limit]
    )
    for id in ids:
        delete_task(id)
    if len(ids) < limit:
        # A group outlives its tasks: it is deleted when none of them is left.
        _delete_empty_groups(list(TaskGroup.objects.filter(expires_at__lt=before).values_list("pk", flat=True)[:limit]))
        Worker.objects.filter(expires_at__lt=before, quarantine_until__lt=before).delete()
        Queue.objects.filter(expires_at__lt=before).delete()
    return len(ids)


def delete_task(task_id: str) -> None:
    """Delete a task with its attempts, dependencies and messages."""
    with transaction.atomic():
        # Concurrent changes finish before the lock is granted, so that they leave no orphaned rows.
        store.lock_row(task_id)
        Failure.objects.filter(task_id=task_id).exclude(task_id="").delete()
        store.delete_standalone_task(task_id)


def _delete_empty_groups(ids: list[str]) -> None:
    with transaction.atomic():
        store.delete_group_messages(ids)
        TaskGroup.objects.filter(pk__in=ids).delete()
