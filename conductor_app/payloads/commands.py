"""Payloads and uploaded files in blob storage: who may read them, their sizes and quotas, and their content.

They are stored and read without locks. A sweep deletes them when no run and no row uses them any more.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from django.core.files.base import File
from django.db.models import F, Q, Sum, TextField
from django.db.models.functions import Cast, Coalesce, Greatest

from ..access.authentication import Actor, current_actor, is_allowed, task_target
from ..access.encryption import decrypt_masked, encrypt_masked
from ..access.permissions import READ, WORKER_RIGHTS, WORKFLOW, WORKFLOW_DEF
from ..access.quotas import caller_of, current_caller, quotas_of
from ..access.visibility import visible_to
from ..core import errors
from ..core.errors import Busy, Conflict, Forbidden, Invalid, NotFound, PayloadMissing, PayloadTooLarge, QuotaExceeded
from ..core.masking import MARK, contains_mark
from ..core.primitives import JsonValue
from ..db.database import transaction
from ..db.fields import dumps, loads, loads_encrypted
from ..runs.models import Attempt, Run
from ..settings import conf
from ..utils import clock
from ..utils.json_values import MAX_DEPTH, is_too_deep, loads_repaired
from . import store
from .models import PayloadReference, StoredPayload
from .store import PayloadPlacement

log = logging.getLogger(__name__)
DAY_MS = 86_400_000
"""The period after which an unused payload expires: an upload precedes the start or report that refers to it."""
UPLOAD_BEGIN_MS = 20 * 60_000
"""The period in which an upload begins. The address for it is valid for 15 minutes."""
KEPT_WITH_OWNER = ("files/", "artifacts/")
"""Prefixes of the paths of files and artifacts, whose content expires with their run or task."""
LEAST_BYTES = 64 * 1024
"""The bytes that an upload counts at least, because each one also has a row."""
RETRY_STORAGE_SECONDS = 60


def require_payload_read(actor: Actor, path: str) -> None:
    """Check that the actor may download a payload.

    It needs access to a run that uses the payload, or the right to execute an open task with it. Only its uploader
    may read a payload that no run uses.

    Raises:
        Forbidden: when it may not, or there is no such payload.
    """
    if not _may_read_all(actor) and not _may_read(actor, path):
        raise _refusal(actor, path)


def require_payload_use(path: str) -> None:
    """Check that the current actor may start or report with a payload: it has uploaded it, or may read it.

    A missing payload is reported by its reader.

    Raises:
        Forbidden: when it may not.
    """
    actor = current_actor()
    if actor is None or _may_read_all(actor):
        return
    row = StoredPayload.objects.filter(pk=path).values("uploader").first()
    if row is None or row["uploader"] == caller_of(actor):
        return
    if not _may_read(actor, path):
        raise _refusal(actor, path)


def _may_read_all(actor: Actor) -> bool:
    return actor.permissions.allows_all((READ, WORKFLOW_DEF), (READ, WORKFLOW))


def _may_read(actor: Actor, path: str) -> bool:
    run_ids = PayloadReference.objects.filter(payload=path).values("run_id")
    if visible_to(actor, Run.objects.filter(pk__in=run_ids)).exists():
        return True
    attempts = Attempt.objects.open().filter(Q(input_path=path) | Q(output_path=path), run_id__in=run_ids)
    fields = ("queue", "domain", "task__name", "run_id", "run__name")
    tasks = attempts.order_by().values_list(*fields).distinct()
    if any(is_allowed(actor, WORKER_RIGHTS, task_target(*task)) for task in tasks):
        return True
    is_unused = StoredPayload.objects.filter(pk=path, uploader=caller_of(actor), expires_at__isnull=False)
    return is_unused.exists()


def _refusal(actor: Actor, path: str) -> Forbidden:
    return Forbidden(f"{actor.name} has no access to the payload '{path[:200]}'.", code="FORBIDDEN")


def payload_size(payload: JsonValue) -> int:
    """Return the size of a payload as stored, in bytes."""
    return len(dumps(payload) or "") if payload is not None else 0


def refuse_large(payload: JsonValue, max_bytes: int, what: str = "The input") -> int:
    """Check the size of a payload, and return it.

    Raises:
        PayloadTooLarge: when it exceeds the limit.
    """
    size = payload_size(payload)
    if size > max_bytes:
        raise PayloadTooLarge(f"{what} has {size} bytes; the limit is {max_bytes} bytes.")
    return size


def new_placement(stored_paths: Mapping[str, str], uploaded_paths: Mapping[tuple[str, str], str]) -> PayloadPlacement:
    """Return a placement with this server's limits."""
    limits = {"max_task_bytes": conf.task_payload_max_bytes, "max_run_bytes": conf.workflow_payload_max_bytes}
    if not store.is_storage_configured():
        return PayloadPlacement(seal=encrypt_masked, **limits)
    return PayloadPlacement(
        conf.task_payload_soft_bytes,
        conf.workflow_payload_soft_bytes,
        stored_paths,
        uploaded_paths,
        encrypt_masked,
        **limits,
    )


