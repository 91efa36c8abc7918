"""The list of artifacts of standalone tasks, newest first."""

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.signed_links import DOWNLOAD, artifact_address
from ...models import Artifact
from ..badges import format_size, relative_time
from ..read_only import ReadOnlyAdmin


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
