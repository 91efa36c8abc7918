"""What a server has from its first start: a client that its environment names, and what everybody may do."""

from django.db import connection

from ... import clock, conf
from ...access import vault
from ...access.clients import ANONYMOUS_ROLE_SCOPE, NEVER_EXPIRES, decrypt_token
from ...access.scope_roles import ASSUME_PREFIX
from ...models import Client, ScopeRole
from .clients import ClientSettings, create_client, reset_token

FIRST_SCOPES_OF_ANYBODY = ["queue:get-artifact:public/*"]


def ensure_first_access() -> None:
    """Make what is not there yet, as soon as there are tables for it."""
    if not {Client._meta.db_table, ScopeRole._meta.db_table} <= set(connection.introspection.table_names()):
        return
    _ensure_first_role()
    _ensure_root_client()


def _ensure_first_role() -> None:
    """Where there is neither a role nor a client yet, anybody may read public artifacts, and nothing else."""
    if not ScopeRole.objects.exists() and not Client.objects.exists():
        now, says = clock.now(), "What everybody may do."
        anybody = ANONYMOUS_ROLE_SCOPE.removeprefix(ASSUME_PREFIX)
        ScopeRole.objects.create(
            id=anybody, scopes=FIRST_SCOPES_OF_ANYBODY, description=says, created_at=now, updated_at=now
        )


def _ensure_root_client() -> None:
    """The client that the server's environment names is there with its token; a new one may do everything."""
    id, token = conf.taskcluster_root_client_id, conf.taskcluster_root_access_token
    if not id:
        return
    row = Client.objects.filter(pk=id).first()
    if row is None:
        everything = ClientSettings(["*"], NEVER_EXPIRES, "Named by the environment of the server.")
        create_client(id, everything, "environment", token=token)
    elif not _has_token(row, token):
        reset_token(id, "environment", token=token)


def _has_token(row: Client, token: str) -> bool:
    try:
        return decrypt_token(row.id, row.sealed) == token
    except vault.DecryptionFailed:
        return False
