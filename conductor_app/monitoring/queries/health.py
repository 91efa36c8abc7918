"""Liveness of background processes, and the load and health of the engine.

A process lives while its heartbeat changes. The health is computed from the sweeps and from overdue rows, for the
status bar of every page.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db.models import Count, Min, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...access.visibility import sees_all_runs, visible
from ...bulk.models import BulkOperation
from ...core.snapshot import NEVER
from ...db.database import connection
from ...human_tasks.waiting_queries import waiting_attempts
from ...runs.models import PUBLISH, Attempt, Message, Run
from ...runs.queries.messages import RECEIVER_KINDS, receiver_kind
from ...tasks.models import SweepPass
from ...utils import clock, process_state
from ...utils.formatting import HOUR, MINUTE, SECOND, format_duration

BEAT, SWEEPS = "beat", "sweeps"
"""The heartbeats: Celery beat, and whichever process sweeps."""


class Liveness:
    """The last change of each heartbeat. Times are this process's own, so clocks of other hosts have no effect."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, tuple[int, float]] = {}

    def observe(self, name: str, revision: int) -> float:
        """Record the revision of a heartbeat. Returns the seconds since its last change."""
        now = self._clock()
        seen, changed_at = self._seen.get(name, (None, now))
        if seen != revision:
            changed_at = now
        self._seen[name] = (revision, changed_at)
        return now - changed_at

    def seconds_since_change(self, name: str) -> float | None:
        """Return the seconds since the last change of a heartbeat, or None if this process does not observe it."""
        return self._clock() - self._seen[name][1] if name in self._seen else None


liveness = process_state.slot(Liveness)
"""The heartbeats that this process observes."""


COUNTED_STATUSES = ("RUNNING", "PAUSED", "FAILED")


@dataclass(frozen=True, slots=True)
class OpenWork:
    """Numbers of runs by status, of open human tasks, and of bulk operations that wait for approval."""

    runs: dict[str, int]
    human_tasks: int
    approvals: int


def count_open_work(limit: int) -> OpenWork:
    """Count each kind that the current actor sees up to `limit`. Runs one query, and one for names of grants."""
    runs = [visible(Run.objects.filter(status=status)) for status in COUNTED_STATUSES]
    human = visible(waiting_attempts().select_related(None))
    *by_status, human_tasks, approvals = _count_up_to(limit, *runs, human, operations_to_approve())
    return OpenWork(dict(zip(COUNTED_STATUSES, by_status, strict=True)), human_tasks, approvals)


def operations_to_approve() -> QuerySet[BulkOperation]:
    """Return the bulk operations that wait for approval, newest first. They are for those who may see all runs."""
    rows = BulkOperation.objects.waiting_for_approval()
    return rows if sees_all_runs() else rows.none()


def _count_up_to(limit: int, *rows: QuerySet) -> tuple[int, ...]:
    parts = [_limited_sql(each, limit) for each in rows]
    counts = ", ".join(f"(SELECT COUNT(*) FROM ({sql}) AS counted)" for sql, _ in parts)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {counts}", [param for _, params in parts for param in params])
        return cursor.fetchone()


def _limited_sql(rows: QuerySet, limit: int) -> tuple[str, Sequence[Any]]:
    try:
        return rows.order_by().values("pk")[:limit].query.sql_with_params()
    except EmptyResultSet:
        # Django does not write SQL for rows that cannot exist.
        return "SELECT 1 WHERE 1 = 0", ()


@dataclass(frozen=True, slots=True)
class WaitingLoad:
    """Number of waiting items, and since when the oldest of them has been due."""

    count: int = 0
    since: int | None = None

    def age_seconds(self, now: int) -> float:
        return max(now - self.since, 0) / 1000 if self.since is not None else 0.0

    def __add__(self, other: "WaitingLoad") -> "WaitingLoad":
        moments = [moment for moment in (self.since, other.since) if moment is not None]
        return WaitingLoad(self.count + other.count, min(moments, default=None))


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """Load of queues, outbox and sweeps at one time. `undelivered`: messages by the kind of their receivers."""

    queues: dict[str, WaitingLoad]
    outbox: WaitingLoad
    undelivered: dict[str, int]
    sweeps: Sequence[SweepPass]


def measure_load(max_queues: int, others: str) -> EngineLoad:
    """Return the current load. Beyond the `max_queues` longest queues, all others count under the name `others`."""
    outbox, undelivered = _outbox_load()
    return EngineLoad(_queue_load(max_queues, others), outbox, undelivered, list(SweepPass.objects.order_by("name")))


def _outbox_load() -> tuple[WaitingLoad, dict[str, int]]:
    """Return the messages on their way, and the number of undelivered ones by the kind of their receivers."""
    is_undelivered = Q(due_at=NEVER)
    rows = (
        Message.objects.order_by()
        .values_list("subject")
        .annotate(
            count=Count("pk", filter=~is_undelivered),
            since=Min("sent_at", filter=~is_undelivered),
            undelivered=Count("pk", filter=is_undelivered),
        )
    )
    outbox, undelivered = WaitingLoad(), dict.fromkeys(RECEIVER_KINDS.values(), 0)
    for subject, count, since, failed in rows:
        outbox += WaitingLoad(count, since)
        kind = receiver_kind(subject) or "other"
        undelivered[kind] = undelivered.get(kind, 0) + failed
    return outbox, undelivered


