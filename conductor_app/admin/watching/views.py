"""Views: named selections of runs; and their alerts, tried on the last seven days before they ring."""

from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.http import urlencode

from ... import clock
from ...core.errors import Invalid, NotFound, Refused
from ...engine import alerts as engine
from ...insight import selections
from ...insight.alerts import rings_of_late, rule_of
from ...models import Alert, Ring, SavedView
from ..fixing.bulk_plan import LISTS, of_list, selection_of
from ..marks import exact, pill
from ..object_pages import ObjectPage
from ..pages import Page
from ..refusals import require, tell
from ..runs.filters import FIELDS, Field, span_of

PERMISSION = "conductor.change_run"
MOST_RINGS = 30
READY: dict[str, dict[str, Any]] = {
    "Failed": {"status": ["FAILED"]},
    "Timed out": {"status": ["TIMED_OUT"]},
    "Terminated": {"status": ["TERMINATED"]},
    "Running": {"status": ["RUNNING"]},
    "Paused": {"status": ["PAUSED"]},
    "Took an hour or more": {"least_ms": 3_600_000},
    "Completed": {"status": ["COMPLETED"]},
}
"""Views that everybody has."""


def visible(request: HttpRequest):
    """The views that somebody sees: their own and those that are shared."""
    return SavedView.objects.filter(Q(owner=request.user.get_username()) | Q(is_shared=True)).order_by("name", "pk")


def params(selection: dict[str, Any]) -> dict[str, str]:
    """A selection as an address names it."""
    return {name: ",".join(value) if name in LISTS else str(value) for name, value in selection.items()}


class ViewsPage(Page):
    """One named filter, several uses."""

    name, title, template, permission = "views", "Views", "ops/views.html", "conductor.view_run"

    def context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "views": [
                {
                    "view": view,
                    "words": _words(view.selection),
                    "list": _listed(view.selection),
                    "operate": _operate(view.selection),
                }
                for view in visible(request).prefetch_related("alerts")
            ],
            "ready": [(name, _words(each), _listed(each), _operate(each)) for name, each in READY.items()],
            **self._fresh(request),
        }

    def _fresh(self, request: HttpRequest) -> dict[str, Any]:
        """The selection that is about to be saved, as the list of runs named it."""
        if not request.GET:
            return {}
        try:
            fresh = of_list(request.GET) if "from_list" in request.GET else params(selection_of(request.GET))
            selections.runs(_read(fresh)).order_by()[:1].exists()
            return {"fresh": fresh, "fresh_words": _words(_read(fresh))}
        except Refused as refused:
            return {"refused": refused.message}

    def post(self, request: HttpRequest) -> HttpResponse:
        by = request.user.get_username()
        try:
            if request.POST.get("do") == "remove":
                engine.remove_view(_number(request.POST.get("view", "")), by)
                messages.success(request, "The view is forgotten.")
            else:
                fresh = selection_of(request.POST)
                shared = "is_shared" in request.POST
                view = engine.save_view(request.POST.get("title", ""), fresh, by, is_shared=shared)
                return HttpResponseRedirect(reverse("admin:view", args=[view.pk]))
        except Refused as refused:
            tell(request, refused)
        return HttpResponseRedirect(reverse("admin:views"))


class ViewPage(ObjectPage):
    """One view, and its alerts."""

    name, template, permission = "view", "ops/view.html", "conductor.view_run"
    route = "views/<int:view_id>/"

    def shown(self, request: HttpRequest, **which: Any) -> dict[str, Any]:
        view, now = _view(request, which["view_id"]), clock.now()
        alerts = list(view.alerts.order_by("pk")[:10])
        rings = Ring.objects.filter(alert__in=alerts).order_by("-at", "-pk")[:MOST_RINGS]
        tried = next((alert for alert in alerts if str(alert.pk) == request.GET.get("try")), None)
        return {
            "title": view.name,
            "view": view,
            "words": _words(view.selection),
            "list": _listed(view.selection),
            "operate": _operate(view.selection),
            "alerts": [(alert, _sentence(alert)) for alert in alerts],
            "rings": [(ring, _heard(ring)) for ring in rings],
            "tried": tried,
            "would": [(exact(at), count) for at, count in rings_of_late(tried, now)] if tried else [],
            "is_own": view.owner == request.user.get_username(),
            "may_act": request.user.has_perm(PERMISSION),
            "permission": PERMISSION,
        }

    def sent(self, request: HttpRequest, **which: Any) -> HttpResponse:
        require(request, PERMISSION)
        view, said, by = _view(request, which["view_id"]), request.POST, request.user.get_username()
        address = reverse("admin:view", args=[view.pk])
        try:
            if said.get("do") == "remove":
                found = view.alerts.filter(pk=_number(said.get("alert", ""))).first()
                engine.remove_alert(found.pk if found else -1, by)
                messages.success(request, "It rings no more.")
            else:
                numbers = [_number(said.get(name, "")) for name in ("threshold", "window", "repeat")]
                to = {"webhook": said.get("webhook", "").strip(), "mail": said.get("mail", "").strip()}
                alert = engine.save_alert(view, said.get("kind", ""), *numbers, by, **to)
                messages.success(request, "It is watched. Below is when it would have rung in the last seven days.")
                return HttpResponseRedirect(f"{address}?try={alert.pk}")
        except Refused as refused:
            tell(request, refused)
        return HttpResponseRedirect(address)


def _heard(ring: Ring):
    if ring.heard_at is not None:
        return pill("succeeded", "heard")
    return pill("failed", f"not heard, {ring.tries} tries") if ring.error else pill("waiting", "on its way")


def _sentence(alert: Alert) -> str:
    rule = rule_of(alert)
    what = {"count": f"{rule.threshold} or more", "absence": f"fewer than {rule.threshold}"}
    told = what.get(alert.kind, f"{rule.threshold} % or more of the runs")
    return f"{told} in {alert.window_minutes} min; again after {alert.repeat_minutes} min at the earliest"


def _words(selection: dict[str, Any]) -> str:
    try:
        return selections.in_words(selection)
    except Invalid:
        return "a selection that is no longer understood"


def _listed(selection: dict[str, Any]) -> str:
    """Where the list of runs shows a selection."""
    found = {field.name: _spelled(field, selection[field.part]) for field in FIELDS if field.part in selection}
    found |= {"status": ",".join(selection["status"])} if selection.get("status") else {}
    return reverse("admin:conductor_run_changelist", query=found or None)


def _spelled(field: Field, value: Any) -> str:
    return f"{value} ms" if field.read is span_of else str(value)


def _operate(selection: dict[str, Any]) -> str:
    return reverse("admin:bulk_plan", query=params(selection) or None)


def _read(given: dict[str, str]) -> dict[str, Any]:
    return selection_of(QueryDict(urlencode(given)))


def _view(request: HttpRequest, view_id: int) -> SavedView:
    view = visible(request).filter(pk=min(view_id, 2**62)).first()
    if view is None:
        raise NotFound("There is no such view, or it is not shared.")
    return view


def _number(text: str) -> int:
    text = text.strip()
    if not text.isdecimal() or len(text) > 9:
        raise Invalid(f"{text[:40]!r} is no number.")
    return int(text)
