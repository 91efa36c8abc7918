"""The list of failure groups, and the page of one group: its distribution, its state, notes and actions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django.contrib import messages
from django.db.models import Case, Q, When
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...access.models import AuditEntry
from ...access.visibility import controllable, may, sees_all_runs, visible
from ...bulk.pages.operations import operation_title, render_result_pill
from ...bulk.queries import Repairs, outcomes_of, repairs_of
from ...bulk.selections import UNSUCCESSFUL_STATUSES
from ...core.errors import Invalid, NotFound, RequestRefused
from ...core.failure_grouping import informative_line, split_variable_parts
from ...core.states import FAILURE, REGRESSED
from ...definitions.pages.versions import version_markers
from ...runs.pages.filters import definition_choices
from ...runs.queries.recent import run_keys
from ...settings import conf
from ...utils import clock
from ...utils.formatting import LazyText, TimeRange
from ...web.badges import exact_time, format_count, render_pill
from ...web.charts import (
    ChartSeries,
    TrendChart,
    build_markers,
    chosen_range,
    fitting_range,
    range_links,
    sparkline,
)
from ...web.links import failure_group_address
from ...web.pages import ObjectPage, Page, require_permission, require_permission_on_any, show_refusal
from .. import commands
from ..models import FailureGroup
from ..queries import (
    FAILING,
    LOST_RUNS,
    MAX_GROUPS,
    NEW,
    ORDERS,
    RETRIED,
    VIEWS,
    FailureDetail,
    GroupImpact,
    ListedFailureGroup,
    failure_detail,
    failure_inbox,
    group_status,
    impact_by_group,
    shown_group,
)

PERMISSION = "conductor.change_run"
STATE_PILLS = {
    "OPEN": ("failed", "failed", gettext_lazy("Open")),
    NEW: ("failed", "failed", gettext_lazy("New")),
    FAILING: ("failed", "failed", gettext_lazy("Failing")),
    RETRIED: ("waiting", "do-retry", gettext_lazy("Retried")),
    "REGRESSED": ("failed", "warning", gettext_lazy("Regressed")),
    "ACKNOWLEDGED": ("waiting", "person", gettext_lazy("Acknowledged")),
    "RESOLVED": ("succeeded", "succeeded", gettext_lazy("Resolved")),
    "IGNORED": ("stopped", "skipped", gettext_lazy("Ignored")),
}
MAX_ACTIONS = 20
MAX_ISSUE_TITLE = 120
RETRY = "retry"
SHARED_ACTIONS = ("acknowledge", "resolve", "ignore", "reopen", "assign")
BREAKDOWN_LABELS = {
    "version": gettext_lazy("By version"),
    "build": gettext_lazy("By worker build"),
    "worker": gettext_lazy("By worker"),
    "queue": gettext_lazy("By queue"),
    "label": gettext_lazy("By run label"),
}
"""The properties that break down the failures of a group."""
COUNTED_ON_ARRIVAL = ("version", "build")
"""Properties that are counted for every failure. The other properties are counted for the newest failures."""


@dataclass(frozen=True, slots=True)
class GroupTransition:
    """A state change that an operator may request for a group."""

    event: str
    label: str | LazyText
    sentence: str | LazyText


TRANSITIONS = (
    GroupTransition("acknowledge", gettext_lazy("Acknowledge"), gettext_lazy("Someone is working on it.")),
    GroupTransition(
        "resolve",
        gettext_lazy("Resolve"),
        gettext_lazy("The cause is fixed. If it fails again, the group becomes regressed."),
    ),
    GroupTransition(
        "ignore",
        gettext_lazy("Ignore"),
        gettext_lazy("New failures are counted, but the group is not listed as open."),
    ),
    GroupTransition("reopen", gettext_lazy("Reopen"), gettext_lazy("The group is listed as open again.")),
)


class FailuresPage(Page):
    """2,000 failures, 3 causes."""

    name, title, template, permission = (
        "failures",
        gettext_lazy("Failures"),
        "ops/live_list.html",
        "conductor.view_failuregroup",
    )
    live_template = "ops/failures/groups.html"
    shows_granted_rows = True

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        view, query = request.GET.get("view", "open"), request.GET
        view = view if view in VIEWS else "open"
        definition, text = query.get("definition", "").replace("\0", ""), query.get("q", "").replace("\0", "")
        sort = query.get("sort", LOST_RUNS)
        sort = sort if sort in ORDERS else LOST_RUNS
        user = request.user.get_username()
        now = clock.now()
        found = failure_inbox(view, user, now, definition=definition, text=text, sort=sort)
        return {
            "tabs": [(name, words, found.counts[name], name == view) for name, (words, _states) in VIEWS.items()],
            "view": view,
            "words": VIEWS[view][0],
            "rows": [_group_row(listed_group, now) for listed_group in found.groups],
            "inbox": found,
            "definition": definition,
            "definitions": definition_choices(definition),
            "text": text,
            "is_filtered": bool(definition or text),
            "sort": sort,
            "may_act": may(request.user, PERMISSION),
            "moves": TRANSITIONS,
            "orders": {name: (label, _sort_address(request, name)) for name, (label, _columns) in ORDERS.items()},
        }

    def post(self, request: HttpRequest) -> HttpResponse:
        """Change the state or the assignee of the selected groups."""
        require_permission_on_any(request, PERMISSION)
        ids = [int(id) for id in request.POST.getlist("group")[:MAX_GROUPS] if id.isdecimal() and len(id) < 19]
        groups = list(controllable(FailureGroup.objects.filter(pk__in=ids)))
        name, by = request.POST.get("do", ""), request.user.get_username()
        if groups and name == RETRY:
            selected = {
                "action": RETRY,
                "failure_groups": ",".join(str(pk) for pk in sorted(group.pk for group in groups)),
            }
            return HttpResponseRedirect(reverse("admin:bulk_plan", query=selected))
        form = {"reason": request.POST.get("reason", ""), "assignee": by}
        changed = 0
        try:
            if not groups or name not in SHARED_ACTIONS:
                raise Invalid(_("Select failure groups, and an action."))
            for group in groups:
                ACTIONS[name](group, form, by)
                changed += 1
        except RequestRefused as refused:
            show_refusal(request, refused)
        if changed:
            text = ngettext("%(count)s failure group changed.", "%(count)s failure groups changed.", changed)
            messages.success(request, text % {"count": changed})
        view = request.POST.get("view", "")
        return HttpResponseRedirect(reverse("admin:failures", query={"view": view} if view in VIEWS else {}))


def _group_row(listed_group: ListedFailureGroup, now: int) -> dict[str, Any]:
    group = listed_group.group
    return {
        "group": group,
        "state": render_state_pill(group, listed_group.impact, now),
        "message": render_failure_message(group),
        "lost": len(listed_group.impact.lost),
        "spark": sparkline(listed_group.hours, _("Failures per hour, last 24 hours"), "bad"),
        "today": listed_group.today,
        "issue_name": _issue_name(group.issue_url),
        "address": failure_group_address(group.pk),
    }


def _sort_address(request: HttpRequest, sort: str) -> str:
    query = request.GET.copy()
    query.pop("rev", None)
    query["sort"] = sort
    return f"?{query.urlencode()}"


class FailureGroupPage(ObjectPage):
    """Page of one failure group."""

    name, template, permission = "failure_group", "ops/failures/failure_group.html", "conductor.view_failuregroup"
    shows_granted_rows = True
    route = "failures/<int:group_id>/"

    def get_context(self, request: HttpRequest, group_id: int) -> dict[str, Any]:
        group, parts = _find_group_and_parts(group_id)
        place = request.GET.get("place", "").replace("\0", "").strip()[:200].removeprefix("input.")
        now = clock.now()
        time_range = TimeRange.aligned(chosen_range(request, fitting_range(now - group.first_at)), now)
        detail = failure_detail(group, time_range, place)
        acts = AuditEntry.objects.filter(object_type="failure group", object_id=str(group.pk)).order_by("-id")
        repairs = repairs_of(group, detail.failed_at)
        outcomes = outcomes_of(repairs.operations)
        titles = {group.pk: group.title}
        versions = [int(share.value) for share in detail.by["version"]]
        return {
            "title": group.place,
            "message": render_failure_message(group),
            "chart": _failures_chart(request, group, detail, time_range),
            "group": group,
            "state": render_state_pill(group, impact_by_group(now, group).get(group.pk, GroupImpact()), now),
            "detail": detail,
            "subject": _("Task") if detail.is_standalone else _("Run"),
            "affected": _("Tasks affected") if detail.is_standalone else _("Runs affected"),
            "repairs": repairs,
            "became": _describe_repairs(repairs, group) if repairs.total else "",
            "operations": [
                {
                    "row": row,
                    "title": operation_title(row, titles),
                    "state": render_result_pill(row, outcomes.get(row.pk)),
                    "count": count,
                }
                for row, count in repairs.operations.items()
            ],
            "run_keys": run_keys(failure.run_id or "" for failure in detail.samples),
            "place": place,
            "by_value": [
                (value, count, _matching_runs_address(group, place, value)) for value, count in detail.value_counts
            ],
            "max_count": max((count for _value, count in detail.value_counts), default=0),
            "by": [
                (BREAKDOWN_LABELS[name], rows, name not in COUNTED_ON_ARRIVAL, name == "build")
                for name, rows in detail.by.items()
                if rows
            ],
            "lacks_builds": any(share.value == _("unknown") for share in detail.by.get("build", ())),
            "moves": [move for move in TRANSITIONS if FAILURE.allows(group.state, move.event)],
            "newest_version": max(versions, default=0),
            "may_act": may(request.user, PERMISSION, group),
            "permission": PERMISSION,
            "parts": parts,
            "whole": whole if (whole := shown_group(group)) is not group else None,
            "acts": list(acts[:MAX_ACTIONS]),
            "issue_name": _issue_name(group.issue_url),
            "sets_issues": request.user.is_superuser and not conf.issue_url,
            "new_issue": _new_issue_address(request, group, detail) if conf.issue_url else "",
            "is_regressed": group.state == REGRESSED,
            "retry": reverse("admin:bulk_plan", query={"failure_group": group.pk, "action": "retry"}),
        }

    def handle_post(self, request: HttpRequest, group_id: int) -> HttpResponse:
        """Handle a button of the page."""
        require_permission_on_any(request, PERMISSION)
        group, _parts = _find_group_and_parts(group_id)
        require_permission(request, PERMISSION, group)
        do = ACTIONS.get(request.POST.get("do", ""))
        try:
            if do is None:
                raise Invalid(_("Missing or unknown action."))
            messages.success(request, do(group, request.POST, request.user.get_username()))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(failure_group_address(group.pk))


def _new_issue_address(request: HttpRequest, group: FailureGroup, detail: FailureDetail) -> str:
    """Return the address of the form for a new issue with title and text, which have no varying parts of messages."""
    title = group.title[:MAX_ISSUE_TITLE] or _("Failure without a reason")
    page = request.build_absolute_uri(failure_group_address(group.pk))
    counts = {"failures": format_count(group.count), "runs": format_count(detail.runs)}
    shares = [(BREAKDOWN_LABELS[name], detail.by.get(name, [])) for name in COUNTED_ON_ARRIVAL]
    lines = [
        _("Failures: %(failures)s, runs affected: %(runs)s") % counts,
        _("From %(first)s to %(last)s") % {"first": exact_time(group.first_at), "last": exact_time(group.last_at)},
        *(f"{label}: {', '.join(f'{each.value} ({each.percent} %)' for each in found)}" for label, found in shares),
        page,
    ]
    text = "\n\n".join([group.place, *lines])
    return conf.issue_url.replace("{title}", quote(f"{group.place}: {title}")).replace("{text}", quote(text))


def _issue_name(address: str) -> str:
    """Return the short name of an issue: the end of its address, such as PAY-12 or 345."""
    return address.rstrip("/").rpartition("/")[2][:40] or address[:40]


def _describe_repairs(repairs: Repairs, group: FailureGroup) -> SafeString:
    """Return what became of the affected runs in one sentence, with a link to those that are failed."""
    others = (
        (
            repairs.otherwise,
            ngettext(
                "%(count)s now fails for another cause", "%(count)s now fail for another cause", repairs.otherwise
            ),
        ),
        (repairs.by_operations, _("%(count)s repaired by bulk operations")),
        (repairs.by_hand, _("%(count)s by hand") if repairs.by_operations else _("%(count)s repaired by hand")),
        (repairs.by_policy, _("%(count)s completed without an operator")),
        (repairs.pending, _("%(count)s open")),
        (repairs.terminated, _("%(count)s terminated")),
    )
    counts = {"failed": format_count(repairs.failed), "total": format_count(repairs.total)}
    first = ngettext(
        "%(failed)s of %(total)s run still failed", "%(failed)s of %(total)s runs still failed", repairs.total
    )
    query = {"failure_group": group.pk, "status": ",".join(UNSUCCESSFUL_STATUSES)}
    address = reverse("admin:conductor_run_changelist", query=query)
    rest = [text % {"count": format_count(count)} for count, text in others if count]
    link = format_html('<a href="{}">{}</a>', address, first % counts) if repairs.failed else first % counts
    return format_html_join(", ", "{}", ((part,) for part in (link, *rest)))


def render_failure_message(group: FailureGroup) -> SafeString:
    """Return the message of a group, with an ellipsis for each part that differs between its failures."""
    parts = split_variable_parts(informative_line(group.message))
    if not parts:
        return format_html('<span class="muted">{}</span>', _("no reason given"))
    return format_html_join(
        "",
        "{}",
        (
            (format_html('<span class="varies" title="{}">…</span>', group.example) if varies else text,)
            for text, varies in parts
        ),
    )


def render_state_pill(group: FailureGroup, impact: GroupImpact, now: int) -> SafeString:
    """Return the status of a group as icon, label and color."""
    tone, icon, word = STATE_PILLS[group_status(group, impact, now)]
    return render_pill(tone, str(word), icon)


def _matching_runs_address(group: FailureGroup, place: str, value: str) -> str:
    """Return the address of the group's runs with this value. Empty if the value is empty."""
    query = {"failure_group": group.pk, "inside": f"input.{place}={value}"}
    return reverse("admin:conductor_run_changelist", query=query) if value else ""


