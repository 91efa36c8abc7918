"""Measurement of alerts: counts of runs in the window of an alert, and a back-test over the last seven days.

What a digest reports about a day or a week: failed runs, new failure groups, and overdue human tasks.

The text of a digest, in the active time zone.

What alerts on budgets measure: the percentage that is spent, now and over the last days.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ..ai.models import ModelBudget, ModelCall, ModelUsage
from ..ai.queries.budgets import format_cost, format_tokens, name_budget
from ..ai.store import SPENT_SUMS, RunLine, Spent, calls_of, is_counted, spent_below, spent_of
from ..bulk import selections
from ..core.ai import period_bounds
from ..core.alerts import AGE, BUDGET, SHARE, AlertRule, QuietHours, find_alert_times, measure_at
from ..core.failure_grouping import informative_line
from ..core.states import FAILED, RUN, TIMED_OUT
from ..explanations.cause import failure_reasons
from ..failures.models import FailureGroup
from ..human_tasks.waiting_queries import HumanTaskView, human_task_inbox
from ..runs.models import Run
from ..settings import conf
from ..utils.formatting import DAY, MINUTE, format_duration
from .models import Alert, AlertFiring, AlertTarget, SavedView

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


def digest_subject(digest: Digest) -> str:
    """Return the subject: the three numbers."""
    parts = [
        ngettext("%(n)s failed run", "%(n)s failed runs", digest.failed_count) % {"n": _count(digest)},
        ngettext("%(n)s new failure group", "%(n)s new failure groups", digest.group_count) % {"n": digest.group_count},
        ngettext("%(n)s overdue human task", "%(n)s overdue human tasks", digest.overdue_count)
        % {"n": digest.overdue_count},
    ]
    return ", ".join(parts)


def digest_body(digest: Digest, is_weekly: bool, now: int) -> str:
    """Return the body of the email, with links if the server's public address is configured."""
    period = _("In the last seven days:") if is_weekly else _("In the last 24 hours:")
    sections = [f"{period} {digest_subject(digest)}."]
    sections += _section(_("Failed runs by workflow"), [f"{count:>6}  {name}" for name, count in digest.failed], "")
    groups = [f"{group.count:>6}  {group.place}: {group.message}" for group in digest.groups]
    sections += _section(_("New failure groups"), groups, _address("failures"))
    sections += _section(_("Overdue human tasks"), _overdue_lines(digest, now), _address("human_tasks"))
    sections.append(_unsubscribe_text())
    return "\n\n".join(sections) + "\n"


def _count(digest: Digest) -> str:
    return f"{digest.failed_count:,}+" if digest.is_capped else f"{digest.failed_count:,}"


def _section(title: str, lines: list[str], address: str) -> list[str]:
    if not lines:
        return []
    return ["\n".join([title, *lines, *([address] if address else [])])]


def _overdue_lines(digest: Digest, now: int) -> list[str]:
    lines = []
    for each in digest.overdue:
        span = format_duration(now - (each.assignment.due_at or now))
        late = _("overdue for %(span)s") % {"span": span}
        lines.append(f"  {each.title} ({each.attempt.run.name if each.attempt.run else ''}): {late}")
    return lines


def _unsubscribe_text() -> str:
    address = _address("preferences")
    text = _("To change or stop this email, open your preferences.")
    return f"{text} {address}".strip()


def _address(page: str) -> str:
    return f"{conf.public_url}{reverse(f'admin:{page}')}" if conf.public_url else ""


MAX_TREES = 1_000
"""The trees of runs with recent calls that a budget of runs is checked for."""
MAX_INNER_RUNS = 100
"""The open runs inside of trees that a budget of runs is checked for."""


@dataclass(frozen=True, slots=True)
class BudgetMeasure:
    """The spent percentage of the fullest budget, and a sentence about it."""

    percent: int = 0
    sentence: str = "no budget is spent"


