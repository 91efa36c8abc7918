"""By what events are looked for, as the address says it."""

from collections.abc import Iterator
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _

from ...insight.events import OUTCOMES, EventFilter
from ...models import EventHandler
from ..schedules.form import parse_time
from .formatting import OUTCOME_WORDS, SOURCE_WORDS

FIELDS = ("event", "handler", "outcome", "source", "since", "until")
LONGEST = 255
MOST_NAMES = 500


def parse_filter(given: QueryDict) -> EventFilter:
    """What is looked for. Raises Invalid for a moment that cannot be read."""
    said = {name: given.get(name, "").strip().replace("\0", "")[:LONGEST] for name in FIELDS}
    outcome = said["outcome"] if said["outcome"] in OUTCOMES else ""
    return EventFilter(
        said["event"], said["handler"], outcome, said["source"], parse_time(said["since"]), parse_time(said["until"])
    )


def filter_bar(given: QueryDict) -> dict[str, Any]:
    """What the form of the filters shows."""
    handlers = list(EventHandler.objects.order_by("name").values_list("name", "event")[:MOST_NAMES])
    return {
        **{name: given.get(name, "") for name in FIELDS},
        "handlers": [name for name, _event in handlers],
        "events": sorted({event for _name, event in handlers}),
        "outcomes": OUTCOME_WORDS.items(),
        "sources": SOURCE_WORDS.items(),
        "chips": list(_chips(given)),
    }


def _chips(given: QueryDict) -> Iterator[tuple[str, str, str]]:
    """Each filter that holds: its name, what it asks, the address without it."""
    names = {
        "event": _("Event"),
        "handler": _("Handler"),
        "outcome": _("Outcome"),
        "source": _("From"),
        "since": _("Since"),
        "until": _("Until"),
    }
    words = {"outcome": OUTCOME_WORDS, "source": SOURCE_WORDS}
    for name in FIELDS:
        if value := given.get(name, "").strip():
            yield names[name], str(words.get(name, {}).get(value, value)), address_without(given, name)


def address_without(given: QueryDict, *names: str, **other: str) -> str:
    """The same filters without some of them, with something else beside them."""
    kept = QueryDict(mutable=True)
    for name in FIELDS:
        if given.get(name) and name not in names:
            kept[name] = given[name]
    for name, value in other.items():
        kept[name] = value
    return f"?{kept.urlencode()}"
