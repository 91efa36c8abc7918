"""The audit log: who did what and why, and what it changed. Append-only."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...bulk.pages.operations import operation_title
from ...bulk.queries import visible_operations
from ...bulk.selections import FAILURE_GROUP, MAX_ID_DIGITS, failure_group_titles, shows_words
from ...db.fields import dumps
from ...events.models import Webhook
from ...runs.models import Run
from ...runs.queries.recent import run_keys
from ...settings import conf
from ...utils import clock
from ...utils.differences import MISSING
from ...utils.formatting import DAY, HOUR
from ...web.badges import machine_time, relative_time
from ...web.documents import download_rows
from ...web.links import event_address, failure_group_address, queue_address, run_address, task_group_address
from ...web.pages import BoundedChangeList, GrantedRowsAdmin
from ..audit import application_owners, other_facts, value_changes
from ..models import AuditEntry
from ..visibility import visible

OBJECT_LABELS = {
    "run": gettext_lazy("Runs"),
    "bulk operation": gettext_lazy("Bulk operations"),
    "failure group": gettext_lazy("Failure groups"),
    "view": gettext_lazy("Saved views"),
    "alert": gettext_lazy("Alerts"),
    "alert target": gettext_lazy("Alert targets"),
    "queue": gettext_lazy("Queues"),
    "worker": gettext_lazy("Workers"),
    "task": gettext_lazy("Taskcluster tasks"),
    "task_group": gettext_lazy("Task groups"),
    "workflow_definition": gettext_lazy("Workflow definitions"),
    "task_definition": gettext_lazy("Task definitions"),
    "form_template": gettext_lazy("Form templates"),
    "schedule": gettext_lazy("Schedules"),
    "event": gettext_lazy("Events"),
    "event_handler": gettext_lazy("Event handlers"),
    "message": gettext_lazy("Undelivered messages"),
    "webhook": gettext_lazy("Webhooks"),
    "integration": gettext_lazy("Integrations"),
    "integration_model": gettext_lazy("Models"),
    "prompt": gettext_lazy("Prompts"),
    "retention policy": gettext_lazy("Retention"),
    "secret": gettext_lazy("Secrets"),
    "variable": gettext_lazy("Variables"),
    "application": gettext_lazy("Applications"),
    "permission": gettext_lazy("Permissions"),
    "quota": gettext_lazy("Quotas"),
    "budget": gettext_lazy("Budgets"),
    "vector index": gettext_lazy("Vector indexes"),
    "client": gettext_lazy("Taskcluster clients"),
    "scope_role": gettext_lazy("Taskcluster roles"),
    "user": gettext_lazy("Users"),
    "group": gettext_lazy("Groups"),
    "role": gettext_lazy("Roles"),
    "import": gettext_lazy("Imports"),
    "server": gettext_lazy("Server"),
}
"""All object types, in the order of the filter."""
TIME_SPANS = {"hour": HOUR, "24h": DAY, "7d": 7 * DAY, "30d": 30 * DAY}
EXPORT_FIELDS = ("at", "actor", "action", "object_type", "object_id", "reason", "facts", "request_id")
BATCH, MAX_VALUE_LENGTH = 2_000, 120
MAX_EXAMINED = 2_000
"""The newest entries whose persons and actions the filters offer."""
MAX_RUNS = 100
"""Runs with one correlation id whose entries a search finds."""
NAME_FIELDS = ("name", "view", "workflow")
"""The facts of an entry that name its object."""


def _search_address(page: str) -> Callable[[str], str]:
    """Return a function that builds the address of a list that searches for an id."""
    return lambda id: reverse(f"admin:{page}_changelist", query={"q": id})


def _definition_address(page: str) -> Callable[[str], str]:
    return lambda id: _search_address(page)(id.rpartition(":")[0] or id)


def _numbered_address(address_of: Callable[[int], str]) -> Callable[[str], str]:
    return lambda id: address_of(int(id)) if id.isdecimal() and len(id) < 18 else ""


OBJECT_ADDRESSES: dict[str, Callable[[str], str]] = {
    "run": run_address,
    "bulk operation": lambda id: reverse("admin:bulk_operation", args=[id]),
    "failure group": _numbered_address(failure_group_address),
    "view": _numbered_address(lambda id: reverse("admin:view", args=[id])),
    "alert": lambda id: reverse("admin:alerts"),
    "alert target": _numbered_address(lambda id: reverse("admin:alert_target", args=[id])),
    "queue": queue_address,
    "worker": lambda id: reverse("admin:workers", query={"q": id}),
    "task": lambda id: reverse("admin:conductor_standalonetask_change", args=[id]),
    "task_group": task_group_address,
    "workflow_definition": _definition_address("conductor_workflowdefinition"),
    "task_definition": _definition_address("conductor_taskdefinition"),
    "form_template": lambda id: reverse("admin:form_templates"),
    "schedule": _search_address("conductor_schedule"),
    "event": _numbered_address(event_address),
    "event_handler": _search_address("conductor_eventhandler"),
    "message": lambda id: reverse("admin:undelivered_messages"),
    "webhook": lambda id: reverse("admin:webhook", args=[id]),
    "integration": lambda id: reverse("admin:integration", args=[id]),
    "integration_model": lambda id: reverse("admin:integration", args=[id.partition(":")[0]]),
    "prompt": lambda id: reverse("admin:prompts"),
    "retention policy": lambda id: reverse("admin:retention"),
    "secret": _search_address("conductor_secret"),
    "variable": _search_address("conductor_variable"),
    "application": _search_address("conductor_application"),
    "permission": lambda id: _search_address("conductor_grant")(id.partition(":")[2]),
    "quota": lambda id: reverse("admin:quotas"),
    "budget": lambda id: reverse("admin:budgets"),
    "vector index": lambda id: reverse("admin:vector_indexes"),
    "client": _search_address("conductor_client"),
    "scope_role": _search_address("conductor_scoperole"),
}
if conf.is_server:
    OBJECT_ADDRESSES |= {
        "user": _search_address("auth_user"),
        "group": _search_address("auth_group"),
        "role": _search_address("auth_group"),
    }


def _operation_titles(ids: list[str]) -> dict[str, str]:
    rows = list(visible_operations().filter(pk__in=ids))
    titles = failure_group_titles(row.selection for row in rows)
    return {row.pk: operation_title(row, titles) for row in rows}


def _group_titles(ids: list[str]) -> dict[str, str]:
    found = failure_group_titles({FAILURE_GROUP: int(id)} for id in ids if id.isdecimal() and len(id) < MAX_ID_DIGITS)
    return {str(id): title for id, title in found.items()}


def _webhook_names(ids: list[str]) -> dict[str, str]:
    return dict(visible(Webhook.objects.filter(pk__in=ids)).values_list("pk", "name"))


OBJECT_TITLES: dict[str, Callable[[list[str]], Mapping[str, str]]] = {
    "bulk operation": _operation_titles,
    "failure group": _group_titles,
    "webhook": _webhook_names,
}
"""What returns the titles of objects whose ids say nothing, by id."""


def object_address(entry: AuditEntry) -> str:
    """Return the address of the object or of a search for it. Empty if no page shows it."""
    build_address = OBJECT_ADDRESSES.get(entry.object_type)
    return build_address(entry.object_id) if build_address and entry.object_id else ""


def object_name(entry: AuditEntry) -> str:
    """Return the key of a run, the title of an object, the name that the entry states, or the id."""
    key = getattr(entry, "run_key", None)
    if key is not None:
        return str(key.text)
    if title := getattr(entry, "title", ""):
        return str(title)
    names = (entry.facts.get(field) for field in NAME_FIELDS) if isinstance(entry.facts, dict) else ()
    return next((name for name in names if isinstance(name, str) and name), entry.object_id)


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


class NewestValueFilter(admin.SimpleListFilter):
    """Filter by a column, with the values that the newest entries have."""

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        newest = _newest_entries(request, model_admin)
        values = {*(entry[str(self.parameter_name)] for entry in newest), self.value() or ""} - {""}
        return [(value, value.replace("_", " ")) for value in sorted(values)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        return queryset.filter(**{str(self.parameter_name): self.value()}) if self.value() else queryset


def _newest_entries(request: HttpRequest, model_admin: admin.ModelAdmin) -> list[dict[str, str]]:
    """Return the persons and actions of the newest entries, which a request reads once."""
    known = vars(request)
    if "newest_entries" not in known:
        newest = model_admin.get_queryset(request).order_by("-id").values("actor", "action")
        known["newest_entries"] = list(newest[:MAX_EXAMINED])
    return known["newest_entries"]


class ActorFilter(NewestValueFilter):
    """Filter by the person or the application that acted."""

    title, parameter_name = gettext_lazy("person"), "actor"


class ActionFilter(NewestValueFilter):
    """Filter by the action."""

    title, parameter_name = gettext_lazy("action"), "action"


class AuditList(BoundedChangeList):
    """A page of entries, with the owners of the applications among the actors, and the keys of runs."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        made_by = application_owners(self.result_list)
        for entry in self.result_list:
            entry.made_by = made_by.get(entry.actor, "")
        for entry in self.result_list:
            entry.title = ""
        for object_type, titles_of in OBJECT_TITLES.items():
            named = [entry for entry in self.result_list if entry.object_type == object_type]
            titles = titles_of([entry.object_id for entry in named]) if named else {}
            for entry in named:
                entry.title = titles.get(entry.object_id, "")
        keys = run_keys(entry.object_id for entry in self.result_list if entry.object_type == "run")
        for entry in self.result_list:
            entry.run_key = keys.get(entry.object_id)


