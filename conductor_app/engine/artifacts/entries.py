"""An artifact is created, finished, forgotten."""

from functools import partial
from typing import Any

from django.db import transaction

from ... import blob_storage, clock, conf, notifications
from ...core.errors import Invalid, NotFound
from ...core.standalone import artifacts as core
from ...core.standalone.artifacts import OBJECT, S3, ArtifactValue
from ...core.standalone.effects import PublishMessage
from ...core.standalone.snapshot import StandaloneTask
from ...insight.standalone import format_timestamp
from ...models import Artifact as Row
from ...models import StoredPayload
from ...store import standalone_tasks
from ...store.statement_batch import StatementBatch
from ..payloads import delete_expired_payloads
from ..standalone.pulse_messages import ARTIFACT_CREATED, PUBLISHERS, pulse_message
from .objects import new_upload


def create(task_id: str, number: int, name: str, new: ArtifactValue) -> Row:
    """An artifact, new or once more. Raises Invalid and Conflict."""
    if new.kind in (S3, OBJECT) and not blob_storage.is_storage_configured():
        raise Invalid("This server has no place for artifacts: PAYLOAD_STORAGE is not set.")
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
        # Whoever brings an artifact of a task should know the task: that is no address that leads nowhere.
        raise Invalid(missing.message) from None


def _save_artifact(row: Row, new: ArtifactValue) -> None:
    row.kind, row.content_type, row.expires_at = new.kind, new.content_type, new.expires_at
    row.details = {**row.details, **new.details} if row.kind == OBJECT else dict(new.details)
    row.content_length = new.content_length
    row.save()
    if row.path:
        StoredPayload.objects.filter(pk=row.path).update(expires_at=content_deleted_at(row))


def to_artifact(row: Row) -> ArtifactValue:
    """The artifact that a row keeps."""
    return ArtifactValue(row.kind, row.content_type, row.expires_at, row.details, row.content_length)


def find(task_id: str, number: int, name: str) -> Row:
    """The artifact, present or not; raises NotFound."""
    row = Row.objects.of(task_id, number).filter(name=name).first()
    if row is None:
        raise NotFound(f"Run {number} of task {task_id} has no artifact {name}.")
    return row


def finish(task_id: str, number: int, name: str, upload_id: str) -> None:
    """The content of an object has come: from now on it is there. Raises NotFound and Invalid."""
    with transaction.atomic():
        row = find(task_id, number, name)
        if row.kind != OBJECT:
            raise Invalid(f"Artifact {name} is of the type {row.kind}: there is nothing to finish.")
        if row.details.get("uploadId") != upload_id:
            raise Invalid("The uploadId is not that of the artifact.")
        if not row.details.get("isFinished"):
            raise Invalid(f"The content of artifact {name} has not come yet.")
        row.is_present = True
        row.save(update_fields=["is_present"])
        publish_artifact_message(standalone_tasks.load_for_update(task_id), row, clock.now())


def publish_artifact_message(standalone: StandaloneTask, row: Row, now: int) -> None:
    """Who listens is told of an artifact."""
    effect = PublishMessage(ARTIFACT_CREATED, row.number, {"artifact": artifact_document(row)})
    writes = StatementBatch()
    standalone_tasks.insert_pulse_messages(
        writes, [pulse_message(standalone, ARTIFACT_CREATED, effect, now)], repeats=True
    )
    writes.send()
    if conf.taskcluster_amqp_url:
        transaction.on_commit(partial(notifications.announce, [PUBLISHERS]))


def artifact_document(row: Row) -> dict[str, Any]:
    """An artifact as its listeners and clients are told of it."""
    said = {} if row.content_length is None else {"contentLength": row.content_length}
    facts = {"storageType": row.kind, "name": row.name, "expires": format_timestamp(row.expires_at)}
    return {**facts, "contentType": row.content_type, **said}


def content_deleted_at(row: Row) -> int:
    """When the content of an artifact is deleted: with its task, if that expires with it."""
    return row.expires_at + conf.taskcluster_expiration_delay * 1000


def expire(limit: int) -> int:
    """Delete the artifacts that have expired, and the content that is nobody's; how many."""
    expired, count = limit, 0
    while expired == limit:
        before = clock.now() - conf.taskcluster_expiration_delay * 1000
        ids = Row.objects.filter(expires_at__lte=before).order_by("expires_at").values_list("pk", flat=True)[:limit]
        expired, _ = Row.objects.filter(pk__in=list(ids)).delete()
        count += expired
    while delete_expired_payloads(limit) == limit:
        pass
    return count
