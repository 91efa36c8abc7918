"""The form of a webhook: the authentication of its sender, and the workflows that it starts."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

VERIFIERS = (
    ("HMAC_BASED", gettext_lazy("HMAC-SHA256 signature of the body in a header (GitHub and most others)")),
    ("SIGNATURE_BASED", gettext_lazy("Signature (same as HMAC, alternative name)")),
    ("HEADER_BASED", gettext_lazy("Headers with secret values")),
    ("BASIC", gettext_lazy("Username and password (HTTP Basic)")),
    ("SLACK_BASED", gettext_lazy("Slack")),
    ("STRIPE", gettext_lazy("Stripe")),
)
SENDER_ISSUED = ("SLACK_BASED", "STRIPE")
"""Verifiers whose secret the other system issues. This server cannot generate it."""


class WebhookSecretForm(forms.Form):
    """A secret of the user, or one that the server generates."""

    secret = forms.CharField(
        required=False,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        label=gettext_lazy("Secret"),
        help_text=gettext_lazy("Leave empty to generate one; it is displayed once. Slack and Stripe issue their own."),
    )
    headers = forms.CharField(
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}),
        label=gettext_lazy("Headers with secret values"),
        help_text=gettext_lazy("One per line: X-Key: value. Only for header authentication. Never displayed again."),
    )
    reason = forms.CharField(
        required=False,
        max_length=500,
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("Recorded in the audit log."),
    )

    def clean_headers(self) -> dict[str, str]:
        return _parse_pairs(self.cleaned_data["headers"], ":")


class WebhookForm(WebhookSecretForm):
    """All fields of a webhook that the user edits."""

    field_order = (
        "name",
        "verifier",
        "header_key",
        "timestamp_key",
        "user",
        "secret",
        "headers",
        "starts",
        "receivers",
        "platform",
    )

    name = forms.CharField(
        max_length=200,
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("Event name: webhook:name"),
    )
    verifier = forms.ChoiceField(choices=VERIFIERS, label=gettext_lazy("Authentication"))
    header_key = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Signature header"),
        help_text=gettext_lazy("For example X-Hub-Signature-256"),
    )
    timestamp_key = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Timestamp header"),
        help_text=gettext_lazy("If the signature covers a timestamp. Old messages are rejected."),
    )
    user = forms.CharField(required=False, max_length=200, label=gettext_lazy("Username"))
    starts = forms.CharField(
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}),
        label=gettext_lazy("Start workflows"),
        help_text=gettext_lazy("One per line: name, or name = version. The payload is their input."),
    )
    receivers = forms.CharField(
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}),
        label=gettext_lazy("Receiving workflows"),
        help_text=gettext_lazy(
            "Their WAIT_FOR_WEBHOOK tasks complete with an event that matches. One per line: name, or name = version."
        ),
    )
    platform = forms.CharField(required=False, max_length=200, label=gettext_lazy("Sender"))

    def clean_starts(self) -> dict[str, Any]:
        found = _parse_pairs(self.cleaned_data["starts"], "=", allow_bare_name=True)
        return {name: _parse_version(version) for name, version in found.items()}

    def clean_receivers(self) -> dict[str, int]:
        found = _parse_pairs(self.cleaned_data["receivers"], "=", allow_bare_name=True)
        return {name: _parse_version(version) or 0 for name, version in found.items()}

    def document(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """Return the webhook's document. Fields that the form lacks are kept."""
        cleaned = self.cleaned_data
        return {
            **before,
            "name": cleaned["name"],
            "verifier": cleaned["verifier"],
            "headerKey": cleaned["header_key"] or None,
            "timestampHeaderKey": cleaned["timestamp_key"] or None,
            "secretKey": cleaned["user"] or None,
            "sourcePlatform": cleaned["platform"] or None,
            "workflowsToStart": cleaned["starts"],
            "receiverWorkflowNamesToVersions": cleaned["receivers"],
            "headers": cleaned["headers"],
            "secretValue": cleaned["secret"] or None,
        }


def initial_values(name: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the initial values of the form, without secrets."""
    starts = document.get("workflowsToStart") or {}
    return {
        "name": name,
        "verifier": document.get("verifier"),
        "header_key": document.get("headerKey") or "",
        "timestamp_key": document.get("timestampHeaderKey") or "",
        "user": document.get("secretKey") or "",
        "platform": document.get("sourcePlatform") or "",
        "starts": _format_versions(starts),
        "receivers": _format_versions(document.get("receiverWorkflowNamesToVersions") or {}),
    }


def _format_versions(versions: Mapping[str, Any]) -> str:
    return "\n".join(f"{each} = {version}" if version else each for each, version in versions.items())


def _parse_pairs(text: str, sign: str, *, allow_bare_name: bool = False) -> dict[str, str]:
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, separator, value = (part.strip() for part in line.partition(sign))
        if not line.strip():
            continue
        if not name or not (value or (allow_bare_name and not separator)):
            raise forms.ValidationError(_("Line %(number)s is invalid.") % {"number": number})
        found[name] = value
    return found


def _parse_version(text: str) -> int | str:
    if not text:
        return ""
    if not text.isdecimal() or len(text) > 9:
        raise forms.ValidationError(_("Not a valid version: %(text)s.") % {"text": text[:40]})
    return int(text)
