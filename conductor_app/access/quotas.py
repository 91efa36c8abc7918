"""The quotas of callers, cached with the permissions: a change takes effect within one second (permission_cache.py)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..models import CallerQuota
from ..models.quotas import MAX_CALLER_LENGTH
from . import permission_cache
from .conductor_auth import Actor
from .current_actor import current_actor

ANONYMOUS = "anonymous"
"""All callers of a server without authentication. They have no quotas."""


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quotas of one caller. 0 is no limit."""

    starts_per_second: float = 0
    polls_per_second: float = 0
    searches_per_minute: float = 0
    open_runs: int = 0
    stored_bytes: int = 0


QUOTA_FIELDS = tuple(Quotas.__dataclass_fields__)
NO_QUOTAS = Quotas()


def caller_of_user(user_id: int) -> str:
    """Return the caller for a user: a person, or an application's own user."""
    return f"user {user_id}"


def caller_of_client(client_id: str) -> str:
    """Return the caller for a Taskcluster client."""
    return f"client {client_id}"[:MAX_CALLER_LENGTH]


def caller_of(actor: Actor | None) -> str:
    """Return the caller for an actor, "" for the engine itself."""
    if actor is None:
        return ""
    return ANONYMOUS if actor.user_id is None else caller_of_user(actor.user_id)


def current_caller() -> str:
    """Return the caller for the current actor, "" for the engine itself."""
    return caller_of(current_actor())


def quotas_of(caller: str) -> Quotas:
    """Return the quotas of a caller: its own, otherwise the default."""
    if not caller or caller == ANONYMOUS:
        return NO_QUOTAS
    cache = permission_cache.current_cache()
    if not cache.has_quotas:
        return NO_QUOTAS
    if cache.quotas is None:
        cache.quotas = _read_quotas()
    quotas: Mapping[str, Quotas] = cache.quotas
    return quotas.get(caller) or quotas.get("", NO_QUOTAS)


def _read_quotas() -> dict[str, Quotas]:
    """Return the complete quotas of each caller that has its own, and the default as those of ""."""
    rows = {caller_of_row(row): row for row in CallerQuota.objects.all()}
    default = _merge(NO_QUOTAS, rows.get(""))
    return {caller: _merge(default, row) for caller, row in rows.items()} | {"": default}


def caller_of_row(row: CallerQuota) -> str:
    """Return the caller whose quotas the row has, "" for the default."""
    if row.user_id is not None:
        return caller_of_user(row.user_id)
    return caller_of_client(row.client_id) if row.client_id is not None else ""


def _merge(default: Quotas, row: CallerQuota | None) -> Quotas:
    own = {name: getattr(row, name, None) for name in QUOTA_FIELDS}
    return replace(default, **{name: value for name, value in own.items() if value is not None})
