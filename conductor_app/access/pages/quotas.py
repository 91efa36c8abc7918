"""Quotas of callers: their limits, and what each caller uses now."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.errors import Invalid, RequestRefused
from ...db.fields import UserKey, user_key
from ...payloads import commands
from ...utils import clock
from ...web.badges import format_count, format_size
from ...web.pages import Page, require_permission, show_refusal
from .. import quotas
from ..models import CallerQuota
from ..quotas import QUOTA_FIELDS, RATES, Rate, caller_of_row, caller_of_user

PERMISSION = "conductor.change_callerquota"
MIB = 1024 * 1024
KINDS = (
    (quotas.EVERY_CALLER, gettext_lazy("all callers")),
    (quotas.APPLICATION, gettext_lazy("an application")),
    (quotas.USER, gettext_lazy("a user")),
    (quotas.CLIENT, gettext_lazy("a Taskcluster client")),
)


@dataclass(frozen=True, slots=True)
class QuotaCaller:
    """A caller as the page names it."""

    key: str
    kind: str
    name: str
    label: str
    user_id: UserKey | None = None


@dataclass(frozen=True, slots=True)
class QuotaCell:
    """One quota and its use. `limit`: 0 for none, `used`: None if it is not counted, `is_size`: in bytes."""

    limit: float
    used: float | None
    is_size: bool

    @property
    def is_used_up(self) -> bool:
        return bool(self.limit) and self.used is not None and self.used >= self.limit

    @property
    def limit_text(self) -> str:
        return "" if not self.limit else self._format(self.limit)

    @property
    def used_text(self) -> str:
        return "" if self.used is None or not (self.used or self.limit) else self._format(self.used)

    def _format(self, value: float) -> str:
        if self.is_size:
            return format_size(int(value))
        return format_count(int(value)) if value == int(value) else number_format(value)


class QuotasPage(Page):
    """Page of quotas."""

    name, title, template = "quotas", gettext_lazy("Quotas"), "ops/access/quotas.html"
    permission = "conductor.view_callerquota"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        rows = {caller_of_row(row): row for row in CallerQuota.objects.all()}
        keys = list(dict.fromkeys(["", *rows, *quotas.recent_callers()]))
        callers = list(_name_callers(keys))
        selected = next((each for each in callers if each.key == request.GET.get("edit")), None)
        return {
            "lines": _build_lines(callers, rows),
            "selected": selected,
            "name": selected.name if selected else "",
            "values": _form_values(rows.get(selected.key) if selected else None),
            "kinds": KINDS,
            "may_act": request.user.has_perm(PERMISSION),
            "permission": PERMISSION,
        }

    def post(self, request: HttpRequest) -> HttpResponse:
        require_permission(request, PERMISSION)
        form_data, by = request.POST, request.user.get_username()
        try:
            if form_data.get("do") == "remove":
                quotas.delete_quotas(form_data.get("caller", ""), by)
                messages.success(request, _("Quotas removed. They take effect within one second."))
            else:
                kind, name = form_data.get("kind", ""), form_data.get("name", "")
                quotas.save_quotas(kind, name, _parse_values(form_data), by)
                messages.success(request, _("Quotas saved. They take effect within one second."))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(reverse("admin:quotas"))


def _name_callers(keys: Sequence[str]) -> Iterator[QuotaCaller]:
    """Yield the callers with their names. Deleted users are left out."""
    ids = [key.removeprefix("user ") for key in keys if key.startswith("user ")]
    found = get_user_model()._default_manager.filter(pk__in=ids).select_related("application")
    users = {caller_of_user(user.pk): user for user in found}
    for key in keys:
        kind, _separator, id = key.partition(" ")
        if not key:
            yield QuotaCaller(key, quotas.EVERY_CALLER, "", _("all others"))
        elif kind == "client":
            yield QuotaCaller(key, quotas.CLIENT, id, id)
        elif user := users.get(key):
            application = getattr(user, "application", None)
            if application:
                yield QuotaCaller(key, quotas.APPLICATION, application.pk, application.name, user_key(user.pk))
            else:
                yield QuotaCaller(key, quotas.USER, user.get_username(), user.get_username(), user_key(user.pk))


def _build_lines(callers: Sequence[QuotaCaller], rows: dict[str, CallerQuota]) -> list[dict[str, Any]]:
    keys, user_ids = [each.key for each in callers], [each.user_id for each in callers if each.user_id]
    open_runs, stored = quotas.open_runs_by_user(user_ids), commands.stored_bytes_by_caller(keys)
    rates, now = quotas.rate_use(keys), clock.now()
    lines = []
    for caller in callers:
        # The page reads the table, not this process's cache.
        row = rows.get(caller.key)
        limits = _limits(row, rows.get(""))
        used: dict[str, float | None] = {
            rate.field: _used_of_rate(rates.get((caller.key, rate.name)), limits[rate.field], rate, now)
            for rate in RATES
        }
        if caller.user_id:
            used |= {"open_runs": open_runs.get(caller.user_id, 0), "stored_bytes": stored.get(caller.key, 0)}
        cells = {field: QuotaCell(limits[field], used.get(field), field == "stored_bytes") for field in QUOTA_FIELDS}
        lines.append({"caller": caller, "row": row, **cells})
    return lines


def _limits(row: CallerQuota | None, default: CallerQuota | None) -> dict[str, float]:
    own = {field: getattr(row, field, None) for field in QUOTA_FIELDS}
    return {field: (getattr(default, field, None) or 0) if value is None else value for field, value in own.items()}


def _used_of_rate(bucket: quotas.RateUse | None, limit: float, rate: Rate, now: int) -> float | None:
    """Return how many tokens are missing in the bucket of a rate: about the requests of its last period."""
    if bucket is None or not limit:
        return None
    capacity = max(1.0, limit)
    tokens = bucket.tokens + max(0, now - bucket.updated_at) * limit / rate.period_ms
    return round(capacity - min(capacity, tokens))


def _form_values(row: CallerQuota | None) -> dict[str, str]:
    values = {field: getattr(row, field, None) for field in QUOTA_FIELDS}
    if values["stored_bytes"]:
        values["stored_bytes"] /= MIB
    return {field: "" if value is None else f"{value:.10g}" for field, value in values.items()}


def _parse_values(form_data: Any) -> dict[str, float | None]:
    values = {field: _parse_number(form_data.get(field, "")) for field in QUOTA_FIELDS}
    return values | {"stored_bytes": values["stored_bytes"] and values["stored_bytes"] * MIB}


def _parse_number(text: str) -> float | None:
    text = text.strip().replace(",", ".")
    if not text:
        return None
    try:
        return float(text[:40])
    except ValueError:
        raise Invalid(_("Not a valid number: %(text)s.") % {"text": repr(text[:40])}) from None
