"""The form of a webhook: how its sender proves who it is, and what it starts by itself."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

VERIFIERS = (
    ("HMAC_BASED", gettext_lazy("The body is signed with a secret (HMAC-SHA256), in a header: GitHub and most others")),
    ("SIGNATURE_BASED", gettext_lazy("The body is signed, as above, under another name")),
    ("HEADER_BASED", gettext_lazy("Headers have values that only the sender knows")),
    ("BASIC", gettext_lazy("A user and a password (HTTP Basic)")),
    ("SLACK_BASED", gettext_lazy("As Slack signs")),
    ("STRIPE", gettext_lazy("As Stripe signs")),
)
SENDER_ISSUED = ("SLACK_BASED", "STRIPE")
"""Whose secret the other system gives: it cannot be drawn here."""


class WebhookSecretForm(forms.Form):
    """A secret that is given, or is to be drawn by the server."""

    secret = forms.CharField(
        required=False,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        label=gettext_lazy("Secret"),
        help_text=gettext_lazy("Empty: the server draws one and shows it once. Slack and Stripe give you theirs."),
    )
    headers = forms.CharField(
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}),
        label=gettext_lazy("Headers with secret values"),
        help_text=gettext_lazy("A line each: X-Key: value. Only where headers prove who sends. Never shown again."),
    )
    reason = forms.CharField(
        required=False, max_length=500, label=gettext_lazy("Reason"), help_text=gettext_lazy("Kept in the audit.")
    )

    def clean_headers(self) -> dict[str, str]:
        return _parse_pairs(self.cleaned_data["headers"], ":")


class WebhookForm(WebhookSecretForm):
    """Everything about a webhook that a person types."""

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
        help_text=gettext_lazy("What it tells is the event webhook:name, which handlers listen to."),
    )
    verifier = forms.ChoiceField(choices=VERIFIERS, label=gettext_lazy("How the sender proves who it is"))
    header_key = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Header with the signature"),
        help_text=gettext_lazy("Such as X-Hub-Signature-256."),
    )
    timestamp_key = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Header with the moment"),
        help_text=gettext_lazy("Where the moment is signed too: an old message is refused."),
    )
    user = forms.CharField(required=False, max_length=200, label=gettext_lazy("User, where there is one"))
    starts = forms.CharField(
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}),
        label=gettext_lazy("Workflows that it starts by itself"),
        help_text=gettext_lazy("A line each: name, or name = version. What was sent is their input."),
    )
    receivers = forms.CharField(
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}),
        label=gettext_lazy("Workflows that receive its events"),
        help_text=gettext_lazy(
            "Their WAIT_FOR_WEBHOOK tasks complete with an event that matches. One per line: name, or name = version."
        ),
    )
    platform = forms.CharField(required=False, max_length=200, label=gettext_lazy("Who sends"))

    def clean_starts(self) -> dict[str, Any]:
        found = _parse_pairs(self.cleaned_data["starts"], "=", allow_bare_name=True)
        return {name: _parse_version(version) for name, version in found.items()}

    def clean_receivers(self) -> dict[str, int]:
        found = _parse_pairs(self.cleaned_data["receivers"], "=", allow_bare_name=True)
        return {name: _parse_version(version) or 0 for name, version in found.items()}

    def document(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """The webhook as the engine reads it; what the form does not show stays as it was."""
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
    """What the form shows of a webhook; its secrets are not among it."""
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
            raise forms.ValidationError(_("Line %(number)s is not understood.") % {"number": number})
        found[name] = value
    return found


def _parse_version(text: str) -> int | str:
    if not text:
        return ""
    if not text.isdecimal() or len(text) > 9:
        raise forms.ValidationError(_("%(text)s is no version.") % {"text": text[:40]})
    return int(text)
