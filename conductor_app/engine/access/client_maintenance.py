"""Maintenance of clients: record their use, delete expired ones, and encrypt their tokens with a new key."""

from ... import clock
from ...access import clients as known_clients
from ...access import vault
from ...models import Client
from .clients import delete_client

NOTED_EVERY_MS = 60 * 60 * 1000


def record_client_use(id: str) -> None:
    """Record the use of a client, at most once per NOTED_EVERY_MS."""
    holder, now = known_clients.find_client_key(id), clock.now()
    if holder is not None and now - holder.used_at > NOTED_EVERY_MS:
        known_clients.remember_use(holder, now)
        Client.objects.filter(pk=id).update(used_at=now)


def delete_expired_clients(limit: int) -> int:
    """Delete up to `limit` expired clients that are set to be deleted on expiry. Returns how many."""
    due = Client.objects.filter(is_deleted_when_expired=True, expires_at__lte=clock.now())
    ids = list(due.order_by("expires_at").values_list("id", flat=True)[:limit])
    for id in ids:
        delete_client(id, "clock", "The client has expired.")
    return len(ids)


def reencrypt_access_tokens() -> int:
    """Encrypt every access token with the newest key. Returns how many were encrypted with another one.

    Raises:
        vault.DecryptionFailed: when a token cannot be decrypted with any configured key.
    """
    count = 0
    for row in Client.objects.order_by("id"):
        if not vault.is_current(row.sealed):
            again = known_clients.encrypt_token(row.id, known_clients.decrypt_token(row.id, row.sealed))
            count += Client.objects.filter(pk=row.id, sealed=row.sealed).update(sealed=again)
    return count
