"""Runs, as the wire calls attempts: what workers claim, hold and report on."""

from django.http import HttpResponse

from ....core.standalone.endings import COMPLETED, FAILED
from ....engine.standalone import claims, tasks
from ....insight.standalone import queue_facts
from ...presence import hung_up
from ..body import said_of_success
from ..replies import Json
from ..serializers.claims import claim, reclaim
from ..serializers.tasks import status_reply
from ..view import TaskclusterRequest, TaskclusterView


class ClaimWork(TaskclusterView):
    """/claim-work/{taskQueueId}: take work, waiting for it up to 20 s."""

    methods = {"POST": "claimWork"}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        asked, queue = request.document, request.params["taskQueueId"]
        group, name = asked["workerGroup"], asked["workerId"]
        request.require(workerGroup=group, workerId=name)
        taken = claims.claim_tasks(queue, group, name, int(asked["tasks"]), hung_up(request))
        return Json({"tasks": [claim(each) for each in taken]})


class ClaimTask(TaskclusterView):
    """/task/{taskId}/runs/{runId}/claim: take one run that is named."""

    methods = {"POST": "claimTask"}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        asked, task_id = request.document, request.params["taskId"]
        request.require(**asked, **queue_facts(tasks.find_task(task_id).queue))
        return Json(claim(claims.claim_one(task_id, number(request), asked["workerGroup"], asked["workerId"])))


class Reclaim(TaskclusterView):
    """/task/{taskId}/runs/{runId}/reclaim: go on."""

    methods = {"POST": "reclaimTask"}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(reclaim(tasks.renew_lease(request.params["taskId"], number(request))))


class Completed(TaskclusterView):
    """/task/{taskId}/runs/{runId}/completed: it is done. An older body could say that it is not."""

    methods = {"POST": "reportCompleted"}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        return reported(request, COMPLETED if said_of_success(request) else FAILED)


class Failed(TaskclusterView):
    """/task/{taskId}/runs/{runId}/failed: it has failed, and would fail again."""

    methods = {"POST": "reportFailed"}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        return reported(request, FAILED)


class Unable(TaskclusterView):
    """/task/{taskId}/runs/{runId}/exception: it could not be done, for one of a few reasons."""

    methods = {"POST": "reportException"}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        return reported(request, request.document["reason"])


def reported(request: TaskclusterRequest, reason: str) -> HttpResponse:
    """The end of a run, and the task's state after it."""
    return Json(status_reply(tasks.report_task(request.params["taskId"], number(request), reason)))


def number(request: TaskclusterRequest) -> int:
    """The number of the run that the address names."""
    return int(request.params["runId"])
