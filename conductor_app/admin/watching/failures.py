"""The inbox of failures, and the page of one group: what they have in common, and what is done about it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString

from ... import clock
from ...core.errors import Invalid, NotFound, Refused
from ...core.states import FAILURE, REGRESSED
from ...engine import failures
from ...insight.failures import VIEWS, Listed, inbox, story
from ...models import AuditEntry, FailureGroup
from ..charts import spark
from ..marks import pill
from ..object_pages import ObjectPage
from ..pages import Page
from ..refusals import require, tell

PERMISSION = "conductor.change_run"
LOOKS = {
    "OPEN": ("failed", "failed"),
    "REGRESSED": ("failed", "warning"),
    "ACKNOWLEDGED": ("waiting", "person"),
    "RESOLVED": ("succeeded", "succeeded"),
    "IGNORED": ("stopped", "skipped"),
}
MOST_ACTS = 20


@dataclass(frozen=True, slots=True)
class Move:
    """What a person may say of a group."""

    event: str
    label: str
    sentence: str


MOVES = (
    Move("acknowledge", "Acknowledge", "Somebody knows of it and looks after it."),
    Move("resolve", "Resolve", "Its cause is gone. If it fails again, it comes back as regressed."),
    Move("ignore", "Ignore", "It is counted, and not shown among what is open."),
    Move("reopen", "Reopen", "It is open again."),
)


class FailuresPage(Page):
    """2,000 failures, 3 causes."""

    name, title, template, permission = "failures", "Failures", "ops/failures.html", "conductor.view_failuregroup"
    live_template = "ops/failures/groups.html"

    def context(self, request: HttpRequest) -> dict[str, Any]:
        view, asked = request.GET.get("view", "open"), request.GET
        view = view if view in VIEWS else "open"
        definition, text = asked.get("definition", "").replace("\0", ""), asked.get("q", "").replace("\0", "")
        found = inbox(view, request.user.get_username(), clock.now(), definition=definition, text=text)
        return {
            "tabs": [(name, words, found.counts[name], name == view) for name, (words, _) in VIEWS.items()],
            "view": view,
            "rows": [_row(listed) for listed in found.groups],
            "inbox": found,
            "definition": definition,
            "text": text,
            "is_filtered": bool(definition or text),
        }


def _row(listed: Listed) -> dict[str, Any]:
    group = listed.group
    return {
        "group": group,
        "state": state_pill(group.state),
        "spark": spark(listed.hours, "failures in each of the last 24 hours", "bad"),
        "today": listed.today,
        "address": group_address(group.pk),
    }


def state_pill(state: str) -> SafeString:
    """The state of a group as icon, word and colour."""
    tone, icon = LOOKS[state]
    return pill(tone, state.capitalize(), icon)


def group_address(group_id: int) -> str:
    """Where the page of a group is."""
    return reverse("admin:failure_group", args=[group_id])


class FailureGroupPage(ObjectPage):
    """One cause."""

    name, template, permission = "failure_group", "ops/failure_group.html", "conductor.view_failuregroup"
    route = "failures/<int:group_id>/"

    def shown(self, request: HttpRequest, **which: Any) -> dict[str, Any]:
        group = _group(which["group_id"])
        told = story(group, clock.now())
        acts = AuditEntry.objects.filter(object_type="failure group", object_id=str(group.pk)).order_by("-id")
        versions = [int(value) for value, _ in told.by["version"]]
        return {
            "title": f"{group.definition} · {group.ref or 'the run itself'}",
            "group": group,
            "state": state_pill(group.state),
            "story": told,
            "spark": spark(told.listed.hours, "failures in each of the last 24 hours", "bad"),
            "by": [(name, rows, max(count for _, count in rows)) for name, rows in told.by.items() if rows],
            "moves": [move for move in MOVES if FAILURE.allows(group.state, move.event)],
            "newest_version": max(versions, default=0),
            "may_act": request.user.has_perm(PERMISSION),
            "permission": PERMISSION,
            "parts": list(group.parts.all()[:MOST_ACTS]),
            "whole": group.merged_into,
            "acts": list(acts[:MOST_ACTS]),
            "is_regressed": group.state == REGRESSED,
            "retry": reverse("admin:bulk_plan", query={"failure_group": group.pk, "action": "retry"}),
        }

    def sent(self, request: HttpRequest, **which: Any) -> HttpResponse:
        require(request, PERMISSION)
        group = _group(which["group_id"])
        do = ACTS.get(request.POST.get("do", ""))
        try:
            if do is None:
                raise Invalid("It is not said what is to be done.")
            messages.success(request, do(group, request.POST, request.user.get_username()))
        except Refused as refused:
            tell(request, refused)
        return HttpResponseRedirect(group_address(group.pk))


def _move(event: str) -> Callable[[FailureGroup, Mapping[str, str], str], str]:
    def act(group: FailureGroup, said: Mapping[str, str], by: str) -> str:
        version, build = said.get("version", "").strip(), said.get("build", "").strip()
        if version and (not version.isdecimal() or len(version) > 9):
            raise Invalid(f"{version[:40]!r} is no version.")
        known = {"version": int(version) if version else None, "build": build[:255]}
        moved = failures.move(group.pk, event, by, said.get("reason", "").strip(), **known)
        return f"The group is {moved.state.lower()}."

    return act


def _assign(group: FailureGroup, said: Mapping[str, str], by: str) -> str:
    who = said.get("assignee", "").strip()
    failures.assign(group.pk, who, by, said.get("reason", "").strip())
    return f"{who} looks after it." if who else "Nobody looks after it."


def _annotate(group: FailureGroup, said: Mapping[str, str], by: str) -> str:
    failures.annotate(group.pk, said.get("note", ""), by)
    return "The note is kept."


def _merge(group: FailureGroup, said: Mapping[str, str], by: str) -> str:
    into = said.get("into", "").strip()
    if not into.isdecimal() or len(into) > 18:
        raise Invalid(f"{into[:40]!r} is no number of a group.")
    failures.merge(group.pk, int(into), by, said.get("reason", "").strip())
    return f"It is part of group {into} now."


def _split(group: FailureGroup, said: Mapping[str, str], by: str) -> str:
    failures.split(group.pk, by, said.get("reason", "").strip())
    return "It is a group of its own again."


ACTS: dict[str, Callable[[FailureGroup, Mapping[str, str], str], str]] = {
    **{move.event: _move(move.event) for move in MOVES},
    "assign": _assign,
    "note": _annotate,
    "merge": _merge,
    "split": _split,
}


def _group(group_id: int) -> FailureGroup:
    group = FailureGroup.objects.select_related("merged_into").filter(pk=min(group_id, 2**62)).first()
    if group is None:
        raise NotFound(f"There is no group of failures {group_id}.")
    return group
