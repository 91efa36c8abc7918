"""Keys of applications: made here, shown once, kept hashed."""

import secrets
import uuid

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils.crypto import constant_time_compare, salted_hmac

from .. import clock
from ..core.errors import Unauthenticated
from ..models import AccessKey, Application
from .access_types import ADMIN
from .roles import role_group

SALT = "conductor_app.access.keys"
"""Part of every stored hash: changing it would revoke all keys."""

APPLICATION_USER_PREFIX = "app:"
"""What the name of an application's own user begins with; its id follows."""


def create_key(application: str) -> tuple[str, str]:
    """A new key for the application with this name: its id, and its secret, which cannot be shown again.

    An application that is not there yet is made, with the role ADMIN: whoever makes keys so has the server itself.
    """
    with transaction.atomic():
        found = Application.objects.filter(name=application).order_by("created_at", "id").first()
        if found is None:
            found = new_application(application)
            found.user.groups.add(role_group(ADMIN))
        return new_key(found)


def new_application(name: str, by: str = "") -> Application:
    """An application without a role and without a key, and its own user, with which nobody can log in."""
    id = str(uuid.uuid4())
    user = get_user_model()(username=f"{APPLICATION_USER_PREFIX}{id}", first_name=name[:150])
    user.set_unusable_password()
    user.save()
    return Application.objects.create(id=id, name=name, user=user, created_at=clock.now(), created_by=by)


def new_key(application: Application) -> tuple[str, str]:
    """A new key for an application: its id and its secret."""
    key_id, secret = secrets.token_hex(16), secrets.token_urlsafe(32)
    AccessKey.objects.create(
        id=key_id, application=application, secret_hash=hash_secret(secret), created_at=clock.now()
    )
    return key_id, secret


def verify_key(key_id: str, secret: str) -> AccessKey:
    """The key with this id and secret; raises Unauthenticated."""
    rows = AccessKey.objects.filter(pk=key_id, is_active=True, application__user__is_active=True)
    key = rows.select_related("application").first()
    if not constant_time_compare(hash_secret(secret), key.secret_hash if key else "") or key is None:
        raise Unauthenticated("The key or its secret is wrong.", code="INVALID_CREDENTIALS")
    AccessKey.objects.filter(pk=key_id).update(used_at=clock.now())
    return key


def hash_secret(secret: str) -> str:
    """A fast keyed hash is enough: the secrets are 32 random bytes, nobody can guess them one by one."""
    return salted_hmac(SALT, secret, algorithm="sha256").hexdigest()
