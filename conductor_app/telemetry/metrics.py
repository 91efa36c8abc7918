"""What is counted and timed, for Prometheus. A count costs a microsecond or two, and no statement."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from time import perf_counter
from typing import ParamSpec, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from . import folder

P = ParamSpec("P")
Result = TypeVar("Result")

MOST_NAMES = 200
"""Definitions, queues and the like that are told apart; all others are counted together."""
OTHERS = "(others)"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
OWN = CollectorRegistry()

folder.make()


class Counted:
    """A counter with labels, the first of which is a name that users choose; its children are kept at hand."""

    def __init__(self, name: str, says: str, *labels: str) -> None:
        self._counter = Counter(name, says, labels, registry=OWN)
        self._names: set[str] = set()
        self._children: dict[tuple[str, ...], Counter] = {}

    def count(self, *values: str) -> None:
        """One more of it."""
        child = self._children.get(values)
        if child is None:
            child = self._child(*values)
        child.inc()

    def _child(self, name: str, *values: str) -> Counter:
        if name not in self._names and len(self._names) >= MOST_NAMES:
            return self._counter.labels(OTHERS, *values)
        self._names.add(name)
        child = self._children[name, *values] = self._counter.labels(name, *values)
        return child


class Timed:
    """A histogram of the seconds that a function takes; its label says whether something came of it."""

    def __init__(self, name: str, says: str, label: str) -> None:
        histogram = Histogram(name, says, (label,), registry=OWN, buckets=BUCKETS)
        self._well, self._in_vain = histogram.labels("yes"), histogram.labels("no")

    def of(self, function: Callable[P, Result]) -> Callable[P, Result]:
        """The function, timed; an error counts as nothing that came of it."""

        @wraps(function)
        def timed(*args: P.args, **kwargs: P.kwargs) -> Result:
            began, result = perf_counter(), None
            try:
                result = function(*args, **kwargs)
                return result
            finally:
                (self._well if result else self._in_vain).observe(perf_counter() - began)

        return timed


RUNS_STARTED = Counted("conductor_runs_started", "Runs that have begun.", "definition")
RUNS_ENDED = Counted("conductor_runs_ended", "Runs that have ended.", "definition", "status")
ATTEMPTS_ENDED = Counted("conductor_attempts_ended", "Attempts that have ended, by type of task.", "type", "outcome")
CLAIMS = Timed("conductor_claim_seconds", "Looking once for work to hand out.", "found")
REPORTS = Timed("conductor_report_seconds", "Hearing a report on an attempt.", "heard")
WAITING = Gauge("conductor_waiting_polls", "Polls that wait for work.", registry=OWN, multiprocess_mode="livesum")
POOL = {
    name: Gauge(f"conductor_database_pool_{name}", says, registry=OWN, multiprocess_mode="livesum")
    for name, says in {
        "size": "Connections of the pools.",
        "available": "Connections of the pools that nobody uses.",
        "waiting": "Threads that wait for a connection.",
    }.items()
}


@contextmanager
def gauge_waiting() -> Iterator[None]:
    """A poll waits while the block runs."""
    WAITING.inc()
    try:
        yield
    finally:
        WAITING.dec()


def exposition(accepted: str, *collectors: Collector) -> tuple[bytes, str]:
    """Everything that is counted on this machine and what the collectors find now; and the type of that text."""
    found = CollectorRegistry()
    if (shared := folder.path()) and shared.is_dir():
        # What a process that was killed has held, it holds no more; what it has counted stays counted.
        folder.remove_files_of_the_dead(shared, "gauge_live*.db")
        MultiProcessCollector(found, str(shared))
    else:
        found.register(OWN)
    for collector in collectors:
        found.register(collector)
    encode, content_type = choose_encoder(accepted)
    return encode(found), content_type
