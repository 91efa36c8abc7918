"""Metrics for Prometheus. A count takes one or two microseconds and no database statement.

Those with a counterpart in conductor-oss can be exported under the names and labels of its `Monitors` class as well, as
Micrometer's registry for Prometheus spells them. The labels `version` and `ownerApp` are left out.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from threading import Thread
from time import perf_counter, sleep
from typing import ParamSpec, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from ..db.database import connection
from ..utils import process_state
from ..utils.process_state import Slot
from . import folder


@dataclass(frozen=True, slots=True)
class ConductorMetric:
    """A metric of Conductor. `labels`: its labels by ours. `includes`: returns True for a sample that it counts."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    includes: Callable[[Sample], bool] = lambda sample: True
    type: str = "counter"

    def of(self, own: Metric) -> Metric:
        """Return this metric with the values of ours."""
        metric = Metric(self.name, own.documentation, self.type)
        suffix = "_total" if self.type == "counter" else ""
        for sample in own.samples:
            if not sample.name.endswith("_created") and self.includes(sample):
                labels = {theirs: sample.labels[ours] for ours, theirs in self.labels.items()}
                metric.add_sample(f"{self.name}{suffix}", labels, sample.value)
        return metric


CONDUCTOR_METRICS: Mapping[str, ConductorMetric] = {
    "conductor_runs_started": ConductorMetric("workflow_start_success", {"definition": "workflowName"}),
    "conductor_runs_ended": ConductorMetric(
        "workflow_failure",
        {"definition": "workflowName", "status": "status"},
        lambda sample: sample.labels["status"] != "COMPLETED",
    ),
    "conductor_queue_depth": ConductorMetric("task_queue_depth", {"queue": "taskType"}, type="gauge"),
    "conductor_report_seconds": ConductorMetric(
        "task_update_conflict",
        includes=lambda sample: sample.name.endswith("_count") and sample.labels["applied"] == "no",
    ),
}
"""The counterparts by the names of our metrics, without the suffix of counters."""


class ConductorNames(Collector):
    """All metrics of another collector, and those with a counterpart under its name as well."""

    def __init__(self, own: Collector) -> None:
        self._own = own

    def collect(self) -> Iterator[Metric]:
        for metric in self._own.collect():
            yield metric
            if counterpart := CONDUCTOR_METRICS.get(metric.name):
                yield counterpart.of(metric)


P = ParamSpec("P")
Result = TypeVar("Result")

MAX_NAMES = 200
"""The maximum number of names (definitions, queues) with separate labels. All other names share one label."""
OTHER_NAMES = "(others)"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
REGISTRY = CollectorRegistry()

folder.create_folder()


class LabeledCounter:
    """A counter whose first label is a name that users choose."""

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
    """A histogram of the duration of a function in seconds. Its label is `yes` if the function returned a result."""

    def __init__(self, name: str, help_text: str, label: str) -> None:
        histogram = Histogram(name, help_text, (label,), registry=REGISTRY, buckets=BUCKETS)
        self._with_result, self._without_result = histogram.labels("yes"), histogram.labels("no")

    def of(self, function: Callable[P, Result]) -> Callable[P, Result]:
        """Return the function with a measurement of its duration. An exception counts as no result."""

        @wraps(function)
        def timed(*args: P.args, **kwargs: P.kwargs) -> Result:
            with self.measure() as measured:
                result = function(*args, **kwargs)
                measured.has_result = bool(result)
                return result

        return timed

    def measure(self) -> "Measurement":
        """Return a context that measures its block, which sets `has_result`."""
        return Measurement(self)

    def observe(self, seconds: float, has_result: bool) -> None:
        """Record one duration."""
        (self._with_result if has_result else self._without_result).observe(seconds)


class Measurement:
    """The duration of a block. Unlike a decorator, it adds no function to the call stack."""

    def __init__(self, timer: FunctionTimer) -> None:
        self._timer, self.has_result = timer, False

    def __enter__(self) -> "Measurement":
        self._began = perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.observe(perf_counter() - self._began, self.has_result)


