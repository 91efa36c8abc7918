"""What callers use of their quotas: open runs, stored bytes, and the tokens that are left of their rates."""

from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection
from django.db.models import F, Max, Sum
from django.db.models.functions import Coalesce, Greatest

from ...models import StoredPayload, TokenBucket

# As in the index, word for word: SQLite does not use it otherwise.
OPEN_RUN_OF_USER = "status IN ('PAUSED', 'RUNNING') AND NOT (starter_id = 0)"
KEPT_WITH_OWNER = ("files/", "artifacts/")
"""Prefixes of the paths of files and artifacts, whose content expires with their run or task."""
LEAST_BYTES = 64 * 1024
"""The bytes that an upload counts at least, because each one also has a row."""
MAX_CALLERS = 50


class RateUse(NamedTuple):
    """The tokens of one rate as of a time in milliseconds."""

    tokens: float
    updated_at: int


def count_open_runs(user_id: int, limit: int) -> int:
    """Return the number of open runs that have the permissions of a user, counted up to `limit`."""
    sql = f"SELECT 1 FROM conductor_run WHERE starter_id = %s AND {OPEN_RUN_OF_USER} LIMIT %s"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM ({sql}) AS found", [user_id, limit])
        return int(cursor.fetchone()[0])


def open_runs_by_user(user_ids: Sequence[int]) -> dict[int, int]:
    """Return the number of open runs that have the permissions of each of these users."""
    if not user_ids:
        return {}
    marks = ", ".join(["%s"] * len(user_ids))
    sql = f"SELECT starter_id, count(*) FROM conductor_run WHERE starter_id IN ({marks}) AND {OPEN_RUN_OF_USER}"
    with connection.cursor() as cursor:
        cursor.execute(f"{sql} GROUP BY starter_id", user_ids)
        return dict(cursor.fetchall())


def stored_bytes_by_caller(callers: Sequence[str]) -> dict[str, int]:
    """Return the bytes of the payloads and files that each of these callers has uploaded."""
    rows = StoredPayload.objects.filter(uploader__in=callers).order_by().values_list("uploader")
    return {str(uploader): total or 0 for uploader, total in rows.annotate(total=Sum("size"))}


def stored_bytes(caller: str) -> int:
    """Return the bytes of the payloads and files that a caller has uploaded."""
    return StoredPayload.objects.filter(uploader=caller).aggregate(total=Sum("size"))["total"] or 0


def unattached_bytes(caller: str, payload_bytes: int) -> int:
    """Return the bytes of the payloads that a caller has uploaded and no run uses.

    `payload_bytes`: the bytes that an address counts for which nothing has been uploaded yet.
    """
    rows = StoredPayload.objects.filter(uploader=caller, expires_at__isnull=False)
    for prefix in KEPT_WITH_OWNER:
        rows = rows.exclude(path__startswith=prefix)
    size = Greatest(Coalesce(F("size"), payload_bytes), LEAST_BYTES)
    return rows.aggregate(total=Sum(size))["total"] or 0


def recent_callers() -> list[str]:
    """Return the callers whose requests were last counted, at most MAX_CALLERS."""
    newest = TokenBucket.objects.values("caller").annotate(at=Max("updated_at")).order_by("-at")
    return list(newest.values_list("caller", flat=True)[:MAX_CALLERS])


def rate_use(callers: Sequence[str]) -> dict[tuple[str, str], RateUse]:
    """Return the tokens of these callers, by caller and resource."""
    rows = TokenBucket.objects.filter(caller__in=callers)
    return {(row.caller, row.resource): RateUse(row.tokens, row.updated_at) for row in rows}
