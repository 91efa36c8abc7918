"""Secrets at rest: sealed with AES-GCM under keys of this server, each bound to its name."""

import base64
import os
from functools import lru_cache
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from .. import conf

NONCE_BYTES = 12
PURPOSE = b"conductor_app.access.vault"


class Unreadable(Exception):
    """No key of this server opens it, or it was sealed for another name."""


def seal(name: str, value: str) -> str:
    """The value, sealed with the newest key: the key's name, a dot, and what only the key opens."""
    key, nonce = keys()[0], os.urandom(NONCE_BYTES)
    box = nonce + AESGCM(key).encrypt(nonce, value.encode(), name.encode())
    return f"{_name_of(key)}.{base64.b64encode(box).decode()}"


def opened(name: str, sealed: str) -> str:
    """The value that was sealed for this name; raises Unreadable."""
    label, _, text = sealed.partition(".")
    for key in keys():
        if _name_of(key) == label:
            return _opened(key, name, text)
    raise Unreadable(name)


def is_current(sealed: str) -> bool:
    """Whether the newest key has sealed it."""
    return sealed.startswith(f"{_name_of(keys()[0])}.")


def _opened(key: bytes, name: str, text: str) -> str:
    try:
        box = base64.b64decode(text, validate=True)
        return AESGCM(key).decrypt(box[:NONCE_BYTES], box[NONCE_BYTES:], name.encode()).decode()
    except (InvalidTag, ValueError):
        raise Unreadable(name) from None


def keys() -> tuple[bytes, ...]:
    """The keys, newest first. SECRET_KEY comes last: what it sealed before there were others stays readable."""
    fallbacks = getattr(settings, "SECRET_KEY_FALLBACKS", ())
    return tuple(_derived(given) for given in (*conf.secrets_keys, settings.SECRET_KEY, *fallbacks))


@lru_cache(maxsize=32)
def _derived(given: str) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=PURPOSE).derive(given.encode())


@lru_cache(maxsize=32)
def _name_of(key: bytes) -> str:
    return sha256(PURPOSE + key).hexdigest()[:12]
