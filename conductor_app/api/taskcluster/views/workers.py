"""Workers: who asks a queue for work, and who is kept from it."""

from django.db.models import Q
from django.http import HttpResponse

from .... import clock
from ....engine.standalone import rows
from ....insight import standalone_queues
from ..pagination import PAGED, parse_page
from ..replies import Json
from ..serializers import task_queues as shown
from ..timestamps import parse_timestamp
from ..view import TaskclusterRequest, TaskclusterView
from .task_queues import queue_of


class Workers(TaskclusterView):
    """…/worker-types/{workerType}/workers: the workers of a queue."""

    methods = {"GET": "listWorkers"}
    options_known = (*PAGED, "quarantined")

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        asked, now = parse_page(request.options, str, str), clock.now()
        found = standalone_queues.workers(queue_of(request), now)
        if wanted := request.options.get("quarantined"):
            is_kept_out = Q(quarantine_until__gt=now)
            found = found.filter(is_kept_out if wanted == "true" else ~is_kept_out)
        if asked.after:
            group, name = asked.after
            found = found.filter(Q(group__gt=group) | Q(group=group, name__gt=name))
        workers = list(found.order_by("group", "name")[: asked.size + 1])
        latest = standalone_queues.latest_of(workers)
        return Json(
            asked.reply(
                "workers", workers, lambda row: [row.group, row.name], lambda row: shown.listed_worker(row, latest, now)
            )
        )


class WorkerOne(TaskclusterView):
    """…/workers/{workerGroup}/{workerId}: one of them; into quarantine, or out of it."""

    methods = {"GET": "getWorker", "PUT": "quarantineWorker"}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return the_worker(request)

    def put(self, request: TaskclusterRequest) -> HttpResponse:
        until = parse_timestamp(request.document["quarantineUntil"], "quarantineUntil")
        why = request.document.get("quarantineInfo") or "[unspecified]"
        rows.quarantine(queue_of(request), *names(request), until, why, request.caller.client_id)
        return the_worker(request)


class DeclaredWorker(TaskclusterView):
    """…/worker-types/{workerType}/{workerGroup}/{workerId}: a worker is to be known until then."""

    methods = {"PUT": "declareWorker"}

    def put(self, request: TaskclusterRequest) -> HttpResponse:
        request.require(properties=sorted(request.document))
        until = parse_timestamp(request.document["expires"], "expires")
        return Json(shown.worker(rows.declare_worker(queue_of(request), *names(request), until)))


def names(request: TaskclusterRequest) -> tuple[str, str]:
    """The worker's two names."""
    return request.params["workerGroup"], request.params["workerId"]


def the_worker(request: TaskclusterRequest) -> HttpResponse:
    """The worker as it is now."""
    return Json(shown.worker(standalone_queues.find_worker(queue_of(request), *names(request), clock.now())))
