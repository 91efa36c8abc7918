"""Events that came in, for people: found by what became of them, in pages, each with what its handlers made of it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet

from ..models import EventAction, EventDelivery, HandlerEvaluation
from ..models.events import FAILED, MATCHED, NOT_MATCHED
from . import keyset_pages
from .keyset_pages import SortColumn

ACTION_FAILED, UNHEARD, DUPLICATE = "ACTION_FAILED", "UNHEARD", "DUPLICATE"
OUTCOMES = (MATCHED, NOT_MATCHED, FAILED, ACTION_FAILED, UNHEARD, DUPLICATE)
"""By what an event can be looked for: the verdicts of its handlers, an action of theirs that failed, nobody who
listened, the same message again."""
LOOKED_AT = 3_000
"""How many events one page looks at where no index answers the whole question."""
PLACE = re.compile(r"\d{1,15}\.\d{1,18}")
MOST_NEWS = 100


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events are looked for; what is empty asks nothing."""

    event: str = ""
    handler: str = ""
    outcome: str = ""
    source: str = ""
    since: int | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True)
class HandlerResult:
    """What one handler made of an event, and what it did."""

    verdict: HandlerEvaluation
    actions: Sequence[EventAction]


@dataclass(frozen=True, slots=True)
class DeliveredEvent:
    """One event with all that was made of it."""

    delivery: EventDelivery
    heard: Sequence[HandlerResult]


@dataclass(frozen=True, slots=True)
class EventListPage:
    """A page of events. `is_cut`: not all of them were looked at; the next page goes on."""

    told: Sequence[DeliveredEvent]
    before: str = ""
    after: str = ""
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows whose index answers most of a question, and what is left to be asked of each of them."""

    rows: QuerySet
    sort: SortColumn
    way: str = ""  # from a row to its event
    left: Q = field(default_factory=Q)


def event_page(sought: EventFilter, after: str = "", before: str = "") -> EventListPage:
    """The events behind a place, or before it; newest first."""
    after, before = (place if PLACE.fullmatch(place) else "" for place in (after, before))
    asked = _matching_rows(sought)
    rows, edge = asked.rows, ""
    if asked.left:
        rows, edge = _scan_bounded(asked, after or before, backwards=bool(before))
    found = keyset_pages.keyset_page(rows, asked.sort, after=after, before=before)
    numbers = [row.delivery_id if asked.way else row.pk for row in found.rows]
    is_cut = bool(edge) and not (found.before if before else found.after)
    older = found.after or (edge if is_cut and not before else "")
    newer = found.before or (edge if is_cut and before else "")
    return EventListPage(load_events(dict.fromkeys(numbers)), newer, older, is_cut)


def count_new_events(sought: EventFilter, since: int) -> int:
    """How many such events have come in after a moment; counted up to a bound."""
    asked = _matching_rows(sought)
    rows = asked.rows.filter(**{f"{asked.sort.column}__gt": since}).order_by(f"-{asked.sort.column}")
    newest = asked.rows.filter(pk__in=rows.values("pk")[:LOOKED_AT])
    return newest.filter(asked.left).order_by()[:MOST_NEWS].count()


def _matching_rows(sought: EventFilter) -> _Rows:
    if sought.outcome == ACTION_FAILED:
        asked = _Rows(EventAction.objects.filter(status=FAILED), SortColumn("created_at"), "delivery__")
        asked = _left(asked, handler=sought.handler)
    elif sought.handler:
        asked = _Rows(HandlerEvaluation.objects.filter(handler=sought.handler), SortColumn("at"), "delivery__")
        asked = _left(asked, outcome=sought.outcome if sought.outcome in (MATCHED, NOT_MATCHED, FAILED) else "")
    elif sought.outcome in (MATCHED, NOT_MATCHED, FAILED):
        asked = _Rows(HandlerEvaluation.objects.filter(outcome=sought.outcome), SortColumn("at"), "delivery__")
    else:
        rows = EventDelivery.objects.filter(event=sought.event) if sought.event else EventDelivery.objects.all()
        asked = _Rows(rows, SortColumn("received_at"))
    if asked.way:
        asked = _left(asked, **{f"{asked.way}event": sought.event})
    asked = _left(asked, **{f"{asked.way}source": sought.source})
    return _within(_of_the_event_itself(asked, sought), sought)


def _left(asked: _Rows, **wanted: Any) -> _Rows:
    wanted = {name: value for name, value in wanted.items() if value}
    return replace(asked, left=asked.left & Q(**wanted)) if wanted else asked


def _of_the_event_itself(asked: _Rows, sought: EventFilter) -> _Rows:
    """What came more than once; what nobody listened to."""
    if sought.outcome == DUPLICATE:
        again = Q(**{f"{asked.way}duplicates__gt": 0})
        return replace(asked, left=asked.left & again)
    if sought.outcome == UNHEARD:
        unheard = Q(~Exists(HandlerEvaluation.objects.filter(delivery=OuterRef(f"{asked.way}pk"))))
        return replace(asked, left=asked.left & unheard)
    return asked


def _within(asked: _Rows, sought: EventFilter) -> _Rows:
    column, bounds = asked.sort.column, {}
    if sought.since is not None:
        bounds[f"{column}__gte"] = sought.since
    if sought.until is not None:
        bounds[f"{column}__lt"] = sought.until
    return replace(asked, rows=asked.rows.filter(**bounds))


def _scan_bounded(asked: _Rows, place: str, *, backwards: bool) -> tuple[QuerySet, str]:
    """What fits among the next so many rows, and the place where they end if there are more behind."""
    rows = asked.rows.filter(asked.sort.beyond(place, backwards)) if place else asked.rows
    rows = rows.order_by(*asked.sort.order(backwards))
    last = rows.only("pk", asked.sort.column)[LOOKED_AT - 1 : LOOKED_AT]
    edge = next((f"{getattr(row, asked.sort.column)}.{row.pk}" for row in last), "")
    return asked.rows.model.objects.filter(pk__in=rows.values("pk")[:LOOKED_AT]).filter(asked.left), edge


def load_events(ids: Sequence[int] | dict[int, Any]) -> list[DeliveredEvent]:
    """These events in this order, each with what was made of it; without what they carry."""
    actions = EventAction.objects.defer("document").order_by("position")
    rows = EventDelivery.objects.filter(pk__in=list(ids)).defer("payload")
    rows = rows.prefetch_related(Prefetch("verdicts", HandlerEvaluation.objects.order_by("handler", "pk")))
    by_id = {row.pk: row for row in rows.prefetch_related(Prefetch("actions", actions))}
    return [DeliveredEvent(by_id[id], handler_results(by_id[id])) for id in ids if id in by_id]


def handler_results(delivery: EventDelivery) -> list[HandlerResult]:
    """What each handler made of an event that was read with its verdicts and actions."""
    actions: dict[str, list[EventAction]] = {}
    for action in delivery.actions.all():
        actions.setdefault(action.handler, []).append(action)
    return [HandlerResult(verdict, actions.get(verdict.handler, [])) for verdict in delivery.verdicts.all()]
