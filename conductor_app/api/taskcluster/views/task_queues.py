"""Queues: what waits in them and what is out, and the older names that they have."""

from collections.abc import Callable

from django.http import HttpResponse

from .... import clock
from ....core.errors import NotFound
from ....insight import standalone_queues
from ....models import Queue
from ..pagination import PAGED, parse_page
from ..replies import Json
from ..serializers import task_queues as shown
from ..view import TaskclusterRequest, TaskclusterView


class PendingCount(TaskclusterView):
    """/pending/{taskQueueId}: how much waits."""

    methods = {"GET": "pendingTasks"}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        queue = request.params["taskQueueId"]
        return Json(shown.counts(queue, standalone_queues.pending_attempts([queue], clock.now()).count()))


class Counts(TaskclusterView):
    """/task-queues/{taskQueueId}/counts: how much waits, and how much is claimed."""

    methods = {"GET": "taskQueueCounts"}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        [row] = standalone_queues.queue_counts([request.params["taskQueueId"]], clock.now())
        return Json(shown.counts(*row))


class ManyCounts(TaskclusterView):
    """/task-queues/counts: the same of many queues."""

    methods = {"POST": "taskQueueCountsBatch"}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        queues = request.document["taskQueueIds"]
        request.require(ids=queues)
        return Json(
            {"taskQueueCounts": [shown.counts(*row) for row in standalone_queues.queue_counts(queues, clock.now())]}
        )


class Pending(TaskclusterView):
    """/task-queues/{taskQueueId}/pending: what waits, the oldest first."""

    methods = {"GET": "listPendingTasks"}
    options_known = PAGED

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        rows = standalone_queues.pending_attempts([request.params["taskQueueId"]], clock.now())
        return oldest_first(request, rows, "scheduled_at", shown.pending_task)


class Claimed(TaskclusterView):
    """/task-queues/{taskQueueId}/claimed: what is claimed, the oldest claim first."""

    methods = {"GET": "listClaimedTasks"}
    options_known = PAGED

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        rows = standalone_queues.standalone_attempts("LEASED", [request.params["taskQueueId"]])
        return oldest_first(request, rows, "claimed_at", shown.claimed_task)


def oldest_first(request: TaskclusterRequest, rows, moment: str, show: Callable) -> HttpResponse:
    """A page of attempts in the order of a moment."""
    asked = parse_page(request.options, int, str)
    found = standalone_queues.oldest_first(rows, moment, asked.after, asked.size + 1)
    return Json(asked.reply("tasks", found, lambda attempt: [getattr(attempt, moment), attempt.id], show))


class TaskQueues(TaskclusterView):
    """/task-queues: all queues that workers have asked."""

    methods = {"GET": "listTaskQueues"}
    options_known = PAGED

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return queues(request, Queue.objects.all(), "taskQueues", shown.task_queue)


class TaskQueue(TaskclusterView):
    """/task-queues/{taskQueueId}: one of them."""

    methods = {"GET": "getTaskQueue"}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(shown.task_queue(standalone_queues.find_queue(request.params["taskQueueId"])))


class Provisioners(TaskclusterView):
    """/provisioners: what the names of queues begin with."""

    methods = {"GET": "listProvisioners"}
    options_known = PAGED

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        asked = parse_page(request.options, str)
        rows = list(standalone_queues.provisioners(asked.after)[: asked.size + 1])
        return Json(asked.reply("provisioners", rows, lambda row: row[:1], shown.provisioner))


class Provisioner(TaskclusterView):
    """/provisioners/{provisionerId}: one of them."""

    methods = {"GET": "getProvisioner"}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        name = request.params["provisionerId"]
        for row in standalone_queues.provisioners(only=name):
            return Json(shown.provisioner(row))
        raise NotFound(f"Provisioner {name} does not exist.")


class WorkerTypes(TaskclusterView):
    """/provisioners/{provisionerId}/worker-types: its queues."""

    methods = {"GET": "listWorkerTypes"}
    options_known = PAGED

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        rows = standalone_queues.queues_of(request.params["provisionerId"])
        return queues(request, rows, "workerTypes", shown.worker_type)


class WorkerType(TaskclusterView):
    """/provisioners/{provisionerId}/worker-types/{workerType}: one of them."""

    methods = {"GET": "getWorkerType"}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(shown.worker_type(standalone_queues.find_queue(queue_of(request))))


def queues(request: TaskclusterRequest, rows, name: str, show: Callable) -> HttpResponse:
    """A page of queues in the order of their names."""
    asked = parse_page(request.options, str)
    if asked.after:
        rows = rows.filter(name__gt=asked.after[0])
    found = list(rows.order_by("name")[: asked.size + 1])
    return Json(asked.reply(name, found, lambda queue: [queue.name], show))


def queue_of(request: TaskclusterRequest) -> str:
    """The queue that the address names by its two parts."""
    return f"{request.params['provisionerId']}/{request.params['workerType']}"
