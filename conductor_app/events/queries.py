"""Queries about events, their sources, event handlers and webhooks."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.utils.translation import gettext as _

from ..access.visibility import usable, visible
from ..core.errors import ValidationError
from ..core.events import INTERNAL, parse_matches
from ..core.expressions import EVALUATORS
from ..core.primitives import JsonValue
from ..core.validation.checks import EVENT_HANDLER
from ..core.validation.findings import ERROR, HINT, NO_RESULT, UNREADABLE, WARNING, LintFinding
from ..core.validation.lint_fields import lint_document, reads_as_javascript, returns_nothing
from ..db import keyset_pages
from ..db.keyset_pages import SortColumn
from ..definitions.queries import missing_workflow
from ..runs.models import Attempt
from ..settings import conf
from .models import (
    FAILED,
    MATCHED,
    NOT_MATCHED,
    EventAction,
    EventDelivery,
    EventHandler,
    EventListener,
    HandlerEvaluation,
    Webhook,
    WebhookWait,
    built_in_handler_name,
)

ACTION_FAILED, UNHANDLED, DUPLICATE = "ACTION_FAILED", "UNHEARD", "DUPLICATE"
OUTCOMES = (MATCHED, NOT_MATCHED, FAILED, ACTION_FAILED, UNHANDLED, DUPLICATE)
"""Outcomes to filter by: the verdict of a handler, a failed action, no handler, and an event received repeatedly."""
SEARCHED_ROWS = 3_000
"""Events that one page scans if no index covers the whole filter."""
PLACE = re.compile(r"\d{1,15}\.\d{1,18}")
MAX_NEW_EVENTS = 100
WEBHOOK = "webhook"
SILENT_MS = 60_000
"""A listener that has not reported for this long counts as gone."""
LIMIT = 500
SETTINGS = {
    "amqp_queue": "event_queues_amqp_url",
    "amqp_exchange": "event_queues_amqp_url",
    "redis": "event_queues_redis_url",
    "kafka": "event_queues_kafka_servers",
    "sqs": "event_queues_sqs_url",
    "nats": "event_queues_nats_url",
    "jsm": "event_queues_nats_url",
}
"""The messaging systems, each with the setting that holds its address."""
ResultT = TypeVar("ResultT", HandlerEvaluation, EventAction)
GRAVITY = {ERROR: 0, WARNING: 1, HINT: 2}
MAX_SHOWN = 50


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Filter of the event list. Empty fields do not restrict it."""

    event: str = ""
    handler: str = ""
    outcome: str = ""
    source: str = ""
    since: int | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True)
class HandlerResult:
    """Verdict of one handler on an event, with the actions it executed."""

    verdict: HandlerEvaluation
    actions: Sequence[EventAction]


@dataclass(frozen=True, slots=True)
class DeliveredEvent:
    delivery: EventDelivery
    results: Sequence[HandlerResult]


@dataclass(frozen=True, slots=True)
class EventListPage:
    """A page of events. `is_cut`: the scan stopped at its limit; the next page continues there."""

    delivered: Sequence[DeliveredEvent]
    before: str = ""
    after: str = ""
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class _CandidateRows:
    """Rows whose index covers most of a filter, with the conditions that remain to be checked on each row."""

    rows: QuerySet
    sort: SortColumn
    event_prefix: str = ""  # lookup path from a row to its event
    remaining: Q = field(default_factory=Q)


def visible_results(rows: QuerySet[ResultT]) -> QuerySet[ResultT]:
    """Return the evaluations or actions of the handlers that the current actor may see, built-in ones included."""
    found = visible(rows)
    if found is rows:
        return rows
    return found | rows.filter(handler__in=[built_in_handler_name(name) for name in _readable_webhooks()])


def visible_deliveries(rows: QuerySet[EventDelivery]) -> QuerySet[EventDelivery]:
    """Return the events that a handler or a webhook has received that the current actor may see."""
    results = HandlerEvaluation.objects.filter(delivery=OuterRef("pk"))
    found = visible_results(results)
    if found is results:
        return rows
    return rows.filter(Q(Exists(found)) | Q(event__in=[f"{WEBHOOK}:{name}" for name in _readable_webhooks()]))


def _readable_webhooks() -> list[str]:
    return list(visible(Webhook.objects.all()).values_list("name", flat=True))


def event_page(event_filter: EventFilter, after: str = "", before: str = "") -> EventListPage:
    """Return the events after or before a page position, newest first."""
    after, before = (place if PLACE.fullmatch(place) else "" for place in (after, before))
    candidates = _matching_rows(event_filter)
    rows, edge = candidates.rows, ""
    if candidates.remaining:
        rows, edge = _scan_bounded(candidates, after or before, backwards=bool(before))
    found = keyset_pages.keyset_page(rows, candidates.sort, after=after, before=before)
    numbers = [row.delivery_id if candidates.event_prefix else row.pk for row in found.rows]
    is_cut = bool(edge) and not (found.before if before else found.after)
    older = found.after or (edge if is_cut and not before else "")
    newer = found.before or (edge if is_cut and before else "")
    return EventListPage(load_events(dict.fromkeys(numbers)), newer, older, is_cut)


