"""Commands at sign-in: audit entries, and the users of an OpenID Connect provider."""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone

from ... import conf
from ...access.access_keys import APPLICATION_USER_PREFIX
from ...access.roles import role_group
from ...core.errors import Forbidden
from ...models import ExternalIdentity
from ...store.rows import strip_nul
from .access_audit import record_access_change
from .users import KIND, MAX_ID_LENGTH

UNKNOWN_USER = "(unknown user)"
ANY_GROUP = "*"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ExternalUser:
    """A user as the OpenID Connect provider describes it. `groups`: the names of the user's groups there."""

    username: str
    email: str
    first_name: str
    last_name: str
    groups: Collection[str]


def record_sign_in(username: str, action: str, address: str, reason: str = "", by: str = "") -> None:
    """Record a sign-in, a failed one or a sign-out in the audit log and in the log. `by`: the user, if not given.

    The name of an unknown user is not recorded, because it can be a password in the wrong field.
    """
    reason = strip_nul(reason)
    is_known = get_user_model().objects.filter(username=username).exists()
    name = username if is_known else UNKNOWN_USER
    with transaction.atomic():
        record_access_change(KIND, name, action, by or name, reason=reason, **({"address": address} if address else {}))
    logger.info("%s: %s from %s%s", name, action, address or "an unknown address", f" ({reason})" if reason else "")


def _update_external_user(user: User, external: ExternalUser) -> None:
    """Replace the groups and roles of a user by those of the provider, and check that the user may sign in.

    Groups of the provider map to the groups of this server with the same name, and to roles by the setting
    `external_group_roles`. If that setting is empty, roles are not changed.

    Raises:
        Forbidden: when the user is deactivated, or belongs to no group that may sign in.
    """
    if not user.is_active:
        raise Forbidden(f"The user {user.get_username()} is deactivated.")
    groups = set(Group.objects.filter(profile__role=None, name__in=external.groups))
    role_names = [
        role
        for group, roles in conf.external_group_roles.items()
        if group == ANY_GROUP or group in external.groups
        for role in roles
    ]
    wanted = groups | {role_group(role) for role in role_names}
    replaced = Group.objects.filter(user=user)
    if not conf.external_group_roles:
        replaced = replaced.filter(profile__role=None)
    is_permitted = bool(wanted) or Group.objects.filter(user=user).exclude(pk__in=replaced).exists()
    before = set(replaced)
    with transaction.atomic():
        user.groups.remove(*(before - wanted))
        user.groups.add(*(wanted - before))
        facts = (is_permitted, external.email[:254], external.first_name[:150], external.last_name[:150])
        if facts != (user.is_staff, user.email, user.first_name, user.last_name):
            user.is_staff, user.email, user.first_name, user.last_name = facts
            user.save(update_fields=["is_staff", "email", "first_name", "last_name"])
        if wanted != before:
            names: dict[str, Any] = {
                "added": sorted(str(g) for g in wanted - before),
                "removed": sorted(str(g) for g in before - wanted),
            }
            record_access_change(KIND, user.get_username(), "update groups at sign-in", user.get_username(), **names)
    if not is_permitted:
        raise Forbidden(f"{user.get_username()} belongs to no group that may sign in here.")


def find_or_create_external_user(issuer: str, subject: str, external: ExternalUser) -> User:
    """Return the user of an identity, created at its first sign-in.

    A user without a password and without an identity, such as one created by the API, gets the identity of the first
    sign-in with its name.

    Raises:
        Forbidden: when the name is invalid or belongs to another account, or the user may not sign in.
    """
    with transaction.atomic():
        user = (
            get_user_model()
            .objects.filter(external_identities__issuer=issuer, external_identities__subject=subject)
            .first()
        )
        if user is None:
            user = _prepare_user(external.username)
            ExternalIdentity.objects.create(user=user, issuer=issuer, subject=subject)
            record_access_change(
                KIND, user.get_username(), "link identity", user.get_username(), issuer=issuer, subject=subject
            )
    _update_external_user(user, external)
    return user


def _prepare_user(username: str) -> User:
    if not username or len(username) > MAX_ID_LENGTH or username.startswith(APPLICATION_USER_PREFIX):
        raise Forbidden("The provider returned no valid user name.")
    user = get_user_model().objects.select_for_update().filter(username=username).first()
    if user is None:
        user = get_user_model()(username=username)
        user.set_unusable_password()
        user.save()
    elif user.has_usable_password() or user.external_identities.exists():
        raise Forbidden(f"Another account of this server has the name {username}.")
    return user


def delete_expired_sessions() -> int:
    """Delete the rows of sessions that have expired. Returns how many."""
    count: int = Session.objects.filter(expire_date__lt=timezone.now()).delete()[0]
    return count
