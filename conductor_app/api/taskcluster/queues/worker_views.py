"""Views of workers: declare, list and quarantine them."""

from django.db.models import Q
from django.http import HttpResponse

from .... import clock
from ....engine.standalone import standalone_rows
from ....insight.standalone import standalone_queues
from ..method_scopes import DECLARE_WORKER_SCOPES, ApiMethod
from ..pagination import PAGE_QUERY_OPTIONS, parse_page
from ..replies import Json
from ..timestamps import parse_timestamp
from ..view import TaskclusterRequest, TaskclusterView
from . import task_queue_serializers as wire
from .task_queue_views import queue_in_address


class WorkerList(TaskclusterView):
    """…/worker-types/{workerType}/workers: list the workers of a queue."""

    methods = {"GET": ApiMethod("listWorkers", scopes="queue:list-workers:<provisionerId>/<workerType>")}
    known_options = (*PAGE_QUERY_OPTIONS, "quarantined")

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        page, now = parse_page(request.options, str, str), clock.now()
        found = standalone_queues.workers(queue_in_address(request), now)
        if quarantined := request.options.get("quarantined"):
            is_quarantined = Q(quarantine_until__gt=now)
            found = found.filter(is_quarantined if quarantined == "true" else ~is_quarantined)
        if page.after:
            group, name = page.after
            found = found.filter(Q(group__gt=group) | Q(group=group, name__gt=name))
        workers = list(found.order_by("group", "name")[: page.size + 1])
        latest = standalone_queues.latest_of(workers)
        return Json(
            page.reply(
                "workers",
                workers,
                lambda row: [row.group, row.name],
                lambda row: wire.worker_list_entry(row, latest, now),
            )
        )


class WorkerOne(TaskclusterView):
    """…/workers/{workerGroup}/{workerId}: get a worker, or start or end its quarantine."""

    methods = {
        "GET": ApiMethod("getWorker", scopes="queue:get-worker:<provisionerId>/<workerType>/<workerGroup>/<workerId>"),
        "PUT": ApiMethod(
            "quarantineWorker", scopes="queue:quarantine-worker:<provisionerId>/<workerType>/<workerGroup>/<workerId>"
        ),
    }

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return worker_reply(request)

    def put(self, request: TaskclusterRequest) -> HttpResponse:
        until = parse_timestamp(request.document["quarantineUntil"], "quarantineUntil")
        reason = request.document.get("quarantineInfo") or "[unspecified]"
        standalone_rows.quarantine(
            queue_in_address(request), *worker_names(request), until, reason, request.caller.client_id
        )
        return worker_reply(request)


class DeclaredWorker(TaskclusterView):
    """…/worker-types/{workerType}/{workerGroup}/{workerId}: keep the record of a worker until a time."""

    methods = {"PUT": ApiMethod("declareWorker", scopes_of_facts=DECLARE_WORKER_SCOPES)}

    def put(self, request: TaskclusterRequest) -> HttpResponse:
        request.require(properties=sorted(request.document))
        until = parse_timestamp(request.document["expires"], "expires")
        return Json(
            wire.worker_document(
                standalone_rows.declare_worker(queue_in_address(request), *worker_names(request), until)
            )
        )


def worker_names(request: TaskclusterRequest) -> tuple[str, str]:
    """Return the group and the id of the worker."""
    return request.params["workerGroup"], request.params["workerId"]


def worker_reply(request: TaskclusterRequest) -> HttpResponse:
    """Return the current state of the worker."""
    return Json(
        wire.worker_document(
            standalone_queues.find_worker(queue_in_address(request), *worker_names(request), clock.now())
        )
    )
