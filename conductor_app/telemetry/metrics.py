"""Metrics for Prometheus. Counting costs one or two microseconds, and no statement."""

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

MAX_NAMES = 200
"""The number of names (definitions, queues) with a label of their own; all others share one."""
OTHER_NAMES = "(others)"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
REGISTRY = CollectorRegistry()

folder.create_folder()


class LabeledCounter:
    """A counter with labels, the first of which is a name from users. Its children are cached."""

    def __init__(self, name: str, help_text: str, *labels: str) -> None:
        self._counter = Counter(name, help_text, labels, registry=REGISTRY)
        self._names: set[str] = set()
        self._children: dict[tuple[str, ...], Counter] = {}

    def count(self, *values: str) -> None:
        """Increase the counter."""
        child = self._children.get(values)
        if child is None:
            child = self._child(*values)
        child.inc()

    def _child(self, name: str, *values: str) -> Counter:
        if name not in self._names and len(self._names) >= MAX_NAMES:
            return self._counter.labels(OTHER_NAMES, *values)
        self._names.add(name)
        child = self._children[name, *values] = self._counter.labels(name, *values)
        return child


class FunctionTimer:
    """A histogram of the duration of a function in seconds. Its label tells whether the function had a result."""

    def __init__(self, name: str, help_text: str, label: str) -> None:
        histogram = Histogram(name, help_text, (label,), registry=REGISTRY, buckets=BUCKETS)
        self._with_result, self._without_result = histogram.labels("yes"), histogram.labels("no")

    def of(self, function: Callable[P, Result]) -> Callable[P, Result]:
        """Return the function with its duration measured. An error counts as no result."""

        @wraps(function)
        def timed(*args: P.args, **kwargs: P.kwargs) -> Result:
            began, result = perf_counter(), None
            try:
                result = function(*args, **kwargs)
                return result
            finally:
                (self._with_result if result else self._without_result).observe(perf_counter() - began)

        return timed


RUNS_STARTED = LabeledCounter("conductor_runs_started", "Runs that have begun.", "definition")
RUNS_ENDED = LabeledCounter("conductor_runs_ended", "Runs that have ended.", "definition", "status")
ATTEMPTS_ENDED = LabeledCounter(
    "conductor_attempts_ended", "Attempts that have ended, by type of task.", "type", "outcome"
)
CLAIM_SECONDS = FunctionTimer("conductor_claim_seconds", "Duration of one search for claimable attempts.", "found")
REPORT_SECONDS = FunctionTimer("conductor_report_seconds", "Hearing a report on an attempt.", "heard")
WAITING_POLLS = Gauge(
    "conductor_waiting_polls", "Polls that wait for work.", registry=REGISTRY, multiprocess_mode="livesum"
)
POOL_GAUGES = {
    name: Gauge(f"conductor_database_pool_{name}", help_text, registry=REGISTRY, multiprocess_mode="livesum")
    for name, help_text in {
        "size": "Connections of the pools.",
        "available": "Idle connections of the pools.",
        "waiting": "Threads that wait for a connection.",
    }.items()
}


@contextmanager
def gauge_waiting() -> Iterator[None]:
    """Count a waiting poll during the block."""
    WAITING_POLLS.inc()
    try:
        yield
    finally:
        WAITING_POLLS.dec()


def render_metrics(accepted: str, *collectors: Collector) -> tuple[bytes, str]:
    """Return all metrics of this machine and those of the collectors, and their content type."""
    found = CollectorRegistry()
    if (shared := folder.folder_path()) and shared.is_dir():
        # The gauges of a killed process are dropped; its counters are kept.
        folder.remove_stale_files(shared, "gauge_live*.db")
        MultiProcessCollector(found, str(shared))
    else:
        found.register(REGISTRY)
    for collector in collectors:
        found.register(collector)
    encode, content_type = choose_encoder(accepted)
    return encode(found), content_type