def reserve_path(kind: str) -> str:
    """Reserve a path for a payload of the server, such as `task/output/….json`."""
    path, now = f"{kind}/{uuid4()}.json", clock.now()
    # The row is written first, so that no stored payload is without a row.
    store.reserve(path, now, now + DAY_MS)
    return path


def reserve_upload(kind: str) -> str:
    """Reserve a path for a payload that the current actor uploads. It expires soon, unless the upload begins.

    Raises:
        QuotaExceeded: when the actor has uploaded too much.
    """
    caller = current_caller()
    require_upload(caller)
    path, now = f"{kind}/{uuid4()}.json", clock.now()
    store.reserve(path, now, now + UPLOAD_BEGIN_MS, caller or None)
    return path


def store_payload(kind: str, text: str) -> str:
    path = reserve_path(kind)
    store_reserved(path, text.encode("utf-8", "surrogatepass"))
    return path


def store_reserved(path: str, content: "bytes | File[bytes]") -> None:
    """Store the content for a reserved path.

    Raises:
        NotFound: when the path was not reserved.
        Conflict: when a run uses the payload already, or another request uploads it.
        Busy: when the storage cannot be reached.
    """
    if not store.is_reserved(path):
        raise NotFound(f"There is no payload {path}.")
    # Without a size, the payload cannot be used until the upload is complete.
    if not store.begin_upload(path, clock.now() + DAY_MS):
        raise Conflict(f"The payload {path} is in use and cannot be replaced.")
    with storage_errors(path):
        # A client that received no response repeats its upload.
        store.delete_payload(path)
        if not store.put_payload(path, content):
            raise Conflict(f"The payload {path} is being uploaded by another request.")
    size = len(content) if isinstance(content, bytes) else content.size
    store.set_size(path, size)


def stream_payload(path: str) -> tuple[int, Iterator[bytes]]:
    """Return the size of a payload in bytes, and its content in chunks.

    Raises:
        PayloadMissing: when the file is missing in the storage.
        Busy: when the storage cannot be reached.
    """
    size = _payload_size(path)
    with storage_errors(path):
        return size, store.stream_payload(path)


def load_payload(path: str) -> Any:
    """Return a payload of a run for people and clients: masked values are redacted.

    Raises:
        PayloadMissing: when its file or its row is missing.
        Busy: when the storage cannot be reached.
    """
    return loads(_read_text(path))


def load_encrypted_payload(path: str) -> Any:
    """Return a payload of a run as stored, with masked values encrypted.

    Raises:
        PayloadMissing: when its file or its row is missing.
        Busy: when the storage cannot be reached.
    """
    return loads_encrypted(_read_text(path))


def load_unmasked_payload(path: str) -> Any:
    """Return a payload of a run for decisions and workers: masked values are decrypted.

    Raises:
        PayloadMissing: when its file or its row is missing.
        Busy: when the storage cannot be reached.
    """
    return decrypt_masked(load_encrypted_payload(path))


