"""The menu, in the order of the operators' work, the page Admin, and the status bar.

An entry refers to a model by its class and to a page by its name. Entries that the user may not open, and sections
without entries, are left out. The menu has at most 14 entries.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth.models import Group, User
from django.contrib.contenttypes.models import ContentType
from django.db.models import Exists, Model
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from ..access.models import AccessKey, Application, AuditEntry, Client, Grant, Secret, Variable
from ..ai.models import Integration
from ..ai.queries.usage import environment_integrations
from ..definitions.models import TaskDefinition, WorkflowDefinition
from ..monitoring.pages.open_problems import count_problems
from ..monitoring.queries.health import health_for
from ..runs.models import Run
from ..schedules.models import Schedule, ScheduleExecution
from ..taskcluster.models import ScopeRole, TaskGroup
from ..utils import clock, process_state
from ..utils.formatting import MINUTE, LazyText
from ..web.pages import Page, fragment_response

SECTION_NAMES = {"operate": _("Operate"), "design": _("Design"), "further": _("More")}
ADMIN = "administration"


@dataclass(frozen=True, slots=True)
class SidebarEntry:
    """One entry: its model or page, its label, its icon, the pages that are tabs beside it, and paths below it.

    `below`: prefixes of other paths, relative to the overview, whose pages mark this entry. `name`: the name of an
    entry that is not that of its first page. `key`: the key that opens the entry after the key G.
    """

    target: Any
    label: str | LazyText
    icon: str
    tabs: "tuple[SidebarEntry, ...]" = ()
    below: tuple[str, ...] = ()
    name: str | LazyText = ""
    key: str = ""

    @property
    def pages(self) -> "tuple[SidebarEntry, ...]":
        """Return the entry and its tabs."""
        return (self, *self.tabs)


@dataclass(frozen=True, slots=True)
class AdminCard:
    """A card of the page Admin: its title, and the pages that it links to."""

    title: str | LazyText
    entries: tuple[SidebarEntry, ...]


OPTIONAL = {
    "ai": SidebarEntry(
        "integrations",
        _("Integrations"),
        "prompts",
        (
            SidebarEntry("prompts", _("Prompts"), "prompts"),
            SidebarEntry("budgets", _("Budgets"), "budgets"),
            SidebarEntry("vector_indexes", _("Vector indexes"), "step-database"),
        ),
        name=_("AI"),
    ),
    "taskcluster": SidebarEntry(
        TaskGroup,
        _("Task groups"),
        "columns",
        (
            SidebarEntry(Client, _("Taskcluster clients"), "keys"),
            SidebarEntry(ScopeRole, _("Taskcluster roles"), "permissions"),
        ),
        below=("conductor/standalonetask/",),
        name=_("Taskcluster"),
    ),
}
"""Entries that are in the menu once they are used. Before that, the page Admin has them as cards for those who may open
their first page, from which they are set up."""
SECTIONS: dict[str, tuple[SidebarEntry, ...]] = {
    "operate": (
        SidebarEntry("index", _("Overview"), "overview", key="o"),
        SidebarEntry(
            Run,
            _("Runs"),
            "runs",
            (SidebarEntry("bulk", _("Bulk operations"), "do-retry"),),
            below=("runs/", "views/"),
            key="r",
        ),
        SidebarEntry("failures", _("Failures"), "failures", key="f"),
        SidebarEntry(
            "human_tasks",
            _("Human tasks"),
            "inbox",
            (SidebarEntry("form_templates", _("Form templates"), "inbox"),),
            key="h",
        ),
        SidebarEntry("queues", _("Queues"), "queues", below=("queue/", "why-waiting/"), key="q"),
        SidebarEntry("workers", _("Workers"), "workers", key="k"),
        SidebarEntry("alerts", _("Alerts"), "bell", below=("alert-targets/",), key="a"),
    ),
    "design": (
        SidebarEntry(
            WorkflowDefinition,
            _("Workflows"),
            "workflows",
            (SidebarEntry("definition_drift", _("Definitions from Git"), "workflows"),),
            key="w",
        ),
        SidebarEntry(TaskDefinition, _("Task definitions"), "tasks", key="t"),
        SidebarEntry(
            Schedule,
            _("Schedules"),
            "schedules",
            (SidebarEntry(ScheduleExecution, _("Scheduled starts"), "starts"),),
            key="s",
        ),
        SidebarEntry(
            "events", _("Events"), "events", below=("conductor/eventhandler/", "webhooks/", "event-sources/"), key="e"
        ),
    ),
}
CARDS = (
    AdminCard(
        _("Access"),
        (
            SidebarEntry(
                "people",
                _("People"),
                "people",
                (
                    SidebarEntry(Application, _("Applications"), "applications"),
                    SidebarEntry(AccessKey, _("Access keys"), "keys"),
                ),
            ),
            SidebarEntry(AuditEntry, _("Audit log"), "audit"),
        ),
    ),
    AdminCard(
        _("Values of definitions"),
        (SidebarEntry(Secret, _("Secrets"), "secrets"), SidebarEntry(Variable, _("Variables"), "variables")),
    ),
    AdminCard(
        _("Server"),
        (
            SidebarEntry("system", _("System"), "server"),
            SidebarEntry("undelivered_messages", _("Undelivered messages"), "inbox"),
            SidebarEntry("retention", _("Retention"), "archive"),
            SidebarEntry("quotas", _("Quotas"), "filter"),
        ),
    ),
    AdminCard(
        _("Advanced access"),
        (
            SidebarEntry(
                Grant,
                _("Grants"),
                "permissions",
                (SidebarEntry(User, _("Users"), "person"), SidebarEntry(Group, _("Groups and roles"), "people")),
            ),
        ),
    ),
)


ROWS_OF_USE: dict[str, type[Model]] = {
    "ai": Integration,
    "taskcluster": TaskGroup,
}
"""The models of which a row means that an optional entry is used."""
CONFIGURED: dict[str, Callable[[], Any]] = {
    "ai": environment_integrations,
}
"""What returns True for an optional entry that the environment of the server configures."""


class OptionalUse:
    """What this process knows about the use of optional entries. It is checked once a minute, until there is some."""

    def __init__(self) -> None:
        self._checked_at = -MINUTE
        self._used: set[str] = set()

    def names(self) -> set[str]:
        """Return the names of the entries that are used."""
        now = clock.now()
        if len(self._used) < len(OPTIONAL) and not 0 <= now - self._checked_at < MINUTE:
            self._checked_at = now
            self._used |= {name for name, is_configured in CONFIGURED.items() if is_configured()}
            self._used |= _entries_with_rows()
        return self._used


_use = process_state.slot(OptionalUse)


def _entries_with_rows() -> set[str]:
    """Return the optional entries whose models have rows. Runs one query, on a table that has rows in any case."""
    conditions = [Exists(model._default_manager.all()) for model in ROWS_OF_USE.values()]
    found = ContentType.objects.order_by("pk").values_list(*conditions).first() or ()
    return {name for name, has_rows in zip(ROWS_OF_USE, found, strict=False) if has_rows}


def used_entries() -> set[str]:
    """Return the names of the optional entries that are used."""
    return _use.value.names()


def model_label(model: Any) -> Any:
    """Return the label of a model or page in the menu or on the page Admin, or None if it is not there."""
    entries = [*chain(*SECTIONS.values()), *OPTIONAL.values(), *chain(*(card.entries for card in CARDS))]
    return next((page.label for entry in entries for page in entry.pages if page.target is model), None)


def page_name(opts: Any) -> str:
    """Return the title of a model's list: its label in the menu, otherwise its verbose name."""
    return str(model_label(opts.model) or capfirst(opts.verbose_name_plural))


