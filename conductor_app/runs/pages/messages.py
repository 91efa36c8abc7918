"""Messages that could not be delivered: the list, and the page of one message. Operators retry or discard them."""

from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...access.secrets import redact_all
from ...access.visibility import may, shown_to
from ...core.errors import Invalid, NotFound, RequestRefused
from ...db import keyset_pages
from ...web.badges import format_lower_bound, format_size
from ...web.documents import MAX_INLINE_BYTES, render_tree
from ...web.links import run_address, standalone_task_address, task_group_address
from ...web.pages import ObjectPage, Page, require_permission, show_refusal
from ..commands import messages as engine
from ..models import Message
from ..queries.messages import (
    EVENT,
    GROUP,
    LIMIT,
    RUN,
    SINK,
    TASK,
    UndeliveredFilter,
    find_undelivered,
    receiver_kind,
    undelivered_messages,
    undelivered_page,
)

VIEW_PERMISSION = "conductor.view_message"
KIND_LABELS = {
    RUN: gettext_lazy("Workflow run"),
    TASK: gettext_lazy("Taskcluster task"),
    GROUP: gettext_lazy("Task group"),
    SINK: gettext_lazy("Other system"),
    EVENT: gettext_lazy("Event handlers"),
    LIMIT: gettext_lazy("Workflow rate limit"),
}
SUBJECT_LABELS = {
    "begin": gettext_lazy("start a sub-workflow or failure workflow"),
    "child_ended": gettext_lazy("a sub-workflow has ended"),
    "child_reopened": gettext_lazy("a sub-workflow was reopened"),
    "resume_child": gettext_lazy("resume a sub-workflow"),
    "terminate": gettext_lazy("terminate a sub-workflow"),
    "started": gettext_lazy("a worker has started a task"),
    "inbox": gettext_lazy("a message for the workflow"),
    "resolved": gettext_lazy("a required task is resolved"),
    "asked": gettext_lazy("an action on many tasks"),
    "group": gettext_lazy("check whether a group is resolved"),
    "publish": gettext_lazy("publish an event"),
    "event": gettext_lazy("an internal event"),
    "act": gettext_lazy("an action of an event handler"),
    "release": gettext_lazy("release a waiting run"),
    "overdue": gettext_lazy("handle a due timer"),
    "overdue_task": gettext_lazy("handle a due timer"),
}
RECEIVER_ADDRESSES = {RUN: run_address, TASK: standalone_task_address, GROUP: task_group_address}
RECEIVER_PERMISSIONS = {
    RUN: ("conductor.view_run", "conductor.change_run"),
    TASK: ("conductor.view_standalonetask", "conductor.change_standalonetask"),
    GROUP: ("conductor.view_taskgroup", "conductor.change_standalonetask"),
    SINK: ("conductor.view_event_handler", "conductor.execute_event_handler"),
    EVENT: ("conductor.view_event_handler", "conductor.execute_event_handler"),
    LIMIT: ("conductor.view_run", "conductor.change_run"),
}
"""The permissions to see a receiver, and to retry or discard messages to it. Other receivers need those on runs."""
FILTER_FIELDS = ("kind", "receiver", "error")
MAX_AT_ONCE = 1_000


def view_permission(message: Message) -> str:
    return RECEIVER_PERMISSIONS[receiver_kind(message.subject) or RUN][0]


def act_permission(message: Message) -> str:
    return RECEIVER_PERMISSIONS[receiver_kind(message.subject) or RUN][1]


def _parse_filter(query: QueryDict) -> UndeliveredFilter:
    kind, receiver, error = (query.get(name, "").strip()[:255] for name in FILTER_FIELDS)
    return UndeliveredFilter(kind if kind in KIND_LABELS else "", receiver, error)


def _address(query: QueryDict, **more: str) -> str:
    """Return the address of the list with the filters of `query`, and with additional parameters."""
    parameters = {name: query[name] for name in FILTER_FIELDS if query.get(name)} | more
    return reverse("admin:undelivered_messages", query=parameters or None)


def _message_row(request: HttpRequest, message: Any) -> dict[str, Any]:
    """Return a message with its labels, and whether the user may act on it."""
    kind = receiver_kind(message.subject)
    build_address = RECEIVER_ADDRESSES.get(kind)
    return {
        "message": message,
        "subject": SUBJECT_LABELS.get(message.subject, message.subject),
        "kind": KIND_LABELS.get(kind, ""),
        "receiver": message.to,
        "address": build_address(message.to) if build_address and message.to else "",
        "may_act": may(request.user, act_permission(message), message),
    }