def load_unmasked_output(run_id: str) -> Any:
    """Return the output of a run for its parent, with masked values decrypted."""
    text = Cast("output", TextField())
    written, path = Run.objects.annotate(text=text).values_list("text", "output_path").get(pk=run_id)
    return unmask_stored(written, path)


def unmask_stored(written: str, path: str) -> Any:
    """Return a payload from its columns, with masked values decrypted."""
    if path:
        return load_unmasked_payload(path)
    value = loads_encrypted(written)
    return decrypt_masked(value) if MARK in written else value


def load_stored_input(run_id: str) -> Any:
    """Return the input of a run as stored, with masked values encrypted, so that it can be saved again."""
    text = Cast("input", TextField())
    written, path = Run.objects.annotate(text=text).values_list("text", "input_path").get(pk=run_id)
    return loads_encrypted(_read_text(path) if path else written)


def load_stored_task_input(attempt_id: str) -> Any:
    """Return the input of an attempt as stored, with masked values encrypted, so that it can be saved again."""
    text = Cast("input", TextField())
    rows = Attempt.objects.annotate(text=text).values_list("text", "input_path")
    written, path = rows.get(pk=attempt_id)
    return loads_encrypted(_read_text(path) if path else written)


def _read_text(path: str) -> str:
    try:
        return _parse_payload(path).decode("utf-8", "surrogatepass")
    except NotFound as missing:
        # The path stands in a row of a run, so a missing payload does not mean that there is no such run.
        raise PayloadMissing(missing.message) from missing


def _parse_payload(path: str) -> bytes:
    _payload_size(path)
    with storage_errors(path):
        return store.fetch_payload(path)


def load_client_payload(path: str, most: int) -> dict[str, Any]:
    """Return a payload that a client uploaded before and refers to by path. `most`: the size limit in bytes.

    Raises:
        Forbidden: when the current actor has neither uploaded the payload nor may read it.
        Invalid: when the payload is missing, too large, not a JSON object, or contains masked values.
        Busy: when the storage cannot be reached.
    """
    require_payload_use(path)
    try:
        if (size := _payload_size(path)) > most:
            raise Invalid(f"The payload {path} has {size} bytes; the limit is {most} bytes.")
        body = _parse_payload(path)
        value = loads_repaired(body)
    except (NotFound, ValueError, RecursionError) as fault:
        raise Invalid(f"The payload {path[:300]} cannot be read: {fault}") from None
    if contains_mark(body, value):
        # The client that sends the path may lack access to the masked values.
        raise Invalid(f"The payload {path} contains masked values. Send the values in the request instead.")
    if not isinstance(value, dict) or is_too_deep(value, body, MAX_DEPTH):
        raise Invalid(f"The payload {path} must be a JSON object, nested at most {MAX_DEPTH} levels deep.")
    return value


@contextmanager
def storage_errors(path: str) -> Iterator[None]:
    """Translate storage errors, and log them.

    Raises:
        PayloadMissing: when the file is missing in the storage.
        Busy: when the storage cannot be reached.
    """
    try:
        yield
    except errors.StorageFileMissing as missing:
        log.warning("payload_lost", extra={"path": path, "cause": str(missing)})
        raise PayloadMissing(f"The payload {path} is missing in the storage.") from missing
    except errors.StorageUnavailable as error:
        log.warning("payload_unreachable", extra={"path": path, "cause": str(error)})
        raise Busy(f"The payload {path} cannot be read or written: the storage is unreachable. Retry later.") from error


def _payload_size(path: str) -> int:
    size = StoredPayload.objects.filter(pk=path).values_list("size", flat=True).first()
    if size is None:
        raise NotFound(f"There is no payload {path[:300]}.")
    if not store.is_storage_configured():
        raise Busy(f"The payload {path} cannot be read: this process was started without PAYLOAD_STORAGE.")
    return size


