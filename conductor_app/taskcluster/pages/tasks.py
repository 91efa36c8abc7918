"""The page of a standalone task, its artifacts, and hits in the command palette.

The page of a task has fragments that refresh: its state, attempts, dependencies and artifacts, and the log of an
attempt, the end first, always as plain text.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...access.models import AuditEntry
from ...access.tokens import DOWNLOAD, artifact_address
from ...core.errors import RequestRefused
from ...core.states import TASK
from ...failures.models import FailureGroup
from ...failures.queries import group_of
from ...runs.models import Attempt
from ...utils import clock
from ...utils.formatting import format_duration
from ...web.badges import ACTIVE, format_size, mark_names, relative_time, render_badge, status_tone
from ...web.documents import clean_log, render_tree
from ...web.links import queue_address, standalone_task_address, task_group_address
from ...web.pages import (
    PaletteHit,
    ReadOnlyAdmin,
    fragment_response,
    html_revision,
    render_to_string,
    require_permission,
    show_refusal,
)
from ..commands.artifacts import read_page, resolve_link
from ..commands.tasks import PRIORITIZE, apply_action
from ..core.decisions import REFERENCE
from ..models import Artifact, StandaloneTask, TaskGroup
from ..queries import (
    NAMES_OF_PRIORITIES,
    PRIORITIES,
    RequiredTaskView,
    dependents_of,
    displayed_state,
    explain_wait,
    messages_of,
    requirements_of,
    waits_for_schedule,
)

PUBLIC_PREFIX, VIEW_ALL_PERMISSION = "public/", "conductor.view_artifact"
TEXT_TYPES = ("text/", "application/json", "application/x-yaml", "application/yaml", "application/xml")


def is_readable_by(row: Artifact, user: User | AnonymousUser) -> bool:
    """Return True if the user may read the artifact. Public artifacts need no further permission."""
    return row.name.startswith(PUBLIC_PREFIX) or user.has_perm(VIEW_ALL_PERMISSION)


def is_text(row: Artifact) -> bool:
    """Return True if the page can show the artifact: stored text, or a link to another artifact."""
    is_log = row.content_type.startswith(TEXT_TYPES) or row.name.endswith(".log")
    return is_log and (bool(row.path) or row.kind == "link")


def artifact_context(row: Artifact, now: int, user: User | AnonymousUser) -> dict[str, Any]:
    """Return one artifact with the links that the user may open."""
    is_open = is_readable_by(row, user)
    is_here = bool(row.path) and row.expires_at > now and is_open
    return {
        "row": row,
        "size": format_size(row.size) if row.path else "",
        "download": f"{reverse('admin:standalone_file', args=[row.task_id])}?{_artifact_query(row)}" if is_here else "",
        "read": f"{standalone_task_address(row.task_id)}?{_artifact_query(row)}#log"
        if is_open and is_text(row)
        else "",
        "location_text": artifact_location(row) if is_open else _("Required permission: conductor.view_artifact"),
    }


def _artifact_query(row: Artifact) -> str:
    return urlencode({"attempt": row.number, "artifact": row.name})


def artifact_location(row: Artifact) -> SafeString | str:
    """Return the location of an artifact that is not stored here, or the reason why it is missing."""
    url = str(row.details.get("url", ""))
    if url.startswith(("https://", "http://")):
        return format_html('<a href="{0}" rel="noopener noreferrer">{0}</a>', url)
    details = [str(row.details[part]) for part in ("url", "artifact", "reason", "message") if part in row.details]
    return " ".join(details) or ("" if row.path else _("not uploaded yet"))


MAX_ARTIFACTS = 200
VIEW_FAILURES_PERMISSION = "conductor.view_failuregroup"


@dataclass(frozen=True)
class TaskViewModel:
    """A task, the current time, and the attempt and the artifact that the address selects."""

    standalone: StandaloneTask
    query: Mapping[str, str]
    now: int

    @property
    def name(self) -> str:
        return self.standalone.task.name or self.standalone.pk

    @property
    def state(self) -> str:
        return displayed_state(self.standalone.task.status, self.attempts[-1].status if self.attempts else None)

    @cached_property
    def attempts(self) -> list[Attempt]:
        return self.standalone.attempts

    @property
    def number(self) -> int:
        """Return the number of the selected attempt: the one in the address, otherwise the last one."""
        query = self.query.get("attempt", "")
        requested = int(query) if query.isascii() and query.isdecimal() and len(query) < 4 else len(self.attempts)
        return min(requested, max(len(self.attempts) - 1, 0))

    @property
    def attempt(self) -> Attempt | None:
        return self.attempts[self.number] if self.attempts else None

    @cached_property
    def artifacts(self) -> list[Artifact]:
        """Return the artifacts of the selected attempt."""
        rows = Artifact.objects.of(self.standalone.pk, self.number).filter(is_present=True).order_by("name")
        return list(rows[:MAX_ARTIFACTS]) if self.attempts else []

    @cached_property
    def requirements(self) -> list[RequiredTaskView]:
        return requirements_of(self.standalone)

    @property
    def failure_group(self) -> FailureGroup | None:
        """Return the failure group of the attempt's failure."""
        return group_of(self.attempt) if self.attempt else None


