"""Pages of alert targets: the list, a form for each kind, and a test whose answer is displayed."""

from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.debug import sensitive_post_parameters

from ...core.alert_targets import ALERT_TARGET_KINDS
from ...core.errors import NotFound, RequestRefused
from ...engine.failures import alert_targets as engine
from ...insight.failures.alerts import notifications_to
from ...models import AlertFiring, AlertTarget
from ..badges import render_pill
from ..error_messages import require_permission
from ..object_pages import ObjectPage
from ..pages import Page
from .alert_target_form import KIND_LABELS, KIND_TEXTS, AlertTargetForm, kind_label

VIEW_PERMISSION, CHANGE_PERMISSION = "conductor.view_run", "conductor.change_run"


class AlertTargetsPage(Page):
    """List of the targets, and the kinds of new ones."""

    name, title, permission = "alert_targets", gettext_lazy("Alert targets"), VIEW_PERMISSION
    template = "ops/alert_targets/list.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        rows = AlertTarget.objects.annotate(alert_count=Count("alerts")).defer("sealed")
        return {
            "rows": [(row, kind_label(row.kind), settings_text(row)) for row in rows],
            "kinds": [(kind, KIND_LABELS[kind], KIND_TEXTS[kind]) for kind in ALERT_TARGET_KINDS],
            "may_act": request.user.has_perm(CHANGE_PERMISSION),
            "required": CHANGE_PERMISSION,
        }


class NewAlertTargetPage(ObjectPage):
    """Form that creates a target of one kind."""

    name, permission, template = "alert_target_new", CHANGE_PERMISSION, "ops/alert_targets/edit.html"
    route = "alert-targets/new/<str:kind>/"

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> dict[str, Any]:
        kind = _known_kind(url_kwargs["kind"])
        return _new_target_context(kind, AlertTargetForm(kind))

    @method_decorator(sensitive_post_parameters())
    def handle_post(self, request: HttpRequest, **url_kwargs: Any) -> HttpResponse | dict[str, Any]:
        kind = _known_kind(url_kwargs["kind"])
        form = AlertTargetForm(kind, request.POST)
        if form.is_valid():
            cleaned, by = form.cleaned_data, request.user.get_username()
            try:
                row = engine.create_target(kind, cleaned["name"], form.settings(), by, cleaned["reason"])
                messages.success(request, _("Alert target saved. Send a test to check it."))
                return HttpResponseRedirect(reverse("admin:alert_target", args=[row.pk]))
            except RequestRefused as refused:
                form.add_error(None, refused.message)
        return _new_target_context(kind, form)


class AlertTargetPage(ObjectPage):
    """Page of one target: its settings, the test, and what was sent to it."""

    name, permission, template = "alert_target", VIEW_PERMISSION, "ops/alert_targets/page.html"
    live_template = "ops/alert_targets/deliveries.html"
    route = "alert-targets/<int:target_id>/"

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> dict[str, Any]:
        row = engine.find_target(url_kwargs["target_id"])
        initial = {**row.settings, "name": row.name}
        return self._page_context(request, row, AlertTargetForm(row.kind, is_stored=True, initial=initial))

    @method_decorator(sensitive_post_parameters())
    def handle_post(self, request: HttpRequest, **url_kwargs: Any) -> HttpResponse | dict[str, Any]:
        require_permission(request, CHANGE_PERMISSION)
        row, by = engine.find_target(url_kwargs["target_id"]), request.user.get_username()
        address = reverse("admin:alert_target", args=[row.pk])
        if request.POST.get("do") == "test":
            engine.send_test(row.pk, by)
            return HttpResponseRedirect(f"{address}#sent")
        if request.POST.get("do") == "delete":
            engine.delete_target(row.pk, by, request.POST.get("reason", "").strip())
            messages.success(request, _("%(name)s deleted.") % {"name": row.name})
            return HttpResponseRedirect(reverse("admin:alert_targets"))
        form = AlertTargetForm(row.kind, request.POST, is_stored=True)
        if form.is_valid():
            try:
                engine.update_target(
                    row.pk, form.cleaned_data["name"], form.settings(), by, form.cleaned_data["reason"]
                )
                messages.success(request, _("Alert target saved. Send a test to check it."))
                return HttpResponseRedirect(address)
            except RequestRefused as refused:
                form.add_error(None, refused.message)
        return self._page_context(request, row, form)

    def _page_context(self, request: HttpRequest, row: AlertTarget, form: AlertTargetForm) -> dict[str, Any]:
        sent = notifications_to(row)
        return {
            "title": row.name,
            "row": row,
            "kind": kind_label(row.kind),
            "is_supported": row.kind in ALERT_TARGET_KINDS,
            "settings_text": settings_text(row),
            "form": form,
            "views": row.alerts.order_by("view__name", "pk").values_list("view_id", "view__name")[:20],
            "sent": [(firing, delivery_pill(firing)) for firing in sent],
            "is_sending": any(firing.delivered_at is None and not firing.error for firing in sent),
            "may_act": request.user.has_perm(CHANGE_PERMISSION),
            "required": CHANGE_PERMISSION,
        }


def _new_target_context(kind: str, form: AlertTargetForm) -> dict[str, Any]:
    title = _("New alert target: %(kind)s") % {"kind": KIND_LABELS[kind]}
    return {"title": title, "form": form, "text": KIND_TEXTS[kind]}


def _known_kind(kind: str) -> str:
    if kind not in ALERT_TARGET_KINDS:
        raise NotFound(_("There is no such kind of alert target."))
    return kind


def settings_text(row: AlertTarget) -> str:
    """Return the settings of a target that are not secret, as text."""
    return " · ".join(str(value) for value in row.settings.values())


def delivery_pill(firing: AlertFiring) -> SafeString:
    """Return the state of a notification."""
    if firing.delivered_at is not None:
        return render_pill("succeeded", _("delivered"))
    if not firing.error:
        return render_pill("waiting", _("sending"))
    return render_pill(
        "failed", ngettext("not delivered, %(n)s try", "not delivered, %(n)s tries", firing.tries) % {"n": firing.tries}
    )
