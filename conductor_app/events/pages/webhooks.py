"""Pages of webhooks: the list, and the form of one with the secrets that authenticate its sender."""

import secrets
import shlex
from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.authentication import server_address
from ...access.visibility import may, visible
from ...core.errors import NotFound, RequestRefused, ValidationFailed
from ...definitions.queries import missing_workflow
from ...web.pages import ObjectPage, Page, require_permission, show_refusal
from ..commands import webhooks
from ..models import Webhook
from ..queries import last_errors_of_webhooks, newest_by_event, waiting_tasks

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
VIEW_PERMISSION, ADD_PERMISSION, CHANGE_PERMISSION, DELETE_PERMISSION = (
    f"conductor.{verb}_webhook" for verb in ("view", "add", "change", "delete")
)
MAX_LISTED = 500
SECRET_GRACE_SECONDS = {"0": 0, "hour": 3_600, "day": 86_400, "week": 604_800}
"""How long a former secret stays valid after a rotation, in seconds."""
FORM_FIELDS = {
    "name": "name",
    "verifier": "verifier",
    "headers": "headers",
    "secretValue": "secret",
    "headerKey": "header_key",
}
"""The form field that shows an error of each field of the document."""


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
        help_text=gettext_lazy("One per line: X-Key: value. They are never displayed again."),
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
        help_text=gettext_lazy("Its events are named webhook:NAME."),
    )
    verifier = forms.ChoiceField(choices=VERIFIERS, label=gettext_lazy("Authentication"))
    header_key = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Signature header"),
        help_text=gettext_lazy("GitHub sends X-Hub-Signature-256."),
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
            "An event completes their steps Wait for a webhook that it matches. One per line: name, or name = version."
        ),
    )
    platform = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Sender"),
        help_text=gettext_lazy("A note for you, such as GitHub."),
    )

    def clean_starts(self) -> dict[str, Any]:
        found = _parse_pairs(self.cleaned_data["starts"], "=", allow_bare_name=True)
        return _check_workflows({name: _parse_version(version) for name, version in found.items()})

    def clean_receivers(self) -> dict[str, int]:
        found = _parse_pairs(self.cleaned_data["receivers"], "=", allow_bare_name=True)
        return _check_workflows({name: int(_parse_version(version) or 0) for name, version in found.items()})

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


class WebhooksPage(Page):
    """List of all webhooks."""

    name, title, template, permission = "webhooks", "Events", "ops/events/webhooks.html", VIEW_PERMISSION
    shows_granted_rows = True

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        rows = list(visible(Webhook.objects.order_by("name"))[:MAX_LISTED])
        last = newest_by_event([f"webhook:{row.name}" for row in rows])
        errors = last_errors_of_webhooks(row.name for row in rows)
        return {
            "rows": [
                (row, webhook_address(request, row), last.get(f"webhook:{row.name}"), errors.get(row.name))
                for row in rows
            ],
            "may_edit": _may_create(request),
            "tab": "webhooks",
        }


def _may_create(request: HttpRequest, name: str | None = None) -> bool:
    """Return True if the user may create a webhook of any name, or of this one."""
    row = None if name is None else Webhook(name=name)
    return request.user.has_perm(CHANGE_PERMISSION) or may(request.user, ADD_PERMISSION, row)


def _may_delete(request: HttpRequest, row: Webhook) -> bool:
    return request.user.has_perm(CHANGE_PERMISSION) or may(request.user, DELETE_PERMISSION, row)


def _find_webhook(webhook_id: str) -> Webhook | None:
    """Return a webhook, or None without an id.

    Raises:
        NotFound: when there is no such webhook that the current actor may see.
    """
    row = visible(Webhook.objects.filter(pk=webhook_id)).first() if webhook_id else None
    if webhook_id and row is None:
        raise NotFound(f"No such webhook: {webhook_id}")
    return row