def parts_context(view_model: TaskViewModel, user: User | AnonymousUser) -> dict[str, Any]:
    """Return the context of the parts that refresh."""
    standalone = view_model.standalone
    tone, sentences = _state_sentences(view_model)
    status = standalone.task.status
    return {
        "standalone": standalone,
        "name": view_model.name,
        "badge": render_badge(view_model.state),
        "tone": tone,
        "sentences": [mark_names(each) for each in sentences],
        "queue": queue_address(standalone.queue),
        "group": task_group_address(standalone.group_id),
        "priority": NAMES_OF_PRIORITIES[standalone.priority],
        "priorities": [NAMES_OF_PRIORITIES[number] for number in sorted(NAMES_OF_PRIORITIES, reverse=True)],
        "tries": [_attempt_row(attempt, view_model) for attempt in view_model.attempts],
        "number": view_model.number,
        "failures": view_model.failure_group if user.has_perm(VIEW_FAILURES_PERMISSION) else None,
        "artifacts": [artifact_context(row, view_model.now, user) for row in view_model.artifacts],
        "needed": [_requirement_row(each) for each in view_model.requirements],
        "needs_itself": waits_for_schedule(standalone.pk),
        "dependents": [_requirement_row(each) for each in dependents_of(standalone.pk)],
        "notices": messages_of(standalone.pk),
        "is_open": status in TASK.open,
        "is_blocked": status == "BLOCKED",
        "may_be_prioritized": not standalone.ever_resolved,
        "is_final": status in TASK.final,
    }


def _state_sentences(view_model: TaskViewModel) -> tuple[str, list[str]]:
    """Return the display group of the state, and sentences that explain it."""
    last = view_model.attempts[-1] if view_model.attempts else None
    if waits := explain_wait(view_model.standalone, view_model.requirements, view_model.now):
        return "waiting", waits
    if last is not None and last.status == "LEASED":
        return ACTIVE, [_("Running on worker `%(worker)s`.") % {"worker": last.worker}]
    return status_tone(view_model.state), [_end_sentence(view_model, last)] if last is not None else []


def _end_sentence(view_model: TaskViewModel, last: Attempt) -> str:
    facts = {
        "reason": last.reason,
        "worker": last.worker,
        "count": len(view_model.attempts),
        "span": format_duration((last.ended_at or view_model.now) - (last.started_at or last.scheduled_at)),
    }
    if view_model.state == "COMPLETED":
        return _("Completed by worker `%(worker)s` in %(span)s.") % facts
    if not last.worker:
        return _("Ended with `%(reason)s` before a worker claimed it.") % facts
    message = ngettext(
        "Ended with `%(reason)s` in its only attempt, on worker `%(worker)s` after %(span)s.",
        "Ended with `%(reason)s` in attempt %(count)s, on worker `%(worker)s` after %(span)s.",
        len(view_model.attempts),
    )
    return message % facts


def _attempt_row(attempt: Attempt, view_model: TaskViewModel) -> dict[str, Any]:
    return {
        "attempt": attempt,
        "begun_at": attempt.started_at if attempt.started_at is not None else attempt.ended_at,
        "badge": render_badge(attempt.status),
        "address": f"{standalone_task_address(view_model.standalone.pk)}?attempt={attempt.number}",
        "is_chosen": attempt.number == view_model.number,
        "reason": attempt.reason if attempt.reason != "completed" else "",
    }


def _requirement_row(each: RequiredTaskView) -> tuple[RequiredTaskView, SafeString | str, str]:
    return each, render_badge(each.status) if each.status else "", standalone_task_address(each.id)


ERROR_PATTERN = re.compile(r"\b(?:ERROR|FATAL|CRITICAL|FAILED|Traceback)\b")
MAX_LINE_LENGTH = 4_000
LOG_NAMES = ("public/logs/live_backing.log", "public/logs/live.log", "public/logs/task.log")
"""Names under which Taskcluster's workers store the log of a task."""


def select_log(view_model: TaskViewModel) -> Artifact | None:
    """Return the artifact in the address, otherwise the one that is most likely the log."""
    by_name = {row.name: row for row in view_model.artifacts}
    if requested := by_name.get(view_model.query.get("artifact", "")):
        return requested
    found = [by_name[name] for name in LOG_NAMES if name in by_name]
    found += [row for row in view_model.artifacts if row.name.endswith(".log")]
    readable = [row for row in found if is_text(row)]
    return next(iter(readable), next(iter(found), None))


