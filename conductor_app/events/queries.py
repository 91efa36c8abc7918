"""Search for received events by their outcome, in pages, each with the results of its handlers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet

from ...models import EventAction, EventDelivery, HandlerEvaluation
from ...models.events import FAILED, MATCHED, NOT_MATCHED
from .. import keyset_pages
from ..keyset_pages import SortColumn

ACTION_FAILED, UNHANDLED, DUPLICATE = "ACTION_FAILED", "UNHEARD", "DUPLICATE"
OUTCOMES = (MATCHED, NOT_MATCHED, FAILED, ACTION_FAILED, UNHANDLED, DUPLICATE)
"""Outcomes to filter by: the verdict of a handler, a failed action, no handler, and an event received repeatedly."""
SEARCHED_ROWS = 3_000
"""Events that one page scans if no index covers the whole filter."""
PLACE = re.compile(r"\d{1,15}\.\d{1,18}")
MAX_NEW_EVENTS = 100


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
    """One event with the results of its handlers."""

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
    return _filter_by_time(_filter_by_event(candidates, event_filter), event_filter)


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
    """Load events in the given order with the results of their handlers, without their payloads."""
    actions = EventAction.objects.defer("document").order_by("position")
    rows = EventDelivery.objects.filter(pk__in=list(ids)).defer("payload")
    rows = rows.prefetch_related(Prefetch("verdicts", HandlerEvaluation.objects.order_by("handler", "pk")))
    by_id = {row.pk: row for row in rows.prefetch_related(Prefetch("actions", actions))}
    return [DeliveredEvent(by_id[id], handler_results(by_id[id])) for id in ids if id in by_id]


def handler_results(delivery: EventDelivery) -> list[HandlerResult]:
    """Return the result of each handler of an event that was loaded with its verdicts and actions."""
    actions: dict[str, list[EventAction]] = {}
    for action in delivery.actions.all():
        actions.setdefault(action.handler, []).append(action)
    return [HandlerResult(verdict, actions.get(verdict.handler, [])) for verdict in delivery.verdicts.all()]
