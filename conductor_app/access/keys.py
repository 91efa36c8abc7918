"""Keys of applications: made here, shown once, kept hashed."""

import secrets

from django.utils.crypto import constant_time_compare, salted_hmac

from .. import clock
from ..core.errors import Unauthenticated
from ..models import AccessKey


def create_key(application: str) -> tuple[str, str]:
    """A new key for an application: its id, and its secret, which cannot be shown again."""
    key_id, secret = secrets.token_hex(16), secrets.token_urlsafe(32)
    AccessKey.objects.create(id=key_id, application=application, secret_hash=hashed(secret), created_at=clock.now())
    return key_id, secret


def check_key(key_id: str, secret: str) -> AccessKey:
    """The key with this id and secret; raises Unauthenticated."""
    key = AccessKey.objects.filter(pk=key_id, is_active=True).first()
    if not constant_time_compare(hashed(secret), key.secret_hash if key else "") or key is None:
        raise Unauthenticated("The key or its secret is wrong.", code="INVALID_CREDENTIALS")
    AccessKey.objects.filter(pk=key_id).update(used_at=clock.now())
    return key


def is_active(key_id: str) -> bool:
    """Whether the key may still be used."""
    return AccessKey.objects.filter(pk=key_id, is_active=True).exists()


def hashed(secret: str) -> str:
    """A fast keyed hash is enough: the secrets are 32 random bytes, nobody can guess them one by one."""
    return salted_hmac("conductor_app.access.keys", secret, algorithm="sha256").hexdigest()
