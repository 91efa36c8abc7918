"""Pages of received events: the list, one event with why it did or did not start a run, replays, and sources."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...access.authentication import server_address
from ...access.visibility import may, visible
from ...core.errors import Invalid, NotFound, RequestRefused
from ...core.events import INTERNAL
from ...core.failure_grouping import informative_line
from ...core.primitives import JsonValue
from ...db.fields import dumps
from ...runs.pages.filters import FilterField, parse_time
from ...utils import clock
from ...web.badges import render_pill
from ...web.documents import annotate_documents, json_file_response, payload_documents
from ...web.links import event_address, render_run_link
from ...web.pages import ObjectPage, Page, fragment_response, get_or_404, show_refusal
from ..commands.handlers import HandlerPreview, HandlerTrial, plan_replay, replay
from ..models import (
    COMPLETED,
    FAILED,
    MATCHED,
    NOT_MATCHED,
    EventAction,
    EventDelivery,
    EventHandler,
    HandlerEvaluation,
    Webhook,
    built_in_handler_name,
)
from ..queries import (
    ACTION_FAILED,
    DUPLICATE,
    MAX_NEW_EVENTS,
    OUTCOMES,
    SEARCHED_ROWS,
    UNHANDLED,
    DeliveredEvent,
    EventFilter,
    EventListPage,
    EventSource,
    count_new_events,
    event_page,
    event_sources,
    load_events,
    visible_deliveries,
)

VERDICT_LABELS = {
    MATCHED: ("succeeded", gettext_lazy("matched")),
    NOT_MATCHED: ("stopped", gettext_lazy("condition false")),
    FAILED: ("failed", gettext_lazy("condition failed")),
}
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
    "amqp_queue": gettext_lazy("AMQP queue"),
    "amqp_exchange": gettext_lazy("AMQP exchange"),
    "redis": "Redis",
    "kafka": "Kafka",
    "sqs": "Amazon SQS",
    "nats": "NATS",
    "jsm": "NATS JetStream",
}
ACTION_LABELS = {
    "start_workflow": gettext_lazy("started run {run}"),
    "complete_task": gettext_lazy("completed a task of run {run}"),
    "fail_task": gettext_lazy("failed a task of run {run}"),
    "terminate_workflow": gettext_lazy("terminated run {run}"),
    "update_workflow_variables": gettext_lazy("set variables of run {run}"),
}
MAX_SHOWN_VALUES = 3
MAX_VALUE_LENGTH = 60
TIME_FIELDS = (
    FilterField("since", gettext_lazy("Received after"), "since", parse_time),
    FilterField("until", gettext_lazy("Received before"), "until", parse_time),
)
FILTER_FIELDS = ("event", "handler", "outcome", "source", *(field.name for field in TIME_FIELDS))
MAX_LENGTH = 255
MAX_NAMES = 500
MAX_PARAMS_LENGTH = 400
VIEW_PERMISSION = "conductor.view_event_handler"
MAX_REPLAYS = 20
REPLAY_PERMISSION, WEBHOOK_PERMISSION = "conductor.execute_event_handler", "conductor.execute_webhook"


class EventsPage(Page):
    """List of received events."""

    name, title, template, permission = "events", "Events", "ops/events/list.html", VIEW_PERMISSION
    shows_granted_rows = True

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        query, refused, found = request.GET, "", EventListPage(())
        try:
            found = event_page(parse_filter(query), query.get("after", "")[:40], query.get("before", "")[:40])
        except Invalid as wrong:
            refused = wrong.message
        first = found.delivered[0].delivery.received_at if found.delivered and not query.get("after") else 0
        context = {"tab": "received", "refused": refused, "bar": filter_bar(query), "is_cut": found.is_cut}
        context |= {
            "rows": [
                (
                    delivered.delivery,
                    source_label(delivered.delivery.source),
                    handler_outcomes(delivered),
                )
                for delivered in found.delivered
            ]
        }
        context |= {
            "searched_count": SEARCHED_ROWS,
            "newest": address_without(query) if query.get("after") else "",
        }
        context |= {"older": address_without(query, after=found.after) if found.after else ""}
        context |= {"newer": address_without(query, before=found.before) if found.before else ""}
        context |= {
            "news_query": address_without(query, than=str(first))[1:] if first and not query.get("before") else ""
        }
        if not found.delivered:
            context |= {
                "is_empty": not visible_deliveries(EventDelivery.objects.all()).exists(),
                "curl": _sample_command(request),
            }
        return context

    def urls(self, site: AdminSite) -> list[URLPattern]:
        return [
            *super().urls(site),
            path("events/news/", site.admin_view(self.new_events_fragment), name="events_news"),
        ]

    def new_events_fragment(self, request: HttpRequest) -> HttpResponse:
        """Return the number of events that arrived after the list was loaded."""
        self._require_access(request)
        since, count = request.GET.get("than", ""), 0
        if since.isdecimal() and len(since) <= 15:
            try:
                count = count_new_events(parse_filter(request.GET), int(since))
            except Invalid:
                count = 0
        context = {"news": count, "most": MAX_NEW_EVENTS, "query": address_without(request.GET)[1:]}
        return fragment_response(request, "ops/runs/new_runs.html", context)


def _sample_command(request: HttpRequest) -> str:
    """Return a command that sends an event, for a handler that exists if there is one."""
    handlers = visible(EventHandler.objects.filter(is_active=True).order_by("name"))
    listened = handlers.values_list("event", flat=True).first()
    event = json.dumps({"event": listened or "conductor:orders:paid", "id": "4711", "total": 12}, ensure_ascii=False)
    address = f"{server_address(request)}/api/event/handleIncomingEvent"
    return f"curl -X POST {address} -H 'Content-Type: application/json' \\\n  -d {shlex.quote(event)}"


class EventPage(ObjectPage):
    """Page of one event: its source, its payload, and the result of each handler."""

    name, template, permission = "event", "ops/events/event.html", VIEW_PERMISSION
    shows_granted_rows = True
    route = "events/<int:event_id>/"

    def get_context(self, request: HttpRequest, event_id: int) -> dict[str, Any]:
        row = find_event(event_id, annotate_documents(EventDelivery.objects.defer("payload"), ("payload",)))
        [delivered] = load_events([row.pk])
        return {
            "title": row.event,
            "row": row,
            "made": handler_outcomes(delivered),
            "again": repeat_note(row.duplicates) if row.duplicates else "",
            "source": source_label(row.source),
            "payload": payload_documents(row, ("payload",))[0],
            "replays": list(visible_deliveries(row.replays.defer("payload")).order_by("-pk")[:MAX_REPLAYS]),
            "may_replay": may(request.user, REPLAY_PERMISSION),
            "tab": "received",
        }

    def urls(self, site: AdminSite) -> list[URLPattern]:
        payload_view = path(f"{self.route}payload/", site.admin_view(self.payload_view), name="event_payload")
        return [payload_view, *super().urls(site)]

    def payload_view(self, request: HttpRequest, event_id: int) -> HttpResponse:
        self._require_access(request)
        row = get_or_404(find_event, event_id)
        return json_file_response(row.payload, f"event-{row.pk}")


def find_event(event_id: int, rows: Any = None) -> EventDelivery:
    """Return the event with this id.

    Raises:
        NotFound: when there is no such event that the current actor may see.
    """
    rows = visible_deliveries(EventDelivery.objects.all() if rows is None else rows)
    row = rows.filter(pk=event_id).first() if event_id < 2**63 else None
    if row is None:
        raise NotFound(_("No such event. Events are deleted after EVENT_RETENTION_DAYS days."))
    return row


class ReplayPage(ObjectPage):
    """Page that replays an event."""

    name, template, permission = "event_replay", "ops/events/replay.html", REPLAY_PERMISSION
    shows_granted_rows = True
    route = "events/<int:event_id>/replay/"

    def get_context(self, request: HttpRequest, event_id: int) -> dict[str, Any]:
        row = find_event(event_id)
        context = {"title": _("Replay %(event)s") % {"event": row.event}, "row": row}
        try:
            return context | {
                "plan": [
                    preview_view(each)
                    for each in plan_replay(row)
                    if _may_replay(request, row, each.verdict.handler.name)
                ]
            }
        except RequestRefused as refused:
            return context | {"plan": [], "refused": refused.message}

    def handle_post(self, request: HttpRequest, event_id: int) -> HttpResponse:
        """Replay the event to the selected handlers.

        Raises:
            PermissionDenied: when the user may not execute one of them.
        """
        row, by = find_event(event_id), request.user.get_username()
        names, reason = request.POST.getlist("handler"), request.POST.get("reason", "").strip()
        if not all(_may_replay(request, row, name) for name in names):
            raise PermissionDenied(REPLAY_PERMISSION)
        address = reverse("admin:event_replay", args=[row.pk])
        if not names or not reason:
            message = _("Select at least one handler.") if reason else _("Enter a reason.")
            messages.error(request, message)
            return HttpResponseRedirect(address)
        try:
            fresh = replay(row.pk, names, by, reason)
        except RequestRefused as refused:
            show_refusal(request, refused)
            return HttpResponseRedirect(address)
        messages.success(request, _("Replayed. The result is below."))
        return HttpResponseRedirect(event_address(fresh.pk))


def _may_replay(request: HttpRequest, event: EventDelivery, handler: str) -> bool:
    """Return True if the user may execute a handler, or the webhook into which it is built."""
    webhook = event.event.partition(":")[2]
    is_built_in = handler == built_in_handler_name(webhook)
    return may(request.user, REPLAY_PERMISSION, EventHandler(name=handler)) or (
        is_built_in and may(request.user, WEBHOOK_PERMISSION, Webhook(name=webhook))
    )


class SourcesPage(Page):
    """List of event sources."""

    name, title, template, permission = "event_sources", "Events", "ops/events/sources.html", VIEW_PERMISSION
    shows_granted_rows = True
    live_template = "ops/events/source_rows.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        rows = [(source, source_state(source)) for source in event_sources(clock.now())]
        return {"rows": rows, "tab": "sources"}


def source_state(source: EventSource) -> SafeString:
    if source.is_heard_here:
        return render_pill("succeeded", _("Direct (API)"))
    if source.setting:
        return render_pill("failed", _("not configured"))
    if source.connected:
        return render_pill("succeeded", _("connected"))
    if source.failing:
        return render_pill("failed", _("not connected"))
    return render_pill("waiting", _("connecting")) if source.listeners else render_pill("failed", _("no subscriber"))


def source_label(name: str) -> str:
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


def short_json(value: JsonValue) -> str:
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
    handler: str
    verdict: SafeString
    observed_values: str
    error: str
    actions: Sequence[SafeString]
    row: HandlerEvaluation


def handler_outcomes(delivered: DeliveredEvent) -> list[HandlerOutcome]:
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
        *(parse_time(values[field.name]) if values[field.name] else None for field in TIME_FIELDS),
    )


def filter_bar(query: QueryDict) -> dict[str, Any]:
    """Return the context of the filter form."""
    handlers = list(visible(EventHandler.objects.order_by("name")).values_list("name", "event")[:MAX_NAMES])
    return {
        **{name: query.get(name, "") for name in FILTER_FIELDS},
        **{field.name: field.input_value(query.get(field.name, "")) for field in TIME_FIELDS},
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
        **{field.name: str(field.label) for field in TIME_FIELDS},
    }
    labels: dict[str, Mapping[str, Any]] = {"outcome": OUTCOME_LABELS, "source": SOURCE_LABELS}
    for name in FILTER_FIELDS:
        if value := query.get(name, "").strip():
            yield names[name], str(labels.get(name, {}).get(value, value)), address_without(query, name)


def address_without(query: QueryDict, *names: str, **other: str) -> str:
    """Return the address with the other filters and with additional parameters."""
    parameters = QueryDict(mutable=True)
    for name in FILTER_FIELDS:
        if (kept := query.get(name)) and name not in names:
            parameters[name] = kept
    for name, value in other.items():
        parameters[name] = value
    return f"?{parameters.urlencode()}"


@dataclass(frozen=True, slots=True)
class HandlerPreviewView:
    handler: str
    verdict: SafeString
    matches: bool
    condition: str
    seen: dict[str, Any]
    value: JsonValue
    error: str
    acts: Sequence[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class TriedEvent:
    """One past event: the handler's result now, and its past result if that differs."""

    event: EventDelivery
    preview: HandlerPreviewView
    before: SafeString | None


