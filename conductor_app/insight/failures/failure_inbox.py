"""The failure inbox: groups with their last 24 hours, and what the failures of one group have in common."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.states import FAILURE, IGNORED, REGRESSED, RESOLVED
from ...models import Attempt, Failure, FailureGroup, HourlyFailureCount, Run, RunLabel
from ..durations import DAY, HOUR

MAX_GROUPS = 100
FAILED_ENDS = ("FAILED", "FAILED_FOR_GOOD", "EXPIRED")
SEARCHED_ROWS = 2_000
"""Failures of a group that are read to find what they have in common, newest first."""
MAX_COUNTED = 5_000
MAX_PARTS = 8
SAMPLES = 10
INPUTS_READ, MAX_INPUT_SIZE = 500, 16_000
"""Limits of counting an input value: number of runs, newest first, and size of an input in bytes."""

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


@dataclass(frozen=True, slots=True)
class ListedFailureGroup:
    """One group in the inbox, with its failures in each of the last 24 hours."""

    group: FailureGroup
    hours: Sequence[int]

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


def failure_inbox(view: str, user: str, now: int, *, definition: str = "", text: str = "") -> FailureInbox:
    """Return the groups of one tab, those with the latest failure first."""
    own = FailureGroup.objects.not_merged()
    counts = own.aggregate(**{name: Count("pk", filter=_groups_of_view(name, user, now)) for name in VIEWS})
    found = own.filter(_groups_of_view(view, user, now)).order_by("-last_at", "pk")
    if definition:
        found = found.filter(definition=definition)
    if text:
        found = found.filter(Q(message__icontains=text) | Q(ref__icontains=text))
    groups = list(found[: MAX_GROUPS + 1])
    newest = None if groups else own.order_by("-last_at").first()
    return FailureInbox(_add_hours(groups[:MAX_GROUPS], now), counts, newest, len(groups) > MAX_GROUPS)


def _groups_of_view(view: str, user: str, now: int) -> Q:
    states = VIEWS[view][1]
    if view == "mine":
        return states & Q(assignee=user) & ~Q(assignee="")
    return states & Q(first_at__gte=now - DAY) if view == "new" else states


def _add_hours(groups: Iterable[FailureGroup], now: int) -> list[ListedFailureGroup]:
    """Return the groups with their hourly counts, including the groups merged into them."""
    groups = list(groups)
    first = now - now % HOUR - 23 * HOUR
    hourly_counts = HourlyFailureCount.objects.filter(hour_at__gte=first).filter(
        _merged_into([group.pk for group in groups])
    )
    hours: dict[int, list[int]] = defaultdict(lambda: [0] * 24)
    rows = hourly_counts.values_list("group_id", "group__merged_into_id", "hour_at").annotate(Sum("count"))
    for group, whole, hour, count in rows.order_by():
        if 0 <= (place := (hour - first) // HOUR) < 24:
            hours[whole or group][place] += count
    return [ListedFailureGroup(group, hours[group.pk]) for group in groups]


def _merged_into(ids: Sequence[int]) -> Q:
    return Q(group__in=ids) | Q(group__merged_into__in=ids)


def failures_of(group: FailureGroup) -> QuerySet[Failure]:
    """Return the failures of a group and of the groups merged into it."""
    return Failure.objects.filter(_merged_into([group.pk]))


def group_of(attempt: Attempt) -> FailureGroup | None:
    """Return the failure group of a failed attempt, or None if it belongs to none yet."""
    if attempt.status not in FAILED_ENDS:
        return None
    of = {"run_id": attempt.run_id} if attempt.run_id else {"task_id": attempt.task_id}
    failures = Failure.objects.filter(**of, attempt_id=attempt.pk, group__isnull=False)
    found = failures.select_related("group__merged_into").first()
    return (found.group.merged_into or found.group) if found and found.group else None


def shared_group_of(attempt: Attempt) -> FailureGroup | None:
    """Return the failure group of an attempt if the group has other failures."""
    group = group_of(attempt)
    return group if group is not None and group.count > 1 else None


@dataclass(frozen=True, slots=True)
class FailureDetail:
    """Common attributes of the failures of one group.

    `examined_count`: failures that were read; `runs`: affected runs or tasks, up to MAX_COUNTED.
    """

    listed_group: ListedFailureGroup
    by: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    value_counts: list[tuple[str, int]] = field(default_factory=list)
    samples: list[Failure] = field(default_factory=list)
    examined_count: int = 0
    runs: int = 0

    @property
    def is_standalone(self) -> bool:
        """True if the failures belong to standalone tasks, which have no runs."""
        return any(failure.task_id for failure in self.samples)

    @property
    def is_cut(self) -> bool:
        """True if the group has more failures than were read."""
        return self.examined_count == SEARCHED_ROWS and self.listed_group.group.count > SEARCHED_ROWS

    @property
    def is_capped(self) -> bool:
        return self.runs >= MAX_COUNTED


def failure_detail(group: FailureGroup, now: int, place: str = "") -> FailureDetail:
    """Return the distribution of a group over versions, builds, workers, queues, labels and one input value.

    `place`: path of the input value, such as `order.country`; empty for none.
    """
    hourly_counts = HourlyFailureCount.objects.filter(_merged_into([group.pk])).order_by()
    by = {
        name: [(str(value) or _("unknown"), count) for value, count in _most_frequent(hourly_counts, name)]
        for name in ("version", "build")
    }
    newest = list(failures_of(group).order_by("-at", "-pk")[:SEARCHED_ROWS])
    for name in ("worker", "queue"):
        counted = Counter(getattr(failure, name) for failure in newest)
        by[name] = [(value or _("none"), count) for value, count in counted.most_common(MAX_PARTS)]
    affected = list(dict.fromkeys(failure.run_id for failure in newest if failure.run_id))
    labels = RunLabel.objects.filter(run__in=affected).order_by().values_list("name")
    by["label"] = list(labels.annotate(count=Count("pk")).order_by("-count", "name")[:MAX_PARTS])
    runs = failures_of(group).order_by().values("run_id", "task_id").distinct()[:MAX_COUNTED].count()
    values = _count_values(affected[:INPUTS_READ], place) if place else []
    return FailureDetail(_add_hours([group], now)[0], by, values, newest[:SAMPLES], len(newest), runs)


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


def _most_frequent(hourly_counts: QuerySet[HourlyFailureCount], name: str) -> list[tuple[object, int]]:
    return list(hourly_counts.values_list(name).annotate(total=Sum("count")).order_by("-total", name)[:MAX_PARTS])
