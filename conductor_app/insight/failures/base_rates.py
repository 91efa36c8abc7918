"""Shares of versions, builds and workers among the failures of a group, and among all work of the same time."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Case, F, TextField, Value, When
from django.utils.translation import gettext as _

from ...core.fingerprints import build_of
from ...models import Attempt, Failure, Run

MAX_WORK = 2_000
"""Newest runs and attempts that are read, up to the last failure of the group."""
NOTABLE_FACTOR = 1.3
MAX_VALUES = 8


@dataclass(frozen=True, slots=True)
class FailureShare:
    """One value of a property: its failures, their share in percent, and its share of all work, if that is known."""

    value: str
    count: int
    percent: int
    base_percent: int | None = None

    @property
    def is_notable(self) -> bool:
        """True if the value has clearly more of the failures than of the work."""
        return self.base_percent is not None and self.percent > NOTABLE_FACTOR * self.base_percent


@dataclass(frozen=True, slots=True)
class WorkSample:
    """The newest work up to the last failure: the number of runs or attempts per value.

    `covers`: returns True for failures of the same time. `reason`: the whole text of the last failure, if it was read.
    """

    counts: Counter[str]
    covers: Callable[[Failure], bool]
    reason: str = ""


def shares(counts: Iterable[tuple[str, int]], examined: Sequence[str], base: Counter[str] | None) -> list[FailureShare]:
    """Return the share of each value. `counts`: all failures; `examined`: the values of failures as old as the base."""
    of_time, counted = Counter(examined), list(counts)
    if not base or not of_time:
        total = sum(count for _value, count in counted) or 1
        return [FailureShare(value, count, round(100 * count / total)) for value, count in counted[:MAX_VALUES]]
    return [
        FailureShare(value, count, _percent(of_time, value), _percent(base, value))
        for value, count in counted[:MAX_VALUES]
    ]


def _percent(counts: Counter[str], value: str) -> int:
    return round(100 * counts[value] / counts.total())


def sample_runs(newest: Failure) -> WorkSample:
    """Count the versions of the newest runs of the definition, up to the last failure. Runs one query."""
    runs = Run.objects.of_definition(newest.definition).filter(created_at__lte=newest.at).order_by("-created_at")
    rows = list(runs.values_list("version", "created_at")[:MAX_WORK])
    since = rows[-1][1] if len(rows) == MAX_WORK else 0
    return WorkSample(Counter(str(version) for version, _at in rows), lambda failure: failure.at >= since)


def sample_attempts(newest: Failure) -> WorkSample:
    """Count the workers of the newest attempts at the same task, up to the last failure. Runs one query.

    The last failure is among these attempts, so its text is read as well.
    """
    task_type = newest.queue.rpartition(":")[2]
    attempts = Attempt.objects.filter(name=task_type, id__lte=newest.attempt_id).order_by("-id")
    reason = Case(When(id=newest.attempt_id, then=F("reason")), default=Value(""), output_field=TextField())
    rows = list(attempts.values_list("worker", "id", reason)[:MAX_WORK]) if task_type else []
    since = rows[-1][1] if len(rows) == MAX_WORK else ""
    workers = Counter(worker or _("none") for worker, _id, _reason in rows)
    return WorkSample(workers, lambda failure: failure.attempt_id >= since, rows[0][2] if rows else "")


def by_build(workers: Counter[str]) -> Counter[str]:
    """Return the counts of workers added up by build."""
    builds: Counter[str] = Counter()
    for worker, count in workers.items():
        builds[build_of(worker) or _("unknown")] += count
    return builds
