"""The views of queues, provisioners and workers, and of the server's state."""

from collections.abc import Callable
from importlib.metadata import version
from time import monotonic
from typing import Any

from django.db.models import Q
from django.http import HttpResponse

from ...core.errors import NotFound
from ...core.snapshot import NEVER
from ...runs.models import Attempt
from ...tasks.models import Queue, Worker
from ...utils import clock
from .. import queries
from ..commands.rows import declare_worker, quarantine
from ..queries import format_timestamp, queue_facts, recent_attempts, worker_facts
from .base import PAGE_QUERY_OPTIONS, Json, parse_page, parse_timestamp
from .tasks import task_document
from .view import (
    DECLARE_WORKER_SCOPES,
    TASK_QUEUE_COUNTS_BATCH_SCOPES,
    TASK_QUEUE_COUNTS_SCOPES,
    ApiMethod,
    TaskclusterRequest,
    TaskclusterView,
)

STABILITY = "experimental"
"""The stability of every queue. Clients cannot declare another one."""


def queue_counts_document(queue: str, pending: int, claimed: int | None = None) -> dict[str, Any]:
    """Return the numbers of pending and of claimed attempts of a queue."""
    document = {**queue_facts(queue), "pendingTasks": pending}
    return document if claimed is None else {**document, "claimedTasks": claimed}


def pending_task_document(attempt: Attempt) -> dict[str, Any]:
    return {**_task_fields(attempt), "inserted": format_timestamp(attempt.scheduled_at)}


def claimed_task_document(attempt: Attempt) -> dict[str, Any]:
    return {
        **_task_fields(attempt),
        **worker_facts(attempt.worker),
        "claimed": format_timestamp(attempt.claimed_at or 0),
    }


def _task_fields(attempt: Attempt) -> dict[str, Any]:
    return {"taskId": attempt.task_id, "runId": attempt.number, "task": task_document(attempt.task.standalone)}


def task_queue_document(queue: Queue) -> dict[str, Any]:
    return {"taskQueueId": queue.name, **_lifetime_fields(queue.expires_at, queue.last_active_at, queue.description)}


def _lifetime_fields(expires_at: int, last_active_at: int, description: str = "") -> dict[str, Any]:
    times = {"expires": format_timestamp(expires_at), "lastDateActive": format_timestamp(last_active_at)}
    return {"description": description, "stability": STABILITY, **times}


def worker_type_document(queue: Queue) -> dict[str, Any]:
    """Return a task queue under its older name, worker type."""
    return {**queue_facts(queue.name), **_lifetime_fields(queue.expires_at, queue.last_active_at, queue.description)}


def provisioner_document(row: tuple[str, int, int]) -> dict[str, Any]:
    name, expires_at, last_active_at = row
    return {"provisionerId": name, **_lifetime_fields(expires_at, last_active_at)}


def worker_document(row: Worker) -> dict[str, Any]:
    document = {
        **queue_facts(row.queue),
        **worker_facts(str(row)),
        "recentTasks": [{"taskId": task_id, "runId": number} for task_id, number in recent_attempts(row)],
        "expires": format_timestamp(row.expires_at),
        "firstClaim": format_timestamp(row.first_claim_at),
        "quarantineUntil": format_timestamp(row.quarantine_until),
        "quarantineDetails": [_quarantine_document(entry) for entry in row.quarantine_log],
    }
    return document | _activity_fields(row)


def _activity_fields(row: Worker) -> dict[str, Any]:
    return {} if row.last_active_at is None else {"lastDateActive": format_timestamp(row.last_active_at)}


def _quarantine_document(entry: dict[str, Any]) -> dict[str, Any]:
    times = {"updatedAt": format_timestamp(entry["at"]), "quarantineUntil": format_timestamp(entry["until"])}
    return {"clientId": entry["by"], **times, "quarantineInfo": entry["why"]}


def worker_list_entry(row: Worker, latest: dict[str, Attempt], now: int) -> dict[str, Any]:
    document = {**worker_facts(str(row)), "firstClaim": format_timestamp(row.first_claim_at), **_activity_fields(row)}
    if attempt := latest.get(row.latest):
        document["latestTask"] = {"taskId": attempt.task_id, "runId": attempt.number}
    if now < row.quarantine_until < NEVER:
        document["quarantineUntil"] = format_timestamp(row.quarantine_until)
    return document


