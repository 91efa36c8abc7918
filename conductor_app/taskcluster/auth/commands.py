"""Commands on clients, their access tokens and roles.

A token is returned once, to the caller that creates or resets it.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.db import IntegrityError

from ...access import encryption
from ...access.audit import announce_access_change, record_access_change
from ...access.models import Client
from ...core.errors import Conflict, Forbidden, Invalid, NotFound
from ...db.database import connection, transaction
from ...settings import conf
from ...utils import clock
from ..models import ScopeRole
from .scopes import (
    ALL_SCOPES,
    ANONYMOUS_ROLE_SCOPE,
    ASSUME_PREFIX,
    ISSUER_CLIENT_ID,
    MAX_ROLE_ID_LENGTH,
    NEVER_EXPIRES,
    SCOPE_PATTERN,
    assumes_itself,
    decrypt_token,
    encrypt_token,
    expand_scopes,
    fill_in_star,
    find_client_key,
    remember_use,
)
from .signatures import CLIENT_ID_PATTERN

CLIENT_KIND = "client"
SAME_REQUEST_MS = 15 * 60 * 1000
"""The period in which a repeated creation request returns the first response, which may have been lost."""
MAX_CLIENT_ID_LENGTH, MAX_DESCRIPTION_LENGTH = 255, 10_240


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Properties of a client that its creator sets. `is_disabled`: of a new client; others keep their state."""

    scopes: Sequence[str]
    expires_at: int
    description: str = ""
    is_deleted_when_expired: bool = False
    is_disabled: bool = False


def find_client(id: str) -> Client:
    found = Client.objects.filter(pk=id).first()
    if found is None:
        raise NotFound(f"There is no client {id}.")
    return found


def create_client(id: str, wanted: ClientSettings, by: str, token: str = "") -> tuple[Client, str]:
    """Create a client. Returns it with its access token.

    Raises:
        Conflict: when another client has this id.
    """
    check_client(id, wanted)
    token, now = token or new_token(), clock.now()
    sealed = encrypt_token(id, token)
    row = Client(id=id, sealed=sealed, created_at=now, created_by=by[:255], rotated_at=now)
    try:
        with transaction.atomic():
            _save_client(row, wanted, by, now, is_new=True)
            record_access_change(CLIENT_KIND, id, "create", by, scopes=list(wanted.scopes))
    except IntegrityError:
        return _existing_client(id, wanted, by)
    return row, token


def _existing_client(id: str, wanted: ClientSettings, by: str) -> tuple[Client, str]:
    row = find_client(id)
    is_same = (row.scopes, row.expires_at, row.description, row.is_deleted_when_expired, row.created_by) == (
        _sort_scopes(wanted.scopes), wanted.expires_at, wanted.description, wanted.is_deleted_when_expired, by[:255]
    )  # fmt: skip
    if not is_same or row.updated_at != row.created_at or clock.now() - row.created_at > SAME_REQUEST_MS:
        raise Conflict(f"The client {id} already exists.")
    return row, decrypt_token(id, row.sealed)


def update_client(id: str, wanted: ClientSettings, by: str) -> Client:
    """Replace the settings of a client. Its token stays."""
    check_client(id, wanted)
    with transaction.atomic():
        row = _lock_client(id)
        _save_client(row, wanted, by, clock.now())
        record_access_change(CLIENT_KIND, id, "change", by, scopes=list(wanted.scopes))
    return row


def _lock_client(id: str) -> Client:
    """Return a client that no other transaction changes before this one ends."""
    row = Client.objects.select_for_update().filter(pk=id).first()
    if row is None:
        raise NotFound(f"There is no client {id}.")
    return row


def authorize_and_update_client(id: str, authorize: Callable[[Client], ClientSettings], by: str) -> Client:
    """Replace the settings of a client with those that `authorize` returns for its locked row."""
    with transaction.atomic():
        return update_client(id, authorize(_lock_client(id)), by)


def set_disabled(id: str, is_disabled: bool, by: str) -> Client:
    """Disable or enable a client."""
    with transaction.atomic():
        row = _lock_client(id)
        if row.is_disabled != is_disabled:
            row.is_disabled, row.updated_at, row.updated_by = is_disabled, clock.now(), by[:255]
            row.save()
            record_access_change(CLIENT_KIND, id, "disable" if is_disabled else "enable", by)
    return row


