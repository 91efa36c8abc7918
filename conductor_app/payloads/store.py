"""Where payloads are stored: small ones in their rows, large ones in blob storage, with the path in the row.

Blob storage is a Django storage: a folder or a bucket. Each content in it has a row. A sweep deletes the content of
expired rows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from django.core.files.base import ContentFile, File
from django.core.files.storage import Storage, storages

from ..core.errors import PayloadOverLimit, StorageFileMissing, StorageUnavailable
from ..core.masking import mask_encrypt, mask_step_state, masked_names
from ..core.primitives import JsonValue
from ..core.snapshot import UNKNOWN, Attempt, Run, Task
from ..db.fields import dumps
from ..db.statements import execute, fetch, load_statements
from ..settings import conf
from .models import PayloadReference, StoredPayload

PAYLOADS_SQL = load_statements("payloads/payloads")
CHUNK_BYTES = 64 * 1024
OVERHEAD_BYTES = 64 * 1024
"""The number of bytes that the engine may add to a payload after its size was checked, such as the id of a child."""


def payload_text(value: JsonValue) -> str:
    """Return a payload as stored in its column."""
    return "{}" if value is UNKNOWN or value is None else dumps(value) or "{}"


class PlacedPayload(NamedTuple):
    """The columns of a payload: its text or its path, and its size."""

    text: str
    size: int
    path: str


class PayloadsTooLarge(Exception):
    """Payloads must be stored in blob storage, without locks, and then the change must be repeated."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        """`texts`: the payloads to store, by digest."""
        self.texts = texts
        super().__init__(f"{len(texts)} payloads")


class PayloadPlacement:
    def __init__(
        self,
        task_bytes: int = 0,
        run_bytes: int = 0,
        stored_paths: Mapping[str, str] | None = None,
        uploaded_paths: Mapping[tuple[str, str], str] | None = None,
        seal: Callable[[str], str] = lambda text: "",
        max_task_bytes: int = 0,
        max_run_bytes: int = 0,
    ) -> None:
        """Set the limits and the known payloads.

        `task_bytes`, `run_bytes`: the maximum size of a payload in a row. `max_task_bytes`, `max_run_bytes`: the
        maximum size of any payload. All are bytes; 0 means no limit.

        `stored_paths`: the paths of payloads that are in blob storage already, by digest. `uploaded_paths`: the paths
        that clients uploaded to, by (id of the attempt or run, `input` or `output`). `seal`: encrypts masked values.
        """
        self.seal, self.max_task_bytes, self.max_run_bytes = seal, max_task_bytes, max_run_bytes
        self.task_bytes, self.run_bytes = task_bytes, run_bytes
        self.stored_paths, self.uploaded_paths = stored_paths or {}, uploaded_paths or {}
        self.too_large: dict[str, str] = {}
        self.used: set[tuple[str, str]] = set()
        self.dropped: set[str] = set()

    def of_task(self, attempt: Attempt, run: Run, part: str) -> PlacedPayload:
        """Return the columns for the input or output of an attempt.

        Raises:
            PayloadOverLimit: when it exceeds the maximum size.
        """
        placed = self._place_payload(getattr(attempt, part), run, self.task_bytes, (attempt.id, part))
        # The size of an uploaded payload was checked at the upload.
        if _exceeds(placed, self.max_task_bytes) and (attempt.id, part) not in self.uploaded_paths:
            raise PayloadOverLimit(f"The {part} of {_payload_owner(attempt, run)}", self.max_task_bytes, placed.size)
        return placed

    def of_run(self, run: Run, part: str, extra_masked_names: frozenset[str] = frozenset()) -> PlacedPayload:
        """Return the columns for the input or output of a run.

        `extra_masked_names`: names to mask besides those of its definition.

        Raises:
            PayloadOverLimit: when an output exceeds the maximum size. The sizes of inputs are checked on receipt.
        """
        placed = self._place_payload(getattr(run, part), run, self.run_bytes, (run.id, part), extra_masked_names)
        if part == "output" and _exceeds(placed, self.max_run_bytes):
            raise PayloadOverLimit("The workflow's output", self.max_run_bytes, placed.size)
        return placed

    def variables(self, run: Run) -> str:
        """Return the variables of a run as text. They are always stored in the row."""
        return payload_text(mask_encrypt(run.variables, masked_names(run.definition), self.seal))

    def step_state(self, task: Task, run: Run) -> str:
        """Return the step state of a task as text. It is always stored in the row."""
        return payload_text(mask_step_state(task.step_state, masked_names(run.definition), self.seal))

    def _place_payload(
        self,
        value: JsonValue,
        run: Run,
        max_bytes: int,
        owner: tuple[str, str],
        extra_masked_names: frozenset[str] = frozenset(),
    ) -> PlacedPayload:
        text, masked = payload_text(value), masked_names(run.definition) | extra_masked_names
        hidden = payload_text(mask_encrypt(value, masked, self.seal)) if masked else text
        if self.uploaded_paths and (path := self.uploaded_paths.get(owner)):
            if hidden == text:
                return self._use_stored(text, path, run.id)
            # An uploaded payload is not encrypted: it is stored again, and the upload is released.
            self.dropped.add(path)
        if max_bytes and len(text) > max_bytes:
            # The stored copies of other runs are not encrypted with this name.
            name = digest_text(text) if hidden == text else f"sealed {digest_text(text)}"
            if path := self.stored_paths.get(name):
                return self._use_stored(text, path, run.id)
            self.too_large[name] = hidden
        return PlacedPayload(hidden, len(text), "")

    def _use_stored(self, text: str, path: str, run_id: str) -> PlacedPayload:
        self.used.add((path, run_id))
        return PlacedPayload("{}", len(text), path)

    def statements(self) -> list[tuple[str, Sequence[Any], int | None]]:
        """Return the statements that record the use of payloads.

        Each has SQL, parameters, and the expected number of changed rows.

        Raises:
            PayloadsTooLarge: when payloads must be stored first.
        """
        if self.too_large:
            raise PayloadsTooLarge(self.too_large)
        return [*self._release_statements(), *self._claim_statements()]

    def _release_statements(self) -> list[tuple[str, Sequence[Any], int | None]]:
        if not self.dropped:
            return []
        return [(*PAYLOADS_SQL["release_uploads"].bind(paths=sorted(self.dropped)), None)]

    def _claim_statements(self) -> list[tuple[str, Sequence[Any], int | None]]:
        if not self.used:
            return []
        paths = sorted({path for path, _ in self.used})
        pairs = [value for use in sorted(self.used) for value in use]
        rows = ", ".join(["(%s, %s)"] * len(self.used))
        reference = f"INSERT INTO conductor_payloadreference (payload_id, run_id) VALUES {rows} ON CONFLICT DO NOTHING"
        return [(*PAYLOADS_SQL["use_payloads"].bind(paths=paths), len(paths)), (reference, pairs, None)]


def _payload_owner(attempt: Attempt, run: Run) -> str:
    return next((f"task {task.key}" for task in run.tasks.values() if task.attempt.id == attempt.id), "a task")


def _exceeds(placed: PlacedPayload, max_bytes: int) -> bool:
    return bool(max_bytes) and placed.size > max_bytes + OVERHEAD_BYTES


def digest_text(text: str) -> str:
    """Return the digest that identifies a payload."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def digest_value(value: JsonValue) -> str:
    """Return the digest of a value that is not serialized yet."""
    return digest_text(dumps(value) or "")


