"""What a digest reports about a day or a week: failed runs, new failure groups, and overdue human tasks."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ...core.informative_lines import informative_line
from ...core.states import FAILED, TIMED_OUT
from ...models import FailureGroup, Run
from ..tasks.waiting_for_people import HumanTaskView, human_task_inbox

MAX_RUNS = 50_000
MAX_GROUPS = 500
MAX_LISTED = 10
"""Lines of one section."""


@dataclass(frozen=True, slots=True)
class NewFailureGroup:
    """A failure group whose first failure is in the period."""

    pk: int
    place: str
    message: str
    count: int


@dataclass(frozen=True, slots=True)
class Digest:
    """The contents of one digest. `failed`: failed runs per workflow, most first; `is_capped`: there are more."""

    failed: Sequence[tuple[str, int]]
    failed_count: int
    is_capped: bool
    groups: Sequence[NewFailureGroup]
    group_count: int
    overdue: Sequence[HumanTaskView]
    overdue_count: int

    @property
    def is_empty(self) -> bool:
        return not (self.failed_count or self.group_count or self.overdue_count)


def collect_digest(since: int, now: int) -> Digest:
    """Return the contents of the digest for a period. Each query is bounded."""
    ended = Run.objects.filter(ended_at__gt=since, ended_at__lte=now, status__in=(FAILED, TIMED_OUT))
    names = list(ended.order_by().values_list("name", flat=True)[:MAX_RUNS])
    groups = _new_groups(since, now)
    overdue = [each for each in human_task_inbox(now).task_views if each.is_overdue(now)]
    return Digest(
        failed=Counter(names).most_common(MAX_LISTED),
        failed_count=len(names),
        is_capped=len(names) == MAX_RUNS,
        groups=groups[:MAX_LISTED],
        group_count=len(groups),
        overdue=overdue[:MAX_LISTED],
        overdue_count=len(overdue),
    )


def _new_groups(since: int, now: int) -> list[NewFailureGroup]:
    # A new group also has its last failure in the period, which the index orders.
    rows = FailureGroup.objects.not_merged().filter(last_at__gt=since, first_at__gt=since, first_at__lte=now)
    found = [
        NewFailureGroup(
            row.pk, f"{row.definition} › {row.ref}" if row.ref else row.definition, _message(row), row.count
        )
        for row in rows.order_by("-last_at")[:MAX_GROUPS]
    ]
    return sorted(found, key=lambda group: -group.count)


def _message(row: FailureGroup) -> str:
    return informative_line(row.sample or row.message)[:200]
