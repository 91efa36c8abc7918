"""The contents of payloads in an archive: one record for each, which are read in sequence.

A record is a line of JSON with the path, then chunks with their length in four bytes, an empty chunk, and the SHA-256
digest of the content. A record of an archive without contents has no chunks, but the digest.
"""

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import IO, Any

import orjson
from django.core.files.base import File

from conductor_app import blob_storage

from .archive_keys import KeyUses, StreamKeyUses
from .archive_writer import MemberWriter
from .errors import ArchiveDamaged, BackupRefused
from .manifest import PayloadInventory

LENGTH_BYTES, DIGEST_BYTES = 4, 32
MEMORY_BYTES = 8 * 1024 * 1024
"""The size from which a content is restored through a temporary file."""


@dataclass(frozen=True)
class PayloadRow:
    """A payload that the database refers to. `is_used`: a run needs it, so that it does not expire."""

    path: str
    is_used: bool


def dump_payloads(
    rows: Iterable[PayloadRow], writer: MemberWriter, uses: KeyUses, has_contents: bool
) -> PayloadInventory:
    """Write a record for each payload.

    Raises:
        BackupRefused: when the storage cannot be read.
    """
    count = size = missing = 0
    for row in rows:
        try:
            chunks = blob_storage.stream_payload(row.path)
        except blob_storage.StorageFileMissing:
            # It has expired, or its run was deleted after the snapshot.
            missing += row.is_used
            continue
        except blob_storage.StorageUnavailable as error:
            raise BackupRefused(f"The payload {row.path} cannot be read: {error}") from error
        count += 1
        size += _dump_payload(row.path, chunks, writer, StreamKeyUses(uses) if has_contents else None)
    return PayloadInventory(count, size, missing, has_contents)


def _dump_payload(path: str, chunks: Iterable[bytes], writer: MemberWriter, key_uses: StreamKeyUses | None) -> int:
    writer.write(orjson.dumps({"path": path}, option=orjson.OPT_APPEND_NEWLINE))
    digest, size = sha256(), 0
    for chunk in _read_chunks(path, chunks):
        digest.update(chunk)
        size += len(chunk)
        if key_uses is not None:
            key_uses.count(chunk)
            writer.write(len(chunk).to_bytes(LENGTH_BYTES, "big"))
            writer.write(chunk)
    writer.write(bytes(LENGTH_BYTES))
    writer.write(digest.digest())
    return size


def _read_chunks(path: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    try:
        yield from filter(None, chunks)
    except Exception as error:
        raise BackupRefused(f"The payload {path} cannot be read: {type(error).__name__}: {error}") from error


class PayloadReader:
    """The records of an archive, one after another. Read or skip the content of each before the next."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.digest = b""

    def paths(self) -> Iterator[str]:
        """Yield the path of each record."""
        while line := self._stream.readline():
            yield orjson.loads(line)["path"]

    def chunks(self) -> Iterator[bytes]:
        """Yield the content of the current record. Afterwards, `digest` is its digest."""
        while length := int.from_bytes(self._read(LENGTH_BYTES), "big"):
            yield self._read(length)
        self.digest = self._read(DIGEST_BYTES)

    def _read(self, length: int) -> bytes:
        content = self._stream.read(length)
        if len(content) != length:
            raise ArchiveDamaged("The archive ends within a payload.")
        return content


@dataclass
class RestoredPayloads:
    """The payloads that a restore has handled. `created`: paths that the storage did not have before."""

    created: list[str]
    different: set[str]

    def remove_created(self) -> None:
        """Delete the created payloads after a failed restore."""
        for path in self.created:
            try:
                blob_storage.delete_payload(path)
            except blob_storage.StorageUnavailable:
                return


def restore_payloads(reader: PayloadReader, restored: RestoredPayloads) -> None:
    """Store the payloads that the storage does not have. Those with another content are only listed.

    Raises:
        BackupRefused: when the storage cannot be reached.
    """
    try:
        for path in reader.paths():
            with tempfile.SpooledTemporaryFile(MEMORY_BYTES) as content:
                digest = _spool(reader.chunks(), content)
                if digest != reader.digest:
                    raise ArchiveDamaged(f"The payload {path} of the archive is damaged.")
                if not blob_storage.has_payload(path):
                    restored.created.append(path)
                    _store(path, content)
                elif _stored_digest(path) != digest:
                    restored.different.add(path)
    except blob_storage.StorageUnavailable as error:
        raise BackupRefused(f"The payload storage cannot be used: {error}") from error


def replace_payloads(reader: PayloadReader, paths: set[str]) -> None:
    """Replace the content of these payloads by that of the archive.

    Raises:
        BackupRefused: when the storage cannot be reached.
    """
    try:
        for path in reader.paths():
            with tempfile.SpooledTemporaryFile(MEMORY_BYTES) as content:
                _spool(reader.chunks(), content)
                if path in paths:
                    blob_storage.delete_payload(path)
                    _store(path, content)
    except blob_storage.StorageUnavailable as error:
        raise BackupRefused(f"a payload could not be replaced: {error}.") from error


def find_damaged_payloads(reader: PayloadReader) -> Iterator[str]:
    """Yield the paths of listed payloads that the storage does not have, or has with another content.

    Raises:
        BackupRefused: when the storage cannot be reached.
    """
    try:
        for path in reader.paths():
            for _ in reader.chunks():
                pass
            if not blob_storage.has_payload(path) or _stored_digest(path) != reader.digest:
                yield path
    except blob_storage.StorageUnavailable as error:
        raise BackupRefused(f"The payload storage cannot be used: {error}") from error


def _spool(chunks: Iterable[bytes], content: Any) -> bytes:
    digest = sha256()
    for chunk in chunks:
        digest.update(chunk)
        content.write(chunk)
    content.seek(0)
    return digest.digest()


def _store(path: str, content: Any) -> None:
    size = content.seek(0, 2)
    content.seek(0)
    file = File(content, name=path)
    file.size = size
    blob_storage.put_payload(path, file)


def _stored_digest(path: str) -> bytes:
    digest = sha256()
    for chunk in blob_storage.stream_payload(path):
        digest.update(chunk)
    return digest.digest()
