"""Commands on event handlers, their actions, previews of what they would do, and replays of stored events.

An action's effect and the deletion of its message commit together. Previews save nothing.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from time import monotonic
from typing import Any

from django.db import IntegrityError
from django.db.models import Prefetch, Q, QuerySet

from ...access import audit
from ...access.authentication import acting_as_owner, current_user_id
from ...access.encryption import decrypt_masked
from ...access.grants import require_run_control, require_starts
from ...access.visibility import usable
from ...core import commands, decide
from ...core.child_runs import depth_after_event
from ...core.decide import Report
from ...core.definition import possible_keys
from ...core.errors import Busy, Conflict, Invalid, NotFound, PayloadOverLimit, RequestRefused, ValidationFailed
from ...core.events import expand_json_texts, resolve_event_template
from ...core.expressions import field_text, quote_value
from ...core.masking import redact_masked
from ...core.primitives import JsonValue, derived_id
from ...core.step_types.base import whole_number
from ...core.trace_context import HEADER, parse_traceparent
from ...db.database import transaction
from ...db.fields import strip_nul
from ...db.transient_errors import is_transient
from ...definitions.models import WorkflowDefinition
from ...definitions.store import max_value_bytes
from ...runs.commands import repair
from ...runs.commands.change import Audit, RunCommand, change_run
from ...runs.commands.messages import deliver_after_commit
from ...runs.commands.start import StartRequest, start_run
from ...runs.models import Attempt, Message, Run, Task
from ...runs.store.outbox import consume
from ...runs.store.rows import format_iteration_path
from ...settings import conf
from ...utils import clock, randomness
from ..models import (
    COMPLETED,
    FAILED,
    IN_PROGRESS,
    MATCHED,
    EventAction,
    EventDelivery,
    EventHandler,
    HandlerEvaluation,
    Webhook,
)
from ..queries import visible_deliveries, visible_results
from .intake import HandlerVerdict, evaluate_condition, handlers_for, save_verdicts, stored_payloads
from .webhooks import built_in_handlers

Document = dict[str, Any]
log = logging.getLogger(__name__)
MAX_TRIES = 20
"""Tries of an action that fails with an unexpected exception. With the outbox's delays they take about 20 minutes.

