"""Descriptions of selections as text."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ....core.informative_lines import informative_line
from ....models import FailureGroup
from ...durations import format_duration

FAILURE_GROUP = "failure_group"
MAX_TITLE_LENGTH = 100


def describe(selection: Mapping[str, Any], group_titles: Mapping[int, str]) -> str:
    """Return the description of a selection, one part per filter.

    `group_titles`: the titles of its failure groups, by id.
    """
    conditions = ", ".join(_describe_filter(name, value, group_titles) for name, value in selection.items())
    return _("runs %(conditions)s") % {"conditions": conditions} if conditions else _("all runs")


def failure_group_titles(selections: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """Return the titles of the failure groups that the selections name, by id. Runs one query, or none."""
    ids = {selection[FAILURE_GROUP] for selection in selections if FAILURE_GROUP in selection}
    groups = FailureGroup.objects.filter(pk__in=ids).only("sample", "message") if ids else ()
    return {group.pk: informative_line(group.sample or group.message, MAX_TITLE_LENGTH) for group in groups}


def _describe_filter(name: str, value: Any, group_titles: Mapping[int, str]) -> str:
    title = group_titles.get(value) if name == FAILURE_GROUP else None
    return _("that failed with “%(title)s”") % {"title": title} if title else DESCRIPTIONS[name](value)


def _describe_value(sentence: Any) -> Callable[[Any], str]:
    return lambda value: sentence % {"value": value}


def _describe_time(sentence: Any) -> Callable[[int], str]:
    return lambda at: sentence % {"moment": f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M} UTC"}


def _describe_duration(sentence: Any) -> Callable[[int], str]:
    return lambda took: sentence % {"span": format_duration(took)}


def _describe_statuses(statuses: Iterable[str]) -> str:
    return _("with status %(statuses)s") % {"statuses": _(" or ").join(map(str, statuses))}


def _describe_task(task: str) -> str:
    name, _colon, status = task.partition(":")
    if not status:
        return _("with task %(task)s") % {"task": name}
    return _("with task %(task)s in status %(status)s") % {"task": name, "status": status}


def _describe_ids(ids: list[str]) -> str:
    return _("selected individually (%(count)s)") % {"count": len(ids)}


DESCRIPTIONS: dict[str, Callable[[Any], str]] = {
    "ids": _describe_ids,
    "search": _describe_value(gettext_lazy("matching “%(value)s”")),
    "definition": _describe_value(gettext_lazy("of %(value)s")),
    "version": _describe_value(gettext_lazy("of version %(value)s")),
    "status": _describe_statuses,
    "started_since": _describe_time(gettext_lazy("started after %(moment)s")),
    "started_before": _describe_time(gettext_lazy("started before %(moment)s")),
    "ended_since": _describe_time(gettext_lazy("ended after %(moment)s")),
    "ended_before": _describe_time(gettext_lazy("ended before %(moment)s")),
    "correlation_id": _describe_value(gettext_lazy("with correlation id %(value)s")),
    "label": _describe_value(gettext_lazy("labeled %(value)s")),
    "top_level": lambda answer: _("without a parent run"),
    "parent": _describe_value(gettext_lazy("with parent run %(value)s")),
    "started_by": _describe_value(gettext_lazy("started by %(value)s")),
    "schedule": _describe_value(gettext_lazy("of schedule %(value)s")),
    "idempotency_key": _describe_value(gettext_lazy("with idempotency key %(value)s")),
    "least_ms": _describe_duration(gettext_lazy("that took at least %(span)s")),
    "most_ms": _describe_duration(gettext_lazy("that took at most %(span)s")),
    "task": _describe_task,
    "error": _describe_value(gettext_lazy("with error containing “%(value)s”")),
    "inside": _describe_value(gettext_lazy("where %(value)s")),
    FAILURE_GROUP: _describe_value(gettext_lazy("with failures in group %(value)s")),
    "refused_of": _describe_value(gettext_lazy("rejected in bulk operation %(value)s")),
}
