"""Sign-in with an LDAP directory by django-python3-ldap, with protection of local accounts, and groups and roles."""

import logging
import re
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django_python3_ldap.auth import LDAPBackend
from ldap3.core.exceptions import LDAPException

from ...core.errors import Forbidden
from ...engine.access.sign_ins import ExternalUser, require_no_local_account, update_external_user

GROUP_ATTRIBUTE = "memberOf"

logger = logging.getLogger(__name__)


class DirectoryBackend(LDAPBackend):
    """Authentication by the directory. While it does not respond, its users cannot sign in."""

    def authenticate(self, *args: Any, **kwargs: Any) -> User | None:
        """Return the user, or None if the password is wrong or the directory does not respond."""
        try:
            user: User | None = super().authenticate(*args, **kwargs)
        except LDAPException as error:
            logger.warning("The LDAP directory does not respond: %s", error)
            return None
        return user


def clean_user_data(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a user, and refuse a user of the directory that has the name of a local account.

    Raises:
        PermissionDenied: when such an account exists.
    """
    username = fields.get("username")
    try:
        require_no_local_account(str(username))
    except Forbidden as error:
        raise PermissionDenied(error.message) from None
    return {"username": username}


def update_user(user: User, attributes: dict[str, Any]) -> None:
    """Update the user's name, groups and roles.

    Raises:
        PermissionDenied: when the user may not sign in.
    """
    external = ExternalUser(
        username=user.get_username(),
        email=_first(attributes.get("mail")),
        first_name=_first(attributes.get("givenName")),
        last_name=_first(attributes.get("sn")),
        groups=[_common_name(dn) for dn in attributes.get(GROUP_ATTRIBUTE) or ()],
    )
    try:
        update_external_user(user, external)
    except Forbidden as error:
        raise PermissionDenied(error.message) from None


def _first(value: Any) -> str:
    if isinstance(value, list | tuple):
        value = value[0] if value else ""
    return str(value or "")


def _common_name(dn: Any) -> str:
    """Return `developers` for `cn=developers,ou=groups,dc=example,dc=org`."""
    match = re.match(r"cn=((?:[^,\\]|\\.)*)", str(dn), re.IGNORECASE)
    return re.sub(r"\\(.)", r"\1", match[1]) if match else str(dn)
