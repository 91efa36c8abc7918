"""Health of the engine, computed from the sweeps and from overdue rows, for the status bar of every page."""

from dataclasses import dataclass, replace

from django.db.models import Count, QuerySet, Subquery
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...core.snapshot import NEVER
from ...models import Attempt, Message, SweepPass
from ...models.outbox import PUBLISH
from ..durations import HOUR, MINUTE, SECOND, format_duration

LATE_AFTER_MS = MINUTE
"""A sweep without a pass for this long is late. An idle sweep records a pass every ten seconds."""
SWEEP_INTERVALS_MS = {
    "prune_finished": HOUR,
    "prune_events": HOUR,
    "prune_sessions": HOUR,
    "measure_usual": MINUTE,
    "ring_alerts": MINUTE,
    "watch_groups": MINUTE,
    "send_digests": MINUTE,
}
"""Intervals of sweeps that run less often. They are late after two missed passes."""
LEVELS = (
    (30 * SECOND, "failed", gettext_lazy("Behind schedule")),
    (3 * SECOND, "waiting", gettext_lazy("Slow")),
    (0, "succeeded", gettext_lazy("Healthy")),
)
"""Minimum lag, tone and label of each level. Due rows are normally processed within a second."""
TIMERS = Attempt.objects.open().filter(due_at__lt=NEVER)
MESSAGES = Message.objects.exclude(subject=PUBLISH)


@dataclass(frozen=True, slots=True)
class EngineHealth:
    """Health of the engine: tone for the color, label, measured value, sweeps with problems, undelivered messages."""

    tone: str
    word: str
    sentence: str
    troubled_sweeps: tuple[SweepPass, ...] = ()
    undelivered: int = 0


def engine_health(now: int) -> EngineHealth:
    """Return the health of the engine. Runs one query."""
    rows = SweepPass.objects.annotate(
        timer=_earliest(TIMERS), message=_earliest(MESSAGES), undelivered=_count_undelivered()
    )
    sweeps = list(rows.order_by("name"))
    if not sweeps:
        return EngineHealth("waiting", _("Engine not running"), _("no sweep has run yet"))
    undelivered = sweeps[0].undelivered or 0
    troubles = [*_late_sentence(sweeps, now), *_failing_sentence(sweeps)]
    if troubles:
        troubled_sweeps = tuple(sweep for sweep in sweeps if is_sweep_late(sweep, now) or has_sweep_failed(sweep))
        return EngineHealth("failed", _("Engine failing"), "; ".join(troubles[:2]), troubled_sweeps, undelivered)
    due = [moment for moment in (sweeps[0].timer, sweeps[0].message) if moment is not None]
    health = _measure_lag(max(now - min(due, default=now), 0))
    if undelivered and health.tone == "succeeded":
        return _undelivered_health(undelivered)
    return replace(health, undelivered=undelivered)


def _undelivered_health(count: int) -> EngineHealth:
    sentence = ngettext("%(n)s message could not be delivered", "%(n)s messages could not be delivered", count)
    return EngineHealth("waiting", _("Undelivered messages"), sentence % {"n": count}, undelivered=count)


def _count_undelivered() -> Subquery:
    """Return a subquery for the number of messages that are not tried again."""
    rows = Message.objects.undelivered().order_by().values("due_at")
    return Subquery(rows.annotate(count=Count("pk")).values("count"))


def _measure_lag(behind: int) -> EngineHealth:
    sentence = _("oldest overdue task: %(span)s") % {"span": format_duration(behind)} if behind else _("no backlog")
    tone, word = next(((tone, word) for least, tone, word in LEVELS if behind >= least))
    return EngineHealth(tone, str(word), sentence)


def is_sweep_late(sweep: SweepPass, now: int) -> bool:
    """Return True if the sweep has not run within its interval."""
    return now - sweep.began_at > LATE_AFTER_MS + 2 * SWEEP_INTERVALS_MS.get(sweep.name, 0)


def has_sweep_failed(sweep: SweepPass) -> bool:
    """Return True if the last pass of the sweep failed."""
    return bool(sweep.error) and (sweep.failed_at or 0) >= sweep.began_at


def _earliest(rows: QuerySet) -> Subquery:
    """Return a subquery for the earliest due time of these rows."""
    return Subquery(rows.order_by("due_at").values("due_at")[:1])


def _late_sentence(sweeps: list[SweepPass], now: int) -> list[str]:
    late = [sweep for sweep in sweeps if is_sweep_late(sweep, now)]
    sentence = _("timers are not processed: %(sweep)s last ran %(span)s ago")
    return [sentence % {"sweep": sweep.name, "span": format_duration(now - sweep.began_at)} for sweep in late]


def _failing_sentence(sweeps: list[SweepPass]) -> list[str]:
    sentence = _("%(sweep)s failed: %(error)s")
    return [sentence % {"sweep": sweep.name, "error": sweep.error[:120]} for sweep in sweeps if has_sweep_failed(sweep)]
