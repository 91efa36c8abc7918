"""The failure inbox: groups with their last 24 hours and impact, and what the failures of a group have in common."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import (
    BooleanField,
    Case,
    Count,
    Exists,
    ExpressionWrapper,
    F,
    IntegerField,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Sum,
    TextField,
    Value,
    When,
)
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..access.permissions import WORKFLOW_DEF
from ..access.visibility import visible, visible_names
from ..core.failure_grouping import build_of
from ..core.primitives import JsonValue
from ..core.states import FAILURE, IGNORED, REGRESSED, RESOLVED, UNHANDLED
from ..runs.models import Attempt, Run, RunLabel, Task
from ..utils.formatting import DAY, HOUR, TimeRange
from .models import Failure, FailureGroup, HourlyFailureCount

MAX_WORK = 2_000
"""Newest runs and attempts that are read, up to the last failure of the group."""
NOTABLE_FACTOR = 1.3
MAX_VALUES = 8
MAX_FAILURES = 5_000
"""Newest failures of a day that are read."""
LOST = ("FAILED", "TIMED_OUT")
MAX_GROUPS = 100
NEW, FAILING, RETRIED = "NEW", "FAILING", "RETRIED"
FAILED_ENDS = ("FAILED", "FAILED_FOR_GOOD", "EXPIRED")
VIEWS: dict[str, tuple[Any, Q]] = {
    "open": (gettext_lazy("Open"), Q(state__in=sorted(FAILURE.open))),
    "new": (gettext_lazy("New today"), Q(state__in=sorted(FAILURE.open))),
    "regressed": (gettext_lazy("Regressed"), Q(state=REGRESSED)),
    "mine": (gettext_lazy("Mine"), Q(state__in=sorted(FAILURE.open))),
    "resolved": (gettext_lazy("Resolved"), Q(state=RESOLVED)),
    "ignored": (gettext_lazy("Ignored"), Q(state=IGNORED)),
    "all": (gettext_lazy("All"), Q()),
}
"""Tabs of the inbox: label and filter of the states."""
LAST, LOST_RUNS = "last", "lost"
ORDERS: dict[str, tuple[Any, tuple[str, ...]]] = {
    LOST_RUNS: (gettext_lazy("Still failed, 24 h"), ()),
    "count": (gettext_lazy("Failures"), ("-count", "pk")),
    LAST: (gettext_lazy("Last"), ("-last_at", "pk")),
    "first": (gettext_lazy("First"), ("-first_at", "pk")),
}
"""Orders of the inbox: label and columns. The counts of failed runs are not stored."""
SEARCHED_ROWS = 2_000
"""Failures of a group that are read to find what they have in common, newest first."""
MAX_ORIGINS = 1_000
MAX_PARTS = 8
SAMPLES = 10
INPUTS_READ, MAX_INPUT_SIZE = 500, 16_000
"""Limits of counting an input value: number of runs, newest first, and size of an input in bytes."""
INPUTS_OFFERED, MAX_PLACES, MAX_DEPTH = 20, 50, 4
"""Limits of offering paths of input values: runs that are read, paths and their names."""
MAX_TRACE = 20_000


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


@dataclass(frozen=True, slots=True)
class ListedFailureGroup:
    """One group in the inbox, with its failures in each of the last 24 hours and their impact."""

    group: FailureGroup
    hours: Sequence[int]
    impact: GroupImpact = field(default_factory=GroupImpact)

    @property
    def today(self) -> int:
        return sum(self.hours)


@dataclass(frozen=True, slots=True)
class FailureInbox:
    """Content of one tab of the inbox, number of groups of each tab, and the newest group if the tab is empty."""

    groups: list[ListedFailureGroup]
    counts: dict[str, int]
    newest: FailureGroup | None = None
    is_cut: bool = False


def failure_inbox(
    view: str, user: str, now: int, *, definition: str = "", text: str = "", sort: str = LAST
) -> FailureInbox:
    """Return the groups of one tab that the actor may see, in the order of `sort`, a key of ORDERS."""
    own = visible(FailureGroup.objects.not_merged())
    counts = own.aggregate(**{name: Count("pk", filter=_groups_of_view(name, user, now)) for name in VIEWS})
    found = own.filter(_groups_of_view(view, user, now))
    if definition:
        found = found.filter(definition=definition)
    if text:
        found = found.filter(Q(message__icontains=text) | Q(ref__icontains=text))
    impact = impact_by_group(now)
    groups = list(_sort_groups(found, sort, impact)[: MAX_GROUPS + 1])
    newest = None if groups else own.order_by("-last_at").first()
    return FailureInbox(add_hours(groups[:MAX_GROUPS], now, impact), counts, newest, len(groups) > MAX_GROUPS)


def _sort_groups(found: QuerySet[FailureGroup], sort: str, impact: Mapping[int, GroupImpact]) -> QuerySet[FailureGroup]:
    if sort != LOST_RUNS:
        return found.order_by(*ORDERS[sort][1])
    lost = [When(pk=group, then=len(each.lost)) for group, each in impact.items() if each.lost]
    return found.annotate(lost=Case(*lost, default=0, output_field=IntegerField())).order_by("-lost", "-last_at", "pk")


def _groups_of_view(view: str, user: str, now: int) -> Q:
    states = VIEWS[view][1]
    if view == "mine":
        return states & Q(assignee=user) & ~Q(assignee="")
    return states & Q(first_at__gte=now - DAY) if view == "new" else states


def most_harmful_groups(now: int, limit: int) -> list[ListedFailureGroup]:
    """Return open groups, those that ended the most runs within the last day first. Runs three queries."""
    open_groups = visible(FailureGroup.objects.not_merged()).filter(VIEWS["open"][1])
    impact = impact_by_group(now)
    return add_hours(_sort_groups(open_groups, LOST_RUNS, impact)[:limit], now, impact)


def add_hours(groups: Iterable[FailureGroup], now: int, impact: Mapping[int, GroupImpact]) -> list[ListedFailureGroup]:
    """Return the groups with their hourly counts, including the groups merged into them."""
    groups = list(groups)
    first = now - now % HOUR - 23 * HOUR
    counts = visible(HourlyFailureCount.objects.filter(hour_at__gte=first))
    hourly_counts = counts.filter(merged_into([group.pk for group in groups]))
    hours: dict[int, list[int]] = defaultdict(lambda: [0] * 24)
    rows = hourly_counts.values_list("group_id", "group__merged_into_id", "hour_at").annotate(Sum("count"))
    for group, whole, hour, count in rows.order_by():
        if 0 <= (place := (hour - first) // HOUR) < 24:
            hours[whole or group][place] += count
    return [ListedFailureGroup(group, hours[group.pk], impact.get(group.pk, GroupImpact())) for group in groups]


def merged_into(ids: Sequence[int]) -> Q:
    return Q(group__in=ids) | Q(group__merged_into__in=ids)


def group_status(group: FailureGroup, impact: GroupImpact, now: int) -> str:
    """Return the status that pages show: the state of a group, or of an open one what became of its runs in a day."""
    if group.state != UNHANDLED or not impact.affected:
        return group.state
    if impact.was_retried:
        return RETRIED
    return NEW if group.first_at >= now - DAY else FAILING


def _ended_its_run() -> Q:
    """Return the condition of failures whose run has failed with this attempt, or without a failed task.

    A failure has ended a standalone task if no attempt followed.
    """
    ended = Run.objects.filter(pk=OuterRef("run_id"), status__in=LOST, failed_attempt_id=OuterRef("attempt_id"))
    last = Task.objects.filter(pk=OuterRef("task_id"), attempt_id=OuterRef("attempt_id"))
    return Q(Exists(ended) | Exists(last))


def has_failed_run(since: int) -> Exists:
    """Return the condition of groups with a failure since a time that ended its run."""
    own = Failure.objects.filter(Q(group=OuterRef("pk")) | Q(group__merged_into=OuterRef("pk")), at__gte=since)
    return Exists(own.filter(_ended_its_run()))


def impact_by_group(now: int, only: FailureGroup | None = None) -> dict[int, GroupImpact]:
    """Return the impact of each group, or of one, within the last day. Runs one query."""
    is_lost = ExpressionWrapper(_ended_its_run(), output_field=BooleanField())
    newest = visible(Failure.objects.filter(at__gte=now - DAY, group__isnull=False)).order_by("-at")
    newest = newest if only is None else newest.filter(merged_into([only.pk]))
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


def count_failed_with_child(now: int) -> int:
    """Return how many runs that started within the last day failed because a sub-workflow failed. Runs one query.

    They have no failure of their own, so they are in no group.
    """
    started = Attempt.objects.filter(pk=OuterRef("failed_attempt_id")).exclude(child_id="")
    failed = visible(Run.objects.filter(status__in=LOST, created_at__gte=now - DAY)).filter(Exists(started))
    return failed.order_by().values("pk")[:MAX_FAILURES].count()


def shown_group(group: FailureGroup) -> FailureGroup:
    """Return the group that a group is merged into, if there is one and the actor may see it, or the group itself."""
    whole = group.merged_into
    return whole if whole is not None and visible_names(WORKFLOW_DEF, [whole.definition]) else group


def group_of(attempt: Attempt) -> FailureGroup | None:
    """Return the failure group of a failed attempt, or None if it belongs to none yet."""
    if attempt.status not in FAILED_ENDS:
        return None
    of = {"run_id": attempt.run_id} if attempt.run_id else {"task_id": attempt.task_id}
    failures = Failure.objects.filter(**of, attempt_id=attempt.pk, group__isnull=False)
    found = failures.select_related("group__merged_into").first()
    return shown_group(found.group) if found and found.group else None


def shared_group_of(attempt: Attempt) -> FailureGroup | None:
    group = group_of(attempt)
    return group if group is not None and group.count > 1 else None


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
    failed_at: dict[str, int] = field(default_factory=dict)
    """The time of the newest failure of each affected run."""
    places: list[str] = field(default_factory=list)
    """Paths of values in the inputs of the newest runs."""

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
    hourly_counts = visible(HourlyFailureCount.objects.filter(merged_into([group.pk]))).order_by()
    newest = list(visible(Failure.objects.filter(merged_into([group.pk]))).order_by("-at", "-pk")[:SEARCHED_ROWS])
    failed_at = {failure.run_id: failure.at for failure in reversed(newest) if failure.run_id}
    affected = list(failed_at)[::-1]
    examined = Run.objects.filter(pk__in=affected[: INPUTS_READ if place else INPUTS_OFFERED])
    inputs = list(examined.filter(input_size__lte=MAX_INPUT_SIZE).values_list("input", flat=True))
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
        _count_values(inputs, place) if place else [],
        newest[:SAMPLES],
        len(newest),
        len({failure.run_id or failure.task_id for failure in newest}),
        first_version=first.version if first else None,
        first_build=first.build if first else "",
        trace=((attempts.reason if attempts else "") or _read_reason(newest))[:MAX_TRACE],
        bars=_count_bars(hourly_counts, newest, time_range),
        builds=_first_failures_of_builds(origins),
        failed_at=failed_at,
        places=sorted({path for input in inputs[:INPUTS_OFFERED] for path in _places_in(input, MAX_DEPTH)})[
            :MAX_PLACES
        ],
    )


def _first_failures_of_builds(origins: Iterable[FailureOrigin]) -> dict[str, int]:
    builds: dict[str, int] = {}
    for origin in origins:
        if origin.build:
            builds[origin.build] = min(builds.get(origin.build, origin.since), origin.since)
    return builds


@dataclass(frozen=True, slots=True)
class WorkSample:
    """The newest work up to the last failure: the number of runs or attempts per value.

    `covers`: returns True for failures of the same time. `reason`: the whole text of the last failure, if it was read.
    """

    counts: Counter[str]
    covers: Callable[[Failure], bool]
    reason: str = ""


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
    attempts = visible(Attempt.objects.filter(name=task_type, id__lte=newest.attempt_id)).order_by("-id")
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


def _count_values(inputs: Iterable[JsonValue], place: str) -> list[tuple[str, int]]:
    """Count the values at a path of the inputs, such as `order.country`."""
    counted = Counter(_filter_value(_value_at(input, place.split("."))) for input in inputs)
    return sorted(counted.items(), key=lambda pair: (-pair[1], not pair[0], pair[0]))[:MAX_PARTS]


def _places_in(value: JsonValue, depth: int) -> Iterator[str]:
    """Yield the paths of the values in a document that the run filter supports."""
    for name, inner in value.items() if isinstance(value, dict) and depth else ():
        if isinstance(inner, str | int | float):
            yield name
        yield from (f"{name}.{place}" for place in _places_in(inner, depth - 1))


def _value_at(value: JsonValue, names: Iterable[str]) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _filter_value(value: JsonValue) -> str:
    """Return a value in the form of the run filter, or an empty text if the filter does not support it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)[:200] if isinstance(value, str | int | float) else ""
