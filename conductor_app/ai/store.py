"""Write usage and versions of indexes, and read which budgets apply to a call and what is spent of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Min, Q, QuerySet, Sum
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from ..core.ai import ALL, CALLER, DEFINITION, INTEGRATION, MODEL, RUN, period_bounds
from ..db.statements import execute, fetch
from ..settings import conf
from .models import ModelBudget, ModelCall, ModelUsage

OF_INTEGRATION = "integration"
"""The origin of a budget that the limit of a model sets."""
STARTED = "STARTED"
"""The status of an open call."""
SPENT_SUMS = {"costs": Sum("cost"), "prompts": Sum("prompt_tokens"), "completions": Sum("completion_tokens")}
"""The sums of calls, or of their hourly usage, that are spent of a budget."""
RUNS_ABOVE = (
    "WITH RECURSIVE line (id, name, started_by, parent_id, root_id, place) AS ("
    "SELECT id, name, started_by, parent_id, root_id, 0 FROM conductor_run WHERE id = %s UNION ALL "
    "SELECT above.id, above.name, above.started_by, above.parent_id, above.root_id, line.place + 1 "
    "FROM line JOIN conductor_run above ON above.id = line.parent_id) "
    "SELECT id, name, started_by, root_id FROM line ORDER BY place"
)
RUNS_BELOW = (
    "WITH RECURSIVE tree (id) AS (SELECT id FROM conductor_run WHERE id = %s UNION ALL "
    "SELECT below.id FROM tree JOIN conductor_run below ON below.parent_id = tree.id AND NOT (below.parent_id = '')) "
    "SELECT id FROM tree"
)
KEY = ("hour", "integration", "model", "definition", "caller")
SUMS = ("calls", "failures", "prompt_tokens", "completion_tokens", "cost", "duration_ms")
COLUMNS = (*KEY, *SUMS)
ADD_USAGE = (
    f"INSERT INTO conductor_modelusage ({', '.join(COLUMNS)}) VALUES ({', '.join(['%s'] * len(COLUMNS))}) "
    f"ON CONFLICT ({', '.join(KEY)}) DO UPDATE SET "
    + ", ".join(f"{column} = conductor_modelusage.{column} + excluded.{column}" for column in SUMS)
)


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run and those above it. `runs`: pairs of id and definition, the outermost last; none outside of runs.

    `root_id`: the run at the top of the tree. `caller`: the one that started the outermost.
    """

    runs: tuple[tuple[str, str], ...] = ()
    root_id: str = ""
    caller: str = ""

    def limited_run(self, budget: ModelBudget) -> str:
        """Return the outermost run that a budget of runs applies to."""
        return [run_id for run_id, definition in self.runs if budget.name in ("", definition)][-1]


def load_run_line(run_id: str) -> RunLine:
    """Return a run with those above it; an empty line if there is no such run."""
    rows = fetch(RUNS_ABOVE, [run_id])
    if not rows:
        return RunLine()
    return RunLine(tuple((id, name) for id, name, *_ in rows), rows[0][3] or rows[0][0], rows[-1][2])


@dataclass(frozen=True, slots=True)
class BudgetedCall:
    """What budgets know of a call. `definition`: empty for a call outside of runs."""

    line: RunLine
    definition: str
    caller: str
    integration: str
    model: str


