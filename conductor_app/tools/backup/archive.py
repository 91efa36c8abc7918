"""Archives: write, read, sign and verify them.

An archive is a ZIP file with one member per table, the payloads, and a signed manifest at the end: what it contains,
from which version, and which keys it needs. It contains no key. It is verified before any of it is used.
"""

import hmac
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import orjson

from ...access import encryption
from ...core.masking import MARK


class BackupRefused(Exception):
    """The backup or the restore was not possible. Nothing was changed."""


class RestoreIncomplete(Exception):
    """The database was replaced, but not all payloads."""


class ArchiveDamaged(BackupRefused):
    """The archive is truncated or was changed after the backup."""


class KeysMissing(BackupRefused):
    """The server does not have the keys that the archive needs."""


PURPOSE = b"conductor_app.management.backup"
MASKED_VALUE = re.compile(rf"{re.escape(MARK)}([0-9a-f]{{12}})\.".encode())
SEALED_VALUE = re.compile(r"([0-9a-f]{12})\.")
SEALED_COLUMN = re.compile(r"sealed(_key)?")
"""Columns with a value that is encrypted as a whole."""
MARK_BYTES = MARK.encode()
OVERLAP = len(MARK_BYTES) + 13


def fingerprints() -> list[str]:
    """Return the fingerprints of this server's keys, newest first."""
    return [encryption.key_name(key) for key in encryption.encryption_keys()]


def sign(content: bytes) -> bytes:
    """Return the fingerprint of the newest key, a dot, and the signature of the content."""
    key = encryption.encryption_keys()[0]
    return f"{encryption.key_name(key)}.{_signature(key, content)}".encode()


def verify(content: bytes, signature: bytes) -> None:
    """Check that a server with one of this server's keys has signed the content.

    Raises:
        ArchiveDamaged: when the content has another signature.
        KeysMissing: when the signature is that of another key.
    """
    name, _, digest = signature.decode(errors="replace").partition(".")
    for key in encryption.encryption_keys():
        if encryption.key_name(key) == name:
            if hmac.compare_digest(_signature(key, content).encode(), digest.encode()):
                return
            raise ArchiveDamaged("The signature of the archive is wrong: it was changed after the backup.")
    raise KeysMissing(
        f"The archive is signed with the key {name}, which this server does not have. Set SECRETS_KEYS and SECRET_KEY, "
        "or SECRET_KEY_FALLBACKS, to the keys of the server that was backed up."
    )


def require_keys(used: Mapping[str, int]) -> None:
    """Raise KeysMissing unless this server can decrypt all values."""
    available = set(fingerprints())
    if missing := {name: count for name, count in used.items() if name not in available}:
        described = ", ".join(f"{name} ({count:,} values)" for name, count in missing.items())
        raise KeysMissing(
            f"Values in the archive are encrypted with keys that this server does not have: {described}. "
            "Add them to SECRETS_KEYS, or to SECRET_KEY_FALLBACKS if they were values of SECRET_KEY."
        )


def _signature(key: bytes, content: bytes) -> str:
    return hmac.new(hmac.digest(key, PURPOSE, "sha256"), content, sha256).hexdigest()


