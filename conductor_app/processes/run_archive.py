"""The archive of ended runs: lines of JSON in compressed files, which retention writes before it removes the runs.

A file has the runs of one pass that ended on one day: `runs/2026/11/27/TIME-ID.jsonl.gz`. A line has a run with all of
its rows and the payloads outside the database, so it is complete by itself. A run is removed when its file is on the
disk or in the bucket, and only if it has not changed since. If a process ends in between, the next pass archives the
run again; a reader takes the newest line of each run.
"""

import gzip
import logging
import os
import tempfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, NamedTuple
from uuid import uuid4

from django.apps import apps
from django.core.files.base import File
from django.core.files.storage import Storage, storages
from django.db import models
from django.db.models import TextField
from django.db.models.functions import Cast

from ..access import audit
from ..access.models import AuditEntry
from ..core.errors import NotFound, PayloadMissing
from ..db.database import transaction
from ..db.fields import DocumentField, dumps, loads_encrypted
from ..db.statements import read_snapshot
from ..definitions.models import ResolvedDefinition
from ..human_tasks.models import HumanTask
from ..payloads import commands as payload_storage
from ..payloads import store as payload_store
from ..runs.commands.control import remove_run
from ..runs.models import Attempt, HistoryEntry, InboxMessage, Run, RunLabel, Task, TaskLog
from ..runs.queries.retention import time_of_id
from ..runs.store.due_rows import handle_each
from ..settings import conf
from ..utils import clock

log = logging.getLogger(__name__)

FORMAT = 1
"""The version of the format of a line. A server reads the formats up to its own."""
ENDING, DRAFT = ".jsonl.gz", ".part"
MEMORY_BYTES = 8 * 1024 * 1024
"""The size from which a file is written through a temporary file."""
TABLES: dict[str, tuple[type[models.Model], str]] = {
    "resolvedDefinition": (ResolvedDefinition, ""),
    "run": (Run, "id"),
    "tasks": (Task, "run_id"),
    "attempts": (Attempt, "run_id"),
    "labels": (RunLabel, "run_id"),
    "history": (HistoryEntry, "run_id"),
    "logs": (TaskLog, ""),
    "inbox": (InboxMessage, "run_id"),
    "assignments": (HumanTask, "task__run_id"),
}
"""The tables of a run in the order of their restoration, with the field that has its id."""
if model_calls := apps.all_models["conductor"].get("modelcall"):
    # The slice of models is optional.
    TABLES["modelCalls"] = (model_calls, "run_id")
PATHS = ("input_path", "output_path")
FREED = ("idempotency_key", "request_id")
"""Keys that a removed run no longer holds. A restored run does not take them back: a start would return that run."""


class ArchiveUnreadable(Exception):
    """A file of the archive is damaged, or was written by a newer version."""


class RunNotRestored(Exception):
    """A run of the archive could not be restored. The message says why."""


class RunChanged(NotFound):
    """The run has changed since it was archived. It stays, and is archived again."""


class ArchivedRun(NamedTuple):
    """The place of a run in the archive, and the state in which it was archived."""

    id: str
    path: str
    revision: int


@dataclass(frozen=True, slots=True)
class ArchiveLine:
    """A run of the archive. `path`: its file. `document`: its line."""

    path: str
    document: dict[str, Any]

    @property
    def id(self) -> str:
        return self.document["id"]

    def to_text(self) -> str:
        """Return the line as it is in the archive."""
        return dumps(self.document) or ""


def is_configured() -> bool:
    """Return True if retention archives runs before it removes them."""
    return bool(conf.run_archive)


