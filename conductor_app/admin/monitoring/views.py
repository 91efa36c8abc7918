"""Views: named selections of runs, in several uses; and their alerts, tried on the last seven days before they ring."""

import re
from typing import Any

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ... import clock
from ...core.alerts import QuietHours
from ...core.errors import Invalid, NotFound, RequestRefused
from ...engine import alerts as engine
from ...insight import keyset_pages, selections
from ...insight.alerts import recent_firings, rule_of
from ...models import Alert, AlertFiring, SavedView
from ..badges import exact_time, render_pill
from ..bulk.bulk_plan import list_parameters, parse_selection, selection_parameters
from ..error_messages import require_permission, show_refusal
from ..object_pages import ObjectPage
from ..pages import Page
from ..user_locale import zone_of
from .built_in_views import api_address, built_in_views, export_address, list_address, operate_address, selection_text

PERMISSION = "conductor.change_run"
MAX_FIRINGS, MAX_TILES = 30, 8
ALERT_KIND_LABELS = {
    "count": gettext_lazy("so many or more"),
    "share": gettext_lazy("so many percent or more"),
    "absence": gettext_lazy("fewer than so many"),
    "age": gettext_lazy("one open for so many minutes"),
}


def visible_views(request: HttpRequest) -> QuerySet[SavedView]:
    """The views that somebody sees: their own and those that are shared."""
    return SavedView.objects.filter(Q(owner=request.user.get_username()) | Q(is_shared=True)).order_by("name", "pk")


class ViewsPage(Page):
    """One named filter, several uses."""

    name, title, template, permission = "views", gettext_lazy("Views"), "ops/views.html", "conductor.view_run"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "views": [
                {
                    "view": view,
                    "words": selection_text(view.selection),
                    "list": list_address(view.selection),
                    "operate": operate_address(view.selection),
                }
                for view in visible_views(request).prefetch_related("alerts")
            ],
            "ready": list(built_in_views(request)),
            **self._new_view_context(request),
        }

    def _new_view_context(self, request: HttpRequest) -> dict[str, Any]:
        """The selection that is about to be saved, as the list of runs named it."""
        if not request.GET:
            return {}
        try:
            fresh = (
                list_parameters(request.GET)
                if "from_list" in request.GET
                else selection_parameters(parse_selection(request.GET))
            )
            selections.selected_runs(_parse_parameters(fresh)).order_by()[:1].exists()
            return {"fresh": fresh, "fresh_words": selection_text(_parse_parameters(fresh))}
        except RequestRefused as refused:
            return {"refused": refused.message}

    def post(self, request: HttpRequest) -> HttpResponse:
        by = request.user.get_username()
        try:
            if request.POST.get("do") == "remove":
                engine.remove_view(_parse_number(request.POST.get("view", "")), by)
                messages.success(request, _("The view is forgotten."))
            else:
                fresh = parse_selection(request.POST)
                shared = "is_shared" in request.POST
                tile = "is_tile" in request.POST
                view = engine.save_view(request.POST.get("title", ""), fresh, by, is_shared=shared, is_tile=tile)
                return HttpResponseRedirect(reverse("admin:view", args=[view.pk]))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(reverse("admin:views"))


class ViewPage(ObjectPage):
    """One view, and its alerts."""

    name, template, permission = "view", "ops/view.html", "conductor.view_run"
    route = "views/<int:view_id>/"

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> dict[str, Any]:
        view, now = _find_view(request, url_kwargs["view_id"]), clock.now()
        alerts = list(view.alerts.order_by("pk")[:10])
        firings = AlertFiring.objects.filter(alert__in=alerts).order_by("-at", "-pk")[:MAX_FIRINGS]
        may_act = request.user.has_perm(PERMISSION)
        tried = next((alert for alert in alerts if str(alert.pk) == request.GET.get("try")), None)
        return {
            "title": view.name,
            "view": view,
            "words": selection_text(view.selection),
            "list": list_address(view.selection),
            "operate": operate_address(view.selection),
            "exports": [(format.upper(), export_address(view.selection, format)) for format in ("csv", "json")],
            "api": api_address(request, view.selection),
            "kinds": ALERT_KIND_LABELS.items(),
            "zone": zone_of(request),
            "alerts": [(alert, _alert_sentence(alert), _recipients_text(alert, may_act)) for alert in alerts],
            "rings": [(firing, _delivery_text(firing)) for firing in firings],
            "tried": tried,
            "would": [(exact_time(at), count) for at, count in recent_firings(tried, now)] if tried else [],
            "is_own": view.owner == request.user.get_username(),
            "may_act": may_act,
            "permission": PERMISSION,
        }

    def handle_post(self, request: HttpRequest, **url_kwargs: Any) -> HttpResponse:
        require_permission(request, PERMISSION)
        view, said, by = _find_view(request, url_kwargs["view_id"]), request.POST, request.user.get_username()
        address = reverse("admin:view", args=[view.pk])
        try:
            if said.get("do") == "remove":
                found = view.alerts.filter(pk=_parse_number(said.get("alert", ""))).first()
                engine.remove_alert(found.pk if found else -1, by)
                messages.success(request, _("It rings no more."))
            else:
                numbers = [_parse_number(said.get(name, "")) for name in ("threshold", "window", "repeat")]
                to = {"webhook": said.get("webhook", "").strip(), "mail": said.get("mail", "").strip()}
                quiet = _parse_quiet_hours(said, zone_of(request))
                alert = engine.save_alert(view, said.get("kind", ""), *numbers, by, **to, quiet=quiet)
                messages.success(request, _("It is watched. Below is when it would have rung in the last seven days."))
                return HttpResponseRedirect(f"{address}?try={alert.pk}")
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(address)


