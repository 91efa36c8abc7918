"""Initial access of a server: the root client of its environment, and the role of anonymous callers."""

from django.db import connection

from ... import clock, conf
from ...access import vault
from ...access.clients import ANONYMOUS_ROLE_SCOPE, NEVER_EXPIRES, decrypt_token
from ...access.scope_roles import ASSUME_PREFIX
from ...models import Client, ScopeRole
from .clients import ClientSettings, create_client, reset_token

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
    except vault.DecryptionFailed:
        return False