def expire_payloads_of_run(run_id: str, now: int) -> None:
    """Let the payloads of a deleted run expire, unless other runs use them."""
    execute(*PAYLOADS_SQL["release_payloads"].bind(now=now, run_id=run_id))
    execute(*PAYLOADS_SQL["delete_uses_by_run"].bind(run_id=run_id))


def expired_paths(now: int, limit: int) -> list[str]:
    """Return the paths of expired unused payloads, oldest first."""
    return [path for (path,) in fetch(*PAYLOADS_SQL["find_expired_payloads"].bind(now=now, limit=limit))]


def withdraw_payload(path: str, now: int) -> bool:
    """Make an expired payload unusable before its deletion. Returns False if a run has begun to use it."""
    return execute(*PAYLOADS_SQL["withdraw_payload"].bind(path=path, now=now)) == 1


def delete_row(path: str) -> None:
    for name in ("delete_uses_of_payload", "delete_payload"):
        execute(*PAYLOADS_SQL[name].bind(path=path))


def reserve(path: str, now: int, expires_at: int, uploader: str | None = None) -> None:
    """Write the row before the content is stored, so that all content in blob storage has a row.

    `uploader`: the caller who sends the content, None for content of the server.
    """
    StoredPayload.objects.create(path=path, created_at=now, expires_at=expires_at, uploader=uploader)


