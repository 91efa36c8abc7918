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
from .permission_set import Names
from .scopes import granted

log = logging.getLogger(__name__)

ANONYMOUS = "assume:anonymous"
"""What everybody may do, and those who do not say who they are."""
ISSUER = "static/taskcluster/queue"
"""In whose name the credentials of tasks are issued; its key follows from the server's own."""
MOST_REMEMBERED = 10_000
NOT_READ = object()
FOR_EVER = 32_503_680_000_000
"""1 January 3000."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A client and its key."""

    id: str
    key: str = field(repr=False)
    scopes: tuple[str, ...]
    expires_at: int
    is_disabled: bool = False
    used_at: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """Scopes in order, and what they satisfy."""

    listed: tuple[str, ...]
    names: Names


def holder_of(client_id: str) -> Holder | None:
    """The client with this id; None if there is none, or its key cannot be opened."""
    return _once(("client", client_id), lambda: _read(client_id))


def issuer_of(client_id: str) -> Holder | None:
    """The client that certificates name as their issuer: this server's own, too."""
    return Holder(ISSUER, issuing_key(), ("*",), FOR_EVER) if client_id == ISSUER else holder_of(client_id)


def is_open() -> bool:
    """Whether everybody may do everything: on loopback, until the first client is made."""
    return conf.api_access == "open" and not _once("any", Client.objects.exists)


def expanded(scopes: Iterable[str]) -> list[str]:
    """The scopes with all that the roles imply that they assume."""
    roles = _once("roles", lambda: dict(ScopeRole.objects.values_list("id", "scopes")))
    return scope_roles.expanded(scopes, roles)


def held(scopes: Sequence[str]) -> Held:
    """The scopes with all that they imply, and what everybody may do."""
    return _once(("held", *scopes), lambda: _held(expanded([*scopes, ANONYMOUS])))


def _held(listed: list[str]) -> Held:
    return Held(tuple(listed), granted(listed))


@cache
def issuing_key() -> str:
    """The key that signs the credentials of tasks."""
    return salted_hmac("conductor_app.access.clients", "credentials of tasks", algorithm="sha256").hexdigest()


def sealed(client_id: str, token: str) -> str:
    """An access token as it is kept."""
    return vault.seal(_sealed_as(client_id), token)


def opened(client_id: str, box: str) -> str:
    """An access token that was kept; raises vault.Unreadable."""
    return vault.opened(_sealed_as(client_id), box)


def _sealed_as(client_id: str) -> str:
    # No secret can have a name with a space, so neither can stand in for the other.
    return f"client {client_id}"


def _read(client_id: str) -> Holder | None:
    row = Client.objects.filter(pk=client_id).first()
    if row is None:
        return None
    try:
        key = opened(row.id, row.sealed)
    except vault.Unreadable:
        log.error("access_token_unreadable", extra={"client": client_id})
        return None
    return Holder(row.id, key, tuple(row.scopes), row.expires_at, row.is_disabled, row.used_at)


def _once(name: Hashable, read: Callable[[], Any]) -> Any:
    """What was read under this name since access has changed last."""
    remembered = permission_cache.current().clients
    found = remembered.get(name, NOT_READ)
    if found is NOT_READ:
        if len(remembered) >= MOST_REMEMBERED:
            remembered.clear()
        found = remembered[name] = read()
    return found


def learn_use(holder: Holder, now: int) -> None:
    """This process has noted that the client is in use: it need not be noted again soon."""
    permission_cache.current().clients["client", holder.id] = replace(holder, used_at=now)