class PendingCount(TaskclusterView):
    """/pending/{taskQueueId}: return the number of pending attempts."""

    methods = {"GET": ApiMethod("pendingTasks", scopes="queue:pending-count:<taskQueueId>")}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        queue = request.params["taskQueueId"]
        return Json(queue_counts_document(queue, queries.pending_attempts([queue], clock.now()).count()))


class QueueCounts(TaskclusterView):
    """/task-queues/{taskQueueId}/counts: return the numbers of pending and claimed attempts."""

    methods = {"GET": ApiMethod("taskQueueCounts", scopes=TASK_QUEUE_COUNTS_SCOPES)}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        [row] = queries.queue_counts([request.params["taskQueueId"]], clock.now())
        return Json(queue_counts_document(*row))


class QueueCountsBatch(TaskclusterView):
    """/task-queues/counts: return the numbers of pending and claimed attempts of several queues."""

    methods = {"POST": ApiMethod("taskQueueCountsBatch", scopes_of_facts=TASK_QUEUE_COUNTS_BATCH_SCOPES)}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        queues = request.document["taskQueueIds"]
        request.require(ids=queues)
        return Json(
            {"taskQueueCounts": [queue_counts_document(*row) for row in queries.queue_counts(queues, clock.now())]}
        )


class PendingTasks(TaskclusterView):
    """/task-queues/{taskQueueId}/pending: list the pending attempts, oldest first."""

    methods = {"GET": ApiMethod("listPendingTasks", scopes="queue:pending-list:<taskQueueId>")}
    known_options = PAGE_QUERY_OPTIONS

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        rows = queries.pending_attempts([request.params["taskQueueId"]], clock.now())
        return oldest_first_reply(request, rows, "scheduled_at", pending_task_document)


class ClaimedTasks(TaskclusterView):
    """/task-queues/{taskQueueId}/claimed: list the claimed attempts, oldest claim first."""

    methods = {"GET": ApiMethod("listClaimedTasks", scopes="queue:claimed-list:<taskQueueId>")}
    known_options = PAGE_QUERY_OPTIONS

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        rows = queries.standalone_attempts("LEASED", [request.params["taskQueueId"]])
        return oldest_first_reply(request, rows, "claimed_at", claimed_task_document)


def oldest_first_reply(request: TaskclusterRequest, rows, time_field: str, show: Callable) -> HttpResponse:
    """Return a page of attempts in the order of a time."""
    page = parse_page(request.options, int, str)
    found = queries.oldest_first(rows, time_field, page.after, page.size + 1)
    return Json(page.reply("tasks", found, lambda attempt: [getattr(attempt, time_field), attempt.id], show))


class TaskQueueList(TaskclusterView):
    """/task-queues: list all queues that workers have polled."""

    methods = {"GET": ApiMethod("listTaskQueues", scopes="queue:list-task-queues")}
    known_options = PAGE_QUERY_OPTIONS

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return queue_list_reply(request, Queue.objects.all(), "taskQueues", task_queue_document)


class TaskQueueOne(TaskclusterView):
    """/task-queues/{taskQueueId}: get a queue."""

    methods = {"GET": ApiMethod("getTaskQueue", scopes="queue:get-task-queue:<taskQueueId>")}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(task_queue_document(queries.find_queue(request.params["taskQueueId"])))


class ProvisionerList(TaskclusterView):
    """/provisioners: list the first parts of the names of queues."""

    methods = {"GET": ApiMethod("listProvisioners", scopes="queue:list-provisioners")}
    known_options = PAGE_QUERY_OPTIONS

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        page = parse_page(request.options, str)
        rows = list(queries.provisioners(page.after)[: page.size + 1])
        return Json(page.reply("provisioners", rows, lambda row: row[:1], provisioner_document))


class ProvisionerOne(TaskclusterView):
    """/provisioners/{provisionerId}: get a provisioner."""

    methods = {"GET": ApiMethod("getProvisioner", scopes="queue:get-provisioner:<provisionerId>")}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        name = request.params["provisionerId"]
        for row in queries.provisioners(only=name):
            return Json(provisioner_document(row))
        raise NotFound(f"Provisioner {name} does not exist.")