class KeyUses:
    """The number of encrypted values by the fingerprint of their key."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count_in_column(self, value: object) -> None:
        """Count a value that is encrypted as a whole."""
        if isinstance(value, str) and (found := SEALED_VALUE.match(value)):
            self.counts[found[1]] += 1

    def count_in_text(self, text: bytes) -> None:
        """Count the masked values in a text."""
        if MARK_BYTES in text:
            self.counts.update(name.decode() for name in MASKED_VALUE.findall(text))


class StreamKeyUses:
    """Counts the masked values of a stream whose chunks may divide them."""

    def __init__(self, uses: KeyUses) -> None:
        self._uses, self._end = uses, b""

    def count(self, chunk: bytes) -> None:
        """Count the values that end in this chunk."""
        text = self._end + chunk
        self._uses.count_in_text(text)
        # A value that was counted is not part of the next text.
        last = max((found.end() for found in MASKED_VALUE.finditer(text)), default=0) if MARK_BYTES in text else 0
        self._end = text[max(last, len(text) - OVERLAP) :]


FORMAT = 1
"""The version of the format. A server reads the formats up to its own."""
MANIFEST, SIGNATURE, PAYLOADS = "manifest.json", "manifest.sig", "payloads.bin"


@dataclass(frozen=True)
class Member:
    """The size in bytes and the SHA-256 digest of a member before compression."""

    size: int
    sha256: str


@dataclass(frozen=True)
class TableContent:
    """The rows of a table. `next_id`: the next value of its sequence, None without one."""

    name: str
    columns: list[str]
    rows: int
    next_id: int | None = None

    @property
    def member(self) -> str:
        return f"tables/{self.name}.jsonl"


@dataclass(frozen=True)
class PayloadInventory:
    """The payloads outside the database. `missing`: payloads in use that the storage did not have.

    `has_contents`: False if the archive only lists their sizes and digests.
    """

    count: int = 0
    size: int = 0
    missing: int = 0
    has_contents: bool = True


@dataclass(frozen=True)
class Manifest:
    """All facts about an archive. Keys are named by fingerprints; `used_keys` counts the values encrypted with each."""

    version: str
    created_at: int
    database: str
    migrations: dict[str, list[str]]
    available_keys: list[str]
    tables: list[TableContent]
    payloads: PayloadInventory
    used_keys: dict[str, int]
    members: dict[str, Member]
    format: int = FORMAT
    product: str = field(default="conductor-app")

    def to_bytes(self) -> bytes:
        """Return the manifest as JSON."""
        return orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2)


def parse_manifest(text: bytes) -> Manifest:
    """Return the manifest of a JSON text."""
    try:
        document: dict[str, Any] = orjson.loads(text)
        number, product = document["format"], document["product"]
    except (ValueError, KeyError, TypeError) as error:
        raise ArchiveDamaged("The archive has no valid manifest.") from error
    if product != "conductor-app":
        raise ArchiveDamaged("The archive is not a backup of this server.")
    if not isinstance(number, int) or number > FORMAT:
        raise BackupRefused(f"The archive has the format {number} of a newer version. Restore it with that version.")
    try:
        return _build_manifest(document)
    except (KeyError, TypeError, AttributeError) as error:
        raise ArchiveDamaged("The manifest of the archive is incomplete.") from error


def _build_manifest(document: Mapping[str, Any]) -> Manifest:
    return Manifest(
        **{
            **document,
            "tables": [TableContent(**each) for each in document["tables"]],
            "payloads": PayloadInventory(**document["payloads"]),
            "members": {name: Member(**each) for name, each in document["members"].items()},
        }
    )


BUFFER_BYTES = 256 * 1024
# Level 1 takes a third of the time of the default level, for archives that are a tenth larger.
COMPRESSION_LEVEL = 1


class MemberWriter:
    """A member that is being written."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._buffer = stream, bytearray()
        self._digest, self._size = sha256(), 0

    def write(self, content: bytes) -> None:
        """Append the content."""
        self._buffer += content
        if len(self._buffer) >= BUFFER_BYTES:
            self._flush()

    def finish(self) -> Member:
        """Write the rest, and return the size and the digest."""
        self._flush()
        return Member(self._size, self._digest.hexdigest())

    def _flush(self) -> None:
        self._digest.update(self._buffer)
        self._size += len(self._buffer)
        self._stream.write(self._buffer)
        self._buffer.clear()


class ArchiveWriter:
    """An archive that is being written. Create it with `create_archive`."""

    def __init__(self, zip: ZipFile) -> None:
        self._zip = zip
        self.members: dict[str, Member] = {}

    @contextmanager
    def member(self, name: str) -> Iterator[MemberWriter]:
        """Write a member in this block."""
        with self._zip.open(name, "w", force_zip64=True) as stream:
            writer = MemberWriter(stream)
            yield writer
            self.members[name] = writer.finish()

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest and its signature."""
        text = manifest.to_bytes()
        self._zip.writestr(MANIFEST, text)
        self._zip.writestr(SIGNATURE, sign(text))


@contextmanager
def create_archive(path: Path) -> Iterator[ArchiveWriter]:
    """Write an archive in this block. The file appears under its name when it is complete and on the disk."""
    if path.exists():
        raise BackupRefused(f"{path} exists. Choose another name, or delete it first.")
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise BackupRefused(f"{path} cannot be written: {error.strerror}.") from error
    try:
        with os.fdopen(descriptor, "w+b") as file:
            with ZipFile(file, "w", ZIP_DEFLATED, compresslevel=COMPRESSION_LEVEL) as zip:
                yield ArchiveWriter(zip)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        sync_folder(path.parent)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
        """Read the whole archive and compare it with its manifest."""
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
        """Read a member in this block."""
        with _damage(), self._zip.open(name) as stream:
            yield stream

    def rows(self, table: TableContent) -> Iterator[list[Any]]:
        with self.open(table.member) as stream:
            yield from map(orjson.loads, stream)


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open an archive in this block."""
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
