"""Commands on the entries of artifacts: create, finish and expire."""

from functools import partial
from typing import Any

from django.db import transaction

from ... import blob_storage, clock, conf, notifications
from ...core.errors import Invalid, NotFound
from ...core.standalone import artifacts as core
from ...core.standalone.artifacts import OBJECT, S3, ArtifactValue
from ...core.standalone.effects import PublishMessage
from ...core.standalone.snapshot import StandaloneTask
from ...insight.standalone.task_status import format_timestamp
from ...models import Artifact as Row
from ...store import standalone_tasks, stored_payloads
from ...store.statement_batch import StatementBatch
from ..payloads.payload_storage import delete_expired_payloads
from .artifact_objects import new_upload
from .pulse_messages import ARTIFACT_CREATED, PUBLISHERS, pulse_message


def create(task_id: str, number: int, name: str, new: ArtifactValue) -> Row:
    """Create an artifact. A repeated request updates it.

    Raises:
        Invalid: when the task does not exist, or a value is invalid.
        Conflict: when the attempt or the existing artifact does not allow it.
    """
    if new.kind in (S3, OBJECT) and not blob_storage.is_storage_configured():
        raise Invalid("This server stores no artifacts: PAYLOAD_STORAGE is not set.")
    with transaction.atomic():
        standalone, now = _lock_task(task_id), clock.now()
        core.require_writable_attempt(standalone, number, new.expires_at, now)
        row = Row.objects.of(task_id, number).filter(name=name).first()
        if row is None:
            row = Row(task_id=task_id, number=number, name=name, created_at=now, is_present=new.kind != OBJECT)
            if new.kind == OBJECT:
                row.details = new_upload(standalone.project_id)
        else:
            new = core.replace_artifact(to_artifact(row), new)
        _save_artifact(row, new)
        if new.kind not in (S3, OBJECT):
            publish_artifact_message(standalone, row, now)
    return row


def _lock_task(task_id: str) -> StandaloneTask:
    try:
        return standalone_tasks.load_for_update(task_id)
    except NotFound as missing:
        # Invalid instead of NotFound: the URL exists, its task id is wrong.
        raise Invalid(missing.message) from None


def _save_artifact(row: Row, new: ArtifactValue) -> None:
    row.kind, row.content_type, row.expires_at = new.kind, new.content_type, new.expires_at
    row.details = {**row.details, **new.details} if row.kind == OBJECT else dict(new.details)
    row.content_length = new.content_length
    row.save()
    if row.path:
        stored_payloads.set_expiry([row.path], content_deleted_at(row))


def to_artifact(row: Row) -> ArtifactValue:
    """Return the artifact of a row."""
    return ArtifactValue(row.kind, row.content_type, row.expires_at, row.details, row.content_length)


def find(task_id: str, number: int, name: str) -> Row:
    """Return an artifact, with or without content.

    Raises:
        NotFound: when there is no such artifact.
    """
    row = Row.objects.of(task_id, number).filter(name=name).first()
    if row is None:
        raise NotFound(f"Run {number} of task {task_id} has no artifact {name}.")
    return row


def finish(task_id: str, number: int, name: str, upload_id: str) -> None:
    """Complete the upload of an object artifact.

    Raises:
        NotFound: when there is no such artifact.
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
        publish_artifact_message(standalone_tasks.load_for_update(task_id), row, clock.now())


def publish_artifact_message(standalone: StandaloneTask, row: Row, now: int) -> None:
    """Save the Pulse message about a new artifact."""
    effect = PublishMessage(ARTIFACT_CREATED, row.number, {"artifact": artifact_document(row)})
    writes = StatementBatch()
    standalone_tasks.insert_pulse_messages(
        writes, [pulse_message(standalone, ARTIFACT_CREATED, effect, now)], repeats=True
    )
    writes.send()
    if conf.taskcluster_amqp_url:
        transaction.on_commit(partial(notifications.announce, [PUBLISHERS]))


def artifact_document(row: Row) -> dict[str, Any]:
    """Return an artifact as clients and Pulse messages show it."""
    length = {} if row.content_length is None else {"contentLength": row.content_length}
    facts = {"storageType": row.kind, "name": row.name, "expires": format_timestamp(row.expires_at)}
    return {**facts, "contentType": row.content_type, **length}


def content_deleted_at(row: Row) -> int:
    """Return the time at which the content of an artifact is deleted: with its task, if both expire together."""
    return row.expires_at + conf.taskcluster_expiration_delay * 1000


def expire(limit: int) -> int:
    """Delete expired artifacts and unused content, in batches of `limit`. Returns the number of artifacts."""
    expired, count = limit, 0
    while expired == limit:
        before = clock.now() - conf.taskcluster_expiration_delay * 1000
        ids = Row.objects.filter(expires_at__lte=before).order_by("expires_at").values_list("pk", flat=True)[:limit]
        expired, _ = Row.objects.filter(pk__in=list(ids)).delete()
        count += expired
    while delete_expired_payloads(limit) == limit:
        pass
    return count