def preview_view(preview: HandlerPreview) -> HandlerPreviewView:
    verdict = preview.verdict
    group, word = VERDICT_LABELS[verdict.outcome]
    return HandlerPreviewView(
        verdict.handler.name,
        render_pill(group, str(word)),
        verdict.outcome == MATCHED,
        str(verdict.handler.document.get("condition") or ""),
        verdict.seen,
        verdict.answer.value,
        verdict.answer.error,
        [(act.name, _short_params(act.params), act.trouble) for act in preview.acts],
    )


def _short_params(params: JsonValue) -> str:
    text = dumps(params) or ""
    return text if len(text) <= MAX_PARAMS_LENGTH else f"{text[:MAX_PARAMS_LENGTH]}…"


def trial_view(trial: HandlerTrial) -> dict[str, Any]:
    """Return the tested events, and the number of events per result."""
    rows = [TriedEvent(event, preview_view(each), _past_verdict(event, each)) for event, each in trial.tried]
    kinds = [each.verdict.outcome for _event, each in trial.tried]
    return {
        "rows": rows,
        "large": trial.large,
        "left": trial.left,
        "counts": [(*VERDICT_LABELS[kind], kinds.count(kind)) for kind in (MATCHED, NOT_MATCHED, FAILED)],
        "changed": sum(row.before is not None for row in rows),
    }


def _past_verdict(event: EventDelivery, each: HandlerPreview) -> SafeString | None:
    name, outcome = each.verdict.handler.name, each.verdict.outcome
    then = next((row for row in event.verdicts.all() if row.handler == name), None)
    if then is None:
        return render_pill("stopped", _("was not enabled"))
    return None if then.outcome == outcome else verdict_label(then)