def _shown_messages(request: HttpRequest) -> QuerySet[Message]:
    """Return the undelivered messages that the user may see: all, or those to runs of a grant."""
    return shown_to(request.user, VIEW_PERMISSION, Message.objects.undelivered())


class UndeliveredMessagesPage(Page):
    """List of undelivered messages."""

    name, title = "undelivered_messages", gettext_lazy("Undelivered messages")
    template, permission = "ops/runs/undelivered_messages.html", VIEW_PERMISSION
    shows_granted_rows = True

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        query = request.GET
        selection = _parse_filter(query)
        matching = undelivered_messages(selection, _shown_messages(request))
        found = undelivered_page(matching, query.get("after", ""), query.get("before", ""))
        rows = [_message_row(request, message) for message in found.rows]
        count, is_capped = keyset_pages.count_rows(matching, found)
        return {
            "rows": rows,
            "may_act": any(row["may_act"] for row in rows),
            "count": count,
            "count_text": format_lower_bound(count, is_capped),
            "most": MAX_AT_ONCE,
            "query": {name: query.get(name, "") for name in FILTER_FIELDS},
            "is_filtered": selection != UndeliveredFilter(),
            "kinds": KIND_LABELS.items(),
            "older": _address(query, after=str(found.after)) if found.after else "",
            "newer": _address(query, before=str(found.before)) if found.before else "",
        }

    def post(self, request: HttpRequest) -> HttpResponse:
        """Retry or discard the selected messages, or all that match the filter.

        Raises:
            PermissionDenied: when the user may not change the receiver of one of them.
        """
        try:
            ids = _selected_ids(request)
            if not ids:
                raise Invalid(_("Select at least one message."))
            _act(request, ids)
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(_address(request.GET))


def _selected_ids(request: HttpRequest) -> list[int]:
    if "all" in request.POST:
        matching = undelivered_messages(_parse_filter(request.GET), _shown_messages(request)).order_by("pk")
        return list(matching.values_list("pk", flat=True)[:MAX_AT_ONCE])
    given = request.POST.getlist("message")[:MAX_AT_ONCE]
    return [int(text) for text in given if text.isdecimal() and len(text) <= 18]


def _act(request: HttpRequest, ids: Iterable[int]) -> None:
    """Retry or discard messages, and show the result on the next page."""
    shown = list(_shown_messages(request).filter(pk__in=ids).only("subject", "to"))
    for message in shown:
        require_permission(request, act_permission(message), message)
    ids = [message.pk for message in shown]
    by, reason, do = request.user.get_username(), request.POST.get("reason", "").strip(), request.POST.get("do")
    if do == "retry":
        count = engine.retry_messages(ids, by, reason)
        done = ngettext("%(n)s message is tried again.", "%(n)s messages are tried again.", count)
    elif do == "discard":
        count = engine.discard_messages(ids, by, reason)
        done = ngettext("%(n)s message discarded.", "%(n)s messages discarded.", count)
    else:
        raise Invalid(_("Missing or unknown action."))
    messages.success(request, done % {"n": count})


class UndeliveredMessagePage(ObjectPage):
    """Page of one undelivered message, with its payload."""

    name, template, permission = "undelivered_message", "ops/runs/undelivered_message.html", VIEW_PERMISSION
    shows_granted_rows = True
    route = "undelivered-messages/<int:message_id>/"

    def get_context(self, request: HttpRequest, message_id: int) -> dict[str, Any]:
        message = _find_message(request, message_id)
        row = _message_row(request, message)
        may_view = may(request.user, view_permission(message), message)
        is_small = message.payload_size <= MAX_INLINE_BYTES
        # Reading the field replaces encrypted values by asterisks.
        payload = render_tree(redact_all(message.facts)) if may_view and is_small else None
        return {
            "title": row["subject"],
            **row,
            "payload": payload,
            "size": format_size(message.payload_size),
            "may_view": may_view,
        }

    def handle_post(self, request: HttpRequest, message_id: int) -> HttpResponse:
        message = _find_message(request, message_id)
        try:
            _act(request, [message.pk])
        except RequestRefused as refused:
            show_refusal(request, refused)
            return HttpResponseRedirect(reverse("admin:undelivered_message", args=[message.pk]))
        return HttpResponseRedirect(reverse("admin:undelivered_messages"))


def _find_message(request: HttpRequest, message_id: int) -> Any:
    message = find_undelivered(message_id, _shown_messages(request))
    if message is None:
        raise NotFound(_("No such undelivered message. It was delivered or discarded."))
    return message
