"""Impact of failure groups: how many runs failed permanently, and how many were only retried."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from django.db import connection
from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef

from ...models import Failure, Run, Task
from ..durations import DAY

MAX_FAILURES = 5_000
"""Newest failures of a day that are read."""
MAX_RUNS = 100_000
"""Newest runs of a day that are counted."""
LOST = ("FAILED", "TIMED_OUT")


@dataclass(slots=True)
class GroupImpact:
    """Failures of one group within a day.

    `lost`: runs that the group has ended and that were not retried since; `affected`: runs with a failure of the
    group; `attempts`: its failures; `newest_lost_run`: the run that it ended last.
    """

    lost: set[str] = field(default_factory=set)
    affected: set[str] = field(default_factory=set)
    attempts: int = 0
    newest_lost_run: str = ""

    @property
    def was_retried(self) -> bool:
        """True if failures were retried and have ended no run."""
        return bool(self.affected) and not self.lost


def impact_by_group(now: int) -> dict[int, GroupImpact]:
    """Return the impact of each group within the last day. Runs one query.

    A failure has ended its run if the run has failed with this attempt, or without a failed task. It has ended a
    standalone task if no attempt followed.
    """
    ended = Run.objects.filter(pk=OuterRef("run_id"), status__in=LOST, failed_attempt_id=OuterRef("attempt_id"))
    last = Task.objects.filter(pk=OuterRef("task_id"), attempt_id=OuterRef("attempt_id"))
    is_lost = ExpressionWrapper(Exists(ended) | Exists(last), output_field=BooleanField())
    newest = Failure.objects.filter(at__gte=now - DAY, group__isnull=False).order_by("-at")
    rows = newest.annotate(is_lost=is_lost).values_list(
        "group_id", "group__merged_into_id", "run_id", "task_id", "is_lost"
    )
    found: dict[int, GroupImpact] = defaultdict(GroupImpact)
    for group, whole, run_id, task_id, is_lost in rows[:MAX_FAILURES]:
        impact = found[whole or group]
        impact.attempts += 1
        impact.affected.add(run_id or task_id)
        if is_lost:
            impact.lost.add(run_id or task_id)
            impact.newest_lost_run = impact.newest_lost_run or run_id or ""
    return dict(found)


def runs_by_definition(names: Collection[str], now: int) -> dict[str, int]:
    """Return the number of runs of these workflows that started within the last day, from the newest MAX_RUNS."""
    if not names:
        return {}
    newest = Run.objects.filter(name__in=names, created_at__gte=now - DAY).values("name")[:MAX_RUNS]
    sql, params = newest.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT name, COUNT(*) FROM ({sql}) AS newest GROUP BY 1", params)
        return dict(cursor.fetchall())