RUNS_STARTED = LabeledCounter("conductor_runs_started", "Runs that have started.", "definition")
RUNS_ENDED = LabeledCounter("conductor_runs_ended", "Runs that have ended.", "definition", "status")
ATTEMPTS_ENDED = LabeledCounter(
    "conductor_attempts_ended", "Attempts that have ended, by task type.", "type", "outcome"
)
CLAIM_SECONDS = FunctionTimer(
    "conductor_claim_seconds", "Duration of one claim, without the wait of a long poll.", "found"
)
REPORT_SECONDS = FunctionTimer("conductor_report_seconds", "Duration of the handling of one report.", "applied")
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
    """Count one more waiting poll during the block."""
    WAITING_POLLS.inc()
    try:
        yield
    finally:
        WAITING_POLLS.dec()


def render_metrics(accepted: str, *collectors: Collector, with_conductor_names: bool = False) -> tuple[bytes, str]:
    """Return all metrics of this machine and those of the collectors, and their content type.

    `with_conductor_names`: those that Conductor has too are repeated under its names.
    """
    registry = CollectorRegistry()
    if (shared := folder.folder_path()) and shared.is_dir():
        # Delete the gauges of killed processes. Their counters remain part of the sums.
        folder.remove_stale_files(shared, "gauge_live*.db")
        MultiProcessCollector(registry, str(shared))  # type: ignore[no-untyped-call]
    else:
        registry.register(REGISTRY)
    for collector in collectors:
        registry.register(collector)
    encode, content_type = choose_encoder(accepted)
    return encode(ConductorNames(registry) if with_conductor_names else registry), content_type


LABELS = ("integration", "model")
LATENCY_BUCKETS = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 300.0, 600.0)

MODEL_CALLS = Counter(
    "conductor_model_calls", "Calls of models that have ended.", (*LABELS, "result"), registry=REGISTRY
)
MODEL_TOKENS = Counter(
    "conductor_model_tokens", "Tokens that calls of models have used.", (*LABELS, "direction"), registry=REGISTRY
)
MODEL_COST = Counter(
    "conductor_model_cost", "Cost of calls of models, in the currency of the prices.", LABELS, registry=REGISTRY
)
MODEL_CALL_SECONDS = Histogram(
    "conductor_model_call_seconds",
    "Duration of the calls of models that replied.",
    LABELS,
    registry=REGISTRY,
    buckets=LATENCY_BUCKETS,
)
_known: Slot[set[tuple[str, str]]] = process_state.slot(set)


@dataclass(frozen=True, slots=True)
class CallMeasure:
    """What is measured of one call. `cost`: in millionths of the currency."""

    integration: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cost: int
    duration_ms: int
    is_failure: bool


def observe_call(call: CallMeasure) -> None:
    """Add an ended call to the metrics. At most MAX_NAMES models have labels of their own."""
    labels = (call.integration, call.model)
    known = _known.value
    if labels not in known:
        if len(known) >= MAX_NAMES:
            labels = (OTHER_NAMES, OTHER_NAMES)
        else:
            known.add(labels)
    MODEL_CALLS.labels(*labels, "failed" if call.is_failure else "replied").inc()
    MODEL_TOKENS.labels(*labels, "prompt").inc(call.prompt_tokens)
    MODEL_TOKENS.labels(*labels, "completion").inc(call.completion_tokens)
    MODEL_COST.labels(*labels).inc(call.cost / 1_000_000)
    if not call.is_failure:
        MODEL_CALL_SECONDS.labels(*labels).observe(call.duration_ms / 1000)


EVERY_SECONDS = 5.0
POOL_STAT_KEYS = {"size": "pool_size", "available": "pool_available", "waiting": "requests_waiting"}


def record_pool_usage() -> None:
    """Record the usage of this process's pool, if it has one."""
    pool = getattr(connection, "pool", None)
    if pool is None:
        return
    statistics = pool.get_stats()
    for name, key in POOL_STAT_KEYS.items():
        POOL_GAUGES[name].set(statistics.get(key, 0))


def start_recording() -> None:
    """Start a thread that records the usage periodically, unless the process has no pool."""
    if getattr(connection, "pool", None) is not None:
        Thread(target=_record_forever, name="pool-watch", daemon=True).start()


def _record_forever() -> None:
    while True:
        record_pool_usage()
        sleep(EVERY_SECONDS)
