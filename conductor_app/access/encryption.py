"""Encrypt values with AES-GCM: secrets, credentials and masked fields. A value is encrypted for its name."""

import base64
import json
import os
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from ..core import masking
from ..settings import conf

NONCE_BYTES = 12
KEY_PURPOSE = b"conductor_app.access.vault"
MASKING_PURPOSE = "masked field"


class DecryptionFailed(Exception):
    """No key of this server decrypts the value, or it was encrypted for another name."""


def encrypt(name: str, value: str) -> str:
    """Return the value, encrypted with the newest key, as the key's name, a dot, and the ciphertext."""
    key, nonce = encryption_keys()[0], os.urandom(NONCE_BYTES)
    ciphertext = nonce + AESGCM(key).encrypt(nonce, value.encode(), name.encode())
    return f"{key_name(key)}.{base64.b64encode(ciphertext).decode()}"


def decrypt(name: str, sealed: str) -> str:
    """Return the value that was encrypted for this name."""
    name_of_key, _, text = sealed.partition(".")
    for key in encryption_keys():
        if key_name(key) == name_of_key:
            return _try_decrypt(key, name, text)
    raise DecryptionFailed(name)


def is_current(sealed: str) -> bool:
    """Return True if the value is encrypted with the newest key."""
    return sealed.startswith(f"{key_name(encryption_keys()[0])}.")


def _try_decrypt(key: bytes, name: str, text: str) -> str:
    try:
        ciphertext = base64.b64decode(text, validate=True)
        return AESGCM(key).decrypt(ciphertext[:NONCE_BYTES], ciphertext[NONCE_BYTES:], name.encode()).decode()
    except (InvalidTag, ValueError):
        raise DecryptionFailed(name) from None


def encryption_keys() -> tuple[bytes, ...]:
    """Return the keys, newest first.

    SECRET_KEY and its fallbacks follow the configured keys, so that values encrypted with them remain readable.
    """
    secrets = (*conf.secrets_keys, settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return tuple(_derive_key(secret) for secret in secrets)


@lru_cache(maxsize=32)
def _derive_key(secret: str) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=KEY_PURPOSE).derive(secret.encode())


@lru_cache(maxsize=32)
def key_name(key: bytes) -> str:
    """Return the fingerprint of a key, which reveals nothing about it."""
    return sha256(KEY_PURPOSE + key).hexdigest()[:12]


def encrypt_masked(text: str) -> str:
    """Return the text encrypted."""
    return encrypt(MASKING_PURPOSE, text)


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


def _decrypt(text: str) -> str:
    try:
        return decrypt(MASKING_PURPOSE, text)
    except DecryptionFailed as refused:
        raise ValueError from refused