def count_new_events(event_filter: EventFilter, since: int) -> int:
    """Count the matching events received after a time, up to MAX_NEW_EVENTS."""
    candidates = _matching_rows(event_filter)
    rows = candidates.rows.filter(**{f"{candidates.sort.column}__gt": since}).order_by(f"-{candidates.sort.column}")
    newest = candidates.rows.filter(pk__in=rows.values("pk")[:SEARCHED_ROWS])
    return newest.filter(candidates.remaining).order_by()[:MAX_NEW_EVENTS].count()


def _matching_rows(event_filter: EventFilter) -> _CandidateRows:
    if event_filter.outcome == ACTION_FAILED:
        candidates = _CandidateRows(EventAction.objects.filter(status=FAILED), SortColumn("created_at"), "delivery__")
        candidates = _add_remaining_filter(candidates, handler=event_filter.handler)
    elif event_filter.handler:
        candidates = _CandidateRows(
            HandlerEvaluation.objects.filter(handler=event_filter.handler), SortColumn("at"), "delivery__"
        )
        candidates = _add_remaining_filter(
            candidates, outcome=event_filter.outcome if event_filter.outcome in (MATCHED, NOT_MATCHED, FAILED) else ""
        )
    elif event_filter.outcome in (MATCHED, NOT_MATCHED, FAILED):
        candidates = _CandidateRows(
            HandlerEvaluation.objects.filter(outcome=event_filter.outcome), SortColumn("at"), "delivery__"
        )
    else:
        rows = (
            EventDelivery.objects.filter(event=event_filter.event)
            if event_filter.event
            else EventDelivery.objects.all()
        )
        candidates = _CandidateRows(rows, SortColumn("received_at"))
    if candidates.event_prefix:
        candidates = _add_remaining_filter(candidates, **{f"{candidates.event_prefix}event": event_filter.event})
    candidates = _add_remaining_filter(candidates, **{f"{candidates.event_prefix}source": event_filter.source})
    return _filter_by_access(_filter_by_time(_filter_by_event(candidates, event_filter), event_filter))


def _add_remaining_filter(candidates: _CandidateRows, **wanted: Any) -> _CandidateRows:
    wanted = {name: value for name, value in wanted.items() if value}
    return replace(candidates, remaining=candidates.remaining & Q(**wanted)) if wanted else candidates


def _filter_by_event(candidates: _CandidateRows, event_filter: EventFilter) -> _CandidateRows:
    """Restrict the rows to events received more than once, or to events without a handler."""
    if event_filter.outcome == DUPLICATE:
        again = Q(**{f"{candidates.event_prefix}duplicates__gt": 0})
        return replace(candidates, remaining=candidates.remaining & again)
    if event_filter.outcome == UNHANDLED:
        unheard = Q(~Exists(HandlerEvaluation.objects.filter(delivery=OuterRef(f"{candidates.event_prefix}pk"))))
        return replace(candidates, remaining=candidates.remaining & unheard)
    return candidates


def _filter_by_access(candidates: _CandidateRows) -> _CandidateRows:
    rows = candidates.rows.model.objects.all()
    found = visible_results(rows) if candidates.event_prefix else visible_deliveries(rows)
    if found is rows:
        return candidates
    return replace(candidates, remaining=candidates.remaining & Q(Exists(found.filter(pk=OuterRef("pk")))))


def _filter_by_time(candidates: _CandidateRows, event_filter: EventFilter) -> _CandidateRows:
    column, bounds = candidates.sort.column, {}
    if event_filter.since is not None:
        bounds[f"{column}__gte"] = event_filter.since
    if event_filter.until is not None:
        bounds[f"{column}__lt"] = event_filter.until
    return replace(candidates, rows=candidates.rows.filter(**bounds))


def _scan_bounded(candidates: _CandidateRows, place: str, *, backwards: bool) -> tuple[QuerySet, str]:
    """Return the matches among the next SEARCHED_ROWS rows, and the position of the last row if there are more."""
    rows = candidates.rows.filter(candidates.sort.beyond_position(place, backwards)) if place else candidates.rows
    rows = rows.order_by(*candidates.sort.order(backwards))
    last = rows.only("pk", candidates.sort.column)[SEARCHED_ROWS - 1 : SEARCHED_ROWS]
    edge = next((f"{getattr(row, candidates.sort.column)}.{row.pk}" for row in last), "")
    return candidates.rows.model.objects.filter(pk__in=rows.values("pk")[:SEARCHED_ROWS]).filter(
        candidates.remaining
    ), edge


