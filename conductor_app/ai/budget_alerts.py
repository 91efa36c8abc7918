"""Budgets as a subject of alerts: the percentage that is spent, now and over the last days."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..alerts.models import Alert
from ..alerts.queries import AlertSubject, SubjectMeasure
from ..core.ai import period_bounds
from ..core.errors import Invalid
from ..core.states import RUN
from ..runs.models import Run
from .models import ModelBudget, ModelCall, ModelUsage
from .queries.budgets import PERIOD_LABELS, format_cost, format_tokens, name_budget
from .store import SPENT_SUMS, RunLine, Spent, calls_of, is_counted, spent_below, spent_of

MAX_TREES = 1_000
"""The trees of runs with recent calls that a budget of runs is checked for."""
MAX_INNER_RUNS = 100
"""The open runs inside of trees that a budget of runs is checked for."""


class BudgetSubject(AlertSubject):
    """The budgets of calls of models."""

    permission = "conductor.view_modelbudget"
    noun = gettext_lazy("budget")
    label = gettext_lazy("a budget spent to at least (percent)")
    page = "budgets"

    def exists(self, reference: Mapping[str, str]) -> bool:
        return ModelBudget.objects.filter(**reference).exists()

    def describe(self, reference: Mapping[str, str] | None) -> str:
        return describe_budget(reference)

    def choices(self) -> list[tuple[int, str]]:
        return [(each.pk, describe_budget(reference_of(each))) for each in ModelBudget.objects.all()]

    def find(self, id: int) -> dict[str, str]:
        return find_reference(id)

    def measure(self, alert: Alert, since: int, now: int) -> SubjectMeasure:
        """Return the fullest of the budgets of an alert. Budgets of runs count those with calls after `since`."""
        found = [
            (spent.percent_of(budget), budget, spent, run_id) for budget, spent, run_id in _uses(alert, since, now)
        ]
        if not found:
            return SubjectMeasure(0, "no budget is spent")
        percent, budget, spent, run_id = max(found, key=lambda each: each[0])
        spender, period = (f" by run {run_id}", "") if run_id else ("", f" per {budget.period.lower()}")
        name, amounts = name_budget(budget.scope, budget.name), _amounts(budget, spent)
        sentence = f"{name} is spent to {percent} %{spender}: {amounts}{period} (threshold: {alert.threshold} %)"
        return SubjectMeasure(percent, sentence)

    def past_percents(self, alert: Alert, moments: Sequence[int]) -> list[int]:
        """Return the percentage of the fullest budget at each time, in full hours. Budgets of runs have no past."""
        percents = [0] * len(moments)
        for budget in filter(is_counted, _budgets_of(alert)):
            percents = [max(pair) for pair in zip(percents, _percents_at(budget, moments), strict=True)]
        return percents


def reference_of(budget: ModelBudget) -> dict[str, str]:
    """Return what identifies a budget in an alert."""
    return {"scope": budget.scope, "name": budget.name, "period": budget.period}


def describe_budget(reference: Mapping[str, str] | None) -> str:
    """Return the name of a budget with its period, or that of all budgets."""
    if not reference:
        return _("any budget")
    budget = name_budget(reference["scope"], reference["name"]).replace("`", "")
    return f"{budget} ({PERIOD_LABELS[reference['period']]})"


def find_reference(budget_id: int) -> dict[str, str]:
    """Return what identifies a budget in an alert."""
    budget = ModelBudget.objects.filter(pk=budget_id).first()
    if budget is None:
        raise Invalid(_("There is no such budget."))
    return reference_of(budget)


def _budgets_of(alert: Alert) -> QuerySet[ModelBudget]:
    """Return the budgets of an alert: those with its scope, name and period, or all."""
    budgets = ModelBudget.objects.all()
    if not alert.budget:
        return budgets
    return budgets.filter(**{field: alert.budget[field] for field in ("scope", "name", "period")})


def _uses(alert: Alert, since: int, now: int) -> Iterator[tuple[ModelBudget, Spent, str]]:
    for budget in _budgets_of(alert):
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
