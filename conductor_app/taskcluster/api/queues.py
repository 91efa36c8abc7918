"""Views of task queues, and of the same queues under their older names."""

from collections.abc import Callable

from django.http import HttpResponse

from .... import clock
from ....core.errors import NotFound
from ....insight.standalone import standalone_queues
from ....models import Queue
from ..method_scopes import TASK_QUEUE_COUNTS_BATCH_SCOPES, TASK_QUEUE_COUNTS_SCOPES, ApiMethod
from ..pagination import PAGE_QUERY_OPTIONS, parse_page
from ..replies import Json
from ..view import TaskclusterRequest, TaskclusterView
from . import task_queue_serializers as wire


class PendingCount(TaskclusterView):
    """/pending/{taskQueueId}: return the number of pending attempts."""

    methods = {"GET": ApiMethod("pendingTasks", scopes="queue:pending-count:<taskQueueId>")}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        queue = request.params["taskQueueId"]
        return Json(wire.queue_counts_document(queue, standalone_queues.pending_attempts([queue], clock.now()).count()))


class QueueCounts(TaskclusterView):
    """/task-queues/{taskQueueId}/counts: return the numbers of pending and claimed attempts."""

    methods = {"GET": ApiMethod("taskQueueCounts", scopes=TASK_QUEUE_COUNTS_SCOPES)}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        [row] = standalone_queues.queue_counts([request.params["taskQueueId"]], clock.now())
        return Json(wire.queue_counts_document(*row))


class QueueCountsBatch(TaskclusterView):
    """/task-queues/counts: return the numbers of pending and claimed attempts of several queues."""

    methods = {"POST": ApiMethod("taskQueueCountsBatch", scopes_of_facts=TASK_QUEUE_COUNTS_BATCH_SCOPES)}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        queues = request.document["taskQueueIds"]
        request.require(ids=queues)
        return Json(
            {
                "taskQueueCounts": [
                    wire.queue_counts_document(*row) for row in standalone_queues.queue_counts(queues, clock.now())
                ]
            }
        )


class PendingTasks(TaskclusterView):
    """/task-queues/{taskQueueId}/pending: list the pending attempts, oldest first."""

    methods = {"GET": ApiMethod("listPendingTasks", scopes="queue:pending-list:<taskQueueId>")}
    known_options = PAGE_QUERY_OPTIONS

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        rows = standalone_queues.pending_attempts([request.params["taskQueueId"]], clock.now())
        return oldest_first_reply(request, rows, "scheduled_at", wire.pending_task_document)


class ClaimedTasks(TaskclusterView):
    """/task-queues/{taskQueueId}/claimed: list the claimed attempts, oldest claim first."""

    methods = {"GET": ApiMethod("listClaimedTasks", scopes="queue:claimed-list:<taskQueueId>")}
    known_options = PAGE_QUERY_OPTIONS

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        rows = standalone_queues.standalone_attempts("LEASED", [request.params["taskQueueId"]])
        return oldest_first_reply(request, rows, "claimed_at", wire.claimed_task_document)


def oldest_first_reply(request: TaskclusterRequest, rows, time_field: str, show: Callable) -> HttpResponse:
    """Return a page of attempts in the order of a time."""
    page = parse_page(request.options, int, str)
    found = standalone_queues.oldest_first(rows, time_field, page.after, page.size + 1)
    return Json(page.reply("tasks", found, lambda attempt: [getattr(attempt, time_field), attempt.id], show))


class TaskQueueList(TaskclusterView):
    """/task-queues: list all queues that workers have polled."""

    methods = {"GET": ApiMethod("listTaskQueues", scopes="queue:list-task-queues")}
    known_options = PAGE_QUERY_OPTIONS

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return queue_list_reply(request, Queue.objects.all(), "taskQueues", wire.task_queue_document)


class TaskQueueOne(TaskclusterView):
    """/task-queues/{taskQueueId}: get a queue."""

    methods = {"GET": ApiMethod("getTaskQueue", scopes="queue:get-task-queue:<taskQueueId>")}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(wire.task_queue_document(standalone_queues.find_queue(request.params["taskQueueId"])))


class ProvisionerList(TaskclusterView):
    """/provisioners: list the first parts of the names of queues."""

    methods = {"GET": ApiMethod("listProvisioners", scopes="queue:list-provisioners")}
    known_options = PAGE_QUERY_OPTIONS

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        page = parse_page(request.options, str)
        rows = list(standalone_queues.provisioners(page.after)[: page.size + 1])
        return Json(page.reply("provisioners", rows, lambda row: row[:1], wire.provisioner_document))


class ProvisionerOne(TaskclusterView):
    """/provisioners/{provisionerId}: get a provisioner."""

    methods = {"GET": ApiMethod("getProvisioner", scopes="queue:get-provisioner:<provisionerId>")}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        name = request.params["provisionerId"]
        for row in standalone_queues.provisioners(only=name):
            return Json(wire.provisioner_document(row))
        raise NotFound(f"Provisioner {name} does not exist.")


class WorkerTypeList(TaskclusterView):
    """/provisioners/{provisionerId}/worker-types: list the queues of a provisioner."""

    methods = {"GET": ApiMethod("listWorkerTypes", scopes="queue:list-worker-types:<provisionerId>")}
    known_options = PAGE_QUERY_OPTIONS

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        rows = standalone_queues.queues_of(request.params["provisionerId"])
        return queue_list_reply(request, rows, "workerTypes", wire.worker_type_document)


class WorkerTypeOne(TaskclusterView):
    """/provisioners/{provisionerId}/worker-types/{workerType}: get a queue of a provisioner."""

    methods = {"GET": ApiMethod("getWorkerType", scopes="queue:get-worker-type:<provisionerId>/<workerType>")}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(wire.worker_type_document(standalone_queues.find_queue(queue_in_address(request))))


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
