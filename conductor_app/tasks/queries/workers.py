"""Workers: their polls, their attempts in progress, and their results of the last hour."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Count, Max, Min, Q, QuerySet

from ...core.fingerprints import build_of
from ...core.step_types.queued import queue_name
from ...models import Attempt, MinuteCount, Poller, WorkerHold
from ..durations import MINUTE
from .queue_states import QUIET_AFTER_MS
from .throughput import totals

MAX_SHOWN, MAX_WORKERS = 100, 1_000
MAX_QUEUES = 1_000
GONE_AFTER_MS = 10 * MINUTE
IDLE = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class WorkerSummary:
    """One worker with its polls and its work."""

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
    """Totals of the workers of one build."""

    name: str
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


def workforce(now: int, text: str = "") -> Workforce:
    """Return the workers whose name or polled task type contains a text. Runs five queries."""
    latest = list(_latest_polls(text)[: MAX_WORKERS + 1])
    known = [name for name, _ in latest[:MAX_WORKERS]]
    worked = totals(MinuteCount.WORKER, known, now)
    workers = _summarize_workers(latest[:MAX_SHOWN], worked)
    return Workforce(workers, _summarize_builds(known, worked), len(known), len(latest) > MAX_WORKERS)


def find_worker(name: str, now: int) -> WorkerSummary | None:
    """Return a worker by its exact name, or None if it has not polled lately. Runs five queries."""
    polled_at = Poller.objects.filter(worker=name).aggregate(at=Max("polled_at"))["at"]
    if polled_at is None:
        return None
    return _summarize_workers([(name, polled_at)], totals(MinuteCount.WORKER, [name], now))[0]


def _summarize_workers(
    latest: Sequence[tuple[str, int]], worked: Mapping[str, tuple[int, int, int]]
) -> list[WorkerSummary]:
    names = [name for name, _ in latest]
    queues, held, holds = _queues_by_worker(names), _leased_by_worker(names), WorkerHold.objects.in_bulk(names)
    return [
        WorkerSummary(
            name,
            at,
            tuple(queues[name]),
            *held.get(name, (0, None, None)),
            *worked.get(name, IDLE),
            holds.get(name),
        )
        for name, at in latest
    ]


def _latest_polls(text: str) -> QuerySet:
    """Return each worker with the time of its last poll, most recent first."""
    polls = Poller.objects.order_by()
    if text:
        named = Poller.objects.filter(Q(worker__icontains=text) | Q(task_type__icontains=text))
        polls = polls.filter(worker__in=named.order_by().values("worker"))
    return polls.values_list("worker").annotate(at=Max("polled_at")).order_by("-at", "worker")


def _queues_by_worker(names: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    rows = Poller.objects.filter(worker__in=names).order_by("task_type", "domain")
    for worker, task_type, domain in rows.values_list("worker", "task_type", "domain")[:MAX_QUEUES]:
        found[worker].append(queue_name(task_type, domain))
    return found


def _leased_by_worker(names: list[str]) -> dict[str, tuple[int, int | None, int | None]]:
    leased = Attempt.objects.leased().filter(worker__in=names).order_by()
    rows = leased.values_list("worker").annotate(Count("pk"), Min("claimed_at"), Min("lease_ends_at"))
    return {worker: (count, oldest, expires) for worker, count, oldest, expires in rows}


def _summarize_builds(names: Iterable[str], worked: Mapping[str, tuple[int, int, int]]) -> list[BuildSummary]:
    found: dict[str, BuildSummary] = {}
    for name in names:
        build = found.setdefault(build_of(name), BuildSummary(build_of(name)))
        done, failed, _ = worked.get(name, IDLE)
        build.workers += 1
        build.done += done
        build.failed += failed
    return sorted(found.values(), key=lambda build: (build.name == "", build.name)) if any(found) else []
