"""Taskcluster's clients and roles, cached per process until access changes (see permission_cache.py)."""

import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .. import conf
from ..models import Client, ScopeRole
from . import permission_cache, scope_roles, vault
from .permission_set import NamePatterns
from .scopes import scope_set
from .server_keys import derive_keys

log = logging.getLogger(__name__)

ANONYMOUS_ROLE_SCOPE = "assume:anonymous"
"""The scope of the role of all callers, including unauthenticated ones."""
ISSUER_CLIENT_ID = "static/taskcluster/queue"
"""The client that issues the credentials of tasks. Its key is derived from the server's secret."""
MAX_CACHED = 10_000
NOT_CACHED = object()
NEVER_EXPIRES = 32_503_680_000_000
"""1 January 3000."""


@dataclass(frozen=True, slots=True)
class ClientKey:
    """A client with its decrypted key.

    `previous_keys`: keys before a rotation, which only verify certificates.
    """

    id: str
    key: str = field(repr=False)
    scopes: tuple[str, ...]
    expires_at: int
    is_disabled: bool = False
    used_at: int = 0
    previous_keys: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class ScopeSet:
    """A list of scopes, and the names that they satisfy."""

    scope_list: tuple[str, ...]
    names: NamePatterns


def find_client_key(client_id: str) -> ClientKey | None:
    """Return the client with this id, or None if it does not exist or its key cannot be decrypted."""
    return _read_once(("client", client_id), lambda: _read_client_key(client_id))


def find_issuer_key(client_id: str) -> ClientKey | None:
    """Return the client that certificates name as their issuer. It may be this server itself."""
    if client_id != ISSUER_CLIENT_ID:
        return find_client_key(client_id)
    key, *previous_keys = issuing_keys()
    return ClientKey(ISSUER_CLIENT_ID, key, ("*",), NEVER_EXPIRES, previous_keys=tuple(previous_keys))


def is_access_open() -> bool:
    """Return True if every caller has all permissions: on loopback, until the first client is created."""
    return conf.api_access == "open" and not _read_once("any", Client.objects.exists)


def expand_scopes(scopes: Iterable[str]) -> list[str]:
    """Return the scopes with those of all roles that they assume."""
    roles = _read_once("roles", lambda: dict(ScopeRole.objects.values_list("id", "scopes")))
    return scope_roles.expand_scopes(scopes, roles)


def effective_scopes(scopes: Sequence[str]) -> ScopeSet:
    """Return the scopes with those that they imply and those of all callers."""
    return _read_once(("held", *scopes), lambda: _build_scope_set(expand_scopes([*scopes, ANONYMOUS_ROLE_SCOPE])))


def _build_scope_set(scope_list: list[str]) -> ScopeSet:
    return ScopeSet(tuple(scope_list), scope_set(scope_list))


def issuing_keys() -> tuple[str, ...]:
    """Return the keys that verify the credentials of tasks. The first one also signs them."""
    return tuple(key.hex() for key in derive_keys("conductor_app.access.clients", "credentials of tasks"))


def encrypt_token(client_id: str, token: str) -> str:
    """Return an access token encrypted for storage."""
    return vault.encrypt(_encryption_name(client_id), token)


def decrypt_token(client_id: str, ciphertext: str) -> str:
    """Return a decrypted access token.

    Raises:
        DecryptionFailed: when no key of this server decrypts it.
    """
    return vault.decrypt(_encryption_name(client_id), ciphertext)


def _encryption_name(client_id: str) -> str:
    # The names of secrets contain no space, so a secret and a token cannot be confused.
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
    """Return the cached value of this name, or read it. A change of access clears the cache."""
    cached = permission_cache.current_cache().clients
    value = cached.get(name, NOT_CACHED)
    if value is NOT_CACHED:
        if len(cached) >= MAX_CACHED:
            cached.clear()
        value = cached[name] = read()
    return value


def remember_use(client_key: ClientKey, now: int) -> None:
    """Remember that this process has recorded the use of the client, so that it is not recorded again soon."""
    permission_cache.current_cache().clients["client", client_key.id] = replace(client_key, used_at=now)
