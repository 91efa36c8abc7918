"""Workers with their polls and results, their throughput per minute, and those with wrong clocks."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import BigIntegerField, Count, F, Func, Max, Min, OuterRef, Q, QuerySet, Subquery, Sum

from ...access.visibility import sees_all_runs, visible
from ...core.failure_grouping import build_of
from ...core.step_types.base import queue_name
from ...runs.models import Attempt, TaskLog
from ...runs.queries.retention import time_of_id
from ...utils.formatting import HOUR, MINUTE, SECOND, TimeRange
from ..models import MinuteCount, Poller, WorkerHold
from .queue_states import QUIET_AFTER_MS
from .tasks import logged_at

FIELDS = ("scheduled", "started", "done", "failed")
MINUTES = 60


@dataclass(slots=True)
class HourOfMinutes:
    """Counts per minute of one queue or worker over the last 60 minutes, current minute last."""

    minutes: dict[str, list[int]] = field(default_factory=lambda: {name: [0] * MINUTES for name in FIELDS})
    busy_ms: int = 0

    def total(self, name: str) -> int:
        return sum(self.minutes[name])

    def bars(self, name: str, width: int = 5) -> list[int]:
        """Return the counts of a chart, with `width` minutes per bar."""
        found = self.minutes[name]
        return [sum(found[at : at + width]) for at in range(0, MINUTES, width)]

    def rate(self, name: str, minutes: int = 5) -> float:
        """Return the rate per second over the last full minutes and the current one."""
        return sum(self.minutes[name][-minutes - 1 :]) / ((minutes + 0.5) * 60)

    @property
    def mean_ms(self) -> int | None:
        """Return the average duration of an attempt in milliseconds, or None if none ended."""
        ended = self.total("done") + self.total("failed")
        return self.busy_ms // ended if ended else None

    @property
    def failure_share(self) -> float | None:
        ended = self.total("done") + self.total("failed")
        return self.total("failed") / ended if ended else None


def last_hour(kind: str, names: Sequence[str] | None, now: int) -> dict[str, HourOfMinutes]:
    """Return the last hour of each name, or of all names if `names` is None."""
    first = now - now % MINUTE - HOUR + MINUTE
    rows = MinuteCount.objects.filter(kind=kind, at__gte=first)
    if names is not None:
        rows = rows.filter(name__in=names)
    hours: dict[str, HourOfMinutes] = defaultdict(HourOfMinutes)
    for name, at, busy, *counts in rows.order_by().values_list("name", "at", "busy_ms", *FIELDS):
        place = (at - first) // MINUTE
        if 0 <= place < MINUTES:
            hour = hours[name]
            hour.busy_ms += busy
            for column, count in zip(FIELDS, counts, strict=True):
                hour.minutes[column][place] += count
    return hours


def totals(kind: str, names: Sequence[str], now: int) -> dict[str, tuple[int, int, int]]:
    """Return done, failed and busy milliseconds of the last hour for each of these names that was active.

    The names are required, because the query would otherwise read every stored minute of the kind.
    """
    rows = MinuteCount.objects.filter(kind=kind, name__in=names, at__gt=now - HOUR).order_by().values_list("name")
    summed = rows.annotate(Sum("done"), Sum("failed"), Sum("busy_ms"))
    return {name: (done, failed, busy) for name, done, failed, busy in summed}


def counts_in_range(kind: str, name: str, time_range: TimeRange) -> tuple[dict[str, list[int]], int]:
    """Return the counts of each bar of a range by field, and the milliseconds that attempts took in the range."""
    rows = MinuteCount.objects.filter(kind=kind, name=name, at__gte=time_range.since, at__lt=time_range.until)
    template = f"(%(expressions)s - {time_range.since:d}) / {time_range.step:d}"
    bar = Func(F("at"), template=template, output_field=BigIntegerField())
    sums = [Sum(column, default=0) for column in FIELDS]
    counts, busy_ms = {column: [0] * time_range.count for column in FIELDS}, 0
    for place, *values, busy in (
        rows.order_by().annotate(bar=bar).values_list("bar").annotate(*sums, busy=Sum("busy_ms", default=0))
    ):
        busy_ms += busy
        for column, count in zip(FIELDS, values, strict=True):
            counts[column][place] = count
    return counts, busy_ms


def first_uses_of_builds(workers: Sequence[str]) -> dict[str, int]:
    """Return when each build of these workers appears first in the stored counts. One look-up per worker.

    Builds with one name whose workers poll different task types are different programs: their names say which.
    """
    counted = MinuteCount.objects.filter(kind=MinuteCount.WORKER, name=OuterRef("worker")).order_by("at")
    polls = Poller.objects.filter(worker__in=workers).order_by("task_type")
    types, since_by_worker = defaultdict[str, list[str]](list), dict[str, int]()
    for worker, task_type, since in polls.annotate(since=Subquery(counted.values("at")[:1])).values_list(
        "worker", "task_type", "since"
    ):
        if build_of(worker) and since is not None:
            types[worker].append(task_type)
            since_by_worker[worker] = since
    programs = {tuple(each) for each in types.values()}
    uses: dict[str, int] = {}
    for worker, since in since_by_worker.items():
        name = build_of(worker) if len(programs) == 1 else f"{build_of(worker)} ({_names_of(types[worker])})"
        uses[name] = min(uses.get(name, since), since)
    return uses


def _names_of(names: Sequence[str]) -> str:
    """Return the first of several names, and how many more there are."""
    return names[0] if len(names) == 1 else f"{names[0]} +{len(names) - 1}"


MAX_BUILD_WORKERS = 200


def builds_in_use(task_types: Iterable[str] | None = None) -> dict[str, int]:
    """Return when each build of the workers that polled last was used first. Runs two queries.

    `task_types`: those of the workers; None for all.
    """
    polls = visible_polls().filter(worker__contains="@")
    if task_types is not None:
        polls = polls.filter(task_type__in=list(task_types))
    names = list(polls.order_by("-polled_at").values_list("worker", flat=True)[:MAX_BUILD_WORKERS])
    return first_uses_of_builds(names) if names else {}


MAX_SHOWN, MAX_WORKERS = 100, 1_000
MAX_QUEUES = 5_000
GONE_AFTER_MS = 10 * MINUTE
IDLE = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class WorkerSummary:
    """A worker with its tasks, and its results of the last hour.

    `is_counted`: False without the numbers, for an actor who may not see all task types that the worker polls.
    """

    name: str
    polled_at: int
    queues: tuple[str, ...] = ()
    in_hand: int = 0
    oldest_at: int | None = None
    expires_at: int | None = None
    done: int = 0
    failed: int = 0
    busy_ms: int = 0
    hold: WorkerHold | None = None
    is_counted: bool = True

    @property
    def build(self) -> str:
        return build_of(self.name)

    @property
    def mean_ms(self) -> int | None:
        ended = self.done + self.failed
        return self.busy_ms // ended if ended else None

    def state(self, now: int) -> str:
        """Return the state by the time since the last poll: `alive`, `quiet` or `gone`."""
        silent = now - self.polled_at
        return "alive" if silent < QUIET_AFTER_MS else "quiet" if silent < GONE_AFTER_MS else "gone"


@dataclass(slots=True)
class BuildSummary:
    """The results of the workers with one build that poll the same queues."""

    name: str
    queues: tuple[str, ...] = ()
    workers: int = 0
    done: int = 0
    failed: int = 0

    @property
    def failure_share(self) -> int | None:
        ended = self.done + self.failed
        return round(100 * self.failed / ended) if ended else None


@dataclass(frozen=True, slots=True)
class Workforce:
    """Workers by their last poll, most recent first, and the builds of all known workers.

    `known`: number of known workers, counted up to MAX_WORKERS; `is_capped`: True if there are more.
    """

    workers: list[WorkerSummary] = field(default_factory=list)
    builds: list[BuildSummary] = field(default_factory=list)
    known: int = 0
    is_capped: bool = False

    @property
    def more(self) -> int:
        """Return the number of known workers that are not listed."""
        return self.known - len(self.workers)


def visible_polls() -> QuerySet[Poller]:
    """Return the polls that the current actor may see: all if it sees all runs, otherwise those of its task types."""
    return Poller.objects.all() if sees_all_runs() else visible(Poller.objects.all())


def workforce(now: int, text: str = "") -> Workforce:
    """Return the workers whose name or polled task type contains a text. Runs five queries."""
    latest = list(_latest_polls(text)[: MAX_WORKERS + 1])
    known = [name for name, _ in latest[:MAX_WORKERS]]
    counted = _counted_workers(known)
    worked = totals(MinuteCount.WORKER, counted, now)
    queues = _queues_by_worker(known)
    workers = _summarize_workers(latest[:MAX_SHOWN], counted, worked, queues)
    return Workforce(workers, _summarize_builds(known, worked, queues), len(known), len(latest) > MAX_WORKERS)


def find_worker(name: str, now: int) -> WorkerSummary | None:
    """Return a worker by its exact name, or None if it has not polled lately. Runs five queries."""
    polled_at = visible_polls().filter(worker=name).aggregate(at=Max("polled_at"))["at"]
    if polled_at is None:
        return None
    counted = _counted_workers([name])
    worked = totals(MinuteCount.WORKER, counted, now)
    return _summarize_workers([(name, polled_at)], counted, worked, _queues_by_worker([name]))[0]


def _counted_workers(names: list[str]) -> list[str]:
    """Return the workers of which the current actor may see all task types. Runs one query, or none."""
    if sees_all_runs():
        return names
    polls = Poller.objects.filter(worker__in=names)
    hidden = set(polls.exclude(pk__in=visible(polls).values("pk")).values_list("worker", flat=True))
    return [name for name in names if name not in hidden]


def _summarize_workers(
    latest: Sequence[tuple[str, int]],
    counted: Sequence[str],
    worked: Mapping[str, tuple[int, int, int]],
    queues: Mapping[str, Sequence[str]],
) -> list[WorkerSummary]:
    names = [name for name, _ in latest]
    holds = WorkerHold.objects.in_bulk(names)
    held = _leased_by_worker([name for name in names if name in counted])
    return [
        WorkerSummary(
            name,
            at,
            tuple(queues.get(name, ())),
            *held.get(name, (0, None, None)),
            *worked.get(name, IDLE),
            holds.get(name),
            name in counted,
        )
        for name, at in latest
    ]


def _latest_polls(text: str) -> QuerySet:
    """Return each worker with the time of its last poll, most recent first."""
    polls = visible_polls().order_by()
    if text:
        named = visible_polls().filter(Q(worker__icontains=text) | Q(task_type__icontains=text))
        polls = polls.filter(worker__in=named.order_by().values("worker"))
    return polls.values_list("worker").annotate(at=Max("polled_at")).order_by("-at", "worker")


def _queues_by_worker(names: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    rows = visible_polls().filter(worker__in=names).order_by("task_type", "domain")
    for worker, task_type, domain in rows.values_list("worker", "task_type", "domain")[:MAX_QUEUES]:
        found[worker].append(queue_name(task_type, domain))
    return found


def _leased_by_worker(names: list[str]) -> dict[str, tuple[int, int | None, int | None]]:
    leased = Attempt.objects.leased().filter(worker__in=names).order_by()
    rows = leased.values_list("worker").annotate(Count("pk"), Min("claimed_at"), Min("lease_ends_at"))
    return {worker: (count, oldest, expires) for worker, count, oldest, expires in rows}


def _summarize_builds(
    names: Iterable[str], worked: Mapping[str, tuple[int, int, int]], queues: Mapping[str, Sequence[str]]
) -> list[BuildSummary]:
    found: dict[tuple[str, tuple[str, ...]], BuildSummary] = {}
    for name in names:
        key = build_of(name), tuple(queues.get(name, ())) if build_of(name) else ()
        build = found.setdefault(key, BuildSummary(*key))
        done, failed, _ = worked.get(name, IDLE)
        build.workers += 1
        build.done += done
        build.failed += failed
    is_known = any(build for build, _queues in found)
    return sorted(found.values(), key=lambda build: (build.name == "", build.queues, build.name)) if is_known else []


SEARCHED_ROWS = 500
TOLERATED_MS = 5 * SECOND
ATTEMPT_FIELDS = ("pk", "worker", "claimed_at", "ended_at", "poll_count", "scheduled_at")


def clock_skews(now: int) -> dict[str, int]:
    """Return the clock skew in milliseconds of each worker that exceeds TOLERATED_MS. Positive means ahead.

    Reads the newest log lines, in two queries.
    """
    lines = list(TaskLog.objects.order_by("-pk").values_list("attempt_id", "at")[:SEARCHED_ROWS])
    rows = Attempt.objects.filter(pk__in={attempt_id for attempt_id, _ in lines}).exclude(worker="")
    leased = {id: facts for id, *facts in rows.values_list(*ATTEMPT_FIELDS)}
    found: dict[str, int] = {}
    for attempt_id, at in lines:
        worker, claimed_at, ended_at, claims, scheduled_at = leased.get(attempt_id, ("", None, None, 0, 0))
        off = _distance(logged_at(at), claimed_at, ended_at or now) if claimed_at else 0
        if off < 0 and (claims > 1 or scheduled_at != time_of_id(attempt_id)):
            # A returned or rerun attempt keeps its id, and so the lines of its former claims.
            continue
        if abs(off) > TOLERATED_MS:
            found.setdefault(worker, off)
    return found


def _distance(at: int, first: int, last: int) -> int:
    """Return how far a time lies outside a span: negative before it, positive after it, 0 inside."""
    return min(at - first, 0) + max(at - last, 0)