class AlertPage(ObjectPage):
    """Where the mail of an alert leads: to the runs that it is about, which the reader's own rights bound."""

    name, permission, route = "alert", "conductor.view_run", "alerts/<int:alert_id>/"

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> HttpResponse:
        alert = Alert.objects.select_related("view").filter(pk=min(url_kwargs["alert_id"], 2**62)).first()
        if alert is None:
            raise NotFound(_("This alert is no longer watched."))
        return HttpResponseRedirect(list_address(alert.view.selection))


class TilesPage(Page):
    """The views that are tiles, each with its count: a fragment of the front page."""

    name, permission, title = "tiles", "conductor.view_run", gettext_lazy("Views")
    template, live_template = "ops/tiles_page.html", "ops/tiles.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        return {"tiles": [_tile_context(view) for view in visible_views(request).filter(is_tile=True)[:MAX_TILES]]}


def _tile_context(view: SavedView) -> dict[str, Any]:
    """Its count; a selection that is no longer understood has none, and does not take the others along."""
    try:
        count, is_capped = keyset_pages.count_rows(selections.selected_runs(view.selection))
    except Invalid:
        count, is_capped = None, False
    return {"view": view, "count": count, "is_capped": is_capped, "address": list_address(view.selection)}


def _delivery_text(firing: AlertFiring):
    if firing.heard_at is not None:
        return render_pill("succeeded", _("heard"))
    if not firing.error:
        return render_pill("waiting", _("on its way"))
    return render_pill(
        "failed", ngettext("not heard, %(n)s try", "not heard, %(n)s tries", firing.tries) % {"n": firing.tries}
    )


def _recipients_text(alert: Alert, may_act: bool) -> str:
    """Whom it tells. Who knows the address of a webhook can post there: who may change nothing sees its host alone."""
    if may_act or not alert.webhook:
        return f"{alert.webhook} {alert.mail}".strip()
    scheme, _slash, host, *_path = alert.webhook.split("/")
    return f"{scheme}//{host.rpartition('@')[2]}/… {alert.mail}".strip()


def _alert_sentence(alert: Alert) -> str:
    """When it rings, in words."""
    rule = rule_of(alert)
    facts = {"n": rule.threshold, "window": alert.window_minutes, "repeat": alert.repeat_minutes}
    said = ALERT_SENTENCES[alert.kind] % facts
    again = _("again after %(repeat)s min at the earliest") % facts
    if rule.quiet is None:
        return f"{said}; {again}"
    hours = {
        "begins": _format_minute(rule.quiet.begins),
        "ends": _format_minute(rule.quiet.ends),
        "zone": rule.quiet.zone,
    }
    quiet = _("quiet from %(begins)s to %(ends)s, %(zone)s") % hours
    return f"{said}; {again}; {quiet}"


ALERT_SENTENCES = {
    "count": gettext_lazy("%(n)s or more in %(window)s min"),
    "share": gettext_lazy("%(n)s %% or more of the runs in %(window)s min"),
    "absence": gettext_lazy("fewer than %(n)s in %(window)s min"),
    "age": gettext_lazy("one that has been open for %(n)s min or longer"),
}


def _parse_quiet_hours(said: QueryDict, zone: str) -> QuietHours | None:
    """The quiet hours that a form names, on the clocks of the reader's zone; none where both are empty."""
    begins, ends = (said.get(name, "").strip() for name in ("quiet_from", "quiet_until"))
    return QuietHours(_parse_minute(begins), _parse_minute(ends), zone) if begins or ends else None


def _parse_minute(text: str) -> int:
    found = re.fullmatch(r"(\d{1,2}):(\d\d)", text, re.ASCII)
    if found is None or int(found[1]) > 23 or int(found[2]) > 59:
        raise Invalid(_("%(text)s is no time of a day; they look like 22:00.") % {"text": repr(text[:20])})
    return int(found[1]) * 60 + int(found[2])


def _format_minute(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


def _parse_parameters(given: dict[str, str]) -> dict[str, Any]:
    return parse_selection(QueryDict(urlencode(given)))


def _find_view(request: HttpRequest, view_id: int) -> SavedView:
    view = visible_views(request).filter(pk=min(view_id, 2**62)).first()
    if view is None:
        raise NotFound(_("There is no such view, or it is not shared."))
    return view


def _parse_number(text: str) -> int:
    text = text.strip()
    if not text.isdecimal() or len(text) > 9:
        raise Invalid(_("%(text)s is no number.") % {"text": repr(text[:40])})
    return int(text)
