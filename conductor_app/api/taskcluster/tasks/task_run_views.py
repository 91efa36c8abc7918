"""Views of attempts, which Taskcluster calls runs: claim, reclaim and report."""

from django.http import HttpResponse

from ....core.standalone.resolutions import COMPLETED, FAILED
from ....engine.standalone import claims, task_commands
from ....insight.standalone.task_status import queue_facts
from ...waiting_replies import reply_after, waiting_client
from ..method_scopes import CLAIM_TASK_SCOPES, CLAIM_WORK_SCOPES, ApiMethod
from ..replies import Json
from ..request_body import parse_success
from ..view import TaskclusterRequest, TaskclusterView
from .claim_serializers import claim_reply, reclaim_reply
from .task_serializers import status_reply


class ClaimWork(TaskclusterView):
    """/claim-work/{taskQueueId}: claim tasks, and wait up to 20 s if there are none."""

    methods = {"POST": ApiMethod("claimWork", scopes_of_facts=CLAIM_WORK_SCOPES)}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        document, queue = request.document, request.params["taskQueueId"]
        group, name = document["workerGroup"], document["workerId"]
        request.require(workerGroup=group, workerId=name)
        claim = claims.begin_claim(queue, group, name, int(document["tasks"]), waiting_client(request))
        render = claims.render_delivered(lambda claimed: Json({"tasks": [claim_reply(each) for each in claimed]}))
        return reply_after(request, claim, render)


class ClaimTask(TaskclusterView):
    """/task/{taskId}/runs/{runId}/claim: claim one run."""

    methods = {"POST": ApiMethod("claimTask", scopes_of_facts=CLAIM_TASK_SCOPES)}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        document, task_id = request.document, request.params["taskId"]
        request.require(**document, **queue_facts(task_commands.find_task(task_id).queue))
        return Json(
            claim_reply(claims.claim_one(task_id, run_number(request), document["workerGroup"], document["workerId"]))
        )


class ReclaimTask(TaskclusterView):
    """/task/{taskId}/runs/{runId}/reclaim: extend the lease."""

    methods = {"POST": ApiMethod("reclaimTask", scopes="queue:reclaim-task:<taskId>/<runId>")}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(reclaim_reply(task_commands.renew_lease(request.params["taskId"], run_number(request))))


class ReportCompleted(TaskclusterView):
    """/task/{taskId}/runs/{runId}/completed: report success. A body of older workers can report a failure."""

    methods = {"POST": ApiMethod("reportCompleted", scopes="queue:resolve-task:<taskId>/<runId>")}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        return resolve_run(request, COMPLETED if parse_success(request) else FAILED)


class ReportFailed(TaskclusterView):
    """/task/{taskId}/runs/{runId}/failed: report a failure that a new attempt would repeat."""

    methods = {"POST": ApiMethod("reportFailed", scopes="queue:resolve-task:<taskId>/<runId>")}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        return resolve_run(request, FAILED)


class ReportException(TaskclusterView):
    """/task/{taskId}/runs/{runId}/exception: report that the task could not be executed, with a reason."""

    methods = {"POST": ApiMethod("reportException", scopes="queue:resolve-task:<taskId>/<runId>")}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        return resolve_run(request, request.document["reason"])


def resolve_run(request: TaskclusterRequest, reason: str) -> HttpResponse:
    """Resolve a run, and return the status of the task."""
    return Json(status_reply(task_commands.report_task(request.params["taskId"], run_number(request), reason)))


def run_number(request: TaskclusterRequest) -> int:
    """Return the number of the run in the path."""
    return int(request.params["runId"])