def _failures_chart(
    request: HttpRequest, group: FailureGroup, detail: FailureDetail, time_range: TimeRange
) -> TrendChart:
    """Return the failures over time, with the new versions of the definition and the new builds of its workers."""
    return TrendChart(
        _("Failures"),
        time_range,
        [ChartSeries(_("Failures"), "failed", detail.bars)],
        markers=[*version_markers(group.definition), *build_markers(detail.builds)],
        ranges=range_links(request, time_range.name),
    )


def _transition_handler(event: str) -> Callable[[FailureGroup, Mapping[str, str], str], str]:
    def act(group: FailureGroup, form_data: Mapping[str, str], by: str) -> str:
        version, build = form_data.get("version", "").strip(), form_data.get("build", "").strip()
        if version and (not version.isdecimal() or len(version) > 9):
            raise Invalid(_("Not a valid version: %(text)s.") % {"text": repr(version[:40])})
        changed = commands.transition_group(
            group.pk,
            event,
            by,
            form_data.get("reason", "").strip(),
            version=int(version) if version else None,
            build=build[:255],
        )
        return _("State of the group: %(state)s.") % {"state": STATE_PILLS[changed.state][2]}

    return act


def _assign_group(group: FailureGroup, form_data: Mapping[str, str], by: str) -> str:
    assignee = form_data.get("assignee", "").strip()
    commands.assign_group(group.pk, assignee, by, form_data.get("reason", "").strip())
    return _("Assigned to %(assignee)s.") % {"assignee": assignee} if assignee else _("Unassigned.")


