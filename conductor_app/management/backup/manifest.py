"""The manifest of an archive: what it contains, from which version, and which keys it needs. It contains no key."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from .errors import ArchiveDamaged, BackupRefused

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
    """Return the manifest of a JSON text.

    Raises:
        ArchiveDamaged: when it is no manifest.
        BackupRefused: when a newer version of the server has written it.
    """
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
