"""Pages of alert targets: a form for each kind, and a test whose answer is displayed. The page Alerts lists them.

Secrets are never displayed again.
"""

from collections.abc import Collection, Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.debug import sensitive_post_parameters

from ...core.alerts import ALERT_TARGET_FIELDS, ALERT_TARGET_KINDS, TargetField
from ...core.errors import NotFound, RequestRefused
from ...web.badges import render_pill
from ...web.pages import ObjectPage, require_permission
from .. import commands
from ..models import AlertFiring, AlertTarget
from ..queries import CHANGE_PERMISSION, KIND_LABELS, VIEW_PERMISSION, kind_label, notifications_to

KIND_TEXTS = {
    "slack": gettext_lazy("Posts to a channel through an incoming webhook."),
    "teams": gettext_lazy("Posts an Adaptive Card to a channel through a workflow webhook."),
    "pagerduty": gettext_lazy("Triggers an incident and resolves it when the alert clears."),
    "webhook": gettext_lazy("Posts JSON to an address, with a signature if you set a key."),
    "email": gettext_lazy("Sends an email to up to ten addresses."),
}
FIELD_LABELS = {
    "url": gettext_lazy("URL"),
    "routing_key": gettext_lazy("Integration key"),
    "severity": gettext_lazy("Severity"),
    "api_url": gettext_lazy("API address"),
    "signing_key": gettext_lazy("Signing key"),
    "addresses": gettext_lazy("Email addresses"),
}
FIELD_TEXTS = {
    ("slack", "url"): gettext_lazy("Slack app → Incoming Webhooks → Add New Webhook to Workspace."),
    ("teams", "url"): gettext_lazy("Teams → Workflows → Post to a channel when a webhook request is received."),
    ("pagerduty", "routing_key"): gettext_lazy("Service → Integrations → Events API v2."),
    ("pagerduty", "api_url"): gettext_lazy("In the EU region: https://events.eu.pagerduty.com"),
    ("webhook", "url"): gettext_lazy(
        "Receives JSON: the sentence, the saved view or rule (view), the number of the alert, the event (trigger, "
        "resolve or test), the time in milliseconds (at), and the link to the runs (address)."
    ),
    ("webhook", "signing_key"): gettext_lazy(
        "The header X-Conductor-Signature has sha256= and the HMAC of X-Conductor-Timestamp, a dot and the body."
    ),
    ("email", "addresses"): gettext_lazy("Separated by commas."),
}


class NewAlertTargetPage(ObjectPage):
    """Form that creates a target of one kind."""

    name, permission, template = "alert_target_new", CHANGE_PERMISSION, "ops/alerts/new_target.html"
    route = "alert-targets/new/<str:kind>/"

    def get_context(self, request: HttpRequest, kind: str) -> dict[str, Any]:
        kind = _known_kind(kind)
        return _new_target_context(kind, AlertTargetForm(kind))

    @method_decorator(sensitive_post_parameters())
    def handle_post(self, request: HttpRequest, kind: str) -> HttpResponse | dict[str, Any]:
        kind = _known_kind(kind)
        form = AlertTargetForm(kind, request.POST)
        if form.is_valid():
            cleaned, by = form.cleaned_data, request.user.get_username()
            try:
                row = commands.create_target(kind, cleaned["name"], form.settings(), by)
                messages.success(request, _("Alert target saved. Send a test to check it."))
                return HttpResponseRedirect(reverse("admin:alert_target", args=[row.pk]))
            except RequestRefused as refused:
                form.add_error(None, refused.message)
        return _new_target_context(kind, form)