def load_events(ids: Sequence[int] | dict[int, Any]) -> list[DeliveredEvent]:
    """Load events in the given order with the visible results of their handlers, without their payloads."""
    actions = visible_results(EventAction.objects.defer("document").order_by("position"))
    verdicts = visible_results(HandlerEvaluation.objects.order_by("handler", "pk"))
    rows = EventDelivery.objects.filter(pk__in=list(ids)).defer("payload")
    rows = rows.prefetch_related(Prefetch("verdicts", verdicts))
    by_id = {row.pk: row for row in rows.prefetch_related(Prefetch("actions", actions))}
    return [DeliveredEvent(by_id[id], handler_results(by_id[id])) for id in ids if id in by_id]


def handler_results(delivery: EventDelivery) -> list[HandlerResult]:
    """Return the result of each handler of an event that was loaded with its verdicts and actions."""
    actions: dict[str, list[EventAction]] = {}
    for action in delivery.actions.all():
        actions.setdefault(action.handler, []).append(action)
    return [HandlerResult(verdict, actions.get(verdict.handler, [])) for verdict in delivery.verdicts.all()]


def provider_of(event: str) -> str:
    """Return the part of an event name that identifies its source."""
    return event.partition(":")[0]


def missing_setting(event: str) -> str:
    """Return the setting that must be configured to receive an event, or an empty text."""
    setting = SETTINGS.get(provider_of(event), "")
    return setting.upper() if setting and not getattr(conf, setting) else ""


def is_internal_event(event: str) -> bool:
    """Return True if runs, clients or webhooks publish the event to this server, so that no listener is needed."""
    return provider_of(event) in (INTERNAL, WEBHOOK) or provider_of(event) not in SETTINGS


@dataclass(frozen=True, slots=True)
class EventSource:
    """One event that active handlers wait for, and how this server receives it."""

    event: str
    handlers: int
    last_at: int | None
    is_heard_here: bool
    setting: str
    listeners: Sequence[EventListener]

    @property
    def connected(self) -> EventListener | None:
        """Return a connected listener, if there is one."""
        return next((each for each in self.listeners if each.connected_at is not None), None)

    @property
    def failing(self) -> EventListener | None:
        """Return a listener that is disconnected by an error, if there is one."""
        return next((each for each in self.listeners if each.connected_at is None and each.error), None)


def event_sources(now: int) -> list[EventSource]:
    """Return the events that active handlers wait for, each with its listeners."""
    newest = EventDelivery.objects.filter(event=OuterRef("event")).order_by("-received_at")
    rows = visible(EventHandler.objects.filter(is_active=True).order_by("event"))
    found = rows.annotate(last_at=Subquery(newest.values("received_at")[:1])).values_list("event", "last_at")
    counts: dict[str, int] = {}
    last: dict[str, int | None] = {}
    for event, at in found[:LIMIT]:
        counts[event], last[event] = counts.get(event, 0) + 1, at
    listeners: dict[str, list[EventListener]] = {}
    for each in EventListener.objects.filter(seen_at__gte=now - SILENT_MS).order_by("event", "process")[:LIMIT]:
        listeners.setdefault(each.event, []).append(each)
    return [
        EventSource(
            event,
            counts[event],
            last[event],
            is_internal_event(event),
            missing_setting(event),
            listeners.get(event, ()),
        )
        for event in counts
    ]


def newest_by_event(events: Sequence[str]) -> dict[str, int]:
    """Return when each of these events was last received. Runs one statement."""
    newest = EventDelivery.objects.filter(event=OuterRef("event")).order_by("-received_at").values("pk")[:1]
    rows = EventDelivery.objects.filter(event__in=events, pk=Subquery(newest))
    return dict(rows.values_list("event", "received_at"))


def lint_handler(read: Mapping[str, Any], validation_errors: Iterable[ValidationError]) -> list[LintFinding]:
    """Return all findings on a handler, most severe first. `read`: the handler with converted fields."""
    refused = [LintFinding(ERROR, "refused", each.path, each.message) for each in validation_errors]
    unknown = lint_document(read, EVENT_HANDLER)
    findings = [*refused, *unknown, *_event_findings(read), *_action_findings(read)]
    return sorted(findings, key=lambda each: GRAVITY[each.severity])


