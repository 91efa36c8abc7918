"""Is the engine itself well? One sentence from measured lag: what every page says at its top."""

from dataclasses import dataclass

from django.db.models import QuerySet, Subquery
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..models import Attempt, Message, SweepPass
from ..models.outbox import PUBLISH
from .durations import HOUR, MINUTE, SECOND, format_duration

LATE_AFTER_MS = MINUTE
"""A sweep that has not passed for so long is late: an idle one notes its pass every ten seconds."""
SWEEP_INTERVALS_MS = {
    "prune_finished": HOUR,
    "prune_events": HOUR,
    "measure_usual": MINUTE,
    "ring_alerts": MINUTE,
    "watch_groups": MINUTE,
}
"""Those that are rung less often, and how often: they are late when they have been left out twice."""
LEVELS = (
    (30 * SECOND, "failed", gettext_lazy("Engine behind")),
    (3 * SECOND, "waiting", gettext_lazy("Engine slow")),
    (0, "succeeded", gettext_lazy("Engine healthy")),
)
"""What is due is handled within a second; later than three is told, and much later is an alarm."""
TIMERS = Attempt.objects.open()
MESSAGES = Message.objects.exclude(subject=PUBLISH)


@dataclass(frozen=True, slots=True)
class EngineHealth:
    """How the engine is: the display group that gives the colour, the word, what was measured, and those not well."""

    tone: str
    word: str
    sentence: str
    troubled_sweeps: tuple[SweepPass, ...] = ()


def engine_health(now: int) -> EngineHealth:
    """The engine's state, from the sweeps' last passes and from what is overdue; one query."""
    sweeps = list(SweepPass.objects.annotate(timer=_earliest(TIMERS), message=_earliest(MESSAGES)).order_by("name"))
    if not sweeps:
        return EngineHealth("waiting", _("Engine not seen"), _("no sweep has passed yet"))
    troubles = [*_late_sentence(sweeps, now), *_failing_sentence(sweeps)]
    if troubles:
        troubled_sweeps = tuple(sweep for sweep in sweeps if is_sweep_late(sweep, now) or has_sweep_failed(sweep))
        return EngineHealth("failed", _("Engine in trouble"), "; ".join(troubles[:2]), troubled_sweeps)
    due = [moment for moment in (sweeps[0].timer, sweeps[0].message) if moment is not None]
    return _measure_lag(max(now - min(due, default=now), 0))


def _measure_lag(behind: int) -> EngineHealth:
    sentence = _("oldest due task %(span)s") % {"span": format_duration(behind)} if behind else _("nothing is overdue")
    tone, word = next(((tone, word) for least, tone, word in LEVELS if behind >= least))
    return EngineHealth(tone, str(word), sentence)


def is_sweep_late(sweep: SweepPass, now: int) -> bool:
    """Whether nobody has rung it lately."""
    return now - sweep.began_at > LATE_AFTER_MS + 2 * SWEEP_INTERVALS_MS.get(sweep.name, 0)


def has_sweep_failed(sweep: SweepPass) -> bool:
    """Whether its last pass went wrong."""
    return bool(sweep.error) and (sweep.failed_at or 0) >= sweep.began_at


def _earliest(rows: QuerySet) -> Subquery:
    """The earliest moment at which one of these is due."""
    return Subquery(rows.order_by("due_at").values("due_at")[:1])


def _late_sentence(sweeps: list[SweepPass], now: int) -> list[str]:
    late = [sweep for sweep in sweeps if is_sweep_late(sweep, now)]
    said = _("timers are not being rung: %(sweep)s last passed %(span)s ago")
    return [said % {"sweep": sweep.name, "span": format_duration(now - sweep.began_at)} for sweep in late]


def _failing_sentence(sweeps: list[SweepPass]) -> list[str]:
    said = _("%(sweep)s failed: %(error)s")
    return [said % {"sweep": sweep.name, "error": sweep.error[:120]} for sweep in sweeps if has_sweep_failed(sweep)]