Transient errors, such as those of a database that is away, do not end it."""
MAX_ERRORS = 20
SOURCE = "replay"
TRIED = 100
"""Number of newest events on which a handler is tried."""
MAX_TESTED_SIZE = 262_144
SECONDS = 8.0


def create_handlers(documents: Sequence[Document], by: str, reason: str = "") -> None:
    """Create event handlers, all or none. They act with the permissions of the current actor, their owner.

    Raises:
        Conflict: when a name is taken.
    """
    with transaction.atomic():
        for document in documents:
            _create_handler(document, by, reason)


def _create_handler(document: Document, by: str, reason: str) -> None:
    _require_actions(document)
    name, now = document["name"], clock.now()
    taken = Conflict(f"EventHandler with name {name} already exists!")
    if EventHandler.objects.filter(name=name).exists():
        raise taken
    try:
        with transaction.atomic():
            row = EventHandler(name=name, created_at=now, created_by=by, revision=0, owner_id=current_user_id())
            _save_handler(row, document, by, reason)
    except IntegrityError:
        # A concurrent request created the same row first.
        raise taken from None


def update_handler(document: Document, by: str, reason: str = "") -> None:
    """Replace the document of an event handler."""
    _require_actions(document)
    with transaction.atomic():
        row = EventHandler.objects.select_for_update().filter(name=document["name"]).first()
        if row is None:
            raise NotFound(f"EventHandler with name {document['name']} not found!")
        row.updated_at, row.updated_by, row.owner_id = clock.now(), by, current_user_id()
        _save_handler(row, document, by, reason)


def set_active(name: str, is_active: bool, by: str) -> None:
    """Activate or deactivate an event handler."""
    with transaction.atomic():
        row = EventHandler.objects.select_for_update().filter(name=name).first()
        if row is None:
            raise NotFound(f"EventHandler with name {name} not found!")
        row.updated_at, row.updated_by = clock.now(), by
        _save_handler(row, {**row.document, "active": is_active}, by, "")


def delete_handler(name: str, by: str, reason: str = "") -> None:
    """Delete an event handler. Its past verdicts and actions stay stored."""
    with transaction.atomic():
        if not EventHandler.objects.filter(name=name).delete()[0]:
            raise NotFound(f"EventHandler with name {name} not found!")
        _record_change(name, "delete", by, reason)


def _require_actions(document: Document) -> None:
    """Check that the current actor may start the workflows that the handler starts by name.

    Its other actions, and computed names, are checked when an event arrives.

    Raises:
        Forbidden: when it may not start one of them.
    """
    params = [action.get("start_workflow") for action in document.get("actions") or () if isinstance(action, dict)]
    names = [param.get("name") for param in params if isinstance(param, dict)]
    require_starts(name for name in names if isinstance(name, str) and name and "${" not in name)


def _save_handler(row: EventHandler, document: Document, by: str, reason: str) -> None:
    row.document, row.event = document, document["event"]
    row.is_active, row.revision = bool(document.get("active")), row.revision + 1
    row.save()
    _record_change(row.name, "overwrite" if row.revision > 1 else "create", by, reason)


def _record_change(name: str, action: str, by: str, reason: str) -> None:
    audit.record("event_handler", name, action, by, reason=reason)


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
            if not consume(self.message.pk):
                raise AlreadyHandled
            facts = {"run_id": run_id[:64], "output": output or {}, "error": ""}
            self._rows().update(status=COMPLETED, ended_at=now, **facts)

        return close

    def failed(self, why: str, output: dict[str, Any] | None = None) -> None:
        """Mark the action as failed, and save the reason."""
        facts = {"error": strip_nul(why)[:2000], "output": output or {}}
        with transaction.atomic():
            if consume(self.message.pk):
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
        consume(message.pk)
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
    request = StartRequest(
        name=name,
        version=_parse_version(params.get("version")),
        input={**given, **about},
        correlation_id=_text(params.get("correlationId")),
        domains=_domains(params, order.payload),
        event=delivery.event,
        depth=_depth_in_chain(order),
        traceparent=parse_traceparent(order.payload.get(HEADER)) if isinstance(order.payload, dict) else None,
    )
    start_run(request, order.by, within_transaction=lambda id: order.done(id, {"workflowId": id})(clock.now()))


def _depth_in_chain(order: ActionRequest) -> int:
    """Return the depth of a run that this event starts: events of runs name their publisher."""
    id = order.payload.get("workflowInstanceId") if isinstance(order.payload, dict) else None
    publisher = Run.objects.filter(pk=id).values_list("depth", "created_at").first() if isinstance(id, str) else None
    return depth_after_event(*publisher, order.row.delivery.received_at, conf.max_workflow_depth) if publisher else 0


def _domains(params: Params, payload: JsonValue) -> dict[str, str]:
    """Return the domains of the action, or of the run that published the event (execution §10.6)."""
    inherited = payload.get("taskToDomain") if isinstance(payload, dict) else None
    found = _require_object(params, "taskToDomain") or (inherited if isinstance(inherited, dict) else {})
    return {str(each): _text(domain) for each, domain in found.items()}


def _parse_version(given: JsonValue) -> int | None:
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
    attempt = find_named_attempt(params)
    require_run_control(attempt.run_id or "", attempt.queue)
    found = {name: params.get(name) for name in ("workflowId", "taskId", "taskRefName")}
    reason = _text(params.get("reasonForIncompletion")) or ("" if outcome == "COMPLETED" else order.reason)
    takes_payload = order.row.document.get("takesPayload") and isinstance(order.payload, dict)
    output = order.payload if takes_payload else {**found, **_require_object(params, "output")}
    report = repair.enforce_output_limit(Report(outcome, output, reason))
    change_run(
        RunCommand(
            attempt.run_id or "",
            decide.apply_report(attempt.id, report),
            order.by,
            order.reason,
            attempts=[attempt.id],
            within_transaction=order.done(attempt.run_id or "", {"taskId": attempt.id}),
        )
    )


def find_named_attempt(params: Params) -> Attempt:
    """Return the attempt with `taskId`, or the current attempt of a step's newest task: in a loop the last iteration.

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


def _text(value: JsonValue) -> str:
    return field_text(value).replace("\0", "")


ACTIONS: dict[str, Callable[[ActionRequest, Params], None]] = {
    "start_workflow": _start_workflow,
    "complete_task": _complete_task,
    "fail_task": _fail_task,
    "terminate_workflow": _terminate_workflow,
    "update_workflow_variables": _set_variables,
}


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """An action with its parameters filled in. `trouble`: why it would fail, if that is known in advance."""

    name: str
    params: JsonValue
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class HandlerPreview:
    """The verdict and the actions that a handler would have for an event."""

    verdict: HandlerVerdict
    acts: Sequence[PlannedAction]


@dataclass(frozen=True, slots=True)
class HandlerTrial:
    """Results of a handler on past events, newest first.

    `large`: number of events skipped because of their size. `left`: number of events skipped because time ran out.
    """

    tried: list[tuple[EventDelivery, HandlerPreview]] = field(default_factory=list)
    large: int = 0
    left: int = 0


def preview_handler(handler: EventHandler, payload: JsonValue, workflows: frozenset[str]) -> HandlerPreview:
    """Return the verdict and the actions that the handler would have for a payload.

    The condition reads masked values decrypted; the parameters of the actions show them redacted.

    Raises:
        Busy: when no helper process can evaluate the condition.
    """
    verdict = evaluate_condition(handler, payload)
    return HandlerPreview(
        verdict,
        list(_planned_actions(handler, redact_masked(payload), workflows)) if verdict.outcome == MATCHED else [],
    )


