"""The failure inbox: groups with their last 24 hours and their impact."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Case, Count, IntegerField, Q, QuerySet, Sum, When
from django.utils.translation import gettext_lazy

from ...core.states import FAILURE, IGNORED, REGRESSED, RESOLVED
from ...models import Attempt, Failure, FailureGroup, HourlyFailureCount
from ..durations import DAY, HOUR
from .failure_impact import GroupImpact, impact_by_group

MAX_GROUPS = 100
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
    LOST_RUNS: (gettext_lazy("Failed runs, 24 h"), ()),
    "count": (gettext_lazy("Failures"), ("-count", "pk")),
    LAST: (gettext_lazy("Last"), ("-last_at", "pk")),
    "first": (gettext_lazy("First"), ("-first_at", "pk")),
}
"""Orders of the inbox: label and columns. The counts of failed runs are not stored."""


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
    """Return the groups of one tab in the order of `sort`, a key of ORDERS."""
    own = FailureGroup.objects.not_merged()
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


def add_hours(
    groups: Iterable[FailureGroup], now: int, impact: Mapping[int, GroupImpact] | None = None
) -> list[ListedFailureGroup]:
    """Return the groups with their hourly counts, including the groups merged into them."""
    groups = list(groups)
    first = now - now % HOUR - 23 * HOUR
    hourly_counts = HourlyFailureCount.objects.filter(hour_at__gte=first).filter(
        merged_into([group.pk for group in groups])
    )
    hours: dict[int, list[int]] = defaultdict(lambda: [0] * 24)
    rows = hourly_counts.values_list("group_id", "group__merged_into_id", "hour_at").annotate(Sum("count"))
    for group, whole, hour, count in rows.order_by():
        if 0 <= (place := (hour - first) // HOUR) < 24:
            hours[whole or group][place] += count
    impact = impact or {}
    return [ListedFailureGroup(group, hours[group.pk], impact.get(group.pk, GroupImpact())) for group in groups]


def merged_into(ids: Sequence[int]) -> Q:
    return Q(group__in=ids) | Q(group__merged_into__in=ids)


def most_harmful_groups(now: int, limit: int) -> list[ListedFailureGroup]:
    """Return open groups, those that ended the most runs within the last day first. Runs three queries."""
    open_groups = FailureGroup.objects.not_merged().filter(VIEWS["open"][1])
    impact = impact_by_group(now)
    return add_hours(_sort_groups(open_groups, LOST_RUNS, impact)[:limit], now, impact)


def failures_of(group: FailureGroup) -> QuerySet[Failure]:
    """Return the failures of a group and of the groups merged into it."""
    return Failure.objects.filter(merged_into([group.pk]))


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
