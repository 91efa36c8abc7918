"""What happens to clients by itself: their use is noted, they expire, their tokens are sealed with another key."""

from ... import clock
from ...access import clients as known_clients
from ...access import vault
from ...models import Client
from .clients import delete_client

NOTED_EVERY_MS = 60 * 60 * 1000


def record_client_use(id: str) -> None:
    """Note now and then that a client is in use."""
    holder, now = known_clients.find_client_key(id), clock.now()
    if holder is not None and now - holder.used_at > NOTED_EVERY_MS:
        known_clients.remember_use(holder, now)
        Client.objects.filter(pk=id).update(used_at=now)


def delete_expired_clients(limit: int) -> int:
    """Delete the clients that wanted to be deleted when they expire."""
    due = Client.objects.filter(is_deleted_when_expired=True, expires_at__lte=clock.now())
    ids = list(due.order_by("expires_at").values_list("id", flat=True)[:limit])
    for id in ids:
        delete_client(id, "clock", "It has expired.")
    return len(ids)


def reencrypt_access_tokens() -> int:
    """Seal every access token with the newest key; how many were sealed with another. Raises vault.Unreadable."""
    resealed = 0
    for row in Client.objects.order_by("id"):
        if not vault.is_current(row.sealed):
            again = known_clients.encrypt_token(row.id, known_clients.decrypt_token(row.id, row.sealed))
            resealed += Client.objects.filter(pk=row.id, sealed=row.sealed).update(sealed=again)
    return resealed