@dataclass(frozen=True, slots=True)
class Spent:
    """What is spent of a budget in its current period. `cost`: in millionths of the currency."""

    cost: int = 0
    tokens: int = 0

    @classmethod
    def from_sums(cls, sums: Mapping[str, Any]) -> "Spent":
        """Return what calls have spent, from the columns SPENT_SUMS. A sum without rows is None."""
        return cls(sums["costs"] or 0, (sums["prompts"] or 0) + (sums["completions"] or 0))

    def exhausts(self, budget: ModelBudget) -> bool:
        """Return True if a limit of the budget is reached."""
        return _reaches(self.cost, budget.max_cost) or _reaches(self.tokens, budget.max_tokens)

    def share_of(self, budget: ModelBudget) -> float:
        """Return the spent share of the limit that is reached first: 1 if the budget is spent."""
        return max((1.0 if not limit else used / limit for used, limit in self._used(budget)), default=0.0)

    def percent_of(self, budget: ModelBudget) -> int:
        """Return the spent share in percent, rounded down."""
        return max((100 if not limit else 100 * used // limit for used, limit in self._used(budget)), default=0)

    def _used(self, budget: ModelBudget) -> list[tuple[int, int]]:
        """Return what is used of each limit, and the limit."""
        pairs = ((self.cost, budget.max_cost), (self.tokens, budget.max_tokens))
        return [(used, limit) for used, limit in pairs if limit is not None]


@dataclass(frozen=True, slots=True)
class Reserved:
    """What open calls may use of a budget. `until`: when the oldest of them stops counting at the latest."""

    cost: int = 0
    tokens: int = 0
    until: int = 0


def _reaches(used: int, limit: int | None) -> bool:
    return limit is not None and used >= limit


def budgets_for(call: BudgetedCall) -> QuerySet[ModelBudget]:
    """Return the budgets that apply to a call, with those of its run and of the runs above it."""
    applies = (
        Q(scope=ALL)
        | Q(scope=INTEGRATION, name=call.integration)
        | Q(scope=MODEL, name=f"{call.integration}:{call.model}")
        | _of_runs(call.line)
    )
    for scope, name in ((DEFINITION, call.definition), (CALLER, call.caller)):
        if name:
            applies |= Q(scope=scope, name=name)
    return ModelBudget.objects.filter(applies)


def _of_runs(line: RunLine) -> Q:
    names = sorted({definition for _, definition in line.runs})
    return Q(scope=RUN, name__in=["", *names]) if names else Q(pk__in=())


def is_counted(budget: ModelBudget) -> bool:
    """Return True if the row of the budget has what is spent. The use of a run is the sum of its calls."""
    return budget.scope != RUN


def spent_of(budget: ModelBudget, now: int) -> Spent:
    """Return what the row of a budget has of the period that contains `now`."""
    begin, _end = period_bounds(budget.period, now)
    return Spent(budget.spent_cost, budget.spent_tokens) if budget.period_start == begin else Spent()


def calls_below(run_id: str, root_id: str) -> Q:
    """Return the condition on the calls of a run and of the runs below it. `root_id`: the top of its tree."""
    if run_id == root_id:
        return Q(root_id=root_id)
    return Q(run_id__in=RawSQL(RUNS_BELOW, [run_id]))


def spent_below(run_id: str, root_id: str) -> Spent:
    """Return what the calls of a run and of the runs below it have spent."""
    return Spent.from_sums(ModelCall.objects.filter(calls_below(run_id, root_id)).aggregate(**SPENT_SUMS))


def calls_of(budget: ModelBudget, line: RunLine) -> Q:
    """Return the condition on the calls that a budget counts. `line`: that of the call in question."""
    integration, _colon, model = budget.name.partition(":")
    match budget.scope:
        case "RUN":
            return calls_below(line.limited_run(budget), line.root_id)
        case "DEFINITION":
            return Q(definition=budget.name)
        case "CALLER":
            return Q(caller=budget.name)
        case "INTEGRATION":
            return Q(integration=budget.name)
        case "MODEL":
            return Q(integration=integration, model=model)
    return Q()


def reserved_of(budgets: Sequence[ModelBudget], line: RunLine, now: int) -> dict[int, Reserved]:
    """Return what open calls have reserved of each budget, by its id. Runs one query.

    A call whose process has ended stops counting when the longest duration of a call has passed.
    """
    longest = longest_call_ms()
    columns: dict[str, Any] = {}
    for budget in budgets:
        counted = calls_of(budget, line)
        columns[f"cost_{budget.pk}"] = Coalesce(Sum("reserved_cost", filter=counted), 0)
        columns[f"tokens_{budget.pk}"] = Coalesce(Sum("reserved_tokens", filter=counted), 0)
        columns[f"first_{budget.pk}"] = Coalesce(Min("started_at", filter=counted), now)
    found = ModelCall.objects.filter(status=STARTED, started_at__gt=now - longest).aggregate(**columns)
    return {
        budget.pk: Reserved(
            int(found[f"cost_{budget.pk}"]), int(found[f"tokens_{budget.pk}"]), found[f"first_{budget.pk}"] + longest
        )
        for budget in budgets
    }


def longest_call_ms() -> int:
    """Return the longest duration of a call."""
    return round(conf.ai_task_seconds * 1000)


def spent_before(budget: ModelBudget, now: int) -> Spent:
    """Return what was spent in the current period according to the hourly usage, for a budget that is new."""
    begin, end = period_bounds(budget.period, now)
    rows = ModelUsage.objects.filter(calls_of(budget, RunLine()), hour__gte=begin, hour__lt=end)
    return Spent.from_sums(rows.aggregate(**SPENT_SUMS))


def add_usage(key: Sequence[Any], sums: Sequence[int]) -> None:
    """Add to the usage of one hour. `key`: the values of KEY. `sums`: those of SUMS."""
    execute(ADD_USAGE, [*key, *sums])


def delete_usage(before: int, limit: int) -> int:
    """Delete usage of hours before a time in epoch milliseconds, oldest first. Returns the number of rows."""
    return _delete_oldest("conductor_modelusage", "hour", before, limit)


def delete_calls(before: int, limit: int) -> int:
    """Delete the calls that began before a time in epoch milliseconds, oldest first. Returns the number of rows."""
    return _delete_oldest("conductor_modelcall", "started_at", before, limit)


def delete_calls_of_run(run_id: str) -> None:
    ModelCall.objects.filter(run_id=run_id).delete()


def _delete_oldest(table: str, column: str, before: int, limit: int) -> int:
    return execute(
        f"DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE {column} < %s ORDER BY {column} LIMIT %s)",
        [before, limit],
    )
