"""Clients and their roles as this process knows them: read once for each change of access (see known.py)."""

import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from django.utils.crypto import salted_hmac

from .. import conf
from ..models import Client, ScopeRole
from . import permission_cache, scope_roles, vault
from .permission_set import NamePatterns
from .scopes import scope_set

log = logging.getLogger(__name__)

ANONYMOUS_ROLE_SCOPE = "assume:anonymous"
"""What everybody may do, and those who do not say who they are."""
ISSUER_CLIENT_ID = "static/taskcluster/queue"
"""In whose name the credentials of tasks are issued; its key follows from the server's own."""
MAX_CACHED = 10_000
NOT_CACHED = object()
NEVER_EXPIRES = 32_503_680_000_000
"""1 January 3000."""


@dataclass(frozen=True, slots=True)
class ClientKey:
    """A client and its key."""

    id: str
    key: str = field(repr=False)
    scopes: tuple[str, ...]
    expires_at: int
    is_disabled: bool = False
    used_at: int = 0


@dataclass(frozen=True, slots=True)
class ScopeSet:
    """Scopes in order, and what they satisfy."""

    scope_list: tuple[str, ...]
    names: NamePatterns


def find_client_key(client_id: str) -> ClientKey | None:
    """The client with this id; None if there is none, or its key cannot be opened."""
    return _read_once(("client", client_id), lambda: _read_client_key(client_id))


def find_issuer_key(client_id: str) -> ClientKey | None:
    """The client that certificates name as their issuer: this server's own, too."""
    return (
        ClientKey(ISSUER_CLIENT_ID, issuing_key(), ("*",), NEVER_EXPIRES)
        if client_id == ISSUER_CLIENT_ID
        else find_client_key(client_id)
    )


def is_access_open() -> bool:
    """Whether everybody may do everything: on loopback, until the first client is made."""
    return conf.api_access == "open" and not _read_once("any", Client.objects.exists)


def expand_scopes(scopes: Iterable[str]) -> list[str]:
    """The scopes with all that the roles imply that they assume."""
    roles = _read_once("roles", lambda: dict(ScopeRole.objects.values_list("id", "scopes")))
    return scope_roles.expand_scopes(scopes, roles)


def effective_scopes(scopes: Sequence[str]) -> ScopeSet:
    """The scopes with all that they imply, and what everybody may do."""
    return _read_once(("held", *scopes), lambda: _build_scope_set(expand_scopes([*scopes, ANONYMOUS_ROLE_SCOPE])))


def _build_scope_set(scope_list: list[str]) -> ScopeSet:
    return ScopeSet(tuple(scope_list), scope_set(scope_list))


@cache
def issuing_key() -> str:
    """The key that signs the credentials of tasks."""
    return salted_hmac("conductor_app.access.clients", "credentials of tasks", algorithm="sha256").hexdigest()


def encrypt_token(client_id: str, token: str) -> str:
    """An access token as it is kept."""
    return vault.encrypt(_encryption_name(client_id), token)


def decrypt_token(client_id: str, ciphertext: str) -> str:
    """An access token that was kept; raises vault.Unreadable."""
    return vault.decrypt(_encryption_name(client_id), ciphertext)


def _encryption_name(client_id: str) -> str:
    # No secret can have a name with a space, so neither can stand in for the other.
    return f"client {client_id}"


def _read_client_key(client_id: str) -> ClientKey | None:
    row = Client.objects.filter(pk=client_id).first()
    if row is None:
        return None
    try:
        key = decrypt_token(row.id, row.sealed)
    except vault.DecryptionFailed:
        log.error("access_token_unreadable", extra={"client": client_id})
        return None
    return ClientKey(row.id, key, tuple(row.scopes), row.expires_at, row.is_disabled, row.used_at)


def _read_once(name: Hashable, read: Callable[[], Any]) -> Any:
    """What was read under this name since access has changed last."""
    cached = permission_cache.current_cache().clients
    found = cached.get(name, NOT_CACHED)
    if found is NOT_CACHED:
        if len(cached) >= MAX_CACHED:
            cached.clear()
        found = cached[name] = read()
    return found


def remember_use(client_key: ClientKey, now: int) -> None:
    """This process has noted that the client is in use: it need not be noted again soon."""
    permission_cache.current_cache().clients["client", client_key.id] = replace(client_key, used_at=now)
