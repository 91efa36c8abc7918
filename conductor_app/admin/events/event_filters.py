"""Filters of the event list, as query parameters."""

from collections.abc import Iterator
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _

from ...insight.events.event_search import OUTCOMES, EventFilter
from ...models import EventHandler
from ..schedules.schedule_form import parse_time
from .event_formatting import OUTCOME_LABELS, SOURCE_LABELS

FILTER_FIELDS = ("event", "handler", "outcome", "source", "since", "until")
MAX_LENGTH = 255
MAX_NAMES = 500


def parse_filter(query: QueryDict) -> EventFilter:
    """Parse the filter of an address.

    Raises:
        Invalid: when a time is invalid.
    """
    values = {name: query.get(name, "").strip().replace("\0", "")[:MAX_LENGTH] for name in FILTER_FIELDS}
    outcome = values["outcome"] if values["outcome"] in OUTCOMES else ""
    return EventFilter(
        values["event"],
        values["handler"],
        outcome,
        values["source"],
        parse_time(values["since"]),
        parse_time(values["until"]),
    )


def filter_bar(query: QueryDict) -> dict[str, Any]:
    """Return the context of the filter form."""
    handlers = list(EventHandler.objects.order_by("name").values_list("name", "event")[:MAX_NAMES])
    return {
        **{name: query.get(name, "") for name in FILTER_FIELDS},
        "handlers": [name for name, _event in handlers],
        "events": sorted({event for _name, event in handlers}),
        "outcomes": OUTCOME_LABELS.items(),
        "sources": SOURCE_LABELS.items(),
        "chips": list(_filter_chips(query)),
    }


def _filter_chips(query: QueryDict) -> Iterator[tuple[str, str, str]]:
    """Yield each active filter: its label, its value, and the address without it."""
    names = {
        "event": _("Event"),
        "handler": _("Handler"),
        "outcome": _("Outcome"),
        "source": _("Source"),
        "since": _("Received after"),
        "until": _("Received before"),
    }
    labels = {"outcome": OUTCOME_LABELS, "source": SOURCE_LABELS}
    for name in FILTER_FIELDS:
        if value := query.get(name, "").strip():
            yield names[name], str(labels.get(name, {}).get(value, value)), address_without(query, name)


def address_without(query: QueryDict, *names: str, **other: str) -> str:
    """Return the address with the other filters and with additional parameters."""
    parameters = QueryDict(mutable=True)
    for name in FILTER_FIELDS:
        if query.get(name) and name not in names:
            parameters[name] = query[name]
    for name, value in other.items():
        parameters[name] = value
    return f"?{parameters.urlencode()}"
