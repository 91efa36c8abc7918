"""Views of tasks: polls, reports, logs, and where inputs came from.

Polls are the most frequent requests of workers.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import orjson
from django.http import HttpResponse

from ...access.authentication import Actor, is_allowed, may_claim, require_permission, task_target
from ...access.permissions import EXECUTE, TASK_DEF, WORKER_RIGHTS, Right
from ...access.quotas import POLLS
from ...core.decide import Report
from ...core.document.fields import read_mapping
from ...core.errors import Conflict, Forbidden, Invalid, NotFound
from ...definitions.store import parsed_definition
from ...runs.documents.tasks import wire_task
from ...runs.documents.workflows import find_attempt, find_run, load_logs, wire_runs
from ...runs.models import Attempt, Run
from ...web.api import documents as shapes
from ...web.api import permissions as targets
from ...web.api import requests as request_body
from ...web.api.operations import PLAIN_TEXT, POLL_QUERY, ApiOperation, ArrayOf, EmptyOk, Json, NoContent, PlainText
from ...web.api.permissions import (
    RUN_VIEW_RIGHTS,
    TASK_REPORT_RIGHTS,
    RequiresAccess,
    RequiresAll,
    can_poll,
    can_view_run_of_task,
    describe_right,
)
from ...web.api.view import ConductorRequest, ConductorView, WorkerRequest, WorkerView
from ...web.client_views import reply_after, waiting_client
from ..commands.claims import NextClaim, begin_claim, render_delivered
from ..commands.reports import Guard, ReportOptions, add_log, renew_lease, report_by_ref, report_task
from ..commands.waits import begin_task_wait
from ..queries.input_origins import InputOrigin, input_origins
from . import serializers
from .serializers import (
    TASK_RESULT,
    TaskResult,
    claimed_task_documents,
    first_task_reply,
    parse_outcome,
    parse_task_result,
)


@dataclass(frozen=True, slots=True)
class RequiresAccessLater:
    """One of these rights, which the engine checks when it has loaded what the request is about."""

    rights: tuple[Right, ...]

    def check(self, request: ConductorRequest, url_kwargs: dict[str, str]) -> None:
        """Allow every caller for now."""

    def describe(self) -> str:
        return " or ".join(map(describe_right, self.rights))


TASK_VIEW_RIGHTS = (*RUN_VIEW_RIGHTS, *WORKER_RIGHTS)
can_view_task = RequiresAccess(TASK_VIEW_RIGHTS, targets.attempt_in_address("task_id"))
can_report_by_reference = RequiresAccess(TASK_REPORT_RIGHTS, targets.tasks_by_reference("workflow_id"))
can_report_and_view_run = RequiresAll((can_report_by_reference, can_view_run_of_task))
"""For the reply with the run: a worker that may report on its tasks may see no other task of the run."""
can_log_task = RequiresAccess(TASK_REPORT_RIGHTS, targets.attempt_in_address("task_id", must_exist=True))
can_report_loaded_task = RequiresAccessLater(TASK_REPORT_RIGHTS)


MAX_WAIT_MS = 5000
DEFAULT_WAIT_SECONDS = 10
"""The wait for a status of a task, unless the request says another."""
MAX_TYPE_LENGTH, MAX_DOMAIN_LENGTH = 512, 128
"""Longer names have no queue: they are cut, so that the poll can be remembered."""
MAX_TASKS = 1000


class BatchPoll(WorkerView):
    """GET /api/tasks/poll/batch/{taskType}: claim tasks for a worker; `[]` if there are none."""

    @ApiOperation(
        "Poll for several tasks",
        can_poll,
        reply=ArrayOf(shapes.TASK),
        query=POLL_QUERY | {"count": int, "timeout": int},
        changes_state=True,
        rate=POLLS,
    )
    def get(self, request: WorkerRequest, task_type: str) -> HttpResponse:
        query = request.query
        count, wait_ms = query.integer("count", 1), query.integer("timeout", 100)
        if wait_ms > MAX_WAIT_MS:
            raise Invalid("Long Poll Timeout value cannot be more than 5 seconds")
        if count <= 0:
            return Json([])
        claim = begin_claim(
            task_type[:MAX_TYPE_LENGTH],
            worker=query.text("workerid"),
            domain=query.text("domain")[:MAX_DOMAIN_LENGTH],
            count=min(count, MAX_TASKS),
            wait_ms=max(wait_ms, 0),
            client=waiting_client(request),
        )
        render = render_delivered(lambda attempts: Json(claimed_task_documents(attempts)))
        return reply_after(request, claim, render)


class Poll(WorkerView):
    """GET /api/tasks/poll/{taskType}: claim one task for a worker; 204 if there is none."""

    @ApiOperation(
        "Poll for one task",
        can_poll,
        reply=shapes.TASK,
        query=POLL_QUERY,
        can_be_empty=True,
        changes_state=True,
        rate=POLLS,
    )
    def get(self, request: WorkerRequest, task_type: str) -> HttpResponse:
        worker, domain = request.query.text("workerid"), request.query.text("domain")[:MAX_DOMAIN_LENGTH]
        claim = begin_claim(task_type[:MAX_TYPE_LENGTH], worker=worker, domain=domain, client=waiting_client(request))
        return reply_after(request, claim, render_delivered(first_task_reply))


def read_report(request: WorkerRequest) -> dict[str, Any]:
    """Return the body of a report. One with values that cannot be read ends its attempt.

    Its worker could only repeat it.
    """
    try:
        return request_body.read_object(request)
    except request_body.UnreadableBody as error:
        if isinstance(error.document, dict):
            # A report that is invalid in other ways, or not allowed, changes nothing and gets the same reply.
            with suppress(Invalid, NotFound, Forbidden, Conflict):
                report_result(parse_task_result(failed_result(error.document, error.message)), request.actor)
        raise


def failed_result(document: dict[str, Any], reason: str) -> dict[str, Any]:
    """Return the report of a failure in place of one that cannot be stored. A lease is extended all the same."""
    kept = ("workflowInstanceId", "taskId", "workerId", "extendLease", "logs")
    is_terminal = document.get("status") == "FAILED_WITH_TERMINAL_ERROR"
    status = "FAILED_WITH_TERMINAL_ERROR" if is_terminal else "FAILED"
    return {**{name: document.get(name) for name in kept}, "status": status, "reasonForIncompletion": reason}


class ReportTooLate(Exception):
    """The task of a report has ended otherwise, or another worker has it. The reply can have the task.

    `attempt`: the attempt as it is.
    """

    def __init__(self, attempt: Attempt) -> None:
        super().__init__(attempt.pk)
        self.attempt = attempt

    @property
    def reply(self) -> HttpResponse:
        """Return the reply that has the task, so that its worker can stop."""
        return Json(wire_task(self.attempt))


def report_result(result: TaskResult, actor: Actor, next_claim: NextClaim | None = None) -> bool:
    """Report the result of a worker. A late report changes nothing and gets the same response.

    `next_claim`: claims a task in the same transaction. Returns True if the task has ended.

    Raises:
        ReportTooLate: when the report is late and its worker supports cancellation.
    """
    try:
        return _report_result(result, actor, next_claim)
    except NotFound:
        if (run_id := _run_of_task(result, actor)) is None:
            raise
        return _report_result(replace(result, run_id=run_id), actor, next_claim)


def _run_of_task(result: TaskResult, actor: Actor) -> str | None:
    """Return the run of a task that was reported under the id of another run, which the original accepts.

    Returns None if the caller may not report on both, or if one of the two does not exist.
    """
    run_name = Run.objects.filter(pk=result.run_id).values_list("name", flat=True).first()
    task = (
        Attempt.objects.of_runs().filter(pk=result.attempt_id).values_list("run_id", "queue", "domain", "name").first()
    )
    if run_name is None or task is None or task[0] == result.run_id:
        return None
    run_id, queue, domain, name = task
    may_report = report_guard(actor) is None or is_allowed(
        actor, TASK_REPORT_RIGHTS, task_target(queue, domain, name, result.run_id, run_name)
    )
    return run_id if may_report else None


def _report_result(result: TaskResult, actor: Actor, next_claim: NextClaim | None) -> bool:
    guard = report_guard(actor)
    if result.report is None:
        is_accepted = renew_lease(result.run_id, result.attempt_id, actor.name, guard, result.worker)
        if not is_accepted and result.supports_cancellation:
            _require_in_time(result, actor)
        return False
    final_query = next_claim.final_query if next_claim and result.is_final else None
    options = ReportOptions(result.logs, result.output_path, guard, final_query)
    is_accepted = report_task(result.run_id, result.attempt_id, result.report, actor.name, options)
    if not is_accepted and result.supports_cancellation:
        _require_in_time(result, actor)
    return not is_accepted or result.is_final


def _require_in_time(result: TaskResult, actor: Actor) -> None:
    """Check that a report that changed nothing is the repetition of one that was accepted."""
    attempts = Attempt.objects.of_runs().filter(pk=result.attempt_id)
    targets_of_task = targets.targets_of_attempts(attempts)
    if not (targets_of_task and all(is_allowed(actor, TASK_VIEW_RIGHTS, target) for target in targets_of_task)):
        return
    attempt = find_attempt(result.attempt_id)
    is_repeated = result.report is not None and result.is_final and attempt.status == result.report.outcome
    if not is_repeated:
        raise ReportTooLate(attempt)


def report_guard(actor: Actor) -> Guard | None:
    """Return a check that the actor may report on a task, or None if it may report on all tasks."""
    return (
        None
        if actor.permissions.allows_all((EXECUTE, TASK_DEF))
        else lambda target: require_permission(actor, TASK_REPORT_RIGHTS, [target])
    )


class TaskUpdates(WorkerView):
    """POST /api/tasks: report the result of an attempt, or extend its lease.

    A late report of a worker that supports cancellation gets the task in place of its id.
    """

    @ApiOperation(
        "Report the result of a task",
        can_report_loaded_task,
        reply=PLAIN_TEXT,
        other_reply=shapes.TASK,
        body=TASK_RESULT,
    )
    def post(self, request: WorkerRequest) -> HttpResponse:
        result = parse_task_result(read_report(request))
        try:
            report_result(result, request.actor)
        except ReportTooLate as late:
            return late.reply
        return PlainText(result.attempt_id)


class TaskUpdatesWithNext(WorkerView):
    """POST /api/tasks/update-v2: report the result of an attempt and claim the next task of the same queue."""

    @ApiOperation(
        "Report the result of a task and poll for the next one",
        can_report_loaded_task,
        reply=shapes.TASK,
        body=TASK_RESULT,
        can_be_empty=True,
    )
    def post(self, request: WorkerRequest) -> HttpResponse:
        result, actor = parse_task_result(read_report(request)), request.actor

        # A person, or a caller who reports as operator of the workflow, is no worker of the queue.
        claim = NextClaim(result.attempt_id, result.worker, partial(may_claim, actor), waiting_client(request))
        steps = claim.begin_after(lambda: report_result(result, actor, claim))
        try:
            # The report is the first step.
            return reply_after(request, steps, render_delivered(first_task_reply))
        except ReportTooLate as late:
            return late.reply


class TaskOne(ConductorView):
    """GET /api/tasks/{taskId}: get a task, at once or after it has ended or reached a status."""

    @ApiOperation(
        "Get a task, or wait for its end or a status",
        can_view_task,
        reply=shapes.TASK,
        query={"waitForStatus": str, "waitForSeconds": int},
    )
    def get(self, request: ConductorRequest, task_id: str) -> HttpResponse:
        query = request.query
        if not ("waitForStatus" in query.values or "waitForSeconds" in query.values):
            return Json(wire_task(find_attempt(task_id)))
        awaited = serializers.parse_statuses(query.text("waitForStatus"))
        seconds = max(query.integer("waitForSeconds", DEFAULT_WAIT_SECONDS), 0)
        wait = begin_task_wait(task_id, awaited, seconds, waiting_client(request))
        return reply_after(request, wait, lambda _: Json(wire_task(find_attempt(task_id))))


class TaskByReference(ConductorView):
    """POST /api/tasks/{workflowId}/{taskRef}/{status}: end the open task with this reference name."""

    @ApiOperation(
        "Complete or fail an open task by its reference name",
        can_report_by_reference,
        reply=PLAIN_TEXT,
        body=read_mapping,
        query={"workerid": str},
        empty_when="no open task has this reference name",
    )
    def post(self, request: ConductorRequest, workflow_id: str, ref: str, status: str) -> HttpResponse:
        attempt_id = resolve_by_reference(request, workflow_id, ref, status)
        return PlainText(attempt_id) if attempt_id else EmptyOk()


class TaskByReferenceAndWorkflow(ConductorView):
    """POST /api/tasks/{workflowId}/{taskRef}/{status}/sync: end an open task, and return the workflow."""

    @ApiOperation(
        "Complete or fail an open task by its reference name and get the workflow",
        can_report_and_view_run,
        reply=shapes.WORKFLOW,
        body=read_mapping,
        query={"workerid": str},
    )
    def post(self, request: ConductorRequest, workflow_id: str, ref: str, status: str) -> HttpResponse:
        find_run(workflow_id)
        if resolve_by_reference(request, workflow_id, ref, status) is None:
            raise NotFound(f"Found no running task {ref} of workflow {workflow_id} to update")
        return Json(wire_runs(Run.objects.filter(pk=workflow_id))[0])


def resolve_by_reference(request: ConductorRequest, workflow_id: str, ref: str, status: str) -> str | None:
    """Merge the body into the output of an open task and report its status. Returns the id of the task."""
    outcome, worker = parse_outcome(status), request.query.text("workerid")
    try:
        output = request_body.read_object(request) if request_body.read_bytes(request) else {}
    except request_body.UnreadableBody as error:
        # Without the name of a worker, the caller may be a person, who corrects the output.
        if worker and outcome != "IN_PROGRESS":
            with suppress(Invalid, NotFound, Conflict):
                report = Report("FAILED", reason=error.message, worker=worker)
                report_by_ref(workflow_id, ref, report, request.actor.name)
        raise
    report = Report(outcome=outcome, output=output, worker=worker, merges=True)
    return report_by_ref(workflow_id, ref, report, request.actor.name)


class TaskLogs(ConductorView):
    """GET, POST /api/tasks/{taskId}/log: get the log, or add a line."""

    @ApiOperation("Get the log of a task", can_view_task, reply=ArrayOf(serializers.SENT_LOG), can_be_empty=True)
    def get(self, request: ConductorRequest, task_id: str) -> HttpResponse:
        lines = load_logs(task_id)
        return Json(lines) if lines else NoContent()

    @ApiOperation("Add a line to the log of a task", can_log_task, body=PLAIN_TEXT)
    def post(self, request: ConductorRequest, task_id: str) -> None:
        add_log(task_id, parse_line(request_body.read_text(request)))


def parse_line(sent: bytes) -> str:
    """Return a log line: some clients send it as it is, one as a JSON string (api §8.3)."""
    try:
        value = orjson.loads(sent)
    except ValueError:
        value = None
    return value if isinstance(value, str) else sent.decode(errors="replace")


class InputProvenance(ConductorView):
    """GET /api/insight/tasks/{taskId}/provenance: list where each expression of a task's input got its value."""

    @ApiOperation("Explain the input of a task", can_view_task, reply=serializers.PROVENANCE)
    def get(self, request: ConductorRequest, task_id: str) -> HttpResponse:
        attempt = find_attempt(task_id)
        definition = parsed_definition(attempt.run.resolved_definition_id) if attempt.run else None
        origins = input_origins(attempt, definition.step(attempt.task.ref) if definition else None)
        return Json({"taskId": attempt.pk, "inputs": [_origin_document(origin) for origin in origins]})


def _origin_document(origin: InputOrigin) -> dict[str, Any]:
    facts = {
        "parameter": origin.parameter,
        "expression": origin.expression,
        "source": origin.source,
        "taskReferenceName": origin.task,
        "hint": origin.hint,
    }
    known = {name: value for name, value in facts.items() if value}
    return {**known, "isFound": origin.is_found, "value": origin.value if origin.is_found else None}
