"""Encryption of the values that definitions mask. Decisions and workers get them decrypted."""

import json
from collections.abc import Iterator
from typing import Any

from ..core import masking
from ..models import fields
from . import vault

MASKING_PURPOSE = "masked field"


def encrypt_masked(text: str) -> str:
    """Return the text encrypted."""
    return vault.encrypt(MASKING_PURPOSE, text)


def decrypt_masked(value: Any) -> Any:
    """Return a copy of the value with its encrypted parts decrypted. A part that no key decrypts becomes `***`."""
    return masking.mask_decrypt(value, _decrypt)


def masked_texts(value: Any) -> list[str]:
    """Return the decrypted texts and numbers of the value, each as text."""
    texts: list[str] = []

    def decrypt_and_collect(text: str) -> str:
        decrypted = _decrypt(text)
        texts.extend(_scalar_texts(json.loads(decrypted)))
        return decrypted

    masking.mask_decrypt(value, decrypt_and_collect)
    return texts


def _scalar_texts(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict | list):
            pending.extend(item.values() if isinstance(item, dict) else item)
        elif isinstance(item, str | int | float) and not isinstance(item, bool):
            yield str(item)


def register_decryption() -> None:
    """Register the function with which the store decrypts the values of rows."""
    fields.set_decryption(decrypt_masked)


def _decrypt(text: str) -> str:
    try:
        return vault.decrypt(MASKING_PURPOSE, text)
    except vault.DecryptionFailed as refused:
        raise ValueError from refused
