"""Views that explain a run, or plan an operation before it is applied, and the documents of causes and plans."""

from dataclasses import asdict, replace
from typing import Any

from django.http import HttpResponse

from ..access.tokens import open_plan, sign_plan
from ..access.visibility import visible
from ..core.document.fields import (
    ChoiceOf,
    FieldSpec,
    FieldTable,
    IntegerOf,
    ListOf,
    MapOf,
    NamedTable,
    ObjectOf,
    OrNull,
    read_any,
    read_boolean,
    read_mapping,
    read_name,
    read_number,
    read_text,
    texts,
)
from ..core.errors import Invalid
from ..core.states import RUN
from ..core.task_impact import IMPACTS, TaskImpact
from ..runs.commands.plans import (
    FORWARD_OPERATIONS,
    OPERATIONS,
    Operation,
    OperationPlan,
    PlannedRun,
    apply_operation,
    plan_operation,
)
from ..runs.documents.workflows import find_run, raise_run_not_found
from ..runs.models import Attempt, Run
from ..runs.queries.comparison import (
    DOCUMENTS,
    ComparedTask,
    RunComparison,
    compare_runs,
    comparison_candidates,
    find_run_id,
)
from ..tasks.queries.queues import QueuePosition, queue_position
from ..tasks.queries.waiting import GateVerdict
from ..utils import clock
from ..utils.differences import MISSING, Difference
from ..web.api import requests as request_body
from ..web.api.documents import LONG, WORKFLOW_STATUS, fields_of_type
from ..web.api.operations import NO_CONTENT, ApiOperation, Json
from ..web.api.permissions import can_control_run, can_view_run, may_debug
from ..web.api.requests import read_request
from ..web.api.view import ConductorRequest, ConductorView
from .cause import Cause, run_cause

Document = dict[str, Any]
PLAN_REQUEST = NamedTable(
    "PlanOperationRequest",
    FieldSpec("operation", ChoiceOf(*OPERATIONS)),
    FieldSpec("taskId", read_name, ""),
    FieldSpec("taskReferenceName", read_name, ""),
    *fields_of_type(read_mapping, "taskInput", "taskOutput", "workflowInput"),
    FieldSpec("version", read_text, ""),
    FieldSpec("resumeSubworkflows", read_boolean, False),
    FieldSpec("triggerFailureWorkflow", read_boolean, False),
    FieldSpec("reason", read_text, ""),
)
"""An operation on a run. `version`: a number, or `latest`."""
APPLY_REQUEST = NamedTable(
    "ApplyPlanRequest", FieldSpec("confirmationToken", read_text), FieldSpec("reason", read_text, "")
)
LATEST = "latest"


def parse_plan_request(document: Document) -> Operation:
    """Return the operation that a request describes."""
    fields = read_request(document, PLAN_REQUEST, "planOperation.request")
    if not fields.get("operation"):
        raise Invalid(f"The field 'operation' is missing. Use one of: {', '.join(OPERATIONS)}.")
    version = fields["version"].strip()
    if version not in ("", LATEST) and not (version.isascii() and version.isdigit() and len(version) < 10):
        raise Invalid(f"The version must be a number or 'latest' (got {version[:40]!r}).")
    return Operation(
        fields["operation"],
        attempt_id=fields["taskId"],
        ref=fields["taskReferenceName"],
        task_input=fields.get("taskInput"),
        task_output=fields.get("taskOutput"),
        input=fields.get("workflowInput"),
        version=int(version) if version.isdigit() else None,
        latest=version == LATEST,
        resume_children=fields["resumeSubworkflows"],
        with_failure=fields["triggerFailureWorkflow"],
        reason=fields["reason"][:500],
    )


def parse_apply_request(document: Document) -> tuple[str, str]:
    """Return the confirmation token and the reason of a request."""
    fields = read_request(document, APPLY_REQUEST, "applyOperation.request")
    if not fields.get("confirmationToken"):
        raise Invalid("The field 'confirmationToken' is missing. The response of a plan contains it.")
    return fields["confirmationToken"], fields["reason"][:500]


