"""One run: its page, the parts of it that follow the run while it is open, its documents and its buttons."""

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from ..core.errors import Refused
from ..models import Run
from .actions import ACTIONS, offered
from .documents import as_file
from .fragments import fragment
from .run_story import DOCUMENTS, readable, story


def address(run_id: str) -> str:
    """Where the run's page is."""
    return reverse("admin:conductor_run_change", args=[run_id])


def page(model_admin: admin.ModelAdmin, request: HttpRequest, run_id: str) -> HttpResponse:
    """The whole page."""
    run = _found(request, run_id)
    shown = {
        **model_admin.admin_site.each_context(request),
        "title": f"{run.name} v{run.version}",
        "opts": Run._meta,
        **offered(run.status, request.user.has_perm),
        **story(run, request.GET),
    }
    return TemplateResponse(request, "admin/conductor/run/page.html", shown)


def parts(model_admin: admin.ModelAdmin, request: HttpRequest, run_id: str) -> HttpResponse:
    """What changes with the run; 204 where it says what the page shows already."""
    run = _found(request, run_id)
    return fragment(
        request, "ops/run/parts.html", {**offered(run.status, request.user.has_perm), **story(run, request.GET)}
    )


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
    if not request.user.has_perm(action.permission):
        raise PermissionDenied
    reason = request.POST.get("reason", "").strip()
    try:
        action.command(run_id, request.user.get_username(), reason, **action.chosen(request.POST))
        messages.success(request, f"The run {action.done}")
    except Refused as refused:
        messages.error(request, refused.message)
    return HttpResponseRedirect(address(run_id))


def _found(request: HttpRequest, run_id: str) -> Run:
    if not request.user.has_perm("conductor.view_run"):
        raise PermissionDenied
    run = readable(run_id)
    if run is None:
        raise Http404(f"There is no run {run_id}. It may have been removed by retention.")
    return run
