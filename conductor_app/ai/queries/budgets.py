"""Queries about budgets: their states, texts of amounts, why attempts wait for them, and what their alerts measure."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.authentication import Actor, current_actor
from ...access.permissions import INTEGRATION_PROVIDER, READ, WORKFLOW_DEF
from ...alerts.models import Alert
from ...alerts.queries import AlertSubject, SubjectMeasure
from ...core.ai import ALL, CALLER, DAY, DEFINITION, INTEGRATION, MODEL, MONTH, RUN, WEEK, period_bounds
from ...core.errors import Invalid
from ...core.snapshot import NEVER
from ...core.states import RUN as RUN_STATES
from ...runs.models import Run
from ...settings import conf
from ...tasks.gates import BUDGET_HOLDS, Hold, HoldSource
from ...utils.formatting import format_count, format_decimal, format_timestamp
from ..models import BudgetHold, ModelBudget, ModelCall, ModelUsage
from ..store import SPENT_SUMS, Reserved, RunLine, Spent, calls_of, is_counted, reserved_of, spent_below, spent_of

MILLION = 1_000_000
SYMBOLS = {"USD": "$"}
SCOPE_LABELS = {
    ALL: gettext_lazy("All calls"),
    RUN: gettext_lazy("Each run"),
    DEFINITION: gettext_lazy("Workflow"),
    CALLER: gettext_lazy("Caller"),
    INTEGRATION: gettext_lazy("Integration"),
    MODEL: gettext_lazy("Model"),
}
PERIOD_LABELS = {
    RUN: gettext_lazy("Run"),
    DAY: gettext_lazy("Day"),
    WEEK: gettext_lazy("Week"),
    MONTH: gettext_lazy("Month"),
}
BUDGET_NAMES = {
    ALL: gettext_lazy("The budget of all calls"),
    DEFINITION: gettext_lazy("The budget of workflow `%(name)s`"),
    CALLER: gettext_lazy("The budget of caller `%(name)s`"),
    INTEGRATION: gettext_lazy("The budget of integration `%(name)s`"),
    MODEL: gettext_lazy("The budget of model `%(name)s`"),
    RUN: gettext_lazy("The budget of each run of `%(name)s`"),
}
MAX_TREES = 1_000
"""The trees of runs with recent calls that a budget of runs is checked for."""
MAX_INNER_RUNS = 100
"""The open runs inside of trees that a budget of runs is checked for."""
WARNING_SHARE = 0.8
"""The spent share of a budget from which pages warn."""


def is_visible_budget(budget: ModelBudget, actor: Actor | None = None) -> bool:
    """Return True if an actor, by default the current one, may see the workflow or the integration of a budget."""
    actor = actor or current_actor()
    if budget.scope in (DEFINITION, RUN):
        target_type, name = WORKFLOW_DEF, budget.name
    elif budget.scope in (INTEGRATION, MODEL):
        target_type, name = INTEGRATION_PROVIDER, budget.name.partition(":")[0]
    else:
        return False
    return actor is None or actor.permissions.allows(READ, target_type, name)


def audited_budgets(actor: Actor) -> QuerySet[ModelBudget]:
    """Return the budgets whose entries in the audit log an actor may see."""
    shown = [budget.pk for budget in ModelBudget.objects.all() if is_visible_budget(budget, actor)]
    return ModelBudget.objects.filter(pk__in=shown)


@dataclass(frozen=True, slots=True)
class BudgetState:
    """A budget and its current use. `spent`: None for a budget of runs, which counts each run by itself.

    `room_at`: the end of its period in epoch milliseconds, None for a budget of runs. `waiting`: the number of
    tasks that wait for it. `reserved`: what its open calls may use.
    """

    budget: ModelBudget
    spent: Spent | None
    room_at: int | None
    waiting: int = 0
    reserved: Reserved = field(default_factory=Reserved)

    @property
    def share(self) -> float | None:
        """Return the spent share of its limit, or None if it is not counted."""
        return None if self.spent is None else self.spent.share_of(self.budget)

    @property
    def is_spent(self) -> bool:
        return self.spent is not None and self.spent.exhausts(self.budget)

    @property
    def is_nearly_spent(self) -> bool:
        """Return True from WARNING_SHARE on."""
        return self.share is not None and self.share >= WARNING_SHARE


def budget_states(now: int) -> list[BudgetState]:
    """Return all budgets in the order of their scope and name. Runs three queries."""
    counts = BudgetHold.objects.filter(allowed_by="", until__gt=now).values_list("budget").annotate(Count("pk"))
    waiting = dict(counts.order_by())
    budgets = list(ModelBudget.objects.all())
    counted = [budget for budget in budgets if is_counted(budget)]
    reserved = reserved_of(counted, RunLine(), now) if counted else {}
    return [_state(budget, now, waiting.get(budget.pk, 0), reserved.get(budget.pk)) for budget in budgets]


def _state(budget: ModelBudget, now: int, waiting: int, reserved: Reserved | None) -> BudgetState:
    if reserved is None:
        return BudgetState(budget, None, None, waiting)
    end = period_bounds(budget.period, now)[1]
    return BudgetState(budget, spent_of(budget, now), end if end < NEVER else None, waiting, reserved)


def run_budget_share(run_id: str, definition: str, root_id: str) -> float | None:
    """Return the spent share of the tightest budget of a run, with the runs below it; None if it has none.

    `root_id`: the run at the top of its tree. A budget of all runs applies to that run. Runs two queries.
    """
    names = ("", definition) if run_id == root_id else (definition,)
    budgets = list(ModelBudget.objects.filter(scope=RUN, name__in=names))
    if not budgets:
        return None
    spent = spent_below(run_id, root_id)
    return max(spent.share_of(budget) for budget in budgets)


def connect_budget_holds() -> None:
    """Let the gate `budget` read the holds of attempts."""
    held = BudgetHold.objects.filter(pk=OuterRef("pk"))
    columns = {f"budget_{part}": Subquery(held.values(part)[:1]) for part in ("until", "facts")}
    BUDGET_HOLDS.value = HoldSource(columns, _read_hold)


def _read_hold(row: Mapping[str, Any]) -> Hold | None:
    """Return the hold of an attempt from a row with the columns of the gate; None if it is not held."""
    until, facts = row.get("budget_until"), row.get("budget_facts")
    if not until or not facts:
        return None
    return Hold(until, _hold_sentence(facts), _("budget reserved") if facts.get("lacks") else _("budget spent"))


def _hold_sentence(facts: Mapping[str, Any]) -> str:
    """Return why an attempt waits for a budget, and what an operator can do."""
    spent, limit = _spent_and_limit(facts)
    words = {"budget": name_budget(facts["scope"], facts["name"]), "spent": spent, "limit": limit}
    by = _(", set by %(by)s") % {"by": facts["by"]} if facts["by"] else ""
    if lacks := facts.get("lacks"):
        words |= {"reserved": _amount(lacks, facts[f"reserved_{lacks}"]), "by": by}
        return (
            _(
                "%(budget)s has no room for this call beside the open ones: %(spent)s of %(limit)s are spent, and "
                "%(reserved)s reserved%(by)s. The task continues when an open call ends. To continue earlier, raise "
                "the budget or allow this call once."
            )
            % words
        )
    sentence = _("%(budget)s is spent: %(spent)s of %(limit)s") % words + by + ". "
    if facts["room_at"]:
        sentence += _("It has room again at %(room_at)s.") % {"room_at": format_timestamp(facts["room_at"])} + " "
        return sentence + _("To continue earlier, raise the budget or allow this call once.")
    return sentence + _("To continue, raise the budget or allow this call once.")


def refusal_of(facts: Mapping[str, Any]) -> str:
    """Return why a call that cannot wait is refused."""
    spent, limit = _spent_and_limit(facts)
    words = {"budget": name_budget(facts["scope"], facts["name"]), "spent": spent, "limit": limit}
    if lacks := facts.get("lacks"):
        words["reserved"] = _amount(lacks, facts[f"reserved_{lacks}"])
        return (
            _(
                "%(budget)s has no room for this call beside the open ones: %(spent)s of %(limit)s are spent, and "
                "%(reserved)s reserved. Try again when they have ended."
            )
            % words
        )
    return _("%(budget)s is spent: %(spent)s of %(limit)s. Raise the budget, or try again in its next period.") % words


def _spent_and_limit(facts: Mapping[str, Any]) -> tuple[str, str]:
    """Return what is spent, and the limit that is reached or too tight."""
    kind = facts.get("lacks")
    if not kind:
        has_no_cost = facts["max_cost"] is not None and facts["spent_cost"] >= facts["max_cost"]
        kind = "cost" if has_no_cost else "tokens"
    return _amount(kind, facts[f"spent_{kind}"]), _amount(kind, facts[f"max_{kind}"] or 0)


def _amount(kind: str, count: int) -> str:
    return format_cost(count) if kind == "cost" else format_tokens(count)


def format_cost(cost: int) -> str:
    """Format an amount in millionths of the currency. Small amounts keep two significant digits."""
    decimals = 2
    while decimals < 6 and 0 < cost < 10 ** (7 - decimals):
        decimals += 1
    return format_amount(cost / MILLION, decimals)


def format_amount(amount: float, decimals: int) -> str:
    """Format an amount of the currency, such as a price, with its symbol or code."""
    number = format_decimal(amount, decimals)
    symbol = SYMBOLS.get(conf.ai_currency)
    return f"{symbol}{number}" if symbol else f"{number} {conf.ai_currency}"


def format_tokens(count: int) -> str:
    """Format a number of tokens with its unit."""
    return _("%(count)s tokens") % {"count": format_count(count)}


def name_budget(scope: str, name: str) -> str:
    """Return the beginning of a sentence about a budget."""
    if scope == RUN and not name:
        return _("The budget of each run")
    return str(BUDGET_NAMES[scope]) % {"name": name}


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
    inner = Run.objects.filter(root_id__in=roots, name=budget.name, status__in=sorted(RUN_STATES.open)).exclude(
        root_id=""
    )
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
