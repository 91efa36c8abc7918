"""What is open, counted up to a limit by one statement."""

from dataclasses import dataclass

from django.db import connection
from django.db.models import QuerySet

from ...models import BulkOperation, Run
from ..tasks.waiting_for_people import waiting_attempts

COUNTED_STATUSES = ("RUNNING", "PAUSED", "FAILED")


@dataclass(frozen=True, slots=True)
class OpenWork:
    """Numbers of runs by status, of open human tasks, and of bulk operations that wait for approval."""

    runs: dict[str, int]
    human_tasks: int
    approvals: int


def count_open_work(limit: int) -> OpenWork:
    """Count each kind up to `limit`. Runs one query."""
    runs = [Run.objects.filter(status=status) for status in COUNTED_STATUSES]
    *by_status, human_tasks, approvals = _count_up_to(
        limit, *runs, waiting_attempts().select_related(None), BulkOperation.objects.waiting_for_approval()
    )
    return OpenWork(dict(zip(COUNTED_STATUSES, by_status, strict=True)), human_tasks, approvals)


def _count_up_to(limit: int, *rows: QuerySet) -> tuple[int, ...]:
    parts = [each.order_by().values("pk")[:limit].query.sql_with_params() for each in rows]
    counts = ", ".join(f"(SELECT COUNT(*) FROM ({sql}) AS counted)" for sql, _ in parts)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {counts}", [param for _, params in parts for param in params])
        return cursor.fetchone()