def _planned_actions(handler: EventHandler, payload: JsonValue, workflows: frozenset[str]) -> Iterator[PlannedAction]:
    for action in handler.document.get("actions") or ():
        name = str(action.get("action") or "")
        seen = expand_json_texts(payload) if action.get("expandInlineJSON") is True else payload
        params = payload if action.get("takesPayload") else _resolve_params(action.get(name) or {}, seen)
        started = (action.get(name) or {}).get("name") if action.get("takesPayload") else _workflow_name(params)
        is_missing = name == "start_workflow" and started not in workflows
        yield PlannedAction(name, params, f"There is no workflow {quote_value(started)}." if is_missing else "")


def _resolve_params(written: JsonValue, payload: JsonValue) -> Any:
    try:
        return resolve_event_template(written, payload, max_value_bytes())
    except PayloadOverLimit as found:
        raise Invalid(str(found)) from found


def _workflow_name(params: JsonValue) -> Any:
    return params.get("name") if isinstance(params, dict) else None


def try_on_past_events(document: dict[str, Any]) -> HandlerTrial:
    """Try a handler document, saved or not, on the newest visible events of its name. Nothing is executed or saved."""
    handler = EventHandler(name=str(document.get("name") or ""), document=document)
    rows = visible_deliveries(EventDelivery.objects.filter(event=str(document.get("event") or "")))
    newest = rows.order_by("-received_at", "-pk")[:TRIED]
    sizes = list(newest.values_list("pk", "payload_size"))
    small = [pk for pk, size in sizes if size <= MAX_TESTED_SIZE]
    trial, workflows, ends_at = (
        HandlerTrial(large=len(sizes) - len(small)),
        startable_workflow_names(),
        monotonic() + SECONDS,
    )
    payloads = stored_payloads(small)
    for number, row in enumerate(_deliveries_in_order(small)):
        if monotonic() > ends_at:
            return HandlerTrial(trial.tried, trial.large, len(small) - number)
        trial.tried.append((row, preview_handler(handler, payloads.get(row.pk), workflows)))
    return trial


def _deliveries_in_order(ids: Sequence[int]) -> list[EventDelivery]:
    verdicts = Prefetch("verdicts", visible_results(HandlerEvaluation.objects.all()))
    rows = EventDelivery.objects.filter(pk__in=ids).defer("payload").prefetch_related(verdicts).in_bulk()
    return [rows[id] for id in ids if id in rows]


def startable_workflow_names() -> frozenset[str]:
    """Return the names of the workflows that the current actor may use."""
    return frozenset(usable(WorkflowDefinition.objects.order_by()).values_list("name", flat=True).distinct())


def plan_replay(delivery: EventDelivery) -> list[HandlerPreview]:
    """Preview what each active handler would do with a stored event."""
    workflows, payload = startable_workflow_names(), stored_payloads([delivery.pk])[delivery.pk]
    return [preview_handler(handler, payload, workflows) for handler in current_handlers(delivery, payload)]


def current_handlers(delivery: EventDelivery, payload: Any) -> list[EventHandler]:
    """Return the handlers that an event would have if it arrived now, with those built into its webhook."""
    provider, _, name = delivery.event.partition(":")
    webhook = Webhook.objects.filter(name=name).first() if provider == "webhook" else None
    return [*handlers_for(delivery.event), *(built_in_handlers(webhook, payload) if webhook else ())]


def replay(delivery_id: int, names: Sequence[str], by: str, reason: str) -> EventDelivery:
    """Send a stored event to these handlers again, as a new event. The verdicts of the old event stay stored.

    Raises:
        NotFound: when there is no such event.
        Conflict: when one of the handlers does not handle this event any more.
        Busy: when no helper process can evaluate a condition.
    """
    original = EventDelivery.objects.filter(pk=delivery_id).first()
    if original is None:
        raise NotFound(f"There is no event with the id {delivery_id}.")
    payload = stored_payloads([delivery_id])[delivery_id]
    handlers = {handler.name: handler for handler in current_handlers(original, payload)}
    if missing := [name for name in names if name not in handlers]:
        raise Conflict(f"The event handler {missing[0]} no longer handles {original.event}.")
    # Conditions run before the transaction, because scripts can be slow.
    verdicts = [evaluate_condition(handlers[name], payload) for name in dict.fromkeys(names)]
    with transaction.atomic():
        now = clock.now()
        delivery = EventDelivery.objects.create(
            event=original.event,
            message_id=derived_id(now, randomness.random_hex()),
            source=SOURCE,
            received_at=now,
            payload=payload,
            payload_size=original.payload_size,
            replay_of=original,
        )
        orders = save_verdicts(delivery, verdicts, now)
        facts = {"event": original.event, "handlers": list(names), "replay": delivery.pk}
        audit.record("event", original.pk, "replay", by, reason=reason, facts=facts, at=now)
        transaction.on_commit(partial(deliver_after_commit, tuple(order.pk for order in orders)))
    return delivery