def build_sections(
    available: Mapping[Any, dict[str, Any]], path: str, used: Collection[str] = tuple(OPTIONAL)
) -> list[dict[str, Any]]:
    """Return the sections in the form of Django's app list, with the entry of the page at `path` marked.

    `available`: entries by model or page name. `used`: the optional entries that are in the menu.
    """
    visible = {name: _build_entries(entries, available, path) for name, entries in SECTIONS.items()}
    visible["further"] = _build_entries([OPTIONAL[name] for name in OPTIONAL if name in used], available, path)
    unused = [
        AdminCard(entry.name, (entry,))
        for name, entry in OPTIONAL.items()
        if name not in used and entry.target in available
    ]
    cards = [
        {"title": card.title, "entries": _build_entries(card.entries, available, path)} for card in (*CARDS, *unused)
    ]
    if cards := [card for card in cards if card["entries"]]:
        visible["further"].append(_build_admin(cards, path))
    return [_build_section(name, models) for name, models in visible.items() if models]


def page_tabs(sections: list[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    """Return the tabs of the list or page at a path: none unless its entry has several pages."""
    entries = [entry for section in sections for entry in section["models"]]
    below = [entry for card in admin_cards(sections) for entry in card["entries"]]
    several = (entry["pages"] for entry in (*below, *entries) if "cards" not in entry and len(entry["pages"]) > 1)
    return next((pages for pages in several if any(page["admin_url"] == path for page in pages)), [])


def admin_cards(sections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the cards of the page Admin that the user may see."""
    return next((entry["cards"] for section in sections for entry in section["models"] if "cards" in entry), [])


def _build_entries(
    entries: Iterable[SidebarEntry], available: Mapping[Any, dict[str, Any]], path: str
) -> list[dict[str, Any]]:
    return [built for entry in entries if (built := _build_entry(entry, available, path))]


def _build_entry(entry: SidebarEntry, available: Mapping[Any, dict[str, Any]], path: str) -> dict[str, Any] | None:
    """Return an entry with its pages that the user may open, or None if there are none. It links to the first one."""
    pages = [
        available[page.target] | {"name": page.label, "icon": page.icon, "key": page.key}
        for page in entry.pages
        if available.get(page.target, {}).get("admin_url")
    ]
    if not pages:
        return None
    below = tuple(reverse("admin:index") + address for address in entry.below)
    is_current = any(_is_within(page, path) for page in pages) or path.startswith(below)
    return pages[0] | {"pages": pages, "is_current": is_current, "name": entry.name or pages[0]["name"]}


def _build_admin(cards: list[dict[str, Any]], path: str) -> dict[str, Any]:
    """Return the entry of the page Admin. Its pages are those of its cards."""
    address, name = reverse(f"admin:{ADMIN}"), _("Admin")
    entries = [entry for card in cards for entry in card["entries"]]
    page = {"name": name, "icon": "server", "admin_url": address, "key": "m"}
    return page | {
        "pages": [page, *(each for entry in entries for each in entry["pages"])],
        "cards": cards,
        "is_current": path == address or any(entry["is_current"] for entry in entries),
    }


def _is_within(page: dict[str, Any], path: str) -> bool:
    """Return True if a path is that of a page, or of a page below it."""
    return page["admin_url"] == path or (not page.get("is_exact") and path.startswith(page["admin_url"]))


def _build_section(name: str, models: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": SECTION_NAMES[name], "app_label": name, "app_url": "", "has_module_perms": True, "models": models}


class AdministrationPage(Page):
    """The pages about the server and its users, as cards. Open to those who may open one of them."""

    name, title, template = ADMIN, _("Admin"), "ops/site/administration.html"

    def is_open_to(self, request: HttpRequest) -> bool:
        return request.user.is_staff

    def urls(self, site: AdminSite) -> list[URLPattern]:
        self._site = site
        return super().urls(site)

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        return {"cards": admin_cards(self._site.get_app_list(request))}


class StatusBarPage(Page):
    """Fragment with the server's health and the problems with the work. Open to every user who may sign in."""

    name = "status_bar"

    def is_open_to(self, request: HttpRequest) -> bool:
        return request.user.is_staff

    def urls(self, site) -> list[URLPattern]:
        return [path("status-bar/", site.admin_view(self.live), name=self.name)]

    def live(self, request: HttpRequest) -> HttpResponse:
        context: dict[str, Any] = {
            "health": health_for(request),
            "sees_sweeps": request.user.has_perm("conductor.view_sweeppass"),
            "problems": count_problems(request),
        }
        return fragment_response(request, "ops/monitoring/engine_status.html", context)

    def sidebar_entry(self) -> dict[str, Any]:
        return {}