def reset_token(id: str, by: str, token: str = "") -> tuple[Client, str]:
    """Replace the access token of a client. The former token becomes invalid."""
    token = token or new_token()
    with transaction.atomic():
        row = _lock_client(id)
        row.sealed = encrypt_token(id, token)
        row.rotated_at = row.updated_at = clock.now()
        row.updated_by = by[:255]
        row.save()
        record_access_change(CLIENT_KIND, id, "reset token", by)
    return row, token


def delete_client(id: str, by: str, reason: str = "") -> None:
    """Delete a client, if it exists."""
    with transaction.atomic():
        row = Client.objects.filter(pk=id).first()
        if row is not None:
            row.delete()
            record_access_change(CLIENT_KIND, id, "delete", by, reason)


def new_token() -> str:
    """Return a random access token, as long as those of Taskcluster."""
    return secrets.token_urlsafe(33)


def check_scopes(scopes: Sequence[str]) -> None:
    """Check that scopes can be assigned."""
    for scope in scopes:
        if not SCOPE_PATTERN.match(scope):
            raise Invalid(f"A scope must have printable ASCII characters only (got {scope[:300]!r}).")
        if scope.endswith("**"):
            raise Invalid(f"The scope {scope[:300]} must not end in two stars.")


def check_client(id: str, wanted: ClientSettings) -> None:
    """Check the id and the settings of a client."""
    if not CLIENT_ID_PATTERN.fullmatch(id) or len(id) > MAX_CLIENT_ID_LENGTH or id == ISSUER_CLIENT_ID:
        raise Invalid(
            f"A client id must have 1 to {MAX_CLIENT_ID_LENGTH} letters, digits or !@/:.+|_- (got {id[:300]!r})."
        )
    if len(wanted.description) > MAX_DESCRIPTION_LENGTH or "\0" in wanted.description:
        raise Invalid(f"A description must have at most {MAX_DESCRIPTION_LENGTH} characters and no NUL.")
    check_scopes(wanted.scopes)


def _save_client(row: Client, wanted: ClientSettings, by: str, now: int, is_new: bool = False) -> None:
    row.scopes, row.expires_at, row.description = _sort_scopes(wanted.scopes), wanted.expires_at, wanted.description
    row.is_deleted_when_expired = wanted.is_deleted_when_expired
    if is_new:
        row.is_disabled = wanted.is_disabled
    row.updated_at, row.updated_by = now, by[:255]
    row.save(force_insert=is_new)


def _sort_scopes(scopes: Sequence[str]) -> list[str]:
    return sorted(set(scopes))


ROLE_KIND = "scope_role"


def find_role(id: str) -> ScopeRole:
    found = ScopeRole.objects.filter(pk=id).first()
    if found is None:
        raise NotFound(f"There is no role {id}.")
    return found


def create_role(id: str, scopes: Sequence[str], description: str, by: str) -> ScopeRole:
    """Create a role. An existing role with the same scopes and description is returned.

    Raises:
        Invalid: when the id, a scope or the description is invalid.
        Conflict: when a different role has this id.
    """
    with transaction.atomic():
        _lock_access_revision()
        check_role(id, scopes, description)
        found = ScopeRole.objects.filter(pk=id).first()
        if found is not None:
            if (found.scopes, found.description) != (sorted(set(scopes)), description):
                raise Conflict(f"The role {id} already exists.")
            return found
        now = clock.now()
        row = ScopeRole(id=id, created_at=now, created_by=by[:255])
        _save_role(row, scopes, description, by)
        record_access_change(ROLE_KIND, id, "create", by, scopes=list(scopes))
    return row


def update_role(
    id: str,
    scopes: Sequence[str],
    description: str,
    by: str,
    *,
    authorize: Callable[[ScopeRole], None] = lambda row: None,
) -> ScopeRole:
    """Replace the scopes and the description of a role, after `authorize` has accepted its locked row."""
    with transaction.atomic():
        _lock_access_revision()
        check_role(id, scopes, description)
        row = find_role(id)
        authorize(row)
        _save_role(row, scopes, description, by)
        record_access_change(ROLE_KIND, id, "change", by, scopes=list(scopes))
    return row


def delete_role(id: str, by: str) -> None:
    """Delete a role, if it exists."""
    with transaction.atomic():
        if ScopeRole.objects.filter(pk=id).delete()[0]:
            record_access_change(ROLE_KIND, id, "delete", by)


def _lock_access_revision() -> None:
    """Serialize changes of roles by a write: two roles saved at the same time could assume each other."""
    announce_access_change()


