"""Workflows: started, looked at, stopped."""

from django.http import HttpResponse

from ....engine import runs
from ....insight.execution import attempts_of, facts_of, find_run, rows_of, task_documents, wire_run, wire_runs
from ....models import Run
from .. import body
from ..replies import Empty, Json, PlainText
from ..serializers.requests import complaints_at
from ..serializers.workflows import start_by_name, start_request, workflow_status
from ..view import ConductorRequest, ConductorView


class Workflows(ConductorView):
    """POST /api/workflow: start a workflow."""

    def post(self, request: ConductorRequest) -> HttpResponse:
        asked = start_request(body.document(request))
        with complaints_at("startWorkflow.startWorkflowRequest.workflowDef"):
            return PlainText(runs.start(asked, request.actor.name))


class WorkflowOne(ConductorView):
    """POST /api/workflow/{name}: start a workflow. GET, DELETE /api/workflow/{workflowId}: show it, stop it."""

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        asked = start_by_name(workflow, request.query, body.document(request))
        return PlainText(runs.start(asked, request.actor.name))

    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        return Json(wire_run(workflow, request.query.flag("includeTasks", True)))

    def delete(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        reason, with_failure = request.query.text("reason"), request.query.flag("triggerFailureWorkflow", False)
        runs.terminate(workflow, request.actor.name, reason, with_failure)
        return Empty()


class WorkflowStatus(ConductorView):
    """GET /api/workflow/{workflowId}/status: the status, and the output and variables where they are asked for."""

    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        with_output, with_variables = (request.query.flag(f"include{part}", False) for part in ("Output", "Variables"))
        run = find_run(workflow)
        return Json(workflow_status(run, with_output=with_output, with_variables=with_variables))


class WorkflowTasks(ConductorView):
    """GET /api/workflow/{workflowId}/tasks: one page of the tasks, of all statuses or of some."""

    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        run, query = find_run(workflow), request.query
        start, count = max(query.whole("start", 0), 0), max(query.whole("count", 15), 0)
        wanted = {status.strip().upper() for status in query.texts("status")}
        tasks = task_documents(rows_of(attempts_of([run.id])), facts_of(run), is_wire=True)
        found = [task for task in tasks if not wanted or task["status"] in wanted]
        return Json({"totalHits": len(found), "results": found[start : start + count]})


class Correlated(ConductorView):
    """GET /api/workflow/{name}/correlated/{correlationId}: the workflows of one name that belong together."""

    def get(self, request: ConductorRequest, workflow: str, correlation_id: str) -> HttpResponse:
        return Json(correlated(request, workflow, correlation_id))


class CorrelatedMany(ConductorView):
    """POST /api/workflow/{name}/correlated: the same for several correlation ids, each of which is a key."""

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        asked = body.texts(request)
        return Json({each: correlated(request, workflow, each) for each in dict.fromkeys(asked)})


def correlated(request: ConductorRequest, name: str, correlation_id: str) -> list[dict]:
    """The running workflows with this name and correlation id; those that have ended too, where that is asked for."""
    runs_found = Run.objects.of_definition(name).filter(correlation_id=correlation_id)
    if not request.query.flag("includeClosed", False):
        runs_found = runs_found.filter(status="RUNNING")
    return wire_runs(runs_found.order_by("created_at", "id"), request.query.flag("includeTasks", False))


class Running(ConductorView):
    """GET /api/workflow/running/{name}: ids of open workflows, or of all that were started between two moments."""

    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        version, query = request.query.whole("version", 1), request.query
        start, end = query.whole("startTime", 0, bits=64), query.whole("endTime", 0, bits=64)
        found = Run.objects.of_definition(workflow)
        if start and end:
            found = found.filter(version=version, created_at__gte=start, created_at__lte=end)
        else:
            found = found.open()
        return Json(list(found.order_by("created_at", "id").values_list("id", flat=True)))
