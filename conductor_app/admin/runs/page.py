"""One run: its page, the parts of it that follow the run while it is open, its documents and its buttons."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from ... import clock
from ...core.errors import Refused
from ...core.states import RUNNING
from ...insight.missing_run import explain_missing_run
from ...insight.parsed_definitions import parsed_definition
from ...models import Run
from ..documents import as_file
from ..error_messages import require, tell
from ..fragments import fragment, revision_of
from .actions import ACTIONS, offered
from .labels import labels_of
from .story import DOCUMENTS, Story, address, head, opened, readable, story_of
from .tabs import tabs
from .task_acts import PERMISSION, acts_on

START = "conductor.execute_workflowdefinition"


def page(model_admin: admin.ModelAdmin, request: HttpRequest, run_id: str) -> HttpResponse:
    """The whole page; of a run that was here, why it is not any more."""
    try:
        run = _found(request, run_id)
    except Http404:
        if why := explain_missing_run(run_id, clock.now()):
            return _gone(model_admin, request, run_id, why)
        raise
    shown = {
        **model_admin.admin_site.each_context(request),
        "title": f"{run.name} v{run.version}",
        "opts": Run._meta,
        **_shown(run, request),
    }
    html = render_to_string("ops/run/parts.html", shown, request)
    return TemplateResponse(
        request, "admin/conductor/run/page.html", {**shown, "parts": html, "live_revision": revision_of(html)}
    )


def _gone(model_admin: admin.ModelAdmin, request: HttpRequest, run_id: str, why: str) -> HttpResponse:
    shown = {"what": _("Run %(id)s") % {"id": run_id}, "why": why, "run_id": run_id}
    return TemplateResponse(
        request, "ops/run/gone.html", model_admin.admin_site.each_context(request) | shown, status=410
    )


def parts(model_admin: admin.ModelAdmin, request: HttpRequest, run_id: str) -> HttpResponse:
    """What changes with the run; 204 where it says what the page shows already."""
    run = _found(request, run_id)
    return fragment(request, "ops/run/parts.html", _shown(run, request))


def _shown(run: Run, request: HttpRequest) -> dict[str, Any]:
    """Everything that the templates show, for what the address asks for."""
    story = story_of(run, request.GET)
    actions = offered(run.status, request.user.has_perm)
    panel = opened(story)
    acts = acts_on(panel.attempt if panel else None, story.now, request.user.has_perm)
    return {**actions, **head(story), **tabs(story, request), "panel": panel, "task_acts": acts} | _ahead(
        story, request
    )


def _ahead(story: Story, request: HttpRequest) -> dict[str, Any]:
    """The step that is chosen though control has not come to it, and whether the run may be led on by this person."""
    asked = story.asked["task"]
    definition = parsed_definition(story.run.plan_id) if asked and story.task is None else None
    return {
        "unreached": definition.step(asked) if definition else None,
        "may_label": request.user.has_perm(PERMISSION),
        **labels_of(story.run),
        "may_lead": story.run.status == RUNNING and request.user.has_perm(PERMISSION),
    }


def raw(model_admin: admin.ModelAdmin, request: HttpRequest, run_id: str, field: str) -> HttpResponse:
    """A document as a file."""
    run = _found(request, run_id)
    if field not in DOCUMENTS:
        raise Http404
    return as_file(getattr(run, field), f"{run.pk}-{field}")


def act(request: HttpRequest, run_id: str, name: str) -> HttpResponse:
    """Ask the engine for what a button stands for, and show its answer on the page."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    action = ACTIONS.get(name)
    if action is None:
        raise Http404
    require(request, action.permission)
    reason = request.POST.get("reason", "").strip()
    try:
        action.command(run_id, request.user.get_username(), reason, **action.chosen(request.POST))
        messages.success(request, str(action.done))
    except Refused as refused:
        tell(request, refused, *ways_out(run_id, request.user.has_perm))
    return HttpResponseRedirect(address(run_id))


def ways_out(run_id: str, has_permission: Callable[[str], bool]) -> list[tuple[str, str]]:
    """What can be done to the run instead of what was refused, each with its address."""
    run = readable(run_id)
    if run is None:
        return []
    planner = reverse("admin:plan", args=[run_id])
    ways = [
        (str(action.label), f"{planner}?do={action.name}" if action.is_planned else f"#act-{action.name}")
        for action in offered(run.status, has_permission)["actions"]
    ]
    if run.definition_pk and has_permission(START):
        start = reverse("admin:start_run", args=[run.definition_pk], query={"like": run_id})
        ways.append((_("Start one like it"), start))
    return ways


def _found(request: HttpRequest, run_id: str) -> Run:
    require(request, "conductor.view_run")
    run = readable(run_id)
    if run is None:
        raise Http404(_("There is no run %(id)s.") % {"id": run_id})
    return run
