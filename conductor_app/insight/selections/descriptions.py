"""A selection as a person would say it."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ..durations import format_duration


def describe(selection: Mapping[str, Any]) -> str:
    """What is selected, each part of it after the other."""
    said = ", ".join(WORDS[name](value) for name, value in selection.items())
    return _("runs %(conditions)s") % {"conditions": said} if said else _("all runs")


def _sentence(sentence: str) -> Callable[[Any], str]:
    return lambda value: sentence % {"value": value}


def _moment(sentence: str) -> Callable[[int], str]:
    return lambda at: sentence % {"moment": f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M} UTC"}


def _span(sentence: str) -> Callable[[int], str]:
    return lambda took: sentence % {"span": format_duration(took)}


def _statuses(statuses: Iterable[str]) -> str:
    return _("that are %(statuses)s") % {"statuses": _(" or ").join(map(str, statuses))}


def _task(task: str) -> str:
    name, _colon, status = task.partition(":")
    if not status:
        return _("with a task %(task)s") % {"task": name}
    return _("with a task %(task)s that is %(status)s") % {"task": name, "status": status}


def _ids(ids: list[str]) -> str:
    return ngettext("chosen one by one (%(count)s)", "chosen one by one (%(count)s)", len(ids)) % {"count": len(ids)}


WORDS: dict[str, Callable[[Any], str]] = {
    "ids": _ids,
    "search": _sentence(gettext_lazy("found by “%(value)s”")),
    "definition": _sentence(gettext_lazy("of %(value)s")),
    "version": _sentence(gettext_lazy("of version %(value)s")),
    "status": _statuses,
    "started_since": _moment(gettext_lazy("started since %(moment)s")),
    "started_before": _moment(gettext_lazy("started before %(moment)s")),
    "ended_since": _moment(gettext_lazy("ended since %(moment)s")),
    "ended_before": _moment(gettext_lazy("ended before %(moment)s")),
    "correlation_id": _sentence(gettext_lazy("with correlation id %(value)s")),
    "label": _sentence(gettext_lazy("labelled %(value)s")),
    "parent": _sentence(gettext_lazy("started by run %(value)s")),
    "started_by": _sentence(gettext_lazy("started by %(value)s")),
    "schedule": _sentence(gettext_lazy("of schedule %(value)s")),
    "idempotency_key": _sentence(gettext_lazy("with idempotency key %(value)s")),
    "least_ms": _span(gettext_lazy("that took at least %(span)s")),
    "most_ms": _span(gettext_lazy("that took at most %(span)s")),
    "task": _task,
    "error": _sentence(gettext_lazy("whose error says “%(value)s”")),
    "inside": _sentence(gettext_lazy("with %(value)s")),
    "failure_group": _sentence(gettext_lazy("that failed for the cause of group %(value)s")),
    "refused_of": _sentence(gettext_lazy("that were refused in operation %(value)s")),
}