class _WebhookFormPage(ObjectPage):
    """Form for a new or an existing webhook."""

    template = "ops/events/webhook.html"
    shows_granted_rows = True

    def get_context(self, request: HttpRequest, webhook_id: str = "") -> dict[str, Any]:
        row = _find_webhook(webhook_id)
        initial = (
            initial_values(row.name, row.document)
            if row
            else {"verifier": "HMAC_BASED", "header_key": "X-Hub-Signature-256"}
        )
        return self._page_context(request, row, WebhookForm(initial=initial))

    def handle_post(self, request: HttpRequest, webhook_id: str = "") -> HttpResponse | dict[str, Any]:
        """Save, rotate or delete.

        Raises:
            PermissionDenied: when the user may not.
        """
        row, act = _find_webhook(webhook_id), request.POST.get("do", "save")
        if row is not None and act == "delete":
            if not _may_delete(request, row):
                raise PermissionDenied(DELETE_PERMISSION)
        elif row is not None:
            require_permission(request, CHANGE_PERMISSION, row)
        if row is not None and act in ("rotate", "delete"):
            return (self._rotate_secret if act == "rotate" else self._delete)(request, row)
        form = WebhookForm(request.POST)
        if form.is_valid():
            name = form.cleaned_data["name"]
            if (row is None or name != row.name) and not _may_create(request, name):
                raise PermissionDenied(ADD_PERMISSION)
            generated_secret = "" if row or not is_generated(form.cleaned_data) else secrets.token_urlsafe(32)
            if generated_secret:
                form.cleaned_data["secret"] = generated_secret
            if saved := self._save(request, form, row):
                return self._saved_response(request, saved, generated_secret)
        return self._page_context(request, row, form)

    def _save(self, request: HttpRequest, form: WebhookForm, row: Webhook | None) -> Webhook | None:
        by = request.user.get_username()
        try:
            if row is None:
                return webhooks.create_webhook(form.document({}), by)
            return webhooks.update_webhook(row.pk, form.document(row.document), by)
        except ValidationFailed as failed:
            for each in failed.validation_errors:
                is_missing = each.message.startswith("Missing ") and each.path in FORM_FIELDS
                message = _("This authentication requires it.") if is_missing else each.message
                form.add_error(FORM_FIELDS.get(each.path), message)
        except RequestRefused as refused:
            form.add_error(None, refused.message)
        return None

    def _saved_response(
        self, request: HttpRequest, row: Webhook, generated_secret: str
    ) -> HttpResponse | dict[str, Any]:
        """Redirect to the webhook's page, or first show a generated secret, which is displayed once."""
        if not generated_secret:
            messages.success(request, _("Webhook saved."))
            return HttpResponseRedirect(reverse("admin:webhook", args=[row.pk]))
        # This answers a POST, so browsers do not cache the secret.
        form = WebhookForm(initial=initial_values(row.name, row.document))
        return self._page_context(request, row, form) | {"drawn": generated_secret}

    def _rotate_secret(self, request: HttpRequest, row: Webhook) -> HttpResponse | dict[str, Any]:
        form, by = WebhookSecretForm(request.POST), request.user.get_username()
        if not form.is_valid():
            messages.error(request, " ".join(str(each) for errors in form.errors.values() for each in errors))
            return HttpResponseRedirect(reverse("admin:webhook", args=[row.pk]))
        cleaned, generated_secret = form.cleaned_data, ""
        if is_generated({**cleaned, "verifier": row.document.get("verifier")}):
            generated_secret = cleaned["secret"] = secrets.token_urlsafe(32)
        keep = SECRET_GRACE_SECONDS.get(request.POST.get("keep", ""), SECRET_GRACE_SECONDS["day"])
        credentials = {"secretValue": cleaned["secret"], "headers": cleaned["headers"]}
        try:
            webhooks.rotate_secret(row.pk, credentials, keep, by)
            messages.success(request, _("Secret rotated."))
        except RequestRefused as refused:
            show_refusal(request, refused)
            generated_secret = ""
        return self._saved_response(request, webhooks.find_webhook(row.pk), generated_secret)

    def _delete(self, request: HttpRequest, row: Webhook) -> HttpResponse:
        webhooks.delete_webhook(row.pk, request.user.get_username())
        messages.success(request, _("%(name)s deleted. Its address no longer accepts events.") % {"name": row.name})
        return HttpResponseRedirect(reverse("admin:webhooks"))

    def _page_context(self, request: HttpRequest, row: Webhook | None, form: WebhookForm) -> dict[str, Any]:
        verifier = row.document.get("verifier") if row else ""
        return {
            "title": row.name if row else _("New webhook"),
            "row": row,
            "form": form,
            "address": webhook_address(request, row) if row else "",
            "sample": _sample_command(request, row) if row else "",
            "former_until": webhooks.former_secret_valid_until(row) if row else None,
            "header_example": "X-Key: …",
            "needs_headers": verifier == "HEADER_BASED",
            "is_issued": verifier in SENDER_ISSUED,
            "may_edit": may(request.user, CHANGE_PERMISSION, row) if row else _may_create(request),
            "may_delete": row is not None and _may_delete(request, row),
            "waiting": waiting_tasks(webhooks.receiving_workflows(row)) if row else [],
            "tab": "webhooks",
        }