def measure_budgets(alert: Alert, since: int, now: int) -> BudgetMeasure:
    """Return the fullest of the budgets of an alert. Budgets of runs count those with calls after `since`."""
    found = [(spent.percent_of(budget), budget, spent, run_id) for budget, spent, run_id in _uses(alert, since, now)]
    if not found:
        return BudgetMeasure()
    percent, budget, spent, run_id = max(found, key=lambda each: each[0])
    spender, period = (f" by run {run_id}", "") if run_id else ("", f" per {budget.period.lower()}")
    name, amounts = name_budget(budget.scope, budget.name), _amounts(budget, spent)
    sentence = f"{name} is spent to {percent} %{spender}: {amounts}{period} (threshold: {alert.threshold} %)"
    return BudgetMeasure(percent, sentence)


def past_percents(alert: Alert, moments: Sequence[int]) -> list[int]:
    """Return the percentage of the fullest budget at each time, in full hours. Budgets of runs have no past."""
    percents = [0] * len(moments)
    for budget in filter(is_counted, budgets_of(alert)):
        percents = [max(pair) for pair in zip(percents, _percents_at(budget, moments), strict=True)]
    return percents


def budgets_of(alert: Alert) -> QuerySet[ModelBudget]:
    """Return the budgets of an alert: those with its scope, name and period, or all."""
    budgets = ModelBudget.objects.all()
    if not alert.budget:
        return budgets
    return budgets.filter(**{field: alert.budget[field] for field in ("scope", "name", "period")})


def _uses(alert: Alert, since: int, now: int) -> Iterator[tuple[ModelBudget, Spent, str]]:
    for budget in budgets_of(alert):
        if is_counted(budget):
            yield budget, spent_of(budget, now), ""
        else:
            for run_id, spent in _spent_by_runs(budget, since).items():
                yield budget, spent, run_id


def _spent_by_runs(budget: ModelBudget, since: int) -> dict[str, Spent]:
    """Return what each run of a budget has spent whose tree has calls after `since`."""
    recent = ModelCall.objects.filter(started_at__gte=since).exclude(root_id="").order_by()
    roots = list(recent.values_list("root_id", flat=True).distinct()[:MAX_TREES])
    if not budget.name:
        return _spent_by_trees(roots)
    found = _spent_by_trees(list(Run.objects.filter(pk__in=roots, name=budget.name).values_list("pk", flat=True)))
    inner = Run.objects.filter(root_id__in=roots, name=budget.name, status__in=sorted(RUN.open)).exclude(root_id="")
    for run_id, root_id in inner.values_list("pk", "root_id")[:MAX_INNER_RUNS]:
        found[run_id] = spent_below(run_id, root_id)
    return found


def _spent_by_trees(roots: Sequence[str]) -> dict[str, Spent]:
    rows = ModelCall.objects.filter(root_id__in=roots).order_by().values("root_id")
    return {row["root_id"]: Spent.from_sums(row) for row in rows.annotate(**SPENT_SUMS)}


def _percents_at(budget: ModelBudget, moments: Sequence[int]) -> list[int]:
    begin, _end = period_bounds(budget.period, moments[0])
    rows = ModelUsage.objects.filter(calls_of(budget, RunLine()), hour__gte=begin).order_by("hour").values("hour")
    hours, costs, tokens = [], [0], [0]
    for row in rows.annotate(**SPENT_SUMS):
        spent = Spent.from_sums(row)
        hours.append(row["hour"])
        costs.append(spent.cost)
        tokens.append(spent.tokens)
    costs, tokens = list(accumulate(costs)), list(accumulate(tokens))
    percents = []
    for moment in moments:
        first = bisect_left(hours, period_bounds(budget.period, moment)[0])
        last = bisect_right(hours, moment)
        percents.append(Spent(costs[last] - costs[first], tokens[last] - tokens[first]).percent_of(budget))
    return percents


def _amounts(budget: ModelBudget, spent: Spent) -> str:
    parts = []
    if budget.max_cost is not None:
        parts.append(f"{format_cost(spent.cost)} of {format_cost(budget.max_cost)}")
    if budget.max_tokens is not None:
        parts.append(f"{format_tokens(spent.tokens)} of {format_tokens(budget.max_tokens)}")
    return ", ".join(parts)


