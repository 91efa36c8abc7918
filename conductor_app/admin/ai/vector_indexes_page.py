"""Page of the indexes of vectors: documents, sizes, and their deletion."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext_lazy, ngettext

from ...core.errors import RequestRefused
from ...engine.ai.vector_indexes import Place, delete_index
from ...insight.ai.vector_catalog import MAX_INDEXES, list_indexes
from ..badges import format_count
from ..error_messages import require_permission, show_refusal
from ..pages import Page

DELETE_PERMISSION = "conductor.delete_vectordocument"


class VectorIndexesPage(Page):
    """Page of the indexes of vectors."""

    name, title, template = "vector_indexes", gettext_lazy("Vector indexes"), "ops/ai/vector_indexes.html"
    permission = "conductor.view_vectordocument"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        indexes = list_indexes()
        return {
            "indexes": indexes,
            "is_cut": len(indexes) == MAX_INDEXES,
            "may_delete": request.user.has_perm(DELETE_PERMISSION),
        }

    def post(self, request: HttpRequest) -> HttpResponse:
        require_permission(request, DELETE_PERMISSION)
        form_data, by = request.POST, request.user.get_username()
        place = Place(form_data.get("database", ""), form_data.get("index", ""), form_data.get("namespace", ""))
        try:
            count = delete_index(place, by, form_data.get("reason", "").strip())
            deleted = ngettext("%(count)s document deleted.", "%(count)s documents deleted.", count)
            messages.success(request, deleted % {"count": format_count(count)})
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(reverse("admin:vector_indexes"))
