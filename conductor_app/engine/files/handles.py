"""A file's handle is made, found, finished, forgotten."""

from uuid import uuid4

from django.db import transaction

from ... import blob_storage, clock
from ...core.errors import Conflict, Forbidden, Invalid, NotFound
from ...models import Attempt, FileHandle, PayloadReference, Run, StoredPayload
from ...models.files import UPLOADED, UPLOADING
from ..content_files import release_content
from ..payloads import DAY_MS

MOST_A_RUN = 1_000
DEEPEST_FAMILY = 100


def create_handle(run_id: str, attempt_id: str, name: str, content_type: str) -> FileHandle:
    """A handle for a file that is to come. Raises NotFound, and Invalid where the run has too many."""
    if not blob_storage.is_storage_configured():
        raise NotFound("This server keeps no files: PAYLOAD_STORAGE is not set.")
    if not _run_exists(run_id):
        raise NotFound(f"No such workflow found by id: {run_id}")
    if attempt_id and not Attempt.objects.filter(pk=attempt_id, run_id=run_id).exists():
        raise NotFound(f"Task not found for taskId: {attempt_id}")
    if FileHandle.objects.filter(run_id=run_id).count() >= MOST_A_RUN:
        raise Invalid(f"A workflow may have at most {MOST_A_RUN} files.")
    now = clock.now()
    facts = {"name": name, "content_type": content_type, "created_at": now, "updated_at": now}
    return FileHandle.objects.create(id=str(uuid4()), run_id=run_id, attempt_id=attempt_id, **facts)


def find_handle(run_id: str, file_id: str) -> FileHandle:
    """A file that this run or one of its family has; raises NotFound and Forbidden."""
    row = _find_row(file_id)
    if row.run_id != run_id and not (_run_exists(run_id) and _root_run_id(row.run_id) == _root_run_id(run_id)):
        raise Forbidden(f"Workflow {run_id} is not of the family of the file's.")
    return row


def find_unfinished(run_id: str, file_id: str) -> FileHandle:
    """A file of this very run that is still to come; raises NotFound, Forbidden and Conflict."""
    row = _find_row(file_id)
    if row.run_id != run_id:
        raise Forbidden(f"The file belongs to another workflow than {run_id}.")
    if row.status != UPLOADING:
        raise Conflict(f"File {file_id} is {row.status}: it cannot be sent any more.")
    return row


def lock_unfinished(file_id: str) -> FileHandle:
    """The same, held in a transaction; raises NotFound and Conflict."""
    row = FileHandle.objects.select_for_update().filter(pk=file_id).first()
    if row is None:
        raise NotFound(f"File {file_id} has been removed with its workflow.")
    if row.status != UPLOADING:
        raise Conflict(f"File {file_id} is {row.status}: it cannot be sent any more.")
    return row


def _find_row(file_id: str) -> FileHandle:
    row = FileHandle.objects.filter(pk=file_id).first()
    if row is None:
        raise NotFound(f"There is no file {file_id[:100]}.")
    return row


def _run_exists(run_id: str) -> bool:
    """Of a run that is gone nobody has asked who may see it."""
    return Run.objects.filter(pk=run_id).exists()


def _root_run_id(run_id: str) -> str:
    """The run at the top of the family of this one."""
    for _ in range(DEEPEST_FAMILY):
        parent = Run.objects.filter(pk=run_id).values_list("parent_id", flat=True).first()
        if not parent:
            break
        run_id = parent
    return run_id


def finish_upload(run_id: str, file_id: str) -> FileHandle:
    """All of the file has come: from now on it is there. Raises NotFound, Forbidden, Conflict and Invalid."""
    find_unfinished(run_id, file_id)
    with transaction.atomic():
        row = lock_unfinished(file_id)
        if not row.path:
            raise Invalid(f"The content of file {file_id} has not come.")
        finish_locked(row)
    return row


def finish_locked(row: FileHandle) -> None:
    """The file is there: its content goes when its run does."""
    row.status, row.updated_at, parts = UPLOADED, clock.now(), row.parts
    row.upload_id, row.parts = "", {}
    row.save()
    StoredPayload.objects.filter(pk=row.path).update(expires_at=None)
    PayloadReference.objects.create(payload_id=row.path, run_id=row.run_id)
    release_content(*(part["path"] for part in parts.values()))


def delete_files_of_run(run_id: str) -> None:
    """The run is removed: so are its files. Their contents go as all do that no run uses."""
    FileHandle.objects.filter(run_id=run_id).delete()


def delete_unfinished(limit: int) -> int:
    """Forget the files that nobody has gone on sending for a day; how many."""
    old = FileHandle.objects.filter(status=UPLOADING, created_at__lte=clock.now() - DAY_MS).order_by("created_at")
    return FileHandle.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:limit])).delete()[0]
