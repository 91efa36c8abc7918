"""Execution of the actions of event handlers. An action's effect and the deletion of its message commit together."""

import logging
from collections.abc import Callable
from functools import cached_property
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from ... import clock, conf
from ...access.current_actor import acting_as_owner
from ...access.masking import decrypt_masked
from ...access.uses import require_run_control
from ...core import commands, reports
from ...core.child_run import depth_after_event
from ...core.definition import possible_keys
from ...core.errors import Busy, Invalid, NotFound, PayloadOverLimit, RequestRefused, ValidationFailed
from ...core.events import expand_json_texts, resolve_event_template
from ...core.expressions import field_text, quote_value
from ...core.reports import Report
from ...core.step_types.field_checks import whole_number
from ...models import Attempt, EventAction, Message, Run, Task
from ...models.events import COMPLETED, FAILED, IN_PROGRESS
from ...store import outbox_messages
from ...store.definitions import max_value_bytes
from ...store.rows import format_iteration_path, strip_nul
from ...transient_errors import is_transient
from ..runs import run_commands
from ..runs.change import Audit, RunCommand, change_run
from ..tasks import task_commands
from .event_intake import stored_payloads

log = logging.getLogger(__name__)

MAX_TRIES = 20
"""Tries of an action that fails with an unexpected exception. With the outbox's delays they take about 20 minutes.

Transient errors, such as those of a database that is away, do not end it."""
MAX_ERRORS = 20

Params = dict[str, Any]


class AlreadyHandled(Exception):
    """Another process has executed this action already."""


class ActionRequest:
    """An action to execute: its row and its message. Its methods complete or fail both."""

    def __init__(self, message: Message, row: EventAction) -> None:
        self.message, self.row = message, row
        self.by = f"event handler {row.handler}"
        self.reason = f"Event {row.delivery.event}, message {row.delivery.message_id}."

    @cached_property
    def payload(self) -> Any:
        """The payload of the event, with its masked values decrypted."""
        return decrypt_masked(stored_payloads([self.row.delivery_id])[self.row.delivery_id])

    def done(self, run_id: str, output: dict[str, Any] | None = None) -> Callable[[int], None]:
        """Return a function that completes the action inside the transaction of its effect: the effect happens once."""

        def close(now: int) -> None:
            if not outbox_messages.consume(self.message.pk):
                raise AlreadyHandled
            facts = {"run_id": run_id[:64], "output": output or {}, "error": ""}
            self._rows().update(status=COMPLETED, ended_at=now, **facts)

        return close

    def failed(self, why: str, output: dict[str, Any] | None = None) -> None:
        """Mark the action as failed, and save the reason."""
        facts = {"error": strip_nul(why)[:2000], "output": output or {}}
        with transaction.atomic():
            if outbox_messages.consume(self.message.pk):
                self._rows().update(status=FAILED, ended_at=clock.now(), **facts)

    def _rows(self) -> QuerySet[EventAction]:
        return EventAction.objects.filter(pk=self.row.pk, status=IN_PROGRESS)


def run_action(message: Message) -> None:
    """Execute one action. A refused action is marked as failed.

    Raises:
        Exception: when the action met a transient error, or an unexpected one, up to MAX_TRIES times. The outbox
            repeats it.
    """
    rows = EventAction.objects.select_related("delivery").defer("delivery__payload")
    row = rows.filter(pk=message.facts["action"]).first()
    if row is None or row.status != IN_PROGRESS:
        outbox_messages.consume(message.pk)
        return
    order = ActionRequest(message, row)
    try:
        with acting_as_owner(row.owner_id):
            _dispatch_action(order)
    except AlreadyHandled:
        return
    except Exception as error:
        if isinstance(error, ValidationFailed):
            order.failed(*_describe_validation(error))
        elif isinstance(error, RequestRefused) and not isinstance(error, Busy):
            order.failed(error.message)
        elif isinstance(error, PayloadOverLimit):
            order.failed(str(error))
        elif not is_transient(error) and message.tries + 1 >= MAX_TRIES:
            log.exception("event_action_given_up", extra={"action_id": row.pk})
            order.failed(f"Stopped after {MAX_TRIES} tries: {type(error).__name__}.")
        else:
            raise


def _describe_validation(failed: ValidationFailed) -> tuple[str, dict[str, Any]]:
    """Return the validation errors as one text and as an output."""
    refused = [{"path": each.path, "message": each.message} for each in failed.validation_errors[:MAX_ERRORS]]
    return "; ".join(f"{each['path']}: {each['message']}" for each in refused), {"refused": refused}


def _dispatch_action(order: ActionRequest) -> None:
    written = order.row.document
    action = ACTIONS.get(order.row.action)
    if action is None:
        raise Invalid(f"Unknown action '{order.row.action}'. Use one of: {', '.join(ACTIONS)}.")
    given = written.get(order.row.action)
    if not isinstance(given, dict):
        raise Invalid(f"The action has no object '{order.row.action}' with its parameters.")
    payload = order.payload
    action(
        order,
        resolve_event_template(
            given,
            expand_json_texts(payload) if written.get("expandInlineJSON") is True else payload,
            max_value_bytes(),
        ),
    )