BACK_MS = 7 * DAY
MAX_CHECKS = 50_000
FAILED_STATUSES = ("FAILED", "TIMED_OUT")
MAX_NOTIFICATIONS = 30
STEP_MS = 30 * MINUTE
MAX_PEAKS = 200
"""Firings whose values are measured in addition to the steps."""


def rule_of(alert: Alert) -> AlertRule:
    """Return the condition of an alert as a value of the core."""
    times = alert.quiet_from, alert.quiet_until
    quiet = None if None in times else QuietHours(*times, alert.zone)
    return AlertRule(alert.kind, alert.threshold, alert.window_minutes * MINUTE, alert.repeat_minutes * MINUTE, quiet)


def counted_moment(selection: dict) -> str:
    """Return the column that dates a run: its end if the selection holds only ended runs, otherwise its start."""
    statuses = set(selection.get("status") or ())
    return "ended_at" if statuses and statuses <= RUN.final else "created_at"


@dataclass(frozen=True, slots=True)
class Measure:
    """Whether an alert's condition is met, and a sentence about what was measured."""

    is_met: bool
    sentence: str


def measure_alert(alert: Alert, now: int) -> Measure:
    """Return whether the condition of an alert is met."""
    rule = rule_of(alert)
    if alert.kind == BUDGET:
        found = measure_budgets(alert, now - rule.window_ms, now)
        return Measure(rule.is_met(found.percent, 0), found.sentence)
    hits, total = count_alert(alert, now)
    return Measure(rule.is_met(hits, total), rule.sentence(hits, total))


def count_alert(alert: Alert, now: int) -> tuple[int, int]:
    """Return how many runs of the view and how many runs in all fall into the window, each up to MAX_CHECKS.

    For an alert about the age of open runs, the total is 0.
    """
    if alert.kind == AGE:
        old = selections.selected_runs(alert.view.selection).filter(created_at__lte=now - rule_of(alert).age_ms)
        return old.filter(status__in=sorted(RUN.open)).order_by()[:MAX_CHECKS].count(), 0
    after = now - alert.window_minutes * MINUTE
    hits, total = _selected_and_all(alert)
    return _count_runs(hits, after, now), _count_runs(total, after, now) if total is not None else 0


def newest_failure(alert: Alert, now: int) -> str:
    """Return the failed task and the error of the newest failed run in the window of an alert, or an empty text."""
    if alert.kind in (AGE, BUDGET):
        return ""
    rows, column = _selected_and_all(alert)[0]
    after = now - rule_of(alert).window_ms
    failed = rows.filter(status__in=FAILED_STATUSES, **{f"{column}__gt": after, f"{column}__lte": now})
    run = failed.order_by(f"-{column}").only("reason", "failed_attempt_id").first()
    if run is None:
        return ""
    task, reason = failure_reasons([run]).get(run.pk, ("", informative_line(run.reason)))
    return f"{task}: {reason}" if task else reason


@dataclass(frozen=True, slots=True)
class BackTest:
    """The last seven days of an alert: the measured value every half hour, and when the alert would have fired.

    `firings`: pairs of time and number of hits. `limit`: the threshold in the unit of the values.
    """

    begin: int
    end: int
    points: Sequence[tuple[int, float]]
    firings: Sequence[tuple[int, int]]
    limit: int


def back_test(alert: Alert, now: int) -> BackTest:
    """Apply the condition of an alert to the last seven days."""
    since, rule = now - BACK_MS, rule_of(alert)
    if alert.kind == BUDGET:
        return _back_test_of_budgets(alert, rule, since, now)
    hits, total = _past_times(alert, since, now)
    firings = find_alert_times(rule, hits, total, since, now)
    # A short peak between two steps is measured where the alert would have fired.
    moments = sorted({*range(since, now, STEP_MS), now, *(at for at, _ in firings[:MAX_PEAKS])})
    points = list(zip(moments, measure_at(rule, hits, total, moments), strict=True))
    return BackTest(since, now, points, firings, rule.limit)


