"""Links with which invited people set their password. A link is valid for some days, once, and until the next one."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core.mail import send_mail
from django.http import HttpRequest
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import gettext as _

from ...core.errors import Conflict
from ...db.database import transaction
from ...settings import conf
from ...utils import clock
from ..audit import record_access_change
from ..commands.people import Access, invite
from ..commands.users import USER_KIND
from ..grants import require_user_permissions
from ..permissions import APPLICATION_USER_PREFIX
from .commands import may_be_linked, permit_link

VALID_DAYS = settings.PASSWORD_RESET_TIMEOUT // 86_400
ResultT = TypeVar("ResultT")
log = logging.getLogger(__name__)


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
