"""Versions of a workflow definition: compare two of them, restore an old one."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from ...core.document.semantic_diff import SemanticChange, semantic_changes
from ...core.errors import RequestRefused, ValidationFailed
from ...engine.definitions import definition_commands
from ...insight.definitions.diagram import Diagram
from ...insight.text_diff import diff_hunks
from ...models import WorkflowDefinition
from ..error_messages import require_permission, show_refusal
from ..json_editor import format_json
from ..pictures import draw_version

MAX_VERSIONS = 200


class VersionPages:
    """Pages about versions."""

    def version_urls(self) -> list[URLPattern]:
        name, site = self.opts.model_name, self.admin_site
        return [
            path("<int:pk>/compare/", site.admin_view(self.compare), name=f"{name}_compare"),
            path("<int:pk>/restore/", site.admin_view(self.restore), name=f"{name}_restore"),
        ]

    def compare(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Compare two versions, as summary and as diff. `?with=` is the old one, `?to=` the new one."""
        row = self.find_row(request, pk)
        versions = list(WorkflowDefinition.objects.filter(name=row.name).order_by("-version")[:MAX_VERSIONS])
        by_pk = {str(version.pk): version for version in versions}
        new = by_pk.get(request.GET.get("to", ""), row)
        older = next((version for version in versions if version.version < new.version), new)
        old = by_pk.get(request.GET.get("with", ""), older)
        context: dict[str, Any] = {"row": row, "old": old, "new": new, "versions": versions}
        changes = semantic_changes(old.document, new.document)
        context |= {"changes": changes, "pictures": [_draw_version(version, changes) for version in (old, new)]}
        context |= {"hunks": diff_hunks(format_json(old.document), format_json(new.document))}
        facts = {"name": row.name, "old": old.version, "new": new.version}
        title = _("%(name)s: versions %(old)s and %(new)s") % facts
        return self.render_page(request, "compare", title, **context)

    def restore(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Save an old version's document as a new version."""
        require_permission(request, self.change_permission)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row, by = self.find_row(request, pk), request.user.get_username()
        reason = request.POST.get("reason", "").strip() or f"Restored version {row.version}."
        try:
            version = definition_commands.restore_workflow(row.name, row.version, by, reason)
        except ValidationFailed as failed:
            reasons = "; ".join(each.message for each in failed.validation_errors[:3])
            messages.error(
                request,
                _("Version %(version)s is no longer valid: %(reasons)s") % {"version": row.version, "reasons": reasons},
            )
        except RequestRefused as refused:
            show_refusal(request, refused)
        else:
            messages.success(
                request, _("Restored version %(old)s as version %(new)s.") % {"new": version, "old": row.version}
            )
            row = WorkflowDefinition.objects.get(name=row.name, version=version)
        return HttpResponseRedirect(reverse("admin:conductor_workflowdefinition_change", args=[row.pk]))


def _draw_version(version: WorkflowDefinition, changes: list[SemanticChange]) -> tuple[WorkflowDefinition, Diagram]:
    """Return a version and its diagram. A step leads to its details on the page of the version."""
    page = reverse("admin:conductor_workflowdefinition_change", args=[version.pk])
    return version, draw_version(version.document, changes, lambda ref, path: f"{page}?{urlencode({'task': ref})}")
