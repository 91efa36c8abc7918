"""Read an archive, and verify that it is complete and unchanged before any of it is used."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

import orjson

from .archive_keys import verify
from .errors import ArchiveDamaged, BackupRefused
from .manifest import MANIFEST, SIGNATURE, Manifest, TableContent, parse_manifest

CHUNK_BYTES = 1024 * 1024
MAX_MANIFEST_BYTES = 64 * 1024 * 1024


class Archive:
    """An open archive with its manifest. Open it with `open_archive`."""

    def __init__(self, zip: ZipFile, manifest_text: bytes, signature: bytes) -> None:
        self._zip, self._manifest_text, self._signature = zip, manifest_text, signature
        self.manifest: Manifest = parse_manifest(manifest_text)

    def verify_signature(self) -> None:
        """Check that a server with one of this server's keys has written the archive.

        Raises:
            ArchiveDamaged: when it was changed.
            KeysMissing: when it was signed with another key.
        """
        verify(self._manifest_text, self._signature)

    def verify_contents(self) -> None:
        """Read the whole archive and compare it with its manifest.

        Raises:
            ArchiveDamaged: when something is missing, added or changed.
        """
        names, expected = self._zip.namelist(), {*self.manifest.members, MANIFEST, SIGNATURE}
        if len(names) != len(expected) or set(names) != expected:
            raise ArchiveDamaged("The archive does not have the members that its manifest lists.")
        if missing := {table.member for table in self.manifest.tables} - expected:
            raise ArchiveDamaged(f"The archive does not contain {min(missing)}.")
        for name, member in self.manifest.members.items():
            digest, size = sha256(), 0
            with self.open(name) as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    digest.update(chunk)
                    size += len(chunk)
            if (size, digest.hexdigest()) != (member.size, member.sha256):
                raise ArchiveDamaged(f"The member {name} of the archive was changed after the backup.")

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Read a member in this block.

        Raises:
            ArchiveDamaged: when it cannot be read.
        """
        with _damage(), self._zip.open(name) as stream:
            yield stream

    def rows(self, table: TableContent) -> Iterator[list[Any]]:
        """Yield the rows of a table."""
        with self.open(table.member) as stream:
            yield from map(orjson.loads, stream)


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open an archive in this block.

    Raises:
        BackupRefused: when the file cannot be read.
        ArchiveDamaged: when it is no complete archive.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise BackupRefused(f"{path} cannot be read: {error.strerror}.") from error
    with file, _damage(), ZipFile(file) as zip:
        yield Archive(zip, _read_small(zip, MANIFEST), _read_small(zip, SIGNATURE))


def _read_small(zip: ZipFile, name: str) -> bytes:
    if name not in zip.namelist():
        raise ArchiveDamaged(f"The archive does not contain {name}.")
    if zip.getinfo(name).file_size > MAX_MANIFEST_BYTES:
        raise ArchiveDamaged(f"{name} in the archive is too large.")
    return zip.read(name)


@contextmanager
def _damage() -> Iterator[None]:
    """Convert the errors of damaged ZIP files into ArchiveDamaged."""
    try:
        yield
    except (BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise ArchiveDamaged(f"The archive is truncated or damaged: {error}.") from error
