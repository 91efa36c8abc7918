"""What an alert looks at: how many runs of its view there were in its window, and how it would have rung lately."""

from django.db.models import QuerySet

from ..core.alerts import SHARE, Rule, would_ring
from ..core.states import RUN
from ..models import Alert, Run
from . import selections
from .spans import DAY, MINUTE

BACK_MS = 7 * DAY
MOST_MOMENTS = 50_000


def rule_of(alert: Alert) -> Rule:
    """The condition as a value."""
    return Rule(alert.kind, alert.threshold, alert.window_minutes * MINUTE, alert.repeat_minutes * MINUTE)


def moment_of(selection: dict) -> str:
    """Which moment of a run counts: its end where the view is of ended runs only, else its start."""
    statuses = set(selection.get("status") or ())
    return "ended_at" if statuses and statuses <= RUN.final else "created_at"


def measured(alert: Alert, now: int) -> tuple[int, int]:
    """How many runs of the view there were in the window, and how many runs in all; up to a bound."""
    after = now - alert.window_minutes * MINUTE
    hits, total = _both(alert)
    return _counted(hits, after, now), _counted(total, after, now) if total is not None else 0


def rings_of_late(alert: Alert, now: int) -> list[tuple[int, int]]:
    """When it would have rung in the last seven days."""
    since = now - BACK_MS
    hits, total = _both(alert)
    after = since - alert.window_minutes * MINUTE
    moments = [_moments(runs, after, now) if runs is not None else [] for runs in (hits, total)]
    return would_ring(rule_of(alert), *moments, since, now)


Counted = tuple[QuerySet[Run], str]


def _both(alert: Alert) -> tuple[Counted, Counted | None]:
    selection = alert.view.selection
    column = moment_of(selection)
    if alert.kind != SHARE:
        return (selections.runs(selection), column), None
    # The share of a view is that among the same runs in whatever status they ended.
    rest = {name: value for name, value in selection.items() if name != "status"}
    return (selections.runs(selection), column), (selections.runs(rest), column)


def _counted(runs: Counted, after: int, until: int) -> int:
    rows, column = runs
    return rows.filter(**{f"{column}__gt": after, f"{column}__lte": until}).order_by()[:MOST_MOMENTS].count()


def _moments(runs: Counted, after: int, until: int) -> list[int]:
    rows, column = runs
    within = rows.filter(**{f"{column}__gt": after, f"{column}__lte": until}).order_by(f"-{column}")
    return sorted(within.values_list(column, flat=True)[:MOST_MOMENTS])
