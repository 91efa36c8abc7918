"""Labels and colors of event results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...core.events import INTERNAL
from ...core.informative_lines import informative_line
from ...insight.events.event_search import ACTION_FAILED, DUPLICATE, UNHANDLED, DeliveredEvent
from ...models import EventAction, HandlerEvaluation
from ...models.events import COMPLETED, FAILED, MATCHED, NOT_MATCHED
from ...models.fields import dumps
from ..badges import render_pill
from ..run_links import render_run_link

VERDICT_LABELS = {
    MATCHED: ("succeeded", gettext_lazy("matched")),
    NOT_MATCHED: ("stopped", gettext_lazy("condition false")),
    FAILED: ("failed", gettext_lazy("condition failed")),
}
"""The color and the label of each verdict."""
OUTCOME_LABELS = {
    MATCHED: gettext_lazy("A handler matched"),
    NOT_MATCHED: gettext_lazy("A condition was false"),
    FAILED: gettext_lazy("A condition failed"),
    ACTION_FAILED: gettext_lazy("An action failed"),
    UNHANDLED: gettext_lazy("No handler"),
    DUPLICATE: gettext_lazy("Received more than once"),
}
REPLAY, WEBHOOK, API = "replay", "webhook", "api"
SOURCE_LABELS = {
    INTERNAL: gettext_lazy("a run of this server"),
    API: gettext_lazy("the API"),
    WEBHOOK: gettext_lazy("a webhook"),
    REPLAY: gettext_lazy("a replay"),
    "amqp_queue": "AMQP",
    "amqp_exchange": "AMQP",
    "redis": "Redis",
    "kafka": "Kafka",
    "nats": "NATS",
}
"""The sources of events."""
ACTION_LABELS = {
    "start_workflow": gettext_lazy("started run {run}"),
    "complete_task": gettext_lazy("completed a task of run {run}"),
    "fail_task": gettext_lazy("failed a task of run {run}"),
    "terminate_workflow": gettext_lazy("terminated run {run}"),
    "update_workflow_variables": gettext_lazy("set variables of run {run}"),
}
MAX_SHOWN_VALUES = 3
MAX_VALUE_LENGTH = 60


def source_label(name: str) -> str:
    """Return the label of an event's source."""
    return str(SOURCE_LABELS.get(name, name)) or "–"


def verdict_label(row: HandlerEvaluation) -> SafeString:
    """Return the result of a handler's condition."""
    group, word = VERDICT_LABELS.get(row.outcome, ("waiting", row.outcome))
    return render_pill(group, str(word))


def observed_values_text(row: HandlerEvaluation) -> str:
    """Return the values that the condition compared, on one line."""
    if row.outcome == MATCHED or not row.seen:
        return ""
    return "; ".join(f"{place} = {short_json(value)}" for place, value in list(row.seen.items())[:MAX_SHOWN_VALUES])


def short_json(value: Any) -> str:
    """Return a value as shortened JSON."""
    text = dumps(value) or "null"
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"


def is_input_invalid(action: EventAction) -> bool:
    """Return True if no run was started because its input does not match the schema."""
    return isinstance(action.output, Mapping) and bool(action.output.get("refused"))


def action_result(action: EventAction) -> SafeString:
    """Return the result of an action, with a link to its run."""
    if action.status == FAILED:
        label = _("invalid input") if is_input_invalid(action) else _("action failed")
        return format_html("{} {}", render_pill("failed", label), informative_line(action.error, 160))
    if action.status != COMPLETED:
        return render_pill("active", _("in progress"))
    run = render_run_link(action.run_id, None) if action.run_id else ""
    words = ACTION_LABELS.get(action.action)
    return format_html(str(words), run=run) if words else format_html("{}", action.action)


@dataclass(frozen=True, slots=True)
class HandlerOutcome:
    """View of the result of one handler."""

    handler: str
    verdict: SafeString
    observed_values: str
    error: str
    actions: Sequence[SafeString]
    row: HandlerEvaluation


def handler_outcomes(delivered: DeliveredEvent) -> list[HandlerOutcome]:
    """Return the result of each handler."""
    return [
        HandlerOutcome(
            each.verdict.handler,
            verdict_label(each.verdict),
            observed_values_text(each.verdict),
            informative_line(each.verdict.error, 160),
            [action_result(action) for action in each.actions],
            each.verdict,
        )
        for each in delivered.results
    ]


def repeat_note(count: int) -> str:
    """Return how often the same message was received again."""
    return ngettext(
        "received once more, ignored as duplicate", "received %(count)s more times, ignored as duplicates", count
    ) % {"count": f"{count:,}"}