def _start_workflow(order: ActionRequest, params: Params) -> None:
    name = params.get("name")
    if not isinstance(name, str) or not name:
        raise Invalid(f"start_workflow needs the `name` of a workflow (got {quote_value(name)}).")
    delivery = order.row.delivery
    given = {**order.payload} if order.row.document.get("takesPayload") else _require_object(params, "input")
    about = {"conductor.event.messageId": delivery.message_id, "conductor.event.name": delivery.event}
    request = run_commands.StartRequest(
        name=name,
        version=_parse_version(params.get("version")),
        input={**given, **about},
        correlation_id=_text(params.get("correlationId")),
        domains=_domains(params, order.payload),
        event=delivery.event,
        depth=_depth_in_chain(order),
    )
    run_commands.start(request, order.by, within_transaction=lambda id: order.done(id, {"workflowId": id})(clock.now()))


def _depth_in_chain(order: ActionRequest) -> int:
    """Return the depth of a run that this event starts: events of runs name their publisher.

    Raises:
        StepRefused: when its publisher is the last run of a chain of the maximum length.
    """
    id = order.payload.get("workflowInstanceId") if isinstance(order.payload, dict) else None
    publisher = Run.objects.filter(pk=id).values_list("depth", "created_at").first() if isinstance(id, str) else None
    return depth_after_event(*publisher, order.row.delivery.received_at, conf.max_workflow_depth) if publisher else 0


def _domains(params: Params, payload: Any) -> dict[str, str]:
    """Return the domains of the action, or of the run that published the event (execution §10.6)."""
    inherited = payload.get("taskToDomain") if isinstance(payload, dict) else None
    found = _require_object(params, "taskToDomain") or (inherited if isinstance(inherited, dict) else {})
    return {str(each): _text(domain) for each, domain in found.items()}


def _parse_version(given: Any) -> int | None:
    if given in (None, ""):
        return None
    if (version := whole_number(given)) is None:
        raise Invalid(f"The version of a workflow must be a whole number (got {quote_value(given)}).")
    return version


def _complete_task(order: ActionRequest, params: Params) -> None:
    _report_on_task(order, params, "COMPLETED")


def _fail_task(order: ActionRequest, params: Params) -> None:
    _report_on_task(order, params, "FAILED")


def _report_on_task(order: ActionRequest, params: Params, outcome: str) -> None:
    attempt = _find_attempt(params)
    require_run_control(attempt.run_id or "", attempt.queue)
    found = {name: params.get(name) for name in ("workflowId", "taskId", "taskRefName")}
    reason = _text(params.get("reasonForIncompletion")) or ("" if outcome == "COMPLETED" else order.reason)
    takes_payload = order.row.document.get("takesPayload") and isinstance(order.payload, dict)
    output = order.payload if takes_payload else {**found, **_require_object(params, "output")}
    report = task_commands.enforce_output_limit(Report(outcome, output, reason))
    change_run(
        RunCommand(
            attempt.run_id or "",
            reports.apply_report(attempt.id, report),
            order.by,
            order.reason,
            attempts=[attempt.id],
            within_transaction=order.done(attempt.run_id or "", {"taskId": attempt.id}),
        )
    )


def _find_attempt(params: Params) -> Attempt:
    """Return the attempt with this id, or the current attempt of a step's newest task: in a loop the last iteration.

    Raises:
        NotFound: when there is none.
    """
    id, run_id, ref = (_text(params.get(name)) for name in ("taskId", "workflowId", "taskRefName"))
    if id:
        found = Attempt.objects.of_runs().defer_payloads().filter(pk=id).first()
    else:
        task = _newest_task(run_id, ref)
        found = Attempt.objects.defer_payloads().filter(pk=task.attempt_id).first() if task else None
    if found is None:
        raise NotFound(f"No task found with taskId: {id}, workflowId: {run_id}, taskRefName: {ref}.")
    return found


def _newest_task(run_id: str, name: str) -> Task | None:
    [own, *in_iterations] = possible_keys(name)
    rows = Task.objects.filter(run_id=run_id).order_by("-seq")
    ways = Q(ref=own.ref)
    for key in in_iterations:
        ways |= Q(ref=key.ref, iteration_path=format_iteration_path(key.iteration_path))
    return rows.filter(ways).first()


def _terminate_workflow(order: ActionRequest, params: Params) -> None:
    run_id, reason = _run_id(params), _text(params.get("terminationReason")) or order.reason
    _change_run(order, run_id, commands.terminate_run(reason), reason, "terminate")


def _set_variables(order: ActionRequest, params: Params) -> None:
    values, appends = _require_object(params, "variables"), params.get("appendArray") is True
    _change_run(order, _run_id(params), commands.set_variables(values, appends), order.reason, "update_variables")


def _change_run(order: ActionRequest, run_id: str, command: Any, reason: str, action: str) -> None:
    require_run_control(run_id)
    change_run(
        RunCommand(
            run_id,
            command,
            order.by,
            reason,
            audit=Audit(action),
            within_transaction=order.done(run_id, {"workflowId": run_id}),
        )
    )


def _run_id(params: Params) -> str:
    if run_id := _text(params.get("workflowId")):
        return run_id
    raise Invalid("The action needs a workflowId.")


def _require_object(params: Params, name: str) -> dict[str, Any]:
    value = params.get(name)
    if value is not None and not isinstance(value, dict):
        raise Invalid(f"{name} must be an object (got {quote_value(value)}).")
    return dict(value or {})


def _text(value: Any) -> str:
    return field_text(value).replace("\0", "")


ACTIONS: dict[str, Callable[[ActionRequest, Params], None]] = {
    "start_workflow": _start_workflow,
    "complete_task": _complete_task,
    "fail_task": _fail_task,
    "terminate_workflow": _terminate_workflow,
    "update_workflow_variables": _set_variables,
}
