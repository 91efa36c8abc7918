"""The metrics that have a counterpart in conductor-oss, under the names and labels of its `Monitors` class.

Names are those that Micrometer's registry for Prometheus exports. The labels `version` and `ownerApp` are left out.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample


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