def waiting_by_queue():
    """Return pending count and earliest due time of each queue. Reads only the index that claims use."""
    return (
        Attempt.objects.pending()
        .values_list("queue")
        .annotate(count=Count("pk"), since=Min("visible_at"))
        .order_by("-count", "queue")
    )


def _queue_load(most: int, others: str) -> dict[str, WaitingLoad]:
    found: dict[str, WaitingLoad] = {}
    for queue, count, since in waiting_by_queue():
        name = queue if len(found) < most else others
        found[name] = found.get(name, WaitingLoad()) + WaitingLoad(count, since)
    return found


LATE_AFTER_MS = MINUTE
"""A sweep without a pass for this long is late. An idle sweep records a pass every ten seconds."""
SWEEP_INTERVALS_MS = {
    "prune_finished": HOUR,
    "prune_events": HOUR,
    "prune_sessions": HOUR,
    "expire_tasks": HOUR,
    "measure_usual": MINUTE,
    "ring_alerts": MINUTE,
}
"""Intervals of sweeps that run less often. They are late after two missed passes."""
TIMER_SWEEPS = ("handle_due_timers", "wake_runs", "pass_deadlines")
LEVELS = (
    (30 * SECOND, "failed", gettext_lazy("Behind schedule")),
    (3 * SECOND, "waiting", gettext_lazy("Slow")),
    (0, "succeeded", gettext_lazy("Server healthy")),
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
    """Return the health of the engine. Runs one query.

    To those who see some runs only, it says whether the server works, and it counts the messages to these runs only.
    """
    rows = SweepPass.objects.annotate(
        timer=_earliest(TIMERS), message=_earliest(MESSAGES), undelivered=_count_undelivered()
    )
    sweeps = list(rows.order_by("name"))
    if not sweeps:
        return EngineHealth("waiting", _("Engine not running"), _("no background job has run yet"))
    undelivered = sweeps[0].undelivered or 0
    troubled_sweeps = tuple(sweep for sweep in sweeps if is_sweep_late(sweep, now) or has_sweep_failed(sweep))
    if troubled_sweeps and not sees_all_runs():
        return EngineHealth("failed", _("Engine failing"), "", undelivered=undelivered)
    if troubled_sweeps:
        troubles = [*_late_sentence(sweeps, now), *_failing_sentence(sweeps)]
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
    rows = visible(Message.objects.undelivered()).order_by().values("due_at")
    return Subquery(rows.annotate(count=Count("pk")).values("count"))


def _measure_lag(behind: int) -> EngineHealth:
    sentence = _("oldest overdue task: %(span)s") % {"span": format_duration(behind)} if behind else _("on time")
    tone, word = next(((tone, word) for least, tone, word in LEVELS if behind >= least))
    return EngineHealth(tone, str(word), sentence)


def is_sweep_late(sweep: SweepPass, now: int) -> bool:
    """Return True if the sweep has not run within its interval, which begins at the earliest with the server."""
    waits_since = max(sweep.began_at, process_state.server_started.value)
    return now - waits_since > LATE_AFTER_MS + 2 * SWEEP_INTERVALS_MS.get(sweep.name, 0)


def has_sweep_failed(sweep: SweepPass) -> bool:
    """Return True if the last pass of the sweep failed."""
    return bool(sweep.error) and (sweep.failed_at or 0) >= sweep.began_at


def _earliest(rows: QuerySet) -> Subquery:
    """Return a subquery for the earliest due time of these rows."""
    return Subquery(rows.order_by("due_at").values("due_at")[:1])


def _late_sentence(sweeps: Sequence[SweepPass], now: int) -> list[str]:
    late = [sweep for sweep in sweeps if is_sweep_late(sweep, now)]
    timers, other = _("timers are not processed: %(sweep)s last ran %(span)s ago"), _("%(sweep)s last ran %(span)s ago")
    return [
        (timers if sweep.name in TIMER_SWEEPS else other)
        % {"sweep": sweep.name, "span": format_duration(now - sweep.began_at)}
        for sweep in late
    ]


def _failing_sentence(sweeps: Sequence[SweepPass]) -> list[str]:
    sentence = _("%(sweep)s failed: %(error)s")
    return [sentence % {"sweep": sweep.name, "error": sweep.error[:120]} for sweep in sweeps if has_sweep_failed(sweep)]


def health_for(request: HttpRequest) -> EngineHealth:
    """Return the health of the engine, which is measured once per request."""
    measured: EngineHealth | None = getattr(request, "engine_health", None)
    if measured is None:
        measured = engine_health(clock.now())
        vars(request)["engine_health"] = measured
    return measured
