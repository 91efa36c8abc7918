"""Prometheus metrics, at the two addresses that are in use."""

from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from .. import clock
from ..access.metrics_access import require_metrics_access
from ..core.errors import Forbidden, Unauthenticated
from ..insight.monitoring.engine_load import EngineLoad, measure_load
from ..models import replica
from ..telemetry import pool_metrics
from ..telemetry.metrics import MAX_NAMES, OTHER_NAMES, render_metrics
from ..transient_errors import discard_broken_connection, is_database_error
from .health import read_only


@read_only
def metrics(request: HttpRequest) -> HttpResponse:
    """GET /metrics, GET /actuator/prometheus: return the metrics of this machine's processes and of the database."""
    try:
        require_metrics_access(request)
    except Unauthenticated as refusal:
        return _refusal_response(refusal, 401, {"WWW-Authenticate": "Bearer"})
    except Forbidden as refusal:
        return _refusal_response(refusal, 403)
    pool_metrics.record_pool_usage()
    text, content_type = render_metrics(
        request.headers.get("Accept", ""), DatabaseMetrics(_try_measure_load(), clock.now())
    )
    return HttpResponse(text, content_type=content_type, headers={"Cache-Control": "no-store"})


def _refusal_response(
    refusal: Forbidden | Unauthenticated, status: int, headers: dict[str, str] | None = None
) -> HttpResponse:
    return HttpResponse(f"{refusal.message}\n", status=status, content_type="text/plain", headers=headers)


def _try_measure_load() -> EngineLoad | None:
    """Return the load that the rows show, or None if the database does not respond."""
    try:
        return measure_load(MAX_NAMES, OTHER_NAMES)
    except Exception as fault:
        if not is_database_error(fault):
            raise
        discard_broken_connection()
        return None


class DatabaseMetrics(Collector):
    """Collector of the metrics that are read from rows."""

    def __init__(self, load: EngineLoad | None, now: int) -> None:
        self.load, self.now = load, now

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("conductor_database_up", "Whether the database responds.")
        up.add_metric([], int(self.load is not None))
        yield up
        yield from self._replica_metrics()
        if self.load is not None:
            yield from self._queue_metrics(self.load)
            yield from self._outbox_metrics(self.load)
            yield from self._sweep_metrics(self.load)

    def describe(self) -> Iterator[Metric]:
        return iter(())

    @staticmethod
    def _replica_metrics() -> Iterator[Metric]:
        if not replica.is_configured():
            return
        state = replica.cached_state.value.state()
        up = "Whether pages and searches read the replica: it responds, and its lag is within the limit."
        yield GaugeMetricFamily("conductor_replica_up", up, int(state.is_usable))
        if state.lag_seconds is not None:
            yield GaugeMetricFamily("conductor_replica_lag_seconds", "Lag of the replica.", state.lag_seconds)

    def _queue_metrics(self, load: EngineLoad) -> Iterator[Metric]:
        depth = GaugeMetricFamily("conductor_queue_depth", "Attempts that wait in a queue.", labels=["queue"])
        age = GaugeMetricFamily(
            "conductor_queue_oldest_seconds", "How long the first attempt of a queue has waited.", labels=["queue"]
        )
        for queue, waiting in load.queues.items():
            depth.add_metric([queue], waiting.count)
            age.add_metric([queue], waiting.age_seconds(self.now))
        yield from (depth, age)

    def _outbox_metrics(self, load: EngineLoad) -> Iterator[Metric]:
        waiting = load.outbox
        yield GaugeMetricFamily("conductor_outbox_messages", "Messages between runs on their way.", waiting.count)
        oldest = waiting.age_seconds(self.now)
        yield GaugeMetricFamily("conductor_outbox_oldest_seconds", "Age of the oldest message on its way.", oldest)
        undelivered = GaugeMetricFamily(
            "conductor_undelivered_messages", "Messages that are not tried again.", labels=["receiver"]
        )
        for kind, count in load.undelivered.items():
            undelivered.add_metric([kind], count)
        yield undelivered

    def _sweep_metrics(self, load: EngineLoad) -> Iterator[Metric]:
        lag = GaugeMetricFamily(
            "conductor_sweep_lag_seconds", "How late the last pass found a due row.", labels=["sweep"]
        )
        ago = GaugeMetricFamily("conductor_sweep_last_pass_seconds", "Seconds since the last pass.", labels=["sweep"])
        failed = GaugeMetricFamily("conductor_sweep_failed", "Whether the last pass failed.", labels=["sweep"])
        handled = CounterMetricFamily("conductor_sweep_handled", "Rows that the passes have handled.", labels=["sweep"])
        for sweep in load.sweeps:
            lag.add_metric([sweep.name], sweep.lag_ms / 1000)
            ago.add_metric([sweep.name], max(self.now - sweep.began_at, 0) / 1000)
            failed.add_metric([sweep.name], int(bool(sweep.error) and (sweep.failed_at or 0) >= sweep.began_at))
            handled.add_metric([sweep.name], sweep.handled_in_all)
        yield from (lag, ago, failed, handled)