class NewWebhookPage(_WebhookFormPage):
    """Page that creates a webhook."""

    name, permission, route = "webhook_new", CHANGE_PERMISSION, "webhooks/new/"

    def is_open_to(self, request: HttpRequest) -> bool:
        return _may_create(request)


class WebhookPage(_WebhookFormPage):
    """Page of one webhook: its address, its settings, and the rotation of its secret."""

    name, permission, route = "webhook", VIEW_PERMISSION, "webhooks/<str:webhook_id>/"


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


def _check_workflows(versions: dict[str, Any]) -> dict[str, Any]:
    if messages := list(filter(None, (missing_workflow(name, version or None) for name, version in versions.items()))):
        raise forms.ValidationError(messages)
    return versions


def _parse_version(text: str) -> int | str:
    if not text:
        return ""
    if not text.isdecimal() or len(text) > 9:
        raise forms.ValidationError(_("Not a valid version: %(text)s.") % {"text": text[:40]})
    return int(text)


def is_generated(cleaned: dict[str, Any]) -> bool:
    """Return True if the server generates the secret: none was entered, and the sender does not issue it."""
    return not cleaned["secret"] and cleaned["verifier"] not in ("HEADER_BASED", *SENDER_ISSUED)


def webhook_address(request: HttpRequest, row: Webhook) -> str:
    """Return the address to which the other system sends events."""
    return f"{server_address(request)}/api/webhook/{row.pk}"


def _sample_command(request: HttpRequest, row: Webhook) -> str:
    """Return a command that sends an event with the credentials of the sender, or "" if that needs another system."""
    document, send = row.document, f"curl -X POST {webhook_address(request, row)} -H 'Content-Type: application/json'"
    body = """'{"id": "4711"}'"""
    verifier = document.get("verifier")
    if verifier == "BASIC":
        return f"{send} \\\n  -u {shlex.quote(document.get('secretKey') or '')}:'SECRET' -d {body}"
    if verifier == "HEADER_BASED":
        names = document.get("headers") or {}
        return " \\\n  ".join([send, *(f"-H {shlex.quote(name)}': SECRET'" for name in names), f"-d {body}"])
    if verifier not in ("HMAC_BASED", "SIGNATURE_BASED"):
        return ""
    header, time = shlex.quote(document.get("headerKey") or ""), document.get("timestampHeaderKey")
    signed = '"$time.$body"' if time else '"$body"'
    lines = [
        f"secret='SECRET' body={body}" + " time=$(date +%s)" * bool(time),
        f"sign=$(printf %s {signed} | openssl dgst -sha256 -hmac \"$secret\" -r | cut -d' ' -f1)",
        f'{send} \\\n  -H {header}": sha256=$sign"'
        + (f' -H {shlex.quote(time)}": $time"' if time else "")
        + ' -d "$body"',
    ]
    return "\n".join(lines)
