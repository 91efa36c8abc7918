"""The audit log: who did what and why, and what it changed. Append-only."""

import csv
from collections.abc import Iterator
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from .. import clock
from ..insight.audit import application_owners, other_facts, value_changes
from ..insight.differences import MISSING
from ..insight.durations import DAY, HOUR
from ..models import AuditEntry
from ..models.fields import dumps
from .audit_objects import OBJECT_LABELS, object_address
from .badges import machine_time, relative_time
from .read_only import BoundedChangeList, ReadOnlyAdmin
from .runs.run_export import CsvBuffer, escape_formula

TIME_SPANS = {"hour": HOUR, "24h": DAY, "7d": 7 * DAY, "30d": 30 * DAY}
EXPORT_FIELDS = ("at", "actor", "action", "object_type", "object_id", "reason", "facts", "request_id")
BATCH, MAX_VALUE_LENGTH = 2_000, 120


class ObjectFilter(admin.SimpleListFilter):
    """Filter by the type of the changed object."""

    title, parameter_name = gettext_lazy("object"), "object_type"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        return list(OBJECT_LABELS.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        return queryset.filter(object_type=self.value()) if self.value() else queryset


class SinceFilter(admin.SimpleListFilter):
    """Filter by time."""

    title, parameter_name = gettext_lazy("time"), "since"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        labels = (_("Last hour"), _("Last 24 hours"), _("Last 7 days"), _("Last 30 days"))
        return list(zip(TIME_SPANS, labels, strict=True))

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        span = TIME_SPANS.get(self.value() or "")
        return queryset.filter(at__gte=clock.now() - span) if span else queryset


class AuditList(BoundedChangeList):
    """A page of entries, with the owners of the applications among the actors."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        made_by = application_owners(self.result_list)
        for entry in self.result_list:
            entry.made_by = made_by.get(entry.actor, "")


class AuditAdmin(ReadOnlyAdmin):
    """Every action of a user or a client."""

    list_display = ("when", "actor_text", "action_text", "object_text", "changes", "reason")
    list_display_links = None
    list_filter = (SinceFilter, ObjectFilter)
    ordering = ("-at", "-id")
    search_fields = ("=object_id", "=actor", "=request_id")
    search_help_text = gettext_lazy("Exact run id, name:version of a definition, name, actor or request id")
    fields = ("when", "actor_text", "action_text", "object_text", "reason", "changes", "details", "request_link")
    change_list_template = "admin/conductor/auditentry/change_list.html"

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[BoundedChangeList]:
        return AuditList

    def get_urls(self) -> list[URLPattern]:
        export = path("export.<str:format>", self.admin_site.admin_view(self.export), name="audit_export")
        return [export, *super().get_urls()]

    def export(self, request: HttpRequest, format: str) -> HttpResponse:
        """Download all entries that match the filter, newest first.

        Raises:
            PermissionDenied: when the user may not see the audit log.
        """
        if not self.has_view_permission(request):
            raise PermissionDenied("conductor.view_auditentry")
        try:
            rows = self.get_changelist_instance(request).get_queryset(request).order_by("-id")
        except IncorrectLookupParameters:
            messages.error(request, _("The filter of the list is invalid."))
            return HttpResponseRedirect(reverse("admin:conductor_auditentry_changelist"))
        lines, kind = (
            (_json_lines(rows), "application/json")
            if format == "json"
            else (_csv_lines(rows), "text/csv; charset=utf-8")
        )
        name = "audit.json" if format == "json" else "audit.csv"
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
        return StreamingHttpResponse(lines, content_type=kind, headers=headers)

    @admin.display(description=gettext_lazy("time"))
    def when(self, entry: AuditEntry) -> SafeString:
        return format_html(
            '<a href="{}">{}</a>',
            reverse("admin:conductor_auditentry_change", args=[entry.pk]),
            relative_time(entry.at),
        )

    @admin.display(description=gettext_lazy("actor"))
    def actor_text(self, entry: AuditEntry) -> SafeString | str:
        made_by = entry.made_by if hasattr(entry, "made_by") else application_owners([entry]).get(entry.actor, "")
        if not made_by:
            return entry.actor
        return format_html(
            '{} <span class="muted">{}</span>', entry.actor, _("application of %(owner)s") % {"owner": made_by}
        )

    @admin.display(description=gettext_lazy("action"))
    def action_text(self, entry: AuditEntry) -> str:
        return entry.action.replace("_", " ")

    @admin.display(description=gettext_lazy("object"))
    def object_text(self, entry: AuditEntry) -> SafeString:
        kind, where = entry.object_type.replace("_", " "), object_address(entry)
        if not where:
            return format_html("{} {}", kind, entry.object_id)
        return format_html('{} <a href="{}">{}</a>', kind, where, entry.object_id)

    @admin.display(description=gettext_lazy("changes"))
    def changes(self, entry: AuditEntry) -> SafeString:
        rows = ((each.path, _shorten(each.before), _shorten(each.after)) for each in value_changes(entry)[:20])
        return format_html_join("\n", '<span class="diff"><code>{}</code> <del>{}</del> → <ins>{}</ins></span>', rows)

    @admin.display(description=gettext_lazy("details"))
    def details(self, entry: AuditEntry) -> SafeString:
        rows = ((name, _shorten(value, 2_000)) for name, value in other_facts(entry).items())
        return format_html_join("\n", "<p><code>{}</code> {}</p>", rows)

    @admin.display(description=gettext_lazy("request id"))
    def request_link(self, entry: AuditEntry) -> SafeString | str:
        if not entry.request_id:
            return "–"
        same = reverse("admin:conductor_auditentry_changelist", query={"request_id": entry.request_id})
        return format_html('<a href="{}"><code class="id">{}</code></a>', same, entry.request_id)


def _shorten(value: Any, most: int = MAX_VALUE_LENGTH) -> str:
    if value is MISSING or value is None:
        return "–"
    text = value if isinstance(value, str) else dumps(value) or ""
    return text if len(text) <= most else f"{text[:most]}…"


def _export_rows(rows: QuerySet[AuditEntry]) -> Iterator[dict[str, Any]]:
    """Yield all entries in batches, so that neither memory nor a transaction is held."""
    last: int | None = None
    while found := list((rows if last is None else rows.filter(pk__lt=last))[:BATCH]):
        for entry in found:
            yield {name: getattr(entry, name) for name in EXPORT_FIELDS} | {"at": machine_time(entry.at)}
        last = found[-1].pk


def _csv_lines(rows: QuerySet[AuditEntry]) -> Iterator[str]:
    writer = csv.writer(CsvBuffer())
    yield writer.writerow(EXPORT_FIELDS)
    for row in _export_rows(rows):
        yield writer.writerow(
            [escape_formula(dumps(value) if isinstance(value, dict) else value) for value in row.values()]
        )


def _json_lines(rows: QuerySet[AuditEntry]) -> Iterator[str]:
    """Yield a JSON list, one entry per line."""
    separator = "[\n"
    for row in _export_rows(rows):
        yield separator + (dumps(row) or "")
        separator = ",\n"
    yield "\n]\n" if separator == ",\n" else "[]\n"