def _annotate_group(group: FailureGroup, form_data: Mapping[str, str], by: str) -> str:
    commands.annotate_group(group.pk, form_data.get("note", ""), by)
    return _("Note saved.")


def _link_issue(group: FailureGroup, form_data: Mapping[str, str], by: str) -> str:
    address = form_data.get("issue", "")
    commands.link_issue(group.pk, address, by)
    return _("Issue attached.") if address.strip() else _("Issue removed.")


def _merge_groups(group: FailureGroup, form_data: Mapping[str, str], by: str) -> str:
    into = form_data.get("into", "").strip()
    if not into.isdecimal() or len(into) > 18:
        raise Invalid(_("Not a valid group number: %(text)s.") % {"text": repr(into[:40])})
    if not controllable(FailureGroup.objects.filter(pk=int(into))).exists():
        raise _not_found(into)
    commands.merge_groups(group.pk, int(into), by, form_data.get("reason", "").strip())
    return _("Merged into group %(number)s.") % {"number": into}


def _split_group(group: FailureGroup, form_data: Mapping[str, str], by: str) -> str:
    commands.split_group(group.pk, by, form_data.get("reason", "").strip())
    return _("Split from the other group.")


ACTIONS: dict[str, Callable[[FailureGroup, Mapping[str, str], str], str]] = {
    **{move.event: _transition_handler(move.event) for move in TRANSITIONS},
    "assign": _assign_group,
    "note": _annotate_group,
    "issue": _link_issue,
    "merge": _merge_groups,
    "split": _split_group,
}


def _not_found(group_id: int | str) -> NotFound:
    if sees_all_runs():
        return NotFound(_("No such failure group: %(number)s.") % {"number": group_id})
    text = _("You see no failure group %(number)s. It does not exist, or your grants do not include its workflow.")
    return NotFound(text % {"number": group_id})


def _find_group_and_parts(group_id: int) -> tuple[FailureGroup, list[FailureGroup]]:
    """Return a group, and the groups merged into it, as far as the actor may see them."""
    wanted = min(group_id, 2**62)
    groups = visible(FailureGroup.objects.filter(Q(pk=wanted) | Q(merged_into=wanted)))
    found = groups.select_related("merged_into")
    own_first = Case(When(pk=wanted, then=0), default=1)
    rows = list(found.order_by(own_first, "pk")[: MAX_ACTIONS + 1])
    if not rows or rows[0].pk != wanted:
        raise _not_found(group_id)
    return rows[0], rows[1:]
