"""Keys and archives: signatures of manifests, and the keys with which values in an archive are encrypted."""

import hmac
import re
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256

from conductor_app.access import vault
from conductor_app.core.masking import MARK

from .errors import ArchiveDamaged, KeysMissing

PURPOSE = b"conductor_app.management.backup"
MASKED_VALUE = re.compile(rf"{re.escape(MARK)}([0-9a-f]{{12}})\.".encode())
SEALED_VALUE = re.compile(r"([0-9a-f]{12})\.")
SEALED_COLUMN = re.compile(r"sealed(_key)?")
"""Columns with a value that is encrypted as a whole."""
MARK_BYTES = MARK.encode()
OVERLAP = len(MARK_BYTES) + 13


def fingerprints() -> list[str]:
    """Return the fingerprints of this server's keys, newest first."""
    return [vault.key_name(key) for key in vault.encryption_keys()]


def sign(content: bytes) -> bytes:
    """Return the fingerprint of the newest key, a dot, and the signature of the content."""
    key = vault.encryption_keys()[0]
    return f"{vault.key_name(key)}.{_signature(key, content)}".encode()


def verify(content: bytes, signature: bytes) -> None:
    """Check that a server with one of this server's keys has signed the content.

    Raises:
        ArchiveDamaged: when the content has another signature.
        KeysMissing: when the signature is that of another key.
    """
    name, _, digest = signature.decode(errors="replace").partition(".")
    for key in vault.encryption_keys():
        if vault.key_name(key) == name:
            if hmac.compare_digest(_signature(key, content).encode(), digest.encode()):
                return
            raise ArchiveDamaged("The signature of the archive is wrong: it was changed after the backup.")
    raise KeysMissing(
        f"The archive is signed with the key {name}, which this server does not have. Set SECRETS_KEYS and SECRET_KEY, "
        "or SECRET_KEY_FALLBACKS, to the keys of the server that was backed up."
    )


def require_keys(used: Mapping[str, int]) -> None:
    """Check that this server can decrypt all values.

    Raises:
        KeysMissing: when a key is missing.
    """
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
