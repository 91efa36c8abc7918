"""Workers: who polls, what each has in hand, and what came of its work in the last hour."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import Count, Max, Min

from ..core.fingerprints import build_of
from ..core.steps.queued import queue_name
from ..models import Attempt, Poller, Tally, WorkerHold
from .flow import totals
from .queues import QUIET_AFTER_MS
from .spans import MINUTE

MOST_WORKERS = 300
MOST_QUEUES = 1_000
GONE_AFTER_MS = 10 * MINUTE


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker, as its polls and its work tell."""

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
        """Worked out at every look: alive, quiet, gone."""
        silent = now - self.polled_at
        return "alive" if silent < QUIET_AFTER_MS else "quiet" if silent < GONE_AFTER_MS else "gone"


@dataclass(slots=True)
class Build:
    """The workers of one build together."""

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
    """All workers of late, those that polled last first."""

    workers: list[Worker] = field(default_factory=list)
    builds: list[Build] = field(default_factory=list)
    is_cut: bool = False


def workforce(now: int) -> Workforce:
    """The workers of the last days, in five queries."""
    polls = Poller.objects.order_by().values_list("worker").annotate(at=Max("polled_at")).order_by("-at", "worker")
    latest = list(polls[: MOST_WORKERS + 1])
    names = [name for name, _ in latest[:MOST_WORKERS]]
    queues, held, worked = _queues(names), _in_hand(names), totals(Tally.WORKER, now)
    holds = WorkerHold.objects.in_bulk()
    workers = [
        Worker(
            name,
            at,
            tuple(queues[name]),
            *held.get(name, (0, None, None)),
            *worked.get(name, (0, 0, 0)),
            holds.get(name),
        )
        for name, at in latest[:MOST_WORKERS]
    ]
    return Workforce(workers, _builds(workers), len(latest) > MOST_WORKERS)


def _queues(names: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    rows = Poller.objects.filter(worker__in=names).order_by("task_type", "domain")
    for worker, task_type, domain in rows.values_list("worker", "task_type", "domain")[:MOST_QUEUES]:
        found[worker].append(queue_name(task_type, domain))
    return found


def _in_hand(names: list[str]) -> dict[str, tuple[int, int | None, int | None]]:
    leased = Attempt.objects.filter(status="LEASED", worker__in=names).exclude(queue="").order_by()
    rows = leased.values_list("worker").annotate(Count("pk"), Min("claimed_at"), Min("lease_ends_at"))
    return {worker: (count, oldest, expires) for worker, count, oldest, expires in rows}


def _builds(workers: Iterable[Worker]) -> list[Build]:
    found: dict[str, Build] = {}
    for worker in workers:
        build = found.setdefault(worker.build, Build(worker.build))
        build.workers += 1
        build.done += worker.done
        build.failed += worker.failed
    return sorted(found.values(), key=lambda build: (build.name == "", build.name)) if any(found) else []