def cause_document(run: Run, cause: Cause, position: QueuePosition | None) -> Document:
    """Return why a run has its status. `position`: of the pending task that the sentence names."""
    facts: Document = {
        "workflowId": run.pk,
        "workflowName": run.name,
        "version": run.version,
        "status": run.status,
        "sentence": cause.sentence,
        "isWaiting": cause.is_waiting,
        "taskReferenceName": cause.task,
        "taskId": cause.attempt_id,
        "subWorkflowId": cause.child_id,
        "undeliveredMessageId": cause.message_id or "",
    }
    document = {name: value for name, value in facts.items() if value not in ("", None)}
    document["gates"] = [gate_document(verdict) for verdict in cause.verdicts]
    document["operations"] = possible_operations(run)
    return document | ({"queuePosition": position_document(position)} if position else {})


def possible_operations(run: Run) -> list[str]:
    """Return the operations that the run's status allows."""
    rewinds = ("rewind",) if run.next_seq > 1 and not (run.parent_id and run.status in RUN.open) else ()
    by_state = [name for name in OPERATIONS if name not in FORWARD_OPERATIONS and _changes_status(name, run.status)]
    return [*by_state, *rewinds, *(FORWARD_OPERATIONS if run.status == "RUNNING" else ())]


def _changes_status(operation: str, status: str) -> bool:
    if operation == "terminate" and status in RUN.final:
        return False
    return RUN.allows(status, operation) and RUN.after(status, operation) != status


def gate_document(verdict: GateVerdict) -> Document:
    """Return one condition that a pending task must meet."""
    holders = [
        {
            "workflowId": holder.run_id,
            **({"taskId": holder.attempt_id} if holder.attempt_id else {}),
            **({"workerId": holder.worker} if holder.worker else {}),
            "since": holder.since,
        }
        for holder in verdict.holders
    ]
    return {"gate": verdict.gate, "isOpen": verdict.is_open, "sentence": verdict.sentence, "holders": holders}


def position_document(position: QueuePosition) -> Document:
    """Return the position of a pending task in its queue, with the estimated wait in milliseconds if it is known."""
    estimated = {"ratePerSecond": position.rate, "earliestMs": position.earliest_ms, "estimatedMs": position.eta_ms}
    known = {name: value for name, value in estimated.items() if value is not None}
    return {"tasksAhead": position.ahead, "isLowerBound": position.is_capped, "sentence": position.sentence, **known}


def plan_document(plan: OperationPlan) -> Document:
    """Return what an operation would do to each task of each affected run."""
    return {
        "workflowId": plan.run_id,
        "changedWorkflowId": plan.target,
        "revision": plan.revision,
        "operation": plan.operation.name,
        "counts": {impact_name(name): count for name, count in plan.counts.items()},
        "repeatsExternalEffects": [
            {"workflowId": run.run_id, "taskReferenceName": str(impact.key)} for run, impact in plan.external
        ],
        "isIncomplete": plan.is_cut,
        "workflows": [_planned_run_document(run) for run in plan.runs],
    }


def _planned_run_document(run: PlannedRun) -> Document:
    return {
        "workflowId": run.run_id,
        "workflowName": run.definition,
        "version": run.version,
        "status": run.status,
        "statusAfter": run.then,
        "isNew": run.is_new,
        "isReplaced": run.is_replaced,
        "tasks": [_impact_document(impact) for impact in run.impacts],
    }


def _impact_document(impact: TaskImpact) -> Document:
    return {
        "taskReferenceName": str(impact.key),
        "type": impact.step.type,
        "status": impact.status,
        "impact": impact_name(impact.name),
        "repeatsEffects": impact.repeats_effects,
        **({"taskId": impact.attempt_id} if impact.attempt_id else {}),
        **({"subWorkflowId": impact.child_id} if impact.child_id else {}),
    }


def impact_name(name: str) -> str:
    """Return the name of an impact in responses: a sentence of the plan in capitals."""
    return IMPACTS[name].upper().replace(" ", "_").replace("-", "_")


