"""The metrics that `/metrics` exports, from the code: their names, types, labels and help texts."""

from collections.abc import Iterator
from dataclasses import dataclass

from conductor_app.monitoring.api import DatabaseMetrics
from conductor_app.monitoring.queries.health import EngineLoad, WaitingLoad
from conductor_app.tasks.models import SweepPass
from conductor_app.telemetry import metrics as model_metrics
from conductor_app.telemetry.metrics import REGISTRY


@dataclass(frozen=True)
class ExportedMetric:
    """A metric. `name`: as in queries, without the suffixes of histograms."""

    name: str
    type: str
    labels: tuple[str, ...]
    help: str

    @property
    def samples(self) -> tuple[str, ...]:
        """Return the names of its samples."""
        if self.type == "histogram":
            return tuple(f"{self.name}_{suffix}" for suffix in ("bucket", "sum", "count"))
        return (self.name,)

    @property
    def sample_labels(self) -> frozenset[str]:
        """Return the labels of its samples."""
        return frozenset((*self.labels, "le") if self.type == "histogram" else self.labels)


def exported_metrics() -> list[ExportedMetric]:
    """Return all metrics."""
    return sorted((*_process_metrics(), *_database_metrics()), key=lambda metric: metric.name)


def _process_metrics() -> Iterator[ExportedMetric]:
    assert model_metrics.MODEL_CALLS in REGISTRY._collector_to_names
    for collector in set(REGISTRY._collector_to_names):
        for family in collector.describe():
            if not family.name.startswith("conductor_"):
                # Another test has registered it.
                continue
            labels = tuple(collector._labelnames)  # type: ignore[attr-defined]
            yield ExportedMetric(_query_name(family.name, family.type), family.type, labels, family.documentation)


def _database_metrics() -> Iterator[ExportedMetric]:
    one = WaitingLoad(1, 1)
    load = EngineLoad({"queue": one}, one, {"run": 1}, [SweepPass(name="sweep", began_at=1)])
    for family in DatabaseMetrics(load, 2).collect():
        labels = tuple(family.samples[0].labels)
        yield ExportedMetric(_query_name(family.name, family.type), family.type, labels, family.documentation)


def _query_name(name: str, type: str) -> str:
    return f"{name}_total" if type == "counter" else name