def log_revision(view_model: TaskViewModel, row: Artifact | None) -> str:
    """Return a value that changes with the log, without reading it: new content is stored under a new path."""
    if row is None:
        return "none"
    try:
        target = resolve_link(row.task_id, row.number, row.name)
    except RequestRefused:
        target = row
    has_ended = view_model.attempt is not None and view_model.attempt.ended_at is not None
    return f"{target.pk}-{target.path}-{has_ended}"


def log_context(view_model: TaskViewModel, row: Artifact | None, user: User | AnonymousUser) -> dict[str, Any]:
    """Return one page of the log, or the reason why it cannot be shown."""
    is_running = view_model.attempt is not None and view_model.attempt.ended_at is None
    context: dict[str, Any] = {"row": row, "is_final": not is_running, "has_begun": view_model.attempt is not None}
    if row is None:
        return context
    context |= {"name": row.name, "at": artifact_context(row, view_model.now, user)}
    if not is_readable_by(row, user):
        return context | {"refusal": _("Required permission: conductor.view_artifact")}
    if row.expires_at <= view_model.now:
        return context | {"refusal": _("The artifact has expired.")}
    try:
        target = resolve_link(row.task_id, row.number, row.name)
        if not is_readable_by(target, user):
            return context | {"refusal": _("Required permission: conductor.view_artifact")}
        if target.kind == REFERENCE:
            return context | {"refusal": _("The log is still on its worker. Open it there until it is uploaded.")}
        return context | _log_page(view_model, target)
    except RequestRefused as refused:
        return context | {"refusal": refused.message}


def _log_page(view_model: TaskViewModel, row: Artifact) -> dict[str, Any]:
    query = view_model.query.get("until", "")
    until = int(query) if query.isascii() and query.isdecimal() and len(query) < 15 else None
    page = read_page(row, until)
    text = page.content.decode("utf-8", "replace")
    return {"page": page, "lines": render_log_lines(text), "is_end": until is None}


def render_log_lines(text: str) -> SafeString:
    """Return the lines as list items, with error lines marked."""
    return mark_safe("".join(map(_render_line, clean_log(text).split("\n"))))


def _render_line(line: str) -> str:
    more = f'<i class="muted">… {len(line) - MAX_LINE_LENGTH:,}</i>' if len(line) > MAX_LINE_LENGTH else ""
    bad = ' class="error"' if ERROR_PATTERN.search(line) else ""
    return f'<li{bad}><span class="text">{escape(line[:MAX_LINE_LENGTH])}{more}</span></li>'


PERMISSION = "conductor.change_standalonetask"
ACTION_MESSAGES = {
    "schedule": gettext_lazy("Scheduled."),
    "rerun": gettext_lazy("Rerun started."),
    "cancel": gettext_lazy("Canceled."),
    PRIORITIZE: gettext_lazy("Priority changed."),
}
PARTS_TEMPLATE, LOG_TEMPLATE = "ops/taskcluster/task_parts.html", "ops/taskcluster/log.html"
MAX_AUDIT_ENTRIES = 50


def task_page(site: AdminSite, request: HttpRequest, task_id: str) -> HttpResponse:
    """Render the page of a task."""
    if request.method == "POST":
        return _handle_action(request, _find_task(request, task_id).pk)
    view_model = _load_view_model(request, task_id)
    context = {
        **site.each_context(request),
        "title": view_model.name,
        "opts": StandaloneTask._meta,
        **_page_context(view_model, request),
    }
    context |= {"parts": render_to_string(PARTS_TEMPLATE, context, request)}
    context |= {
        "live_revision": html_revision(context["parts"]),
        **_log_section(view_model, request),
        **_static_context(view_model, request),
    }
    return TemplateResponse(request, "admin/conductor/standalonetask/page.html", context)


def task_fragment(request: HttpRequest, task_id: str) -> HttpResponse:
    """Return the parts that change with the task, or 204 if the page already shows them."""
    return fragment_response(request, PARTS_TEMPLATE, _page_context(_load_view_model(request, task_id), request))


def log_fragment(request: HttpRequest, task_id: str) -> HttpResponse:
    """Return the end of the log, or 204 if nothing was added."""
    view_model = _load_view_model(request, task_id)
    artifact = select_log(view_model)
    revision = log_revision(view_model, artifact)
    if request.GET.get("rev") == revision:
        return HttpResponse(status=204)
    html = render_to_string(LOG_TEMPLATE, {"log": log_context(view_model, artifact, request.user)}, request)
    return HttpResponse(html, headers={"X-Revision": revision, "Cache-Control": "no-store"})


