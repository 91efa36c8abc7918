"""Artifacts on pages, the list of artifacts, and the addresses of the pages of this slice."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.tokens import DOWNLOAD, artifact_address
from ...web.badges import format_size, relative_time
from ...web.links import standalone_task_address
from ...web.pages import ReadOnlyAdmin
from ..models import Artifact

PUBLIC_PREFIX, VIEW_ALL_PERMISSION = "public/", "conductor.view_artifact"
TEXT_TYPES = ("text/", "application/json", "application/x-yaml", "application/yaml", "application/xml")


def is_readable_by(row: Artifact, user: User | AnonymousUser) -> bool:
    """Return True if the user may read the artifact. Public artifacts need no further permission."""
    return row.name.startswith(PUBLIC_PREFIX) or user.has_perm(VIEW_ALL_PERMISSION)


def is_text(row: Artifact) -> bool:
    """Return True if the page can show the artifact: stored text, or a link to another artifact."""
    is_log = row.content_type.startswith(TEXT_TYPES) or row.name.endswith(".log")
    return is_log and (bool(row.path) or row.kind == "link")


def artifact_context(row: Artifact, now: int, user: User | AnonymousUser) -> dict[str, Any]:
    """Return one artifact with the links that the user may open."""
    is_open = is_readable_by(row, user)
    is_here = bool(row.path) and row.expires_at > now and is_open
    return {
        "row": row,
        "size": format_size(row.size) if row.path else "",
        "download": f"{reverse('admin:standalone_file', args=[row.task_id])}?{_artifact_query(row)}" if is_here else "",
        "read": f"{standalone_task_address(row.task_id)}?{_artifact_query(row)}#log"
        if is_open and is_text(row)
        else "",
        "location_text": artifact_location(row) if is_open else _("Required permission: conductor.view_artifact"),
    }


def _artifact_query(row: Artifact) -> str:
    return urlencode({"attempt": row.number, "artifact": row.name})


def artifact_location(row: Artifact) -> SafeString | str:
    """Return the location of an artifact that is not stored here, or the reason why it is missing."""
    url = str(row.details.get("url", ""))
    if url.startswith(("https://", "http://")):
        return format_html('<a href="{0}" rel="noopener noreferrer">{0}</a>', url)
    details = [str(row.details[part]) for part in ("url", "artifact", "reason", "message") if part in row.details]
    return " ".join(details) or ("" if row.path else _("not uploaded yet"))


class ArtifactAdmin(ReadOnlyAdmin):
    """Admin of artifacts."""

    list_display = ("content", "task_id", "number", "kind", "content_type", "bytes", "created", "expires")
    list_display_links = None
    ordering = ("-id",)
    search_fields = ("=task_id",)
    search_help_text = gettext_lazy("Exact task id")

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        # The list links to the content. Artifacts have no page of their own.
        return obj is None and super().has_view_permission(request)

    @admin.display(description=gettext_lazy("artifact"))
    def content(self, row: Artifact) -> SafeString | str:
        """Return the name, as link to stored content or with the location or the reason why it is missing."""
        if row.path:
            address = artifact_address(row.task_id, row.number, row.name, DOWNLOAD)
            return format_html('<a href="{}">{}</a>', address, row.name)
        location = " ".join(str(row.details[part]) for part in ("url", "artifact", "message") if part in row.details)
        return format_html('{} <span class="muted">{}</span>', row.name, location or _("not uploaded yet"))

    @admin.display(description=gettext_lazy("run"))
    def number(self, row: Artifact) -> int:
        return row.number

    @admin.display(description=gettext_lazy("size"))
    def bytes(self, row: Artifact) -> str:
        return format_size(row.size) if row.path else ""

    @admin.display(description=gettext_lazy("created"))
    def created(self, row: Artifact) -> SafeString:
        return relative_time(row.created_at)

    @admin.display(description=gettext_lazy("expires"))
    def expires(self, row: Artifact) -> SafeString:
        return relative_time(row.expires_at)
