"""Labels of a run on its page: add, remove, and links to other runs with the same label."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ...core.errors import RequestRefused
from ...engine.runs import labels
from ...models import Run
from ..error_messages import require_permission, show_refusal
from ..tasks.task_actions import PERMISSION
from .run_view_model import run_address


def label_context(run: Run) -> dict[str, Any]:
    """Return the labels of the run with links to the list of runs. The run was loaded with its labels."""
    runs = reverse("admin:conductor_run_changelist")
    names = sorted(run.label_names.split(",")) if run.label_names else []
    return {"labels": [(name, f"{runs}?{urlencode({'label': name})}") for name in names], "most": labels.MAX_LABELS}


def change_labels(request: HttpRequest, run_id: str) -> HttpResponse:
    """Add labels, or remove one."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    require_permission(request, PERMISSION)
    by, reason = request.user.get_username(), request.POST.get("reason", "").strip()
    try:
        if removed := request.POST.getlist("remove"):
            labels.remove_labels(run_id, removed, by, reason)
            messages.success(request, _("Label removed."))
        else:
            new_labels = [label for label in request.POST.get("labels", "").split(",") if label.strip()]
            count = len(labels.add_labels(run_id, new_labels, by, reason))
            message = ngettext("%(count)s label added.", "%(count)s labels added.", count) % {"count": count}
            messages.success(request, message)
    except RequestRefused as refused:
        show_refusal(request, refused)
    return HttpResponseRedirect(run_address(run_id))
