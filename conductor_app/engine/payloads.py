"""Payloads outside the database: kept and read with no lock held, forgotten when no run uses them any more."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from django.core.files.base import File
from django.db import transaction
from django.db.models import TextField
from django.db.models.functions import Cast

from .. import blob_storage, clock, conf
from ..access.masking import decrypt_masked, encrypt_masked
from ..core.errors import Busy, Conflict, Invalid, NotFound, PayloadMissing
from ..core.masking import MARK
from ..json_values import MAX_DEPTH, is_too_deep, loads_repaired
from ..models import Attempt, Run, StoredPayload
from ..models.fields import loads, loads_encrypted
from ..store import payloads as rows
from ..store.payload_placement import PayloadPlacement

log = logging.getLogger(__name__)

DAY_MS = 86_400_000
"""How long a payload is kept that no run uses: an upload precedes the start or the report that names it."""


def new_placement(kept: Mapping[str, str], named: Mapping[tuple[str, str], str]) -> PayloadPlacement:
    """A shelf with this server's limits."""
    most = {"most_of_task": conf.task_payload_max_bytes, "most_of_run": conf.workflow_payload_max_bytes}
    if not blob_storage.is_storage_configured():
        return PayloadPlacement(seal=encrypt_masked, **most)
    return PayloadPlacement(
        conf.task_payload_soft_bytes, conf.workflow_payload_soft_bytes, kept, named, encrypt_masked, **most
    )


def reserve_path(kind: str) -> str:
    """The path of a payload that is still to come, such as `task/output/….json`."""
    path, now = f"{kind}/{uuid4()}.json", clock.now()
    # The row is first: nothing is ever kept that nobody knows of.
    StoredPayload.objects.create(path=path, created_at=now, expires_at=now + DAY_MS)
    return path


def store_payload(kind: str, text: str) -> str:
    """Keep a payload; its path."""
    path = reserve_path(kind)
    store_reserved(path, text.encode("utf-8", "surrogatepass"))
    return path


def store_reserved(path: str, content: "bytes | File[bytes]") -> None:
    """Keep what has come for a path that was reserved; raises NotFound, and Conflict where a run uses it already."""
    if not StoredPayload.objects.filter(pk=path).exists():
        raise NotFound(f"There is no payload {path}.")
    # Until all has come, nobody can use it.
    if not StoredPayload.objects.filter(pk=path, expires_at__isnull=False).update(size=None):
        raise Conflict(f"The payload {path} is in use and cannot be replaced.")
    with storage_errors(path):
        # A client that did not hear that its upload had come sends it again.
        blob_storage.delete_payload(path)
        if not blob_storage.put_payload(path, content):
            raise Conflict(f"The payload {path} is being sent by somebody else.")
    size = len(content) if isinstance(content, bytes) else content.size
    StoredPayload.objects.filter(pk=path).update(size=size)


def stream_payload(path: str) -> tuple[int, Iterator[bytes]]:
    """The size of a payload and its content, piece by piece; raises NotFound."""
    size = _payload_size(path)
    with storage_errors(path):
        return size, blob_storage.stream_payload(path)


def load_payload(path: str) -> Any:
    """The payload as a value, for people and clients; raises NotFound, and Busy where the storage cannot be reached."""
    return loads(_read_text(path))


def load_unmasked_payload(path: str) -> Any:
    """The same for decisions and workers, with what was sealed put in again."""
    return decrypt_masked(loads_encrypted(_read_text(path)))


def load_unmasked_output(run_id: str) -> Any:
    """What a run has come to, for the run that waited for it."""
    text = Cast("output", TextField())
    written, path = Run.objects.annotate(text=text).values_list("text", "output_path").get(pk=run_id)
    return load_unmasked_payload(path) if path else decrypt_masked(loads_encrypted(written))


def load_stored_input(run_id: str) -> Any:
    """A run's input as it was written, with what was sealed in it: to be written again."""
    text = Cast("input", TextField())
    written, path = Run.objects.annotate(text=text).values_list("text", "input_path").get(pk=run_id)
    return loads_encrypted(_read_text(path) if path else written)


def load_stored_task_input(attempt_id: str) -> Any:
    """The same of an attempt."""
    text = Cast("input", TextField())
    rows = Attempt.objects.annotate(text=text).values_list("text", "input_path")
    written, path = rows.get(pk=attempt_id)
    return loads_encrypted(_read_text(path) if path else written)


def _read_text(path: str) -> str:
    return _parse_payload(path).decode("utf-8", "surrogatepass")


def _parse_payload(path: str) -> bytes:
    _payload_size(path)
    with storage_errors(path):
        return blob_storage.fetch_payload(path)


def load_client_payload(path: str, most: int) -> dict[str, Any]:
    """A payload that a client names instead of sending it; raises Invalid."""
    try:
        if (size := _payload_size(path)) > most:
            raise Invalid(f"The payload {path} of {size} bytes is larger than the {most} bytes that it may have.")
        body = _parse_payload(path)
        value = loads_repaired(body)
    except (NotFound, ValueError, RecursionError) as fault:
        raise Invalid(f"The payload {path[:300]} cannot be read: {fault}") from None
    if MARK.encode() in body:
        # Who names it may not have been shown what is masked in it.
        raise Invalid(f"The payload {path} holds what a definition masks: send the values themselves.")
    if not isinstance(value, dict) or is_too_deep(value, body, MAX_DEPTH):
        raise Invalid(f"The payload {path} must be a JSON object, nested at most {MAX_DEPTH} levels deep.")
    return value


@contextmanager
def storage_errors(path: str) -> Iterator[None]:
    """A storage that cannot be reached is no fault of the asker's: Busy; Lost where the payload is gone from it."""
    try:
        yield
    except blob_storage.StorageFileMissing as gone:
        log.warning("payload_lost", extra={"path": path, "cause": str(gone)})
        raise PayloadMissing(f"The payload {path} is not in the storage any more.") from gone
    except blob_storage.StorageUnavailable as away:
        log.warning("payload_out_of_reach", extra={"path": path, "cause": str(away)})
        raise Busy(f"The payload {path} cannot be reached now.") from away


def _payload_size(path: str) -> int:
    size = (
        StoredPayload.objects.filter(pk=path).values_list("size", flat=True).first()
        if blob_storage.is_storage_configured()
        else None
    )
    if size is None:
        raise NotFound(f"There is no payload {path[:300]}.")
    return size


def delete_expired_payloads(limit: int) -> int:
    """Forget the payloads that are nobody's; returns how many. What is interrupted is done by the next pass."""
    now = clock.now()
    return (
        sum(_delete_payload(path, now) for path in rows.expired_paths(now, limit))
        if blob_storage.is_storage_configured()
        else 0
    )


def _delete_payload(path: str, now: int) -> bool:
    if not rows.withdraw_payload(path, now):
        return False
    blob_storage.delete_payload(path)
    with transaction.atomic():
        rows.delete_row(path)
    return True
