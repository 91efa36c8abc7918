"""Access keys of applications. A secret is displayed once and stored as a hash."""

import secrets
import uuid
from hashlib import sha256

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils.crypto import constant_time_compare

from .. import clock
from ..core.errors import Unauthenticated
from ..models import AccessKey, Application
from .access_types import ADMIN
from .roles import role_group

HASH_PREFIX = "sha256$"

APPLICATION_USER_PREFIX = "app:"
"""Prefix of the names of applications' own users, followed by the application's id."""


def create_key(application: str) -> tuple[str, str]:
    """Create a key for the application with this name, and return its id and its secret, which is not stored.

    A missing application is created with the role ADMIN, because the caller has access to the server itself.
    """
    with transaction.atomic():
        row = Application.objects.filter(name=application).order_by("created_at", "id").first()
        if row is None:
            row = new_application(application)
            row.user.groups.add(role_group(ADMIN))
        return new_key(row)


def new_application(name: str, by: str = "") -> Application:
    """Create an application without roles and keys, and its own user, which cannot sign in."""
    id = str(uuid.uuid4())
    user = get_user_model()(username=f"{APPLICATION_USER_PREFIX}{id}", first_name=name[:150])
    user.set_unusable_password()
    user.save()
    return Application.objects.create(id=id, name=name, user=user, created_at=clock.now(), created_by=by)


def new_key(application: Application) -> tuple[str, str]:
    """Create a key for an application, and return its id and its secret."""
    key_id, secret = secrets.token_hex(16), secrets.token_urlsafe(32)
    AccessKey.objects.create(
        id=key_id, application=application, secret_hash=hash_secret(secret), created_at=clock.now()
    )
    return key_id, secret


def verify_key(key_id: str, secret: str) -> AccessKey:
    """Return the key with this id and secret.

    Raises:
        Unauthenticated: when the key is unknown or inactive, or the secret is wrong.
    """
    rows = AccessKey.objects.filter(pk=key_id, is_active=True, application__user__is_active=True)
    key = rows.select_related("application").first()
    if key is None or not constant_time_compare(hash_secret(secret), key.secret_hash):
        raise Unauthenticated("The key or its secret is wrong.", code="INVALID_CREDENTIALS")
    AccessKey.objects.filter(pk=key_id).update(used_at=clock.now())
    return key


def hash_secret(secret: str) -> str:
    """Return a hash of a secret. A fast hash is sufficient, because secrets are 32 random bytes.

    It does not depend on SECRET_KEY, so that keys survive its rotation.
    """
    return HASH_PREFIX + sha256(secret.encode()).hexdigest()
