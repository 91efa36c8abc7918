"""What the failures of one group have in common, over time and compared with all work of the same time."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Min, QuerySet, Sum
from django.utils.translation import gettext as _

from ...models import Attempt, Failure, FailureGroup, HourlyFailureCount, Run, RunLabel
from ..durations import HOUR
from ..time_ranges import TimeRange
from .base_rates import FailureShare, WorkSample, by_build, sample_attempts, sample_runs, shares
from .failure_inbox import failures_of, merged_into

SEARCHED_ROWS = 2_000
"""Failures of a group that are read to find what they have in common, newest first."""
MAX_ORIGINS = 1_000
MAX_PARTS = 8
SAMPLES = 10
INPUTS_READ, MAX_INPUT_SIZE = 500, 16_000
"""Limits of counting an input value: number of runs, newest first, and size of an input in bytes."""
MAX_TRACE = 20_000


@dataclass(frozen=True, slots=True)
class FailureOrigin:
    """Failures of one version and one build: how many, and the hour of the first."""

    version: int
    build: str
    count: int
    since: int


@dataclass(frozen=True, slots=True)
class FailureDetail:
    """Common attributes of the failures of one group.

    `examined_count`: failures that were read; `runs`: affected runs or tasks among them; `trace`: the text of
    the newest failure; `bars`: failures of each bar of a chart; `builds`: when each build failed first.
    """

    group: FailureGroup
    by: dict[str, list[FailureShare]] = field(default_factory=dict)
    value_counts: list[tuple[str, int]] = field(default_factory=list)
    samples: list[Failure] = field(default_factory=list)
    examined_count: int = 0
    runs: int = 0
    first_version: int | None = None
    first_build: str = ""
    trace: str = ""
    bars: list[int] = field(default_factory=list)
    builds: dict[str, int] = field(default_factory=dict)

    @property
    def is_standalone(self) -> bool:
        """True if the failures belong to standalone tasks, which have no runs."""
        return any(failure.task_id for failure in self.samples)

    @property
    def has_trace(self) -> bool:
        """True if the newest failure has more text than its title shows."""
        return "\n" in self.trace.strip()

    @property
    def is_cut(self) -> bool:
        """True if the group has more failures than were read."""
        return self.examined_count == SEARCHED_ROWS and self.group.count > SEARCHED_ROWS


def failure_detail(group: FailureGroup, time_range: TimeRange, place: str = "") -> FailureDetail:
    """Return the distribution of a group over versions, builds, workers, queues, labels and one input value.

    `place`: path of the input value, such as `order.country`; empty for none.
    """
    hourly_counts = HourlyFailureCount.objects.filter(merged_into([group.pk])).order_by()
    newest = list(failures_of(group).order_by("-at", "-pk")[:SEARCHED_ROWS])
    affected = list(dict.fromkeys(failure.run_id for failure in newest if failure.run_id))
    labels = RunLabel.objects.filter(run__in=affected).order_by().values_list("name")
    by_label = labels.annotate(count=Count("pk")).order_by("-count", "name")
    places = hourly_counts.values_list("version", "build").annotate(total=Sum("count"), since=Min("hour_at"))
    origins = [FailureOrigin(*origin) for origin in places.order_by("-total", "version", "build")[:MAX_ORIGINS]]
    attempts = sample_attempts(newest[0]) if newest and newest[0].run_id and newest[0].attempt_id else None
    first = min(origins, key=lambda origin: (origin.since, origin.version), default=None)
    return FailureDetail(
        group,
        {
            **_shares_of_work(origins, newest, attempts),
            "queue": shares(_most_common(failure.queue or _("none") for failure in newest), (), None),
            "label": shares(list(by_label[:MAX_PARTS]), (), None),
        },
        _count_values(affected[:INPUTS_READ], place) if place else [],
        newest[:SAMPLES],
        len(newest),
        len({failure.run_id or failure.task_id for failure in newest}),
        first_version=first.version if first else None,
        first_build=first.build if first else "",
        trace=((attempts.reason if attempts else "") or _read_reason(newest))[:MAX_TRACE],
        bars=_count_bars(hourly_counts, newest, time_range),
        builds=_first_failures_of_builds(origins),
    )


def _first_failures_of_builds(origins: Iterable[FailureOrigin]) -> dict[str, int]:
    builds: dict[str, int] = {}
    for origin in origins:
        if origin.build:
            builds[origin.build] = min(builds.get(origin.build, origin.since), origin.since)
    return builds


def _shares_of_work(
    origins: Sequence[FailureOrigin], newest: Sequence[Failure], attempts: WorkSample | None
) -> dict[str, list[FailureShare]]:
    """Return the shares of versions, builds and workers, beside their shares of the work of the same time."""
    runs = sample_runs(newest[0]) if newest and newest[0].run_id else None
    of_runs = [failure for failure in newest if runs and runs.covers(failure)]
    of_attempts = [failure for failure in newest if attempts and attempts.covers(failure)]
    by_version = _add_up((str(origin.version), origin.count) for origin in origins)
    by_worker = _most_common(failure.worker or _("none") for failure in newest)
    by_named_build = _add_up((origin.build or _("unknown"), origin.count) for origin in origins)
    workers = attempts.counts if attempts else None
    return {
        "version": shares(by_version, [str(each.version) for each in of_runs], runs.counts if runs else None),
        "build": shares(
            by_named_build, [each.build or _("unknown") for each in of_attempts], by_build(workers) if workers else None
        ),
        "worker": shares(by_worker, [each.worker or _("none") for each in of_attempts], workers),
    }


def _add_up(counts: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    totals: Counter[str] = Counter()
    for value, count in counts:
        totals[value] += count
    return totals.most_common(MAX_PARTS)


def _most_common(values: Iterable[str]) -> list[tuple[str, int]]:
    return Counter(values).most_common(MAX_PARTS)


def _read_reason(newest: Sequence[Failure]) -> str:
    """Return the whole text of the newest failure, which the group has only the first line of."""
    if not newest:
        return ""
    reason = Attempt.objects.filter(pk=newest[0].attempt_id).values_list("reason", flat=True).first()
    return reason or newest[0].message


def _count_bars(
    hourly_counts: QuerySet[HourlyFailureCount], newest: Sequence[Failure], time_range: TimeRange
) -> list[int]:
    """Count the failures of each bar: by hour, or from the examined failures if a bar is shorter than an hour."""
    bars = [0] * time_range.count
    if time_range.step < HOUR:
        counted = [(failure.at, 1) for failure in newest]
    else:
        inside = hourly_counts.filter(hour_at__gte=time_range.since)
        counted = list(inside.values_list("hour_at").annotate(Sum("count")))
    for at, count in counted:
        if (bar := time_range.place(at)) is not None:
            bars[bar] += count
    return bars


def _count_values(run_ids: Sequence[str], place: str) -> list[tuple[str, int]]:
    """Count the values at a path of the inputs, such as `order.country`."""
    inputs = Run.objects.filter(pk__in=run_ids, input_size__lte=MAX_INPUT_SIZE).values_list("input", flat=True)
    counted = Counter(_filter_value(_value_at(input, place.split("."))) for input in inputs)
    return sorted(counted.items(), key=lambda pair: (-pair[1], not pair[0], pair[0]))[:MAX_PARTS]


def _value_at(value: Any, names: Iterable[str]) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _filter_value(value: Any) -> str:
    """Return a value in the form of the run filter, or an empty text if the filter does not support it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)[:200] if isinstance(value, str | int | float) else ""
