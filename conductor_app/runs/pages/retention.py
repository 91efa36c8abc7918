"""Data and retention: current size, retention policies, and the next removals."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.errors import Invalid, RequestRefused
from ...settings import conf
from ...tasks.models import SweepPass
from ...utils import clock
from ...web.pages import Page, require_permission, show_refusal
from ..commands import retention
from ..queries.retention import database_growth, growth_by_definition, preview_removal, retention_policies

PERMISSION = "conductor.change_retentionpolicy"
MAX_PREVIEWS = 6
"""Number of policies whose next removals the page counts. Those of other policies are counted on request."""


class RetentionPage(Page):
    """Page of retention policies."""

    name, title, template = "retention", gettext_lazy("Retention"), "ops/runs/retention.html"
    permission = "conductor.view_retentionpolicy"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        now, policies = clock.now(), retention_policies()
        selected = request.GET.get("preview")
        previewed = [each for each in policies if selected is None or each.definition == selected][:MAX_PREVIEWS]
        next_up = {each.definition: preview_removal(each, policies, now) for each in previewed}
        return {
            "policies": [(policy, next_up.get(policy.definition)) for policy in policies],
            "growth_by_definition": growth_by_definition(now),
            "database_growth": database_growth(),
            "is_archiving": bool(conf.run_archive),
            "may_act": request.user.has_perm(PERMISSION),
            "permission": PERMISSION,
            "sweep": SweepPass.objects.filter(name="prune_finished").first(),
        }

    def post(self, request: HttpRequest) -> HttpResponse:
        require_permission(request, PERMISSION)
        form_data, by = request.POST, request.user.get_username()
        definition = form_data.get("definition", "")
        try:
            if form_data.get("do") == "remove":
                retention.delete_policy(definition, by)
                messages.success(request, _("Policy deleted. The default applies to its runs."))
            else:
                days, failed_days, keep_last = (
                    _parse_number(form_data.get(name, "")) for name in ("days", "failed_days", "keep_last")
                )
                retention.save_policy(definition, days, failed_days, keep_last, by)
                messages.success(request, _("Policy saved. The runs that the next sweep removes are listed below."))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(reverse("admin:retention"))


def _parse_number(text: str) -> int:
    text = text.strip() or "0"
    if not text.isdecimal() or len(text) > 9:
        raise Invalid(_("Not a valid integer: %(text)s.") % {"text": repr(text[:40])})
    return int(text)