def is_reserved(path: str) -> bool:
    return StoredPayload.objects.filter(pk=path).exists()


def begin_upload(path: str, expires_at: int) -> bool:
    """Make the content unusable until its size is set. Returns False if it is in use and cannot be replaced."""
    unused = StoredPayload.objects.filter(pk=path, expires_at__isnull=False)
    return bool(unused.update(size=None, expires_at=expires_at))


def set_size(path: str, size: int) -> None:
    """Set the size in bytes, which makes the content usable."""
    StoredPayload.objects.filter(pk=path).update(size=size)


def set_expiry(paths: Iterable[str], expires_at: int) -> None:
    """Set the time from which the content may be deleted."""
    StoredPayload.objects.filter(pk__in=list(paths)).update(expires_at=expires_at)


def keep_for_run(path: str, run_id: str) -> None:
    """Keep the content as long as a run refers to it."""
    StoredPayload.objects.filter(pk=path).update(expires_at=None)
    PayloadReference.objects.create(payload_id=path, run_id=run_id)


def is_storage_configured() -> bool:
    """Return True if this server stores payloads outside its database."""
    return bool(conf.payload_storage)


def put_payload(path: str, content: "bytes | File[Any]") -> bool:
    """Store the content under this path. Returns False if the path exists.

    Raises:
        StorageUnavailable: when the storage cannot be reached.
    """
    with _storage_error():
        stored_path = _storage().save(path, ContentFile(content) if isinstance(content, bytes) else content)
        if stored_path != path:
            _storage().delete(stored_path)
        return stored_path == path


def has_payload(path: str) -> bool:
    """Return True if the storage has content under this path.

    Raises:
        StorageUnavailable: when the storage cannot be reached.
    """
    with _storage_error():
        return _storage().exists(path)


def fetch_payload(path: str) -> bytes:
    """Return the content under this path.

    Raises:
        StorageUnavailable: when the storage cannot be reached, or does not have the content.
    """
    with _storage_error(), _storage().open(path, "rb") as content:
        return content.read()


def stream_payload(path: str, part: range | None = None) -> Iterator[bytes]:
    """Return an iterator over the content, or a range of it, in chunks. The file is opened by this call.

    Raises:
        StorageUnavailable: when the storage cannot be reached, or does not have the content.
    """
    with _storage_error():
        content = _storage().open(path, "rb")

    def chunks() -> Iterator[bytes]:
        with content:
            yield from content.chunks() if part is None else _read_range(content, part)

    return chunks()


def _read_range(content: "File[Any]", part: range) -> Iterator[bytes]:
    content.seek(part.start)
    remaining = len(part)
    while remaining and (piece := content.read(min(remaining, CHUNK_BYTES))):
        remaining -= len(piece)
        yield piece


def read_payload_range(path: str, begin: int, most: int) -> bytes:
    """Return at most `most` bytes from position `begin`.

    Raises:
        StorageUnavailable: when the storage cannot be reached, or does not have the content.
    """
    with _storage_error(), _storage().open(path, "rb") as content:
        content.seek(begin)
        return content.read(most)


def delete_payload(path: str) -> None:
    """Delete the content, if it exists.

    Raises:
        StorageUnavailable: when the storage cannot be reached.
    """
    with _storage_error():
        _storage().delete(path)


@contextmanager
def _storage_error() -> Iterator[None]:
    """Convert all errors of storages into StorageUnavailable, or StorageFileMissing for a missing file."""
    try:
        yield
    except FileNotFoundError as error:
        # If the folder of the file is missing, the storage may not be mounted.
        is_mounted = not error.filename or Path(error.filename).parent.is_dir()
        raise (StorageFileMissing if is_mounted else StorageUnavailable)(str(error)) from error
    except Exception as error:
        raise StorageUnavailable(f"{type(error).__name__}: {error}") from error


@cache
def _storage() -> Storage:
    return storages[conf.payload_storage]
