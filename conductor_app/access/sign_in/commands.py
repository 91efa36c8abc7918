"""Commands at sign-in: second factors, audit entries, the users of an OpenID Connect provider, and invitations.

A second factor is a code of an authenticator app (RFC 6238) or a recovery code. Keys are encrypted like secrets. A code
is accepted once, from 30 s before its interval to 30 s after it.

An invitation is a link with which a person sets its password. It is valid for some days, once, and until the next one.
"""

import logging
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TypeVar

import pyotp
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.contrib.sessions.models import Session
from django.core.mail import send_mail
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import gettext as _

from ...core.errors import Conflict, Forbidden
from ...db.database import transaction
from ...db.fields import strip_nul
from ...settings import conf
from ...utils import clock
from ..audit import record_access_change
from ..commands.people import Access, invite
from ..commands.users import MAX_ID_LENGTH, USER_KIND
from ..encryption import decrypt, encrypt, is_current
from ..grants import require_user_permissions
from ..models import ExternalIdentity, RecoveryCode, SecondFactor, UserProfile
from ..permissions import APPLICATION_USER_PREFIX, require_free_user_name, role_group

INTERVAL_SECONDS = 30
RECOVERY_CODES = 10
RECOVERY_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
"""Characters that are not confused with each other."""
UNKNOWN_USER = "(unknown user)"
ANY_GROUP = "*"
LINK_MS = 7 * 86_400_000
"""How long the permission to link an account to the provider lasts, in milliseconds."""
VALID_DAYS = settings.PASSWORD_RESET_TIMEOUT // 86_400
ResultT = TypeVar("ResultT")
log = logging.getLogger(__name__)


def has_second_factor(user: User) -> bool:
    """Return True if the user must enter a code at sign-in."""
    return SecondFactor.objects.filter(user=user).exists()


def new_sealed_key(user: User) -> str:
    """Return a new key for an authenticator app, encrypted for the user."""
    return encrypt(_seal_name(user.pk), pyotp.random_base32())


def unseal_key(user: User, sealed_key: str) -> str:
    """Return the key in the form in which a user enters it into an app."""
    return decrypt(_seal_name(user.pk), sealed_key)


def turn_on(user: User, sealed_key: str, code: str) -> list[str] | None:
    """Require the second factor from now on, if the code is correct.

    Returns new recovery codes, which are stored only as hashes. None: the code is wrong, or there is a second factor.
    """
    with transaction.atomic():
        factor = SecondFactor(user=user, sealed_key=sealed_key, created_at=clock.now())
        if has_second_factor(user) or not _accepts(factor, code):
            return None
        factor.save()
        codes = _replace_recovery_codes(user)
        record_access_change(USER_KIND, user.get_username(), "set up second factor", user.get_username())
    return codes


def verify_code(user: User, code: str) -> bool:
    """Return True if the code is a valid one of the authenticator app, or an unused recovery code."""
    code = code.strip().replace(" ", "").lower()
    with transaction.atomic():
        factor = SecondFactor.objects.select_for_update().filter(user=user).first()
        if factor is None:
            return False
        if _accepts(factor, code):
            factor.save()
            return True
        is_used, _ = RecoveryCode.objects.filter(user=user, code_hash=_hash(code)).delete()
        if is_used:
            left = RecoveryCode.objects.filter(user=user).count()
            record_access_change(USER_KIND, user.get_username(), "use recovery code", user.get_username(), left=left)
        return bool(is_used)


def remove_second_factor(user: User, by: str) -> None:
    """Remove the second factor and the recovery codes of a user."""
    with transaction.atomic():
        RecoveryCode.objects.filter(user=user).delete()
        count, _ = SecondFactor.objects.filter(user=user).delete()
        if count:
            record_access_change(USER_KIND, user.get_username(), "remove second factor", by)


def reencrypt_second_factors() -> int:
    """Encrypt every key with the newest key of the server. Returns how many were encrypted with another one."""
    count = 0
    for factor in SecondFactor.objects.order_by("pk"):
        if not is_current(factor.sealed_key):
            again = encrypt(_seal_name(factor.user_id), _key(factor))
            count += SecondFactor.objects.filter(pk=factor.pk, sealed_key=factor.sealed_key).update(sealed_key=again)
    return count


def _accepts(factor: SecondFactor, code: str) -> bool:
    """Return True if the code is valid and newer than the last accepted one, and remember it."""
    totp, step = pyotp.TOTP(_key(factor), interval=INTERVAL_SECONDS), clock.now() // 1000 // INTERVAL_SECONDS
    if not (code.isascii() and code.isdigit()):
        return False
    for candidate in (step - 1, step, step + 1):
        if candidate > factor.last_step and secrets.compare_digest(totp.generate_otp(candidate), code):
            factor.last_step = candidate
            return True
    return False


def _replace_recovery_codes(user: User) -> list[str]:
    parts = [[_random_part(), _random_part(), _random_part()] for _ in range(RECOVERY_CODES)]
    codes = ["-".join(part) for part in parts]
    RecoveryCode.objects.filter(user=user).delete()
    RecoveryCode.objects.bulk_create(RecoveryCode(user=user, code_hash=_hash(code)) for code in codes)
    return codes


def _random_part() -> str:
    return "".join(secrets.choice(RECOVERY_ALPHABET) for _ in range(5))


def _hash(code: str) -> str:
    """Return the hash of a recovery code. Its 74 random bits need no slow hash."""
    return sha256(code.replace("-", "").encode()).hexdigest()


def _seal_name(user_id: int) -> str:
    return f"second factor of user {user_id}"


def _key(factor: SecondFactor) -> str:
    return decrypt(_seal_name(factor.user_id), factor.sealed_key)


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
        record_access_change(
            USER_KIND, name, action, by or name, reason=reason, **({"address": address} if address else {})
        )
    log.info("%s: %s from %s%s", name, action, address or "an unknown address", f" ({reason})" if reason else "")