def comparison_document(comparison: RunComparison) -> Document:
    """Return the tasks of two runs side by side, and the differences of their payloads."""
    return {
        "workflowId": comparison.one.pk,
        "otherWorkflowId": comparison.other.pk,
        "haveSameDefinition": comparison.have_same_definition,
        "haveSameVersion": comparison.have_same_version,
        "areIdentical": comparison.are_identical,
        "isIncomplete": comparison.is_cut,
        "tasks": [
            {
                "taskReferenceName": row.key,
                "differs": row.differs,
                "one": _compared_task_document(row.one),
                "other": _compared_task_document(row.other),
                **({} if row.delta_ms is None else {"deltaMs": row.delta_ms}),
            }
            for row in comparison.rows
        ],
        "payloads": {
            name: None if found is None else [difference_document(each) for each in found]
            for name, found in comparison.documents.items()
        },
    }


def _compared_task_document(task: ComparedTask | None) -> Document | None:
    if task is None:
        return None
    facts = {"queueMs": task.waited_ms, "durationMs": task.ran_ms, "workerId": task.worker, "taskId": task.attempt_id}
    known = {name: value for name, value in facts.items() if value not in (None, "")}
    return {"status": task.status, "attempts": task.attempts, **known}


def difference_document(difference: Difference) -> Document:
    """Return a difference of two JSON values. A value that exists on one side only has no member for the other."""
    sides = {"before": difference.before, "after": difference.after}
    present = {name: value for name, value in sides.items() if value is not MISSING}
    return {"path": difference.path, "kind": difference.kind, **present}


TASK_OF_RUN = NamedTable("TaskOfWorkflow", *fields_of_type(read_text, "workflowId", "taskReferenceName"))
GATE_HOLDER = NamedTable(
    "GateHolder", *fields_of_type(read_text, "workflowId", "taskId", "workerId"), FieldSpec("since", OrNull(LONG))
)
GATE = NamedTable(
    "Gate",
    *fields_of_type(read_text, "gate", "sentence"),
    FieldSpec("isOpen", read_boolean),
    FieldSpec("holders", ListOf(ObjectOf(GATE_HOLDER))),
)
POSITION = NamedTable(
    "QueuePosition",
    *fields_of_type(LONG, "tasksAhead", "earliestMs", "estimatedMs"),
    FieldSpec("isLowerBound", read_boolean),
    FieldSpec("sentence", read_text),
    FieldSpec("ratePerSecond", read_number),
)
CAUSE = NamedTable(
    "WorkflowCause",
    *fields_of_type(read_text, "workflowId", "workflowName", "sentence", "taskReferenceName", "taskId",
                    "subWorkflowId"),
    FieldSpec("version", IntegerOf()),
    FieldSpec("status", WORKFLOW_STATUS),
    FieldSpec("isWaiting", read_boolean),
    FieldSpec("undeliveredMessageId", LONG),
    FieldSpec("gates", ListOf(ObjectOf(GATE))),
    FieldSpec("operations", texts),
    FieldSpec("queuePosition", ObjectOf(POSITION)),
)  # fmt: skip
IMPACT = NamedTable(
    "TaskImpact",
    *fields_of_type(read_text, "taskReferenceName", "type", "status", "impact", "taskId", "subWorkflowId"),
    FieldSpec("repeatsEffects", read_boolean),
)
PLANNED_WORKFLOW = NamedTable(
    "PlannedWorkflow",
    *fields_of_type(read_text, "workflowId", "workflowName", "status", "statusAfter"),
    FieldSpec("version", IntegerOf()),
    *fields_of_type(read_boolean, "isNew", "isReplaced"),
    FieldSpec("tasks", ListOf(ObjectOf(IMPACT))),
)
PLAN = NamedTable(
    "OperationPlan",
    *fields_of_type(read_text, "workflowId", "changedWorkflowId", "operation", "confirmationToken"),
    *fields_of_type(LONG, "revision", "expiresAt"),
    FieldSpec("counts", MapOf(IntegerOf())),
    FieldSpec("repeatsExternalEffects", ListOf(ObjectOf(TASK_OF_RUN))),
    FieldSpec("isIncomplete", read_boolean),
    FieldSpec("workflows", ListOf(ObjectOf(PLANNED_WORKFLOW))),
)
DIFFERENCE: FieldTable = (*fields_of_type(read_text, "path", "kind"), *fields_of_type(read_any, "before", "after"))
COMPARED_TASK: FieldTable = (
    *fields_of_type(read_text, "status", "workerId", "taskId"),
    FieldSpec("attempts", IntegerOf()),
    *fields_of_type(LONG, "queueMs", "durationMs"),
)
COMPARED_TASKS = NamedTable(
    "ComparedTasks",
    FieldSpec("taskReferenceName", read_text),
    FieldSpec("differs", read_boolean),
    *fields_of_type(OrNull(ObjectOf(COMPARED_TASK)), "one", "other"),
    FieldSpec("deltaMs", LONG),
)
COMPARISON = NamedTable(
    "WorkflowComparison",
    *fields_of_type(read_text, "workflowId", "otherWorkflowId"),
    *fields_of_type(read_boolean, "haveSameDefinition", "haveSameVersion", "areIdentical", "isIncomplete"),
    FieldSpec("tasks", ListOf(ObjectOf(COMPARED_TASKS))),
    FieldSpec("payloads", MapOf(OrNull(ListOf(ObjectOf(DIFFERENCE))))),
)