class WorkerTypeList(TaskclusterView):
    """/provisioners/{provisionerId}/worker-types: list the queues of a provisioner."""

    methods = {"GET": ApiMethod("listWorkerTypes", scopes="queue:list-worker-types:<provisionerId>")}
    known_options = PAGE_QUERY_OPTIONS

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        rows = queries.queues_of(request.params["provisionerId"])
        return queue_list_reply(request, rows, "workerTypes", worker_type_document)


class WorkerTypeOne(TaskclusterView):
    """/provisioners/{provisionerId}/worker-types/{workerType}: get a queue of a provisioner."""

    methods = {"GET": ApiMethod("getWorkerType", scopes="queue:get-worker-type:<provisionerId>/<workerType>")}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(worker_type_document(queries.find_queue(queue_in_address(request))))


def queue_list_reply(request: TaskclusterRequest, rows, name: str, show: Callable) -> HttpResponse:
    """Return a page of queues in the order of their names."""
    page = parse_page(request.options, str)
    if page.after:
        rows = rows.filter(name__gt=page.after[0])
    found = list(rows.order_by("name")[: page.size + 1])
    return Json(page.reply(name, found, lambda queue: [queue.name], show))


def queue_in_address(request: TaskclusterRequest) -> str:
    """Return the queue that two path parameters name."""
    return f"{request.params['provisionerId']}/{request.params['workerType']}"


class WorkerList(TaskclusterView):
    """…/worker-types/{workerType}/workers: list the workers of a queue."""

    methods = {"GET": ApiMethod("listWorkers", scopes="queue:list-workers:<provisionerId>/<workerType>")}
    known_options = (*PAGE_QUERY_OPTIONS, "quarantined")

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        page, now = parse_page(request.options, str, str), clock.now()
        found = queries.workers(queue_in_address(request), now)
        if quarantined := request.options.get("quarantined"):
            is_quarantined = Q(quarantine_until__gt=now)
            found = found.filter(is_quarantined if quarantined == "true" else ~is_quarantined)
        if page.after:
            group, name = page.after
            found = found.filter(Q(group__gt=group) | Q(group=group, name__gt=name))
        workers = list(found.order_by("group", "name")[: page.size + 1])
        latest = queries.latest_of(workers)
        return Json(
            page.reply(
                "workers",
                workers,
                lambda row: [row.group, row.name],
                lambda row: worker_list_entry(row, latest, now),
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
        quarantine(queue_in_address(request), *worker_names(request), until, reason, request.caller.client_id)
        return worker_reply(request)


class DeclaredWorker(TaskclusterView):
    """…/worker-types/{workerType}/{workerGroup}/{workerId}: keep the record of a worker until a time."""

    methods = {"PUT": ApiMethod("declareWorker", scopes_of_facts=DECLARE_WORKER_SCOPES)}

    def put(self, request: TaskclusterRequest) -> HttpResponse:
        request.require(properties=sorted(request.document))
        until = parse_timestamp(request.document["expires"], "expires")
        return Json(worker_document(declare_worker(queue_in_address(request), *worker_names(request), until)))


def worker_names(request: TaskclusterRequest) -> tuple[str, str]:
    """Return the group and the id of the worker."""
    return request.params["workerGroup"], request.params["workerId"]


def worker_reply(request: TaskclusterRequest) -> HttpResponse:
    """Return the current state of the worker."""
    return Json(worker_document(queries.find_worker(queue_in_address(request), *worker_names(request), clock.now())))


STARTED_AT = monotonic()


class Ping(TaskclusterView):
    """/ping: return that the server responds."""

    methods = {"GET": ApiMethod("ping", is_public=True)}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json({"alive": True, "uptime": monotonic() - STARTED_AT})


class TaskclusterVersion(TaskclusterView):
    """/__version__: return the version of this server."""

    methods = {"GET": ApiMethod("version", is_public=True)}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        number = version("conductor-app")
        return Json({"version": number, "commit": number, "source": "conductor-app", "build": number})


class Heartbeat(TaskclusterView):
    """/__heartbeat__: return that the server works."""

    methods = {"GET": ApiMethod("heartbeat", is_public=True)}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json({})


class LoadBalancerHeartbeat(Heartbeat):
    """/__lbheartbeat__: return that this process responds."""

    methods = {"GET": ApiMethod("lbheartbeat", is_public=True)}