def _event_findings(read: Mapping[str, Any]) -> Iterator[LintFinding]:
    event, language = str(read.get("event") or ""), read.get("evaluatorType")
    if setting := missing_setting(event):
        message = _("No events arrive from `%(provider)s`: %(setting)s is not set.")
        facts = {"provider": provider_of(event), "setting": setting}
        yield LintFinding(WARNING, "no source", "event", message % facts)
    name = event.partition(":")[2]
    if provider_of(event) == WEBHOOK and name and not usable(Webhook.objects.filter(name=name)).exists():
        yield LintFinding(WARNING, "no source", "event", _("Webhook `%(name)s` does not exist.") % {"name": name})
    if language and language not in EVALUATORS:
        message = _("Unknown evaluator `%(language)s`. The condition is evaluated as JavaScript.")
        yield LintFinding(WARNING, "no language", "evaluatorType", message % {"language": language})
    if language == "python":
        yield from _python_findings(str(read.get("condition") or ""))
    if not read.get("active"):
        yield LintFinding(HINT, "inactive", "active", _("The handler is disabled and receives no events."))


def _python_findings(condition: str) -> Iterator[LintFinding]:
    if reads_as_javascript(condition):
        message = _("In Python, the fields of the payload are variables: write `name` instead of `$.name`.")
        yield LintFinding(WARNING, UNREADABLE, "condition", message)
    if returns_nothing(condition):
        message = _("The condition has no `return`, so it is never true. In Python, its value is the returned value.")
        yield LintFinding(WARNING, NO_RESULT, "condition", message)


def _action_findings(read: Mapping[str, Any]) -> Iterator[LintFinding]:
    for number, started in _started_workflows(read):
        name, version = str(started.get("name") or ""), started.get("version")
        if not name:
            yield LintFinding(
                ERROR, "no name", f"actions[{number}].start_workflow", _("The action names no workflow to start.")
            )
        elif "${" not in name:
            yield from _workflow_findings(name, version, f"actions[{number}].start_workflow")


def _workflow_findings(name: str, version: Any, path: str) -> Iterator[LintFinding]:
    if message := missing_workflow(name):
        yield LintFinding(WARNING, "no workflow", f"{path}.name", message)
    elif isinstance(version, int) and (message := missing_workflow(name, version)):
        yield LintFinding(WARNING, "no version", f"{path}.version", message)


def _started_workflows(read: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, action in enumerate(read.get("actions") or ()):
        if isinstance(action, Mapping) and action.get("action") == "start_workflow":
            yield number, action.get("start_workflow") or {}


def with_last_verdict(rows: QuerySet[EventHandler]) -> QuerySet[Any]:
    """Annotate handlers with `last_at`, `last_outcome` and `last_error` of the last event, and `last_action_error`."""
    newest = HandlerEvaluation.objects.filter(handler=OuterRef("name")).order_by("-at", "-pk")
    last_action = EventAction.objects.filter(handler=OuterRef("name")).order_by("-created_at", "-pk")
    return rows.annotate(
        last_at=Subquery(newest.values("at")[:1]),
        last_outcome=Subquery(newest.values("outcome")[:1]),
        last_error=Subquery(newest.values("error")[:1]),
        last_action_error=Subquery(last_action.values("error")[:1]),
    )


def last_errors_of_webhooks(names: Iterable[str]) -> dict[str, EventAction]:
    """Return the newest failed action that a webhook itself executes, by the webhook. Runs one statement."""
    names_by_handler = {built_in_handler_name(name): name for name in names}
    failed = EventAction.objects.filter(status=FAILED).order_by("-created_at", "-pk")
    newest = failed.filter(handler=OuterRef("handler")).values("pk")[:1]
    rows = failed.filter(handler__in=names_by_handler, pk=Subquery(newest)).only("handler", "created_at", "error")
    return {names_by_handler[row.handler]: row for row in rows}


def waiting_tasks(receivers: Mapping[str, int]) -> list[tuple[Attempt, dict[str, Any]]]:
    """Return the attempts that wait for an event, oldest first, each with its condition. At most MAX_SHOWN.

    `receivers`: versions of the workflows that receive the events, by workflow name; 0 is any version.
    """
    received = Q(pk__in=[])
    for workflow, version in receivers.items():
        received |= Q(workflow=workflow, version=version) if version else Q(workflow=workflow)
    is_open = Exists(Attempt.objects.filter(pk=OuterRef("attempt_id"), status="LEASED"))
    waits = WebhookWait.objects.filter(received, is_open).order_by("created_at", "attempt_id")
    ids = list(waits.values_list("attempt_id", flat=True)[:MAX_SHOWN])
    rows = visible(Attempt.objects.of_runs().filter(pk__in=ids)).select_related("task", "run").defer("output").in_bulk()
    return [(rows[id], _condition(rows[id].input)) for id in ids if id in rows]


def _condition(inputs: JsonValue) -> dict[str, Any]:
    try:
        return parse_matches(inputs) if isinstance(inputs, dict) else {}
    except ValueError:
        return {}