class AlertTargetForm(forms.Form):
    """The fields of one kind of target. `stored`: the settings of which secrets may stay empty."""

    name = forms.CharField(max_length=120, label=gettext_lazy("Name"))

    def __init__(self, kind: str, data: Mapping[str, Any] | None = None, *, stored: Collection[str] = (), **more: Any):
        super().__init__(data, **more)
        fields = ALERT_TARGET_FIELDS.get(kind, ())
        self.setting_names = [field.name for field in fields]
        for field in fields:
            self.fields[field.name] = _form_field(kind, field, field.name in stored)

    def settings(self) -> dict[str, str]:
        """Return the settings that were entered."""
        return {name: self.cleaned_data[name] for name in self.setting_names}


class AlertTargetPage(ObjectPage):
    """Page of one target: its settings, the test, and what was sent to it."""

    name, permission, template = "alert_target", VIEW_PERMISSION, "ops/alerts/target.html"
    live_template = "ops/alerts/deliveries.html"
    route = "alert-targets/<int:target_id>/"

    def get_context(self, request: HttpRequest, target_id: int) -> dict[str, Any]:
        row = commands.find_target(target_id)
        initial = {**row.settings, "name": row.name}
        return self._page_context(
            request, row, AlertTargetForm(row.kind, stored=commands.stored_names(row), initial=initial)
        )

    @method_decorator(sensitive_post_parameters())
    def handle_post(self, request: HttpRequest, target_id: int) -> HttpResponse | dict[str, Any]:
        require_permission(request, CHANGE_PERMISSION)
        row, by = commands.find_target(target_id), request.user.get_username()
        address = reverse("admin:alert_target", args=[row.pk])
        if request.POST.get("do") == "test":
            commands.send_test(row.pk, by)
            return HttpResponseRedirect(f"{address}#sent")
        if request.POST.get("do") == "delete":
            commands.delete_target(row.pk, by)
            messages.success(request, _("%(name)s deleted.") % {"name": row.name})
            return HttpResponseRedirect(reverse("admin:alerts"))
        form = AlertTargetForm(row.kind, request.POST, stored=commands.stored_names(row))
        if form.is_valid():
            try:
                commands.update_target(row.pk, form.cleaned_data["name"], form.settings(), by)
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
            "alerts": row.alerts.select_related("view").order_by("view__name", "pk")[:20],
            "sent": [(firing, delivery_pill(firing)) for firing in sent],
            "is_sending": any(firing.delivered_at is None and not firing.error for firing in sent),
            "may_act": request.user.has_perm(CHANGE_PERMISSION),
            "required": CHANGE_PERMISSION,
        }


def _form_field(kind: str, field: TargetField, is_stored: bool) -> forms.Field:
    text = FIELD_TEXTS.get((kind, field.name), "")
    label = str(FIELD_LABELS[field.name])
    if field.choices:
        choices = [(choice, choice) for choice in field.choices]
        return forms.ChoiceField(choices=choices, initial=field.default, label=label, help_text=text)
    is_kept = field.is_secret and is_stored
    widget: forms.Widget = forms.TextInput()
    if field.is_secret:
        # An address is readable while it is typed; like a key, it is not shown again.
        shown = {"type": "url", "autocomplete": "off"} if field.is_url else {"autocomplete": "new-password"}
        widget = forms.PasswordInput(attrs=shown)
        if is_kept:
            text = _("Stored encrypted. Leave empty to keep it.")
    return forms.CharField(
        required=field.is_required and not is_kept,
        max_length=field.max_length,
        initial=field.default,
        label=label,
        help_text=text,
        widget=widget,
    )


def _new_target_context(kind: str, form: AlertTargetForm) -> dict[str, Any]:
    title = _("New alert target: %(kind)s") % {"kind": KIND_LABELS[kind]}
    # The default of `EMAIL_HOST` is a mail server on this machine, which few installations have.
    is_unset = kind == "email" and settings.EMAIL_HOST == "localhost"
    warning = _("No mail server is set: without EMAIL_HOST, mails go to port 25 of the server's machine.")
    return {"title": title, "form": form, "text": KIND_TEXTS[kind], "warning": warning if is_unset else ""}


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