def delete_expired_payloads(limit: int) -> int:
    """Delete up to `limit` expired payloads. Returns how many. The next sweep completes an interrupted deletion."""
    if not store.is_storage_configured():
        return 0
    now, count = clock.now(), 0
    for path in store.expired_paths(now, limit):
        try:
            count += _delete_payload(path, now)
        except errors.StorageUnavailable as error:
            log.warning("payloads_not_deleted", extra={"path": path, "cause": str(error)})
            break
    return count


def _delete_payload(path: str, now: int) -> bool:
    if not store.withdraw_payload(path, now):
        return False
    store.delete_payload(path)
    with transaction.atomic():
        store.delete_row(path)
    return True


def save_content(kind: str, content: "File[bytes]", expires_at: int, uploader: str = "") -> str:
    """Store a file and return its path. A sweep deletes the file after `expires_at`, unless that was reset before.

    `uploader`: the caller whose stored bytes it counts for.

    Raises:
        QuotaExceeded: when the uploader has stored too much.
        Busy: when the storage cannot be reached.
    """
    require_storage(uploader)
    path = f"{kind}/{uuid4()}"
    # The row is written first, so that no stored file is without a row.
    store.reserve(path, clock.now(), expires_at, uploader or None)
    try:
        with storage_errors(path):
            store.put_payload(path, content)
    except BaseException:
        # A partial upload can be large: delete it now, not in the next sweep.
        with suppress(errors.StorageUnavailable):
            store.delete_payload(path)
        expire_content(path)
        raise
    store.set_size(path, content.size)
    return path


def expire_content(*paths: str) -> None:
    """Mark files as unused. A later sweep deletes them, after the requests that still read them."""
    store.set_expiry(paths, clock.now())


def stored_bytes_by_caller(callers: Sequence[str]) -> dict[str, int]:
    """Return the bytes of the payloads and files that each of these callers has uploaded."""
    rows = StoredPayload.objects.filter(uploader__in=callers).order_by().values_list("uploader")
    return {str(uploader): total or 0 for uploader, total in rows.annotate(total=Sum("size"))}


def stored_bytes(caller: str) -> int:
    """Return the bytes of the payloads and files that a caller has uploaded."""
    return StoredPayload.objects.filter(uploader=caller).aggregate(total=Sum("size"))["total"] or 0


def unattached_bytes(caller: str, payload_bytes: int) -> int:
    """Return the bytes of the payloads that a caller has uploaded and no run uses.

    `payload_bytes`: the bytes that an address counts for which nothing has been uploaded yet.
    """
    rows = StoredPayload.objects.filter(uploader=caller, expires_at__isnull=False)
    for prefix in KEPT_WITH_OWNER:
        rows = rows.exclude(path__startswith=prefix)
    size = Greatest(Coalesce(F("size"), payload_bytes), LEAST_BYTES)
    return rows.aggregate(total=Sum(size))["total"] or 0


def require_storage(caller: str) -> None:
    """Check that a caller may upload more bytes.

    Raises:
        QuotaExceeded: when its uploads have as many bytes as its quota allows.
    """
    limit = quotas_of(caller).stored_bytes
    if limit and stored_bytes(caller) >= limit:
        raise QuotaExceeded(f"The caller's quota of {limit} stored bytes is used up.", RETRY_STORAGE_SECONDS)


def require_upload(caller: str) -> None:
    """Check that a caller may upload a payload. No run uses it yet, so it counts as unattached.

    Raises:
        QuotaExceeded: when its unattached payloads, or all its uploads, have too many bytes.
    """
    limit = conf.unattached_upload_max_bytes
    if limit and unattached_bytes(caller, conf.workflow_payload_max_bytes) >= limit:
        message = f"The caller has uploaded {limit} bytes or more that no run uses yet (UNATTACHED_UPLOADS_MAX_MB)."
        raise QuotaExceeded(message, RETRY_STORAGE_SECONDS)
    require_storage(caller)