def find_or_create_external_user(issuer: str, subject: str, external: ExternalUser) -> User:
    """Return the user of an identity, created at its first sign-in.

    An existing user gets the identity only if an administrator has permitted that on the user's page.

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
                USER_KIND, user.get_username(), "link identity", user.get_username(), issuer=issuer, subject=subject
            )
    _update_external_user(user, external)
    return user


def _prepare_user(username: str) -> User:
    if not username or len(username) > MAX_ID_LENGTH or username.startswith(APPLICATION_USER_PREFIX):
        raise Forbidden("The provider returned no valid user name.")
    user = get_user_model().objects.select_for_update().filter(username=username).first()
    if user is None:
        try:
            require_free_user_name(username)
        except Conflict as taken:
            raise Forbidden(taken.message) from None
        user = get_user_model()(username=username)
        user.set_unusable_password()
        user.save()
        return user
    permitted = UserProfile.objects.filter(user=user, link_until__gt=clock.now())
    if not may_be_linked(user) or not permitted.update(link_until=None):
        raise Forbidden(f"Another account of this server has the name {username}.")
    return user


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
    is_permitted = (
        bool(wanted)
        or Group.objects.filter(user=user).exclude(pk__in=replaced).exists()
        or UserProfile.objects.filter(user=user, is_invited=True).exists()
    )
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
            record_access_change(
                USER_KIND, user.get_username(), "update groups at sign-in", user.get_username(), **names
            )
    if not is_permitted:
        raise Forbidden(f"{user.get_username()} belongs to no group that may sign in here.")


def may_be_linked(user: User) -> bool:
    """Return True if the user has no way to sign in yet, so that an identity of the provider may become its own."""
    return not user.has_usable_password() and not ExternalIdentity.objects.filter(user=user).exists()


def permit_link(user: User, by: str) -> None:
    """Let the user of the provider with the name of this account sign in as it, once within LINK_MS.

    Raises:
        Conflict: when the account has a password or an identity, or belongs to an application.
    """
    if not may_be_linked(user) or user.get_username().startswith(APPLICATION_USER_PREFIX):
        raise Conflict(f"The account {user.get_username()} has a way to sign in already.")
    with transaction.atomic():
        UserProfile.objects.update_or_create(user=user, defaults={"link_until": clock.now() + LINK_MS})
        record_access_change(USER_KIND, user.get_username(), "permit single sign-on", by)


def delete_expired_sessions(limit: int) -> int:
    """Delete the rows of all sessions that have expired. Returns how many."""
    count: int = Session.objects.filter(expire_date__lt=timezone.now()).delete()[0]
    return count


class InvitationTokens(PasswordResetTokenGenerator):
    """Tokens of invitations. Setting a password invalidates them, as does a new unusable one."""

    key_salt = "conductor_app.access.sign_in.invitations"

    def _now(self) -> datetime:
        return datetime.fromtimestamp(clock.now() / 1000, UTC).replace(tzinfo=None)


invitation_tokens = InvitationTokens()


def create_invitation(user: User, by: str) -> str:
    """Return the path of the page where the user sets a password. Earlier ones become invalid.

    Raises:
        Conflict: when the account has a password or an identity, or belongs to an application.
        Forbidden: when the current actor does not have all permissions of the user.
    """
    if not may_be_linked(user) or user.get_username().startswith(APPLICATION_USER_PREFIX):
        raise Conflict(f"The account {user.get_username()} has a way to sign in already.")
    with transaction.atomic():
        # Who holds the link can take over the account.
        require_user_permissions(user.pk)
        user.set_unusable_password()
        user.save(update_fields=["password"])
        record_access_change(USER_KIND, user.get_username(), "create invitation", by)
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    return reverse("admin:invitation", args=[uid, invitation_tokens.make_token(user)])


def invite_person(name: str, email: str, access: Access, by: str, *, uses_link: bool) -> tuple[User, str]:
    """Create a person, and return it with the path of the page where it sets a password, or "" for single sign-on.

    Raises:
        Invalid: when the name, the role or the scope is not valid.
        Conflict: when another user or an application has this name.
        Forbidden: when the current actor does not have a permission that it gives.
    """
    with transaction.atomic():
        user = invite(name, email, access, by)
        if uses_link:
            return user, create_invitation(user, by)
        permit_link(user, by)
    return user, ""


def accept_invitation(name: str, save: Callable[[], ResultT]) -> ResultT:
    """Save the first password of a user, with an audit entry. Returns the result of `save`."""
    with transaction.atomic():
        result = save()
        record_access_change(USER_KIND, name, "accept invitation", name)
    return result


def invitation_address(request: HttpRequest, path: str) -> str:
    """Return the address of a page of this server for a mail."""
    if not conf.public_url:
        return request.build_absolute_uri(path)
    return f"{conf.public_url}{path.removeprefix(settings.FORCE_SCRIPT_NAME or '')}"


def mail_invitation(user: User, address: str, by: str) -> bool:
    """Send the address to the user. Returns whether the mail server accepted the message."""
    server = conf.environment_name or "Conductor"
    subject = _("%(by)s invites you to %(server)s") % {"by": by, "server": server}
    text = _("Set your password within %(days)s days. Your name for the sign-in is %(name)s.") % {
        "days": VALID_DAYS,
        "name": user.get_username(),
    }
    try:
        return bool(send_mail(subject.replace("\n", " ")[:200], f"{text}\n\n{address}\n", None, [user.email]))
    except OSError as error:
        # Texts of a mail server may contain the account.
        log.warning("The mail server refused an invitation: %s", type(error).__name__)
        return False
