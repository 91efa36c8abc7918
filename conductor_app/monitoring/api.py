"""Health checks, metrics, and the version, configuration and tools for administrators.

`/health/live`: this process replies. `/health/ready`: it can accept work. `/health` and `/actuator/health`: the same in
the formats of Conductor and of Spring. Metrics are for users who may see all runs, and for monitoring systems with a
configured token.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, wraps
from importlib.metadata import PackageNotFoundError, version
from socket import gethostname
from threading import Lock
from time import monotonic
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.csrf import csrf_exempt
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ..access.authentication import authenticate, authenticate_token
from ..access.permissions import EXECUTE, READ, TASK_DEF, WORKFLOW, WORKFLOW_DEF
from ..core.document.fields import IntegerOf, MapOf, NamedTable, read_text
from ..core.errors import Forbidden, Unauthenticated
from ..db.database import connection
from ..db.transient_errors import discard_broken_connection, is_database_error
from ..runs.commands import repair
from ..runs.documents.tasks import wire_task
from ..runs.models import Attempt
from ..settings import conf
from ..tasks.api.queues import queue_sizes
from ..tasks.commands import queues as queue_commands
from ..telemetry.metrics import MAX_NAMES, OTHER_NAMES, record_pool_usage, render_metrics
from ..utils import clock, process_state
from ..web.api import documents
from ..web.api import permissions as targets
from ..web.api.documents import fields_of_type
from ..web.api.operations import PLAIN_TEXT, ApiOperation, ArrayOf, Json, PlainText
from ..web.api.permissions import ADMINISTRATORS_ONLY, ALLOW_ALL, can_control_run, requires
from ..web.api.view import ConductorRequest, ConductorView
from .commands import ReadinessCheck, check_readiness
from .queries.health import EngineLoad, measure_load

can_requeue_task_type = requires(EXECUTE, TASK_DEF, targets.named_in_address(TASK_DEF, "task_type"))


CONFIGURATION = NamedTable("Configuration", *fields_of_type(read_text, "version", "apiAccess", "ownerEmailMandatory"))


def require_metrics_access(request: HttpRequest) -> None:
    """Check the permission to read metrics.

    Raises:
        Unauthenticated: when the credentials are missing or invalid
        Forbidden: when the caller may not see all runs.
    """
    kind, _, credential = request.headers.get("Authorization", "").partition(" ")
    is_bearer = kind.lower() == "bearer" and conf.api_access != "open"
    if is_bearer and any(constant_time_compare(credential, token) for token in conf.metrics_tokens):
        return
    # Prometheus supports only bearer tokens. A token of the API is accepted as one, too.
    actor = authenticate_token(credential) if is_bearer else authenticate(request)
    if not actor.permissions.allows_all((READ, WORKFLOW), (READ, WORKFLOW_DEF)):
        raise Forbidden(f"{actor.name} may not see all runs, which the metrics require.", code="FORBIDDEN")


CACHE_SECONDS = 1.0


class CachedReadiness:
    """The results of the checks, at most one second old, so that frequent requests cost no writes."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._checked_at = float("-inf")
        self._checks: Sequence[ReadinessCheck] = ()

    def checks(self) -> Sequence[ReadinessCheck]:
        """Return the results."""
        with self._lock:
            if monotonic() - self._checked_at > CACHE_SECONDS:
                self._checks, self._checked_at = check_readiness(), monotonic()
            return self._checks


_readiness = process_state.slot(CachedReadiness)