def _back_test_of_budgets(alert: Alert, rule: AlertRule, since: int, now: int) -> BackTest:
    moments = [*range(since, now, STEP_MS), now]
    points = list(zip(moments, past_percents(alert, moments), strict=True))
    firings: list[tuple[int, int]] = []
    for at, percent in points:
        pauses = bool(firings) and at - firings[-1][0] < rule.repeat_ms
        if rule.is_met(percent, 0) and not pauses and not rule.is_quiet(at):
            firings.append((at, percent))
    return BackTest(since, now, points, firings, rule.limit)


def _past_times(alert: Alert, since: int, now: int) -> tuple[list[int], list[int]]:
    if alert.kind == AGE:
        return _overage_times(alert, since, now)
    hits, total = _selected_and_all(alert)
    after = since - alert.window_minutes * MINUTE
    return _run_times(hits, after, now), _run_times(total, after, now) if total is not None else []


def _overage_times(alert: Alert, since: int, now: int) -> tuple[list[int], list[int]]:
    """Return when runs exceeded the age and when those runs ended, regardless of their current status."""
    age = rule_of(alert).age_ms
    rest = {name: value for name, value in alert.view.selection.items() if name != "status"}
    runs = selections.selected_runs(rest).filter(created_at__gt=since - age - BACK_MS, created_at__lte=now - age)
    spans = list(runs.order_by("-created_at").values_list("created_at", "ended_at")[:MAX_CHECKS])
    too_old = [(at + age, end) for at, end in spans if end is None or end > at + age]
    return sorted(at for at, _ in too_old), sorted(end for _, end in too_old if end is not None)


Counted = tuple[QuerySet[Run], str]


def _selected_and_all(alert: Alert) -> tuple[Counted, Counted | None]:
    selection = alert.view.selection
    column = counted_moment(selection)
    if alert.kind != SHARE:
        return (selections.selected_runs(selection), column), None
    # The total counts the same runs in any final status.
    rest = {name: value for name, value in selection.items() if name != "status"}
    return (selections.selected_runs(selection), column), (selections.selected_runs(rest), column)


def _count_runs(runs: Counted, after: int, until: int) -> int:
    rows, column = runs
    return rows.filter(**{f"{column}__gt": after, f"{column}__lte": until}).order_by()[:MAX_CHECKS].count()


def _run_times(runs: Counted, after: int, until: int) -> list[int]:
    rows, column = runs
    within = rows.filter(**{f"{column}__gt": after, f"{column}__lte": until}).order_by(f"-{column}")
    return sorted(within.values_list(column, flat=True)[:MAX_CHECKS])


def notifications_to(target: AlertTarget) -> list[AlertFiring]:
    """Return the newest notifications of a target, newest first: of its alerts, and tests.

    The index has the alerts, which are few, and the times.
    """
    of_target = AlertFiring.objects.filter(target=target)
    rows = list(of_target.filter(alert__isnull=True).order_by("-at")[:MAX_NOTIFICATIONS])
    rows += of_target.filter(alert__in=target.alerts.all()).order_by("-at")[:MAX_NOTIFICATIONS]
    return sorted(rows, key=lambda row: (row.at, row.pk), reverse=True)[:MAX_NOTIFICATIONS]


KIND_LABELS = {
    "slack": gettext_lazy("Slack"),
    "teams": gettext_lazy("Microsoft Teams"),
    "pagerduty": gettext_lazy("PagerDuty"),
    "webhook": gettext_lazy("Webhook"),
    "email": gettext_lazy("Email"),
}


def kind_label(kind: str) -> str:
    """Return the label of a kind, or the kind itself if this server no longer supports it."""
    return str(KIND_LABELS.get(kind, kind))


def visible_views(request: HttpRequest) -> QuerySet[SavedView]:
    """Return the views that the user may see: their own and shared ones."""
    return SavedView.objects.filter(Q(owner=request.user.get_username()) | Q(is_shared=True)).order_by("name", "pk")