def check_role(
    id: str, scopes: Sequence[str], description: str, planned_roles: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Check the id, the scopes and the description of a role.

    `planned_roles`: roles that are not saved yet, with their scopes.

    Raises:
        Invalid: when one of them is invalid, the role would assume itself, or it expands to too many scopes.
    """
    if not id or not SCOPE_PATTERN.match(id) or len(id) > MAX_ROLE_ID_LENGTH:
        raise Invalid(f"A role id must have 1 to {MAX_ROLE_ID_LENGTH} printable ASCII characters (got {id[:300]!r}).")
    if len(description) > MAX_DESCRIPTION_LENGTH or "\0" in description:
        raise Invalid(f"A description must have at most {MAX_DESCRIPTION_LENGTH} characters and no NUL.")
    check_scopes(scopes)
    saved = dict(ScopeRole.objects.values_list("id", "scopes"))
    roles = {**saved, **(planned_roles or {}), id: list(scopes)}
    if assumes_itself(id, roles):
        raise Invalid(f"The role {id} would assume itself, directly or through other roles.")
    try:
        expand_scopes([f"{ASSUME_PREFIX}{id}"], roles)
    except Forbidden as refused:
        raise Invalid(f"The role {id} cannot be saved. {refused.message}") from None


def expand_role_scopes(id: str, scopes: Sequence[str]) -> list[str]:
    """Return the scopes that a role grants at most: a star in the id of the role can stand for anything."""
    return [fill_in_star(scope, ALL_SCOPES) if id.endswith(ALL_SCOPES) else scope for scope in scopes]


def _save_role(row: ScopeRole, scopes: Sequence[str], description: str, by: str) -> None:
    row.scopes, row.description = sorted(set(scopes)), description
    row.updated_at, row.updated_by = clock.now(), by[:255]
    row.save()


NOTED_EVERY_MS = 60 * 60 * 1000


def record_client_use(id: str) -> None:
    """Record the use of a client, at most once per NOTED_EVERY_MS."""
    holder, now = find_client_key(id), clock.now()
    if holder is not None and now - holder.used_at > NOTED_EVERY_MS:
        remember_use(holder, now)
        Client.objects.filter(pk=id).update(used_at=now)


def delete_expired_clients(limit: int) -> int:
    """Delete up to `limit` expired clients that are set to be deleted on expiry. Returns how many."""
    due = Client.objects.filter(is_deleted_when_expired=True, expires_at__lte=clock.now())
    ids = list(due.order_by("expires_at").values_list("id", flat=True)[:limit])
    for id in ids:
        delete_client(id, "clock", "The client has expired.")
    return len(ids)


def reencrypt_access_tokens() -> int:
    """Encrypt every access token with the newest key. Returns how many were encrypted with another one."""
    count = 0
    for row in Client.objects.order_by("id"):
        if not encryption.is_current(row.sealed):
            again = encrypt_token(row.id, decrypt_token(row.id, row.sealed))
            count += Client.objects.filter(pk=row.id, sealed=row.sealed).update(sealed=again)
    return count


FIRST_SCOPES_OF_ANYBODY = ["queue:get-artifact:public/*"]


def ensure_first_access() -> None:
    """Create the missing parts of the initial access, once the tables exist."""
    if not {Client._meta.db_table, ScopeRole._meta.db_table} <= set(connection.introspection.table_names()):
        return
    _ensure_first_role()
    _ensure_root_client()


def _ensure_first_role() -> None:
    """Let anonymous callers read public artifacts, if there are no roles and clients yet."""
    if not ScopeRole.objects.exists() and not Client.objects.exists():
        now, description = clock.now(), "Scopes of anonymous callers."
        role = ANONYMOUS_ROLE_SCOPE.removeprefix(ASSUME_PREFIX)
        ScopeRole.objects.create(
            id=role, scopes=FIRST_SCOPES_OF_ANYBODY, description=description, created_at=now, updated_at=now
        )


def _ensure_root_client() -> None:
    """Create the root client that the server's environment defines, with all scopes, or set its token."""
    id, token = conf.taskcluster_root_client_id, conf.taskcluster_root_access_token
    if not id:
        return
    row = Client.objects.filter(pk=id).first()
    if row is None:
        everything = ClientSettings(["*"], NEVER_EXPIRES, "Defined in the server's environment.")
        create_client(id, everything, "environment", token=token)
    elif not _has_token(row, token):
        reset_token(id, "environment", token=token)


def _has_token(row: Client, token: str) -> bool:
    try:
        return decrypt_token(row.id, row.sealed) == token
    except encryption.DecryptionFailed:
        return False
