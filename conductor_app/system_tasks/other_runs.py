"""UPDATE_TASK, GET_WORKFLOW and TERMINATE_WORKFLOW tasks, which read and change runs by their ids.

The ids are data, so the workers have the permissions of the starter of their run. A run may always be read and changed
by its own tasks. Secrets in the inputs are not resolved: the other run would store their values.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ..access.authentication import acting_as_owner
from ..access.grants import require_run_control, require_run_view
from ..core.decide import Report
from ..core.errors import Busy, Conflict, Invalid, NotFound, RequestRefused
from ..core.expressions import field_text, quote_value
from ..core.primitives import JsonValue
from ..core.states import ATTEMPT, COMPLETED, FAILED, FAILED_FOR_GOOD, TERMINATED
from ..core.step_types.sub_workflows import GetWorkflowStep, TerminateWorkflowStep, UpdateTaskStep
from ..events.commands.handlers import find_named_attempt
from ..payloads.commands import load_payload
from ..runs.commands import control
from ..runs.documents.workflows import raise_run_not_found, run_document
from ..runs.models import Attempt, Run
from ..tasks.commands.reports import report_task
from ..tasks.store import ClaimedAttempt
from .registry import BuiltInWorker, Status, WorkResult

OUTCOMES = {"COMPLETED": COMPLETED, "FAILED": FAILED, "FAILED_WITH_TERMINAL_ERROR": FAILED_FOR_GOOD}
"""The outcome of an attempt by the `taskStatus` that the step sets."""
MAX_RUNS = 1_000
"""The maximum number of runs that one task terminates."""
PAYLOAD_PATHS = {"externalInputPayloadStoragePath": "input", "externalOutputPayloadStoragePath": "output"}
Inputs = Mapping[str, Any]


class OtherRunWorker(BuiltInWorker):
    """Executes its tasks with the permissions of the starter of their run."""

    if_missing: Status = "FAILED_WITH_TERMINAL_ERROR"
    """The status of a task whose run or task does not exist."""

    def work_on(self, attempt: ClaimedAttempt) -> WorkResult:
        """Execute a claimed attempt. What cannot succeed later is not tried again."""
        starter_id = Run.objects.filter(pk=attempt.run_id).values_list("starter_id", flat=True).first()
        if starter_id is None:
            return WorkResult("FAILED_WITH_TERMINAL_ERROR", {}, "The run of the task was removed.")
        try:
            with acting_as_owner(starter_id):
                return WorkResult("COMPLETED", self.act(attempt, attempt.input))
        except Busy as busy:
            return WorkResult("FAILED", {}, busy.message)
        except NotFound as missing:
            return WorkResult(self.if_missing, {}, missing.message)
        except RequestRefused as refused:
            return WorkResult("FAILED_WITH_TERMINAL_ERROR", {}, refused.message)

    def act(self, attempt: ClaimedAttempt, inputs: Inputs) -> dict[str, Any]:
        """Return the output of the task.

        Raises:
            RequestRefused: when an input is invalid, a permission is missing, or there is no such run or task.
        """
        raise NotImplementedError


class UpdateTaskWorker(OtherRunWorker):
    """Reports on a task as a client does with `POST /tasks`."""

    type = UpdateTaskStep.type
    if_missing = "FAILED"  # the other run may create the task later

    def act(self, attempt: ClaimedAttempt, inputs: Inputs) -> dict[str, Any]:
        outcome = OUTCOMES.get(status) if isinstance(status := inputs.get("taskStatus"), str) else None
        if outcome is None:
            raise Invalid(f"`taskStatus` must be one of {', '.join(OUTCOMES)}, not {quote_value(status)}.")
        output = inputs.get("taskOutput") or {}
        if not isinstance(output, dict):
            raise Invalid(f"`taskOutput` must be an object, not {quote_value(output)}.")
        found = _find_attempt(attempt, inputs)
        reason = "" if outcome == COMPLETED else f"Set by {_describe(attempt)}."
        report = Report(outcome, output, reason, merges=_flag(inputs, "mergeOutput"))
        run_id = found.run_id or ""
        if found.status in ATTEMPT.final or not report_task(run_id, found.pk, report, _describe(attempt)):
            _require_repeated(found.pk, outcome)
        return {"workflowId": run_id, "taskId": found.pk, "taskOutput": output}


def _find_attempt(attempt: ClaimedAttempt, inputs: Inputs) -> Attempt:
    """Return the attempt that the inputs name, if the starter may report on it."""
    names = {name: _text(inputs, name) for name in ("taskId", "workflowId", "taskRefName")}
    if not (names["taskId"] or (names["workflowId"] and names["taskRefName"])):
        raise Invalid("UPDATE_TASK requires `taskId`, or `workflowId` and `taskRefName`.")
    found = find_named_attempt(names)
    if found.run_id != attempt.run_id:
        require_run_control(found.run_id or "", found.queue)
    return found


def _require_repeated(attempt_id: str, outcome: str) -> None:
    """Check that a task has ended as the step sets it: an earlier execution of the step may have done it."""
    status = Attempt.objects.filter(pk=attempt_id).values_list("status", flat=True).first()
    if status != outcome:
        raise Conflict(f"Task {attempt_id} has already ended with status {status or 'unknown'}.")


class GetWorkflowWorker(OtherRunWorker):
    """Returns a run like `GET /workflow/{workflowId}`, without its definition."""

    type = GetWorkflowStep.type

    def act(self, attempt: ClaimedAttempt, inputs: Inputs) -> dict[str, Any]:
        run_id = _text(inputs, "id")
        if not run_id:
            raise Invalid("GET_WORKFLOW requires `id`, the id of a workflow.")
        if run_id != attempt.run_id:
            require_run_view(run_id)
        run = Run.objects.filter(pk=run_id).first() or raise_run_not_found(run_id)
        document = run_document(run, with_tasks=_flag(inputs, "includeTasks"))
        del document["workflowDefinition"]
        for name, payload in PAYLOAD_PATHS.items():
            if path := document.pop(name, None):
                document[payload] = load_payload(path)
        return document


class TerminateWorkflowWorker(OtherRunWorker):
    """Terminates runs, after all of them are known to exist and to be permitted."""

    type = TerminateWorkflowStep.type

    def act(self, attempt: ClaimedAttempt, inputs: Inputs) -> dict[str, Any]:
        ids = _run_ids(inputs.get("workflowId"))
        for id in ids:
            if id != attempt.run_id:
                require_run_control(id)
        known = set(Run.objects.filter(pk__in=ids).values_list("pk", flat=True))
        if missing := [id for id in ids if id not in known]:
            raise_run_not_found(missing[0])
        by = _describe(attempt)
        reason = _text(inputs, "terminationReason") or f"Terminated by {by}."
        # Its own run comes last: its end cancels this task.
        for id in sorted(ids, key=lambda id: id == attempt.run_id):
            with suppress(NotFound, Conflict):
                control.terminate_run(id, by, reason, _flag(inputs, "triggerFailureWorkflow"))
        ended = set(Run.objects.filter(pk__in=ids, status=TERMINATED).values_list("pk", flat=True))
        return {"terminatedWorkflows": [id for id in ids if id in ended]}


def _run_ids(given: JsonValue) -> list[str]:
    """Return the ids in a text or a list, one of whose items may be a list that an expression has resolved to."""
    items = [inner for item in (given if isinstance(given, list) else [given]) for inner in _as_list(item)]
    if not items or not all(isinstance(id, str) and id and "\0" not in id for id in items):
        raise Invalid(f"`workflowId` must be a list of ids of workflows, not {quote_value(given)}.")
    ids = list(dict.fromkeys(items))
    if len(ids) > MAX_RUNS:
        raise Invalid(f"`workflowId` must have at most {MAX_RUNS} ids.")
    return ids


def _as_list(item: JsonValue) -> list[Any]:
    return item if isinstance(item, list) else [item]


def _text(inputs: Inputs, name: str) -> str:
    return field_text(inputs.get(name)).replace("\0", "")


def _flag(inputs: Inputs, name: str) -> bool:
    return str(inputs.get(name)).lower() == "true"


def _describe(attempt: ClaimedAttempt) -> str:
    """Return who acts, for reasons and the history of the other run."""
    return f"workflow {attempt.run.name} {attempt.run_id}"
