"""Keys that are derived from SECRET_KEY, each for one purpose. Previous keys stay valid while SECRET_KEY is rotated."""

from django.conf import settings
from django.utils.crypto import salted_hmac


def derive_keys(salt: str, purpose: str) -> tuple[bytes, ...]:
    """Return the key for a purpose from SECRET_KEY, followed by those from SECRET_KEY_FALLBACKS.

    The first key signs; every key verifies.
    """
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return tuple(salted_hmac(salt, purpose, secret=secret, algorithm="sha256").digest() for secret in secrets)