class RunCause(ConductorView):
    """GET /api/insight/runs/{workflowId}/cause: explain the status of the run and what it waits for.

    `gates`: the conditions that a pending task must meet. `operations`: what the status allows.
    """

    @ApiOperation("Explain the status of a run", can_view_run, reply=CAUSE)
    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        run, now = find_run(workflow), clock.now()
        cause = run_cause(run, now)
        attempt = Attempt.objects.defer_payloads().select_related("run").filter(pk=cause.attempt_id).first()
        is_polled = all(verdict.is_open for verdict in cause.verdicts if verdict.gate == "polled")
        position = queue_position(attempt, now, is_polled=is_polled) if attempt else None
        return Json(cause_document(run, cause, position))


class RunPlan(ConductorView):
    """POST /api/insight/runs/{workflowId}/plan: preview an operation. Nothing is changed.

    `confirmationToken` of the response applies exactly this plan, for ten minutes, unless the run changes before.
    """

    @ApiOperation("Plan an operation on a run", can_control_run, reply=PLAN, body=PLAN_REQUEST)
    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        operation = parse_plan_request(request_body.read_object(request))
        _require_debug_of(request, operation)
        find_run(workflow)
        plan = plan_operation(workflow, operation)
        signed = {"operation": asdict(operation), "revision": plan.revision}
        token, expires_at = sign_plan(workflow, request.actor.name, signed)
        return Json({**plan_document(plan), "confirmationToken": token, "expiresAt": expires_at})


class RunPlanConfirmation(ConductorView):
    """POST /api/insight/runs/{workflowId}/apply: apply a plan, by the token of its response.

    The request fails with 409 if the run has changed since the plan.
    """

    @ApiOperation("Apply the plan of an operation", can_control_run, reply=NO_CONTENT, body=APPLY_REQUEST)
    def post(self, request: ConductorRequest, workflow: str) -> None:
        token, reason = parse_apply_request(request_body.read_object(request))
        plan = open_plan(token, workflow, request.actor.name)
        operation = Operation(**plan["operation"])
        _require_debug_of(request, operation)
        operation = replace(operation, reason=reason or operation.reason)
        apply_operation(workflow, operation, request.actor.name, revision=plan["revision"])


def _require_debug_of(request: ConductorRequest, operation: Operation) -> None:
    """Check the permission of the debugger, if the operation belongs to it."""
    if operation.name == "rewind":
        may_debug.check(request, {})


class RunComparisonView(ConductorView):
    """GET /api/insight/runs/{workflowId}/compare: compare the tasks and payloads of two runs.

    `with`: the id or the correlation id of the other run; otherwise the last success of the same workflow.
    """

    @ApiOperation("Compare two runs", can_view_run, reply=COMPARISON, query={"with": str})
    def get(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        run = find_run(workflow, DOCUMENTS)
        text = request.query.text("with")
        # A run that the caller may not read is like one that does not exist.
        readable = visible(Run.objects.all())
        other_id = find_run_id(text, run) if text else next(iter(comparison_candidates(run).values()), "")
        if not other_id:
            raise Invalid(f"There is no other run of {run.name} to compare with. Name one with the parameter 'with'.")
        if not readable.filter(pk=other_id).exists():
            raise_run_not_found(other_id)
        other = find_run(other_id, DOCUMENTS)
        return Json(comparison_document(compare_runs(run, other)))