def archive_and_remove(run_ids: Collection[str], by: str, reason: str) -> Iterator[int]:
    """Archive runs and remove them, a file at a time. Yields how many runs of each file were removed.

    Raises:
        StorageUnavailable: when a payload cannot be read. Its file is not written, and its runs stay.
        OSError: when a file cannot be written. Storages raise other errors as well.
    """
    ended = Run.objects.filter(pk__in=run_ids, ended_at__isnull=False).values_list("ended_at", "pk")
    days = sorted((_day(ended_at or 0), ended_at or 0, id) for ended_at, id in ended)
    for day, found in groupby(days, key=itemgetter(0)):
        archived = _write_day(day, [id for _, _, id in found])
        yield handle_each(archived, partial(_remove_archived, by=by, reason=reason))


def _day(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y/%m/%d")


def _remove_archived(run: ArchivedRun, by: str, reason: str) -> None:
    with transaction.atomic():
        current = Run.objects.select_for_update().filter(pk=run.id).values_list("revision", flat=True).first()
        if current != run.revision:
            raise RunChanged(f"Run {run.id} has changed since it was archived.")
        remove_run(run.id, by, reason, facts={"archive": run.path})


def _write_day(day: str, run_ids: Iterable[str]) -> list[ArchivedRun]:
    path = f"runs/{day}/{clock.now()}-{uuid4().hex[:12]}{ENDING}"
    archived: list[ArchivedRun] = []
    with tempfile.SpooledTemporaryFile(MEMORY_BYTES) as file:
        with gzip.open(file, "wb") as compressed:
            for run_id in run_ids:
                if line := _archive_line(run_id):
                    compressed.write(f"{dumps(line)}\n".encode("utf-8", "surrogatepass"))
                    archived.append(ArchivedRun(run_id, path, line["revision"]))
        if archived:
            _store_durably(path, file)
    return archived


def _archive_line(run_id: str) -> dict[str, Any] | None:
    """Return the line of a run, None if it has been removed or continued meanwhile."""
    with read_snapshot():
        rows = _read_rows(run_id)
    if not rows["run"] or rows["run"][0]["ended_at"] is None:
        return None
    [run] = rows["run"]
    payloads, missing = _read_payloads(rows)
    return {
        "format": FORMAT,
        "archivedAt": clock.now(),
        "id": run_id,
        "name": run["name"],
        "version": run["version"],
        "status": run["status"],
        "correlationId": run["correlation_id"],
        "createdAt": run["created_at"],
        "endedAt": run["ended_at"],
        "revision": run["revision"],
        "rows": rows,
        "payloads": payloads,
        "missingPayloads": missing,
    }


def _read_rows(run_id: str) -> dict[str, list[dict[str, Any]]]:
    found = {name: _table_rows(model, {field: run_id}) for name, (model, field) in TABLES.items() if field}
    found["resolvedDefinition"] = _table_rows(
        ResolvedDefinition, {"pk__in": [run["resolved_definition_id"] for run in found["run"]]}
    )
    attempts = Attempt.objects.filter(run_id=run_id).values("pk")
    found["logs"] = _table_rows(TaskLog, {"attempt_id__in": attempts})
    return {name: found[name] for name in TABLES}


def _table_rows(model: type[models.Model], condition: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return rows by the names of their columns. Documents are as stored: masked values stay encrypted."""
    fields = model._meta.concrete_fields
    documents = {field.attname: f"{field.attname}_text" for field in fields if isinstance(field, DocumentField)}
    rows = model._default_manager.filter(**condition).order_by("pk")
    rows = rows.annotate(**{text: Cast(name, TextField()) for name, text in documents.items()})
    columns = [documents.get(field.attname, field.attname) for field in fields]
    names = [field.attname for field in fields]
    return [
        {
            name: loads_encrypted(value) if name in documents else value
            for name, value in zip(names, values, strict=True)
        }
        for values in rows.values_list(*columns)
    ]


def _paths(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    return sorted({row[name] for row in (*rows["run"], *rows["attempts"]) for name in PATHS if row[name]})


def _read_payloads(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[dict[str, str], list[str]]:
    payloads, missing = {}, []
    for path in _paths(rows):
        try:
            _, chunks = payload_storage.stream_payload(path)
            # Lossless for any bytes, because clients upload payloads.
            payloads[path] = b"".join(chunks).decode("utf-8", "surrogateescape")
        except (NotFound, PayloadMissing):
            missing.append(path)
    return payloads, missing


def _storage() -> Storage:
    return storages[conf.run_archive]


def _store_durably(path: str, file: IO[bytes]) -> None:
    """Write a file. When this returns, it outlives a loss of power."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    storage = _storage()
    try:
        place = Path(storage.path(path))
    except NotImplementedError:
        # A request to a bucket stores all of the content or nothing.
        content = File(file, name=path)
        content.size = size
        stored = storage.save(path, content)
        if stored != path:
            raise OSError(f"The archive stored {path} as {stored}.") from None
        return
    draft = Path(storage.path(storage.save(f"{path}{DRAFT}", File(file))))
    _sync(draft)
    draft.replace(place)
    for folder in (place.parent, *list(place.parent.parents)[:4]):
        _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def runs_by_id(run_ids: Collection[str], unreadable: list[str]) -> Iterator[ArchiveLine]:
    """Yield the newest lines of these runs. The names of files that cannot be read are appended to `unreadable`.

    The audit log names the file of each run that this server has removed. Others are searched in the files of the days
    since their start.
    """
    wanted, recorded = set(run_ids), _recorded_paths(run_ids)
    by_path: dict[str, set[str]] = {}
    for id, path in recorded.items():
        by_path.setdefault(path, set()).add(id)
    found: set[str] = set()
    for path, ids in by_path.items():
        for line in _read_file(path, unreadable):
            if line.id in ids and line.id not in found:
                found.add(line.id)
                yield line
    if missing := wanted - found:
        began = min((time_of_id(id) or 0 for id in missing), default=0)
        yield from _newest_lines(_files(began, clock.now()), unreadable, missing)


def runs_of_period(
    ended_from: int, ended_before: int, names: Collection[str], unreadable: list[str]
) -> Iterator[ArchiveLine]:
    """Yield the runs that ended in a period, in epoch milliseconds. `names`: only those of these definitions, if any.

    Each run is yielded once, as it was when it was last archived. The names of files that cannot be read are appended
    to `unreadable`.
    """
    for line in _newest_lines(_files(ended_from, ended_before), unreadable):
        document = line.document
        if ended_from <= document["endedAt"] < ended_before and (not names or document["name"] in names):
            yield line


def _newest_lines(
    paths: Sequence[str], unreadable: list[str], only: Collection[str] | None = None
) -> Iterator[ArchiveLine]:
    """Yield one line for each run, the newest. Reads the files twice, so that one line at a time is in memory."""
    newest: dict[str, tuple[int, str]] = {}
    for path in paths:
        for line in _read_file(path, unreadable):
            if only is None or line.id in only:
                newest[line.id] = max(newest.get(line.id, (0, "")), (line.document["archivedAt"], path))
    # A run that was restored and continued may have ended again on another day.
    recorded = _recorded_paths(newest)
    for path in sorted({path for _, path in newest.values()}):
        for line in _read_file(path, []):
            if line.id in newest and recorded.get(line.id, newest[line.id][1]) == path:
                del newest[line.id]
                yield line


def _recorded_paths(run_ids: Iterable[str]) -> dict[str, str]:
    """Return the files of the runs that the audit log names, by run."""
    ids, found = list(run_ids), {}
    for start in range(0, len(ids), 500):
        entries = AuditEntry.objects.filter(
            object_type="run", action="remove", object_id__in=ids[start : start + 500]
        ).order_by("pk")
        for id, facts in entries.values_list("object_id", "facts"):
            if isinstance(facts, dict) and facts.get("archive"):
                found[id] = facts["archive"]
    return found


def _files(first: int, last: int) -> list[str]:
    """Return the paths of the files with runs that ended from one time to another, in the order of the days."""
    first_day, last_day = f"runs/{_day(max(first, 0))}", f"runs/{_day(last)}"
    days: Iterable[str] = ["runs"]
    for length in (len("runs/2026"), len("runs/2026/11"), len("runs/2026/11/27")):
        days = [
            f"{folder}/{name}"
            for folder in days
            for name in _folder_names(folder)
            if first_day[:length] <= f"{folder}/{name}" <= last_day[:length]
        ]
    return [f"{day}/{name}" for day in days for name in sorted(_list(day)[1]) if name.endswith(ENDING)]


def _folder_names(folder: str) -> list[str]:
    return sorted(_list(folder)[0])


def _list(folder: str) -> tuple[list[str], list[str]]:
    try:
        return _storage().listdir(folder)
    except FileNotFoundError:
        return [], []


def _read_file(path: str, unreadable: list[str]) -> Iterator[ArchiveLine]:
    """Yield the lines of a file. Those before the end of a damaged one are complete."""
    try:
        with _storage().open(path, "rb") as file, gzip.open(file, "rb") as lines:
            for text in lines:
                document = loads_encrypted(text.decode("utf-8", "surrogatepass"))
                if document["format"] > FORMAT:
                    raise ArchiveUnreadable("It was written by a newer version of the server.")
                yield ArchiveLine(path, document)
    except (ArchiveUnreadable, OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        if path not in unreadable:
            unreadable.append(path)
            log.warning("run_archive_unreadable", extra={"path": path, "cause": f"{type(error).__name__}: {error}"})


def restore_run(line: ArchiveLine, kept_until: int, by: str) -> bool:
    """Insert the rows of an archived run. Returns False if the run exists. Retention removes it after `kept_until`.

    Raises:
        RunNotRestored: when the run has payloads outside the database, and this server has no storage for them.
    """
    if Run.objects.filter(pk=line.id).exists():
        return False
    rows: dict[str, list[dict[str, Any]]] = line.document["rows"]
    paths = _store_payloads(line)
    [run] = rows["run"]
    run |= {"kept_until": kept_until, **dict.fromkeys(FREED)}
    for row in (run, *rows["attempts"]):
        row |= {name: paths.get(row[name], row[name]) for name in PATHS}
    with transaction.atomic():
        for name, (model, _) in TABLES.items():
            _insert(model, rows.get(name, ()))
        for path in paths.values():
            payload_store.keep_for_run(path, line.id)
        audit.record("run", line.id, "restore", by, facts={"archive": line.path})
    return True


def child_ids(line: ArchiveLine) -> list[str]:
    """Return the ids of the sub-workflows of an archived run."""
    return [attempt["child_id"] for attempt in line.document["rows"]["attempts"] if attempt["child_id"]]


def _store_payloads(line: ArchiveLine) -> dict[str, str]:
    """Store the payloads, which expire unless a run uses them. Returns their paths by those in the archive."""
    payloads: dict[str, str] = line.document["payloads"]
    if payloads and not conf.payload_storage:
        raise RunNotRestored(f"Run {line.id} has payloads outside the database. Set PAYLOAD_STORAGE.")
    paths = {}
    for path, text in payloads.items():
        paths[path] = payload_storage.reserve_path("engine")
        payload_storage.store_reserved(paths[path], text.encode("utf-8", "surrogateescape"))
    return paths


def _insert(model: type[models.Model], rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows. Columns that this version does not have are left out; columns without a value have their default."""
    key = model._meta.pk
    names = {field.attname for field in model._meta.concrete_fields}
    if isinstance(key, models.AutoField | models.BigAutoField):
        names.discard(key.attname)
    is_shared = model is ResolvedDefinition
    found = [model(**{name: value for name, value in row.items() if name in names}) for row in rows]
    model._default_manager.bulk_create(found, batch_size=500, ignore_conflicts=is_shared)
