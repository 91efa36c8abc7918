"""The form of an alert target: a name, and the settings of its kind. Secrets are never displayed again."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.alert_targets import ALERT_TARGET_FIELDS, TargetField

KIND_LABELS = {
    "slack": gettext_lazy("Slack"),
    "teams": gettext_lazy("Microsoft Teams"),
    "pagerduty": gettext_lazy("PagerDuty"),
    "webhook": gettext_lazy("Webhook"),
    "email": gettext_lazy("Email"),
}
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
    ("webhook", "url"): gettext_lazy("Receives JSON with view, sentence, at, alert, event and address."),
    ("webhook", "signing_key"): gettext_lazy(
        "The header X-Conductor-Signature has sha256= and the HMAC of X-Conductor-Timestamp, a dot and the body."
    ),
    ("email", "addresses"): gettext_lazy("Separated by commas."),
}


def kind_label(kind: str) -> str:
    """Return the label of a kind, or the kind itself if this server no longer supports it."""
    return str(KIND_LABELS.get(kind, kind))


class AlertTargetForm(forms.Form):
    """The fields of one kind of target. `is_stored`: True if secrets may stay empty to keep their values."""

    name = forms.CharField(max_length=120, label=gettext_lazy("Name"))

    def __init__(self, kind: str, data: Mapping[str, Any] | None = None, *, is_stored: bool = False, **more: Any):
        super().__init__(data, **more)
        fields = ALERT_TARGET_FIELDS.get(kind, ())
        self.setting_names = [field.name for field in fields]
        for field in fields:
            self.fields[field.name] = _form_field(kind, field, is_stored)
        self.fields["reason"] = forms.CharField(
            required=False,
            max_length=500,
            label=_("Reason"),
            help_text=_("Recorded in the audit log."),
        )

    def settings(self) -> dict[str, str]:
        """Return the settings that were entered."""
        return {name: self.cleaned_data[name] for name in self.setting_names}


def _form_field(kind: str, field: TargetField, is_stored: bool) -> forms.Field:
    text = FIELD_TEXTS.get((kind, field.name), "")
    label = str(FIELD_LABELS[field.name])
    if field.choices:
        choices = [(choice, choice) for choice in field.choices]
        return forms.ChoiceField(choices=choices, initial=field.default, label=label, help_text=text)
    is_kept = field.is_secret and is_stored
    widget: forms.Widget = forms.TextInput()
    if field.is_secret:
        widget = forms.PasswordInput(attrs={"autocomplete": "new-password"})
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