def read_only(view: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Return a view that refuses every method but GET and HEAD, in Conductor's format."""

    @csrf_exempt
    @wraps(view)
    def checked(request: HttpRequest) -> HttpResponse:
        if request.method in ("GET", "HEAD"):
            return view(request)
        message = f"Request method '{request.method}' is not supported"
        body = {"status": 405, "message": message, "retryable": False, "instance": gethostname()}
        headers = {"Allow": "GET, HEAD", "Cache-Control": "no-store"}
        return HttpResponse(orjson.dumps(body), status=405, content_type="application/json", headers=headers)

    return checked


@read_only
def live(request: HttpRequest) -> HttpResponse:
    """GET /health/live: this process replies. It does not use the database."""
    return _json({"status": "live"})


@read_only
def ready(request: HttpRequest) -> HttpResponse:
    """GET /health/ready: the result of each check; 503 if a required one has failed."""
    checks = _checks()
    failed, degraded = _errors(checks, is_required=True), _errors(checks, is_required=False)
    document = {
        "status": "unavailable" if failed else "degraded" if degraded else "ready",
        "checks": [
            {"name": check.name, "healthy": not check.error} | ({"error": check.error} if check.error else {})
            for check in checks
        ],
    }
    return _json(document, failed)


@read_only
def health(request: HttpRequest) -> HttpResponse:
    """GET /health: the same in Conductor's format. Failed checks that leave the server ready are suppressed results."""
    checks = _checks()
    failed, degraded = _errors(checks, is_required=True), _errors(checks, is_required=False)
    document = {"healthResults": failed, "suppressedHealthResults": degraded, "healthy": not failed}
    return _json(document, failed)


@read_only
def actuator_health(request: HttpRequest) -> HttpResponse:
    """GET /actuator/health: the same in Spring's format."""
    failed = _errors(_checks(), is_required=True)
    return _json({"status": "DOWN" if failed else "UP"}, failed)


@read_only
def actuator_info(request: HttpRequest) -> HttpResponse:
    """GET /actuator/info: return an empty document."""
    return _json({})


def _checks() -> Sequence[ReadinessCheck]:
    try:
        return _readiness.value.checks()
    finally:
        if connection.vendor == "postgresql" and not connection.in_atomic_block:
            # These threads serve health checks only, and must not keep a connection of the pool.
            connection.close()


def _errors(checks: Sequence[ReadinessCheck], *, is_required: bool) -> list[dict[str, Any]]:
    return [
        {"healthy": False, "details": {"name": check.name, "error": check.error}}
        for check in checks
        if check.error and check.is_required == is_required
    ]


def _json(document: dict[str, Any], failed: Sequence[Any] = ()) -> HttpResponse:
    status = 503 if failed else 200
    return HttpResponse(
        orjson.dumps(document), status=status, content_type="application/json", headers={"Cache-Control": "no-store"}
    )


@read_only
def metrics(request: HttpRequest) -> HttpResponse:
    """GET /metrics, GET /actuator/prometheus: return the metrics of this machine's processes and of the database."""
    try:
        require_metrics_access(request)
    except Unauthenticated as refusal:
        return _refusal_response(refusal, 401, {"WWW-Authenticate": "Bearer"})
    except Forbidden as refusal:
        return _refusal_response(refusal, 403)
    record_pool_usage()
    text, content_type = render_metrics(
        request.headers.get("Accept", ""),
        DatabaseMetrics(_try_measure_load(), clock.now()),
        with_conductor_names=conf.metrics_conductor_names,
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
        if self.load is not None:
            yield from self._queue_metrics(self.load)
            yield from self._outbox_metrics(self.load)
            yield from self._sweep_metrics(self.load)

    def describe(self) -> Iterator[Metric]:
        return iter(())

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


class ServerVersion(ConductorView):
    """GET /api/version: get the version of this server."""

    needs_login = False

    @ApiOperation("Get the version of the server", reply=PLAIN_TEXT)
    def get(self, request: ConductorRequest) -> HttpResponse:
        return PlainText(server_version())


class Configuration(ConductorView):
    """GET /api/admin/config: return the configuration that clients may see, as text."""

    @ApiOperation("Get the configuration of the server", ALLOW_ALL, reply=CONFIGURATION)
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json({
            "version": server_version(),
            "apiAccess": str(conf.api_access),
            "ownerEmailMandatory": str(conf.owner_email_mandatory).lower(),
        })  # fmt: skip


@cache
def server_version() -> str:
    """Return the version of the installed package, or `checkout` if the package is not installed."""
    try:
        return version("conductor-app")
    except PackageNotFoundError:
        return "checkout"


MAX_TASKS = 1000
"""Tasks that one page may have."""


class OpenTasks(ConductorView):
    """GET /api/admin/task/{taskDefName}: list a page of the open tasks of a task type, oldest first."""

    @ApiOperation(
        "List the open tasks of a task type",
        ADMINISTRATORS_ONLY,
        reply=ArrayOf(documents.TASK),
        query={"start": int, "count": int},
    )
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        start, count = max(request.query.integer("start", 0), 0), request.query.integer("count", 100)
        found = Attempt.objects.of_runs().open().filter(name=name).order_by("scheduled_at", "run_id", "id")
        found = found.select_related("task", "run").defer("run__input", "run__output", "run__variables")
        return Json([wire_task(attempt) for attempt in found[start : start + min(max(count, 0), MAX_TASKS)]])


class Requeue(ConductorView):
    """POST /api/tasks/queue/requeue/{taskType}: notify waiting workers, and return the number of pending tasks."""

    @ApiOperation("Notify the workers that wait for a task type", can_requeue_task_type, reply=PLAIN_TEXT)
    def post(self, request: ConductorRequest, task_type: str) -> HttpResponse:
        return PlainText(str(queue_commands.notify_queue(task_type, request.actor.name)))


class RequeueWorkflow(ConductorView):
    """POST /api/admin/sweep/requeue/{workflowId}: evaluate the workflow now."""

    @ApiOperation("Reevaluate a workflow now", can_control_run, reply=PLAIN_TEXT)
    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        repair.reevaluate_run(workflow, request.actor.name, "requeue")
        return PlainText(f"true.{workflow}")


class VerifyAndRepair(ConductorView):
    """POST /api/admin/consistency/verifyAndRepair/{workflowId}: evaluate the workflow.

    The reply says whether anything changed.
    """

    @ApiOperation("Reevaluate a workflow and return whether anything changed", can_control_run, reply=PLAIN_TEXT)
    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        repaired = repair.reevaluate_run(workflow, request.actor.name, "verify and repair")
        return PlainText(str(repaired).lower())


class AdminQueues(ConductorView):
    """GET /api/admin/queues: return the number of pending tasks of each queue. Events need no queue."""

    @ApiOperation(
        "Get the sizes of all queues, for administrators",
        ADMINISTRATORS_ONLY,
        reply=MapOf(MapOf(IntegerOf())),
        query={"verbose": bool},
    )
    def get(self, request: ConductorRequest) -> HttpResponse:
        request.query.flag("verbose", False)
        return Json({"conductor": queue_sizes()})