def artifact_redirect(request: HttpRequest, task_id: str) -> HttpResponse:
    """Redirect to the content of an artifact. This link does not expire, unlike the signed address.

    Raises:
        Http404: when there is no such artifact.
        PermissionDenied: when the user may not read it.
    """
    view_model = _load_view_model(request, task_id)
    row = next((each for each in view_model.artifacts if each.name == request.GET.get("artifact", "")), None)
    if row is None:
        raise Http404(_("No such artifact."))
    if not is_readable_by(row, request.user):
        raise PermissionDenied(VIEW_ALL_PERMISSION)
    return HttpResponseRedirect(artifact_address(row.task_id, row.number, row.name, DOWNLOAD))


def _page_context(view_model: TaskViewModel, request: HttpRequest) -> dict[str, Any]:
    return {**parts_context(view_model, request.user), "may_act": request.user.has_perm(PERMISSION)}


def _log_section(view_model: TaskViewModel, request: HttpRequest) -> dict[str, Any]:
    """Return the log, and the address that polls its end."""
    artifact = select_log(view_model)
    context = {"log": log_context(view_model, artifact, request.user)}
    query = {"attempt": view_model.number, "artifact": artifact.name if artifact else ""}
    html = render_to_string(LOG_TEMPLATE, context, request)
    live = reverse("admin:standalone_log", args=[view_model.standalone.pk], query=query)
    return {**context, "log_html": html, "log_live": live, "log_revision": log_revision(view_model, artifact)}


def _static_context(view_model: TaskViewModel, request: HttpRequest) -> dict[str, Any]:
    """Return the parts that do not change while the page is open."""
    entries = AuditEntry.objects.filter(object_type="task", object_id=view_model.standalone.pk).order_by("-at", "-id")
    may_see = request.user.has_perm("conductor.view_auditentry")
    return {
        "definition": render_tree(view_model.standalone.definition),
        "scopes": view_model.standalone.definition.get("scopes") or [],
        "audit": [(entry, relative_time(entry.at)) for entry in entries[:MAX_AUDIT_ENTRIES]] if may_see else [],
    }


def _handle_action(request: HttpRequest, task_id: str) -> HttpResponse:
    require_permission(request, PERMISSION)
    verb, reason = request.POST.get("do", ""), request.POST.get("reason", "").strip()[:500]
    by = request.user.get_username()
    try:
        apply_action(
            verb, task_id, by, reason, PRIORITIES.get(request.POST.get("priority", ""), 0) if verb == PRIORITIZE else 0
        )
        messages.success(request, ACTION_MESSAGES[verb])
    except RequestRefused as refused:
        show_refusal(request, refused)
    return HttpResponseRedirect(standalone_task_address(task_id))


def _load_view_model(request: HttpRequest, task_id: str) -> TaskViewModel:
    return TaskViewModel(_find_task(request, task_id), request.GET, clock.now())


def _find_task(request: HttpRequest, task_id: str) -> StandaloneTask:
    if not request.user.has_perm("conductor.view_standalonetask"):
        raise PermissionDenied("conductor.view_standalonetask")
    standalone = StandaloneTask.objects.with_attempts().filter(pk=task_id.replace("\0", "")).first()
    if standalone is None:
        raise Http404(_("No such task: %(id)s. It may have expired and been deleted.") % {"id": task_id[:64]})
    return standalone


class StandaloneTaskAdmin(ReadOnlyAdmin):
    """The page of a standalone task. Tasks are listed on the pages of their groups."""

    def get_urls(self) -> list[URLPattern]:
        def line(route: str, view: Any, name: str) -> URLPattern:
            return path(route, self.admin_site.admin_view(view), name=name)

        return [
            line("<path:task_id>/parts/", task_fragment, "standalone_parts"),
            line("<path:task_id>/log/", log_fragment, "standalone_log"),
            line("<path:task_id>/file/", artifact_redirect, "standalone_file"),
            *super().get_urls(),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:conductor_taskgroup_changelist"))

    def change_view(self, request: HttpRequest, object_id: str, *args: object, **kwargs: object) -> HttpResponse:
        return task_page(self.admin_site, request, object_id)


MIN_ID_LENGTH = 20
"""Minimum length of a search term. Shorter terms are never ids."""


def find_standalone_tasks(request: HttpRequest, term: str) -> Iterator[PaletteHit]:
    """Yield the task group and the standalone task with this id."""
    if len(term) < MIN_ID_LENGTH:
        return
    if request.user.has_perm("conductor.view_taskgroup") and TaskGroup.objects.filter(pk=term).exists():
        yield PaletteHit(_("Group"), term, task_group_address(term), "tasks", _("task group"))
    if request.user.has_perm("conductor.view_standalonetask"):
        rows = StandaloneTask.objects.select_related("task").only("pk", "task__name", "task__status")
        for standalone in rows.filter(pk=term):
            name, status = standalone.task.name or term, standalone.task.status
            yield PaletteHit(_("Task"), name, standalone_task_address(term), "tasks", status)