class AuditAdmin(GrantedRowsAdmin):
    """Every action of a user or a client. Users with grants see own actions, and those on the objects that they see."""

    list_display = ("when", "actor_text", "action_text", "object_text", "changes_or_details", "reason")
    list_display_links = None
    list_filter = (SinceFilter, ActorFilter, ActionFilter, ObjectFilter)
    ordering = ("-at", "-id")
    search_fields = ("=object_id", "=actor", "=request_id")
    search_help_text = gettext_lazy("Run id or name, definition:version, name, actor or request id")
    fields = ("when", "actor_text", "action_text", "object_text", "reason", "changes", "details", "request_link")
    change_list_template = "admin/conductor/auditentry/change_list.html"

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[BoundedChangeList]:
        return AuditList

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        # The queryset has the entries that the user may see. An entry has no name in grants itself.
        return super().has_view_permission(request)

    def get_urls(self) -> list[URLPattern]:
        export = path("export.<str:format>", self.admin_site.admin_view(self.export), name="audit_export")
        return [export, *super().get_urls()]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry], search_term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        """Return the entries that match, and those about runs with this correlation id, or newest ones so named."""
        found, may_repeat = super().get_search_results(request, queryset, search_term)
        text = search_term.strip()
        if not text:
            return found, may_repeat
        newest = queryset.filter(object_type="run").order_by("-id").values("object_id")[:MAX_EXAMINED]
        runs = visible(Run.objects.all()).order_by().values_list("pk", flat=True)
        ids = list(runs.filter(correlation_id=text)[:MAX_RUNS])
        ids = ids or list(runs.filter(shows_words(text), pk__in=newest)[:MAX_RUNS])
        return (found | queryset.filter(object_type="run", object_id__in=ids) if ids else found), may_repeat

    def export(self, request: HttpRequest, format: str) -> HttpResponseBase:
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
        return download_rows("audit", "json" if format == "json" else "csv", EXPORT_FIELDS, _export_rows(rows))

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
        name = object_name(entry)
        if not where:
            return format_html("{} {}", kind, name)
        if name == entry.object_id:
            return format_html('{} <a href="{}">{}</a>', kind, where, name)
        return format_html('{} <a href="{}" title="{}">{}</a>', kind, where, entry.object_id, name)

    @admin.display(description=gettext_lazy("changes"))
    def changes(self, entry: AuditEntry) -> SafeString:
        return render_changes(entry)

    @admin.display(description=gettext_lazy("changes"))
    def changes_or_details(self, entry: AuditEntry) -> SafeString:
        return render_changes(entry) or render_details(entry, MAX_VALUE_LENGTH)

    @admin.display(description=gettext_lazy("details"))
    def details(self, entry: AuditEntry) -> SafeString:
        return render_details(entry)

    @admin.display(description=gettext_lazy("request id"))
    def request_link(self, entry: AuditEntry) -> SafeString | str:
        if not entry.request_id:
            return "–"
        same = reverse("admin:conductor_auditentry_changelist", query={"request_id": entry.request_id})
        return format_html('<a href="{}"><code class="id">{}</code></a>', same, entry.request_id)


def render_changes(entry: AuditEntry) -> SafeString:
    """Return the values that an entry has changed, one in a line."""
    rows = ((each.path, _shorten(each.before), _shorten(each.after)) for each in value_changes(entry)[:20])
    return format_html_join("\n", '<span class="diff"><code>{}</code> <del>{}</del> → <ins>{}</ins></span>', rows)


def render_details(entry: AuditEntry, most: int = 2_000) -> SafeString:
    """Return the other facts of an entry, one in a line, each with `most` characters."""
    rows = ((name, _shorten(value, most)) for name, value in other_facts(entry).items())
    return format_html_join("\n", '<span class="diff"><code>{}</code> {}</span>', rows)


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
