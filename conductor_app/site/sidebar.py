"""The menu, in the order of the operators' work, the page Admin, and the status bar.

An entry refers to a model by its class and to a page by its name. Entries that the user may not open, and sections
without entries, are left out. The menu has at most 14 entries.

The header of every page says how many runs failed, and how many queues have no workers. A page shows the counts of this
process. The header counts when it refreshes, so that no page runs a statement for it.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from time import monotonic
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth.models import Group, User
from django.contrib.contenttypes.models import ContentType
from django.db.models import Exists, Model
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ..access.models import AccessKey, Application, AuditEntry, Client, Grant, Secret, Variable
from ..access.visibility import may, sees_all_runs, visible
from ..ai.models import Integration
from ..ai.queries.usage import environment_integrations
from ..bulk.selections import UNSUCCESSFUL_STATUSES
from ..definitions.models import TaskDefinition, WorkflowDefinition
from ..monitoring.pages.overview import visible_queues
from ..monitoring.queries.health import health_for
from ..runs.models import Run
from ..runs.pages.list import FAILED_RECENTLY
from ..schedules.models import Schedule, ScheduleExecution
from ..taskcluster.models import ScopeRole, TaskGroup
from ..tasks.queries.queue_states import queues_without_workers
from ..utils import clock, process_state
from ..utils.formatting import DAY, MINUTE, LazyText
from ..web.badges import format_lower_bound
from ..web.pages import Page, fragment_response

MAX_COUNTED = 1_000
KEPT_SECONDS, SHOWN_SECONDS = 3, 30
"""How long a count is not repeated, and how long pages show it until their header has counted again."""
MAX_USERS = 500
VIEW_RUN = "conductor.view_run"
ALL_RUNS, NOT_SIGNED_IN = 0, -1
"""The keys of the users who see all runs, and of a user who is not signed in. The key of any other user is its id."""


@dataclass(frozen=True, slots=True)
class OpenProblems:
    """Runs that failed within 24 hours and are failed, up to MAX_COUNTED, and queues with tasks and no worker."""

    failed: int = 0
    queues: int = 0

    @property
    def total(self) -> str:
        """Return how many runs and queues have problems, with a plus sign if more runs failed."""
        counted = min(self.failed, MAX_COUNTED)
        return format_lower_bound(counted + self.queues, self.failed > MAX_COUNTED)

    @property
    def links(self) -> list[tuple[str, str]]:
        """Return a text for each kind of problem that exists, and the address of what it counts."""
        failed = format_lower_bound(min(self.failed, MAX_COUNTED), self.failed > MAX_COUNTED)
        queues = ngettext("%(count)s queue without workers", "%(count)s queues without workers", self.queues)
        runs = reverse("admin:conductor_run_changelist", query={"status": UNSUCCESSFUL_STATUSES, **FAILED_RECENTLY})
        attention = f"{reverse('admin:index')}#attention"
        found = [(_("%(count)s failed, 24 h") % {"count": failed}, runs)] if self.failed else []
        return [*found, (queues % {"count": self.queues}, attention)] if self.queues else found


_counted: process_state.Slot[dict[Hashable, tuple[float, OpenProblems]]] = process_state.slot(dict)


def known_problems(request: HttpRequest) -> tuple[OpenProblems | None, bool]:
    """Return what this process has counted for the user within SHOWN_SECONDS, or None. Runs no statement.

    Also returns True if it was counted within KEPT_SECONDS.
    """
    if not may(request.user, VIEW_RUN):
        return OpenProblems(), True
    return _counted_within(request, SHOWN_SECONDS), _counted_within(request, KEPT_SECONDS) is not None


def count_problems(request: HttpRequest) -> OpenProblems:
    """Return the problems with the work that the user may see.

    Runs two statements, and a third if a queue is not polled, at most every KEPT_SECONDS for all who see all runs, and
    for each other user. The header of the overview and of a page after an action asks for a count of its own.
    """
    if not may(request.user, VIEW_RUN):
        return OpenProblems()
    if "fresh" not in request.GET and (kept := _counted_within(request, KEPT_SECONDS)) is not None:
        return kept
    now = clock.now()
    failed = Run.objects.filter(status__in=UNSUCCESSFUL_STATUSES, ended_at__gte=now - DAY).order_by()
    problems = OpenProblems(
        visible(failed).values("pk")[: MAX_COUNTED + 1].count(),
        len(queues_without_workers(visible_queues(), now)),
    )
    counted = _counted.value
    if len(counted) >= MAX_USERS:
        counted.clear()
    counted[_key(request)] = monotonic(), problems
    return problems


def _counted_within(request: HttpRequest, seconds: int) -> OpenProblems | None:
    counted_at, problems = _counted.value.get(_key(request), (0.0, None))
    return problems if problems is not None and monotonic() - counted_at < seconds else None


def _key(request: HttpRequest) -> Hashable:
    return ALL_RUNS if sees_all_runs() else request.user.pk or NOT_SIGNED_IN


SECTION_NAMES = {
    "operate": gettext_lazy("Operate"),
    "design": gettext_lazy("Design"),
    "further": gettext_lazy("More"),
}
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
        gettext_lazy("Integrations"),
        "prompts",
        (
            SidebarEntry("prompts", gettext_lazy("Prompts"), "prompts"),
            SidebarEntry("budgets", gettext_lazy("Budgets"), "budgets"),
            SidebarEntry("vector_indexes", gettext_lazy("Vector indexes"), "step-database"),
        ),
        name=gettext_lazy("AI"),
    ),
    "taskcluster": SidebarEntry(
        TaskGroup,
        gettext_lazy("Task groups"),
        "columns",
        (
            SidebarEntry(Client, gettext_lazy("Taskcluster clients"), "keys"),
            SidebarEntry(ScopeRole, gettext_lazy("Taskcluster roles"), "permissions"),
        ),
        below=("conductor/standalonetask/",),
        name=gettext_lazy("Taskcluster"),
    ),
}
"""Entries that are in the menu once they are used. Before that, the page Admin has them as cards for those who may open
their first page, from which they are set up."""
SECTIONS: dict[str, tuple[SidebarEntry, ...]] = {
    "operate": (
        SidebarEntry("index", gettext_lazy("Overview"), "overview", key="o"),
        SidebarEntry(
            Run,
            gettext_lazy("Runs"),
            "runs",
            (SidebarEntry("bulk", gettext_lazy("Bulk operations"), "do-retry"),),
            below=("runs/", "views/"),
            key="r",
        ),
        SidebarEntry("failures", gettext_lazy("Failures"), "failures", key="f"),
        SidebarEntry(
            "human_tasks",
            gettext_lazy("Human tasks"),
            "inbox",
            (SidebarEntry("form_templates", gettext_lazy("Form templates"), "inbox"),),
            key="h",
        ),
        SidebarEntry("queues", gettext_lazy("Queues"), "queues", below=("queue/", "why-waiting/"), key="q"),
        SidebarEntry("workers", gettext_lazy("Workers"), "workers", key="k"),
        SidebarEntry("alerts", gettext_lazy("Alerts"), "bell", below=("alert-targets/",), key="a"),
    ),
    "design": (
        SidebarEntry(
            WorkflowDefinition,
            gettext_lazy("Workflows"),
            "workflows",
            (SidebarEntry("definition_drift", gettext_lazy("Definitions from Git"), "workflows"),),
            key="w",
        ),
        SidebarEntry(TaskDefinition, gettext_lazy("Task definitions"), "tasks", key="t"),
        SidebarEntry(
            Schedule,
            gettext_lazy("Schedules"),
            "schedules",
            (SidebarEntry(ScheduleExecution, gettext_lazy("Scheduled starts"), "starts"),),
            key="s",
        ),
        SidebarEntry(
            "events",
            gettext_lazy("Events"),
            "events",
            below=("conductor/eventhandler/", "webhooks/", "event-sources/"),
            key="e",
        ),
    ),
}
CARDS = (
    AdminCard(
        gettext_lazy("Access"),
        (
            SidebarEntry(
                "people",
                gettext_lazy("People"),
                "people",
                (
                    SidebarEntry(Application, gettext_lazy("Applications"), "applications"),
                    SidebarEntry(AccessKey, gettext_lazy("Access keys"), "keys"),
                ),
            ),
            SidebarEntry(AuditEntry, gettext_lazy("Audit log"), "audit"),
        ),
    ),
    AdminCard(
        gettext_lazy("Values of definitions"),
        (
            SidebarEntry(Secret, gettext_lazy("Secrets"), "secrets"),
            SidebarEntry(Variable, gettext_lazy("Variables"), "variables"),
        ),
    ),
    AdminCard(
        gettext_lazy("Server"),
        (
            SidebarEntry("system", gettext_lazy("System"), "server"),
            SidebarEntry("undelivered_messages", gettext_lazy("Undelivered messages"), "inbox"),
            SidebarEntry("retention", gettext_lazy("Retention"), "archive"),
            SidebarEntry("quotas", gettext_lazy("Quotas"), "filter"),
        ),
    ),
    AdminCard(
        gettext_lazy("Advanced access"),
        (
            SidebarEntry(
                Grant,
                gettext_lazy("Grants"),
                "permissions",
                (
                    SidebarEntry(User, gettext_lazy("Users"), "person"),
                    SidebarEntry(Group, gettext_lazy("Groups and roles"), "people"),
                ),
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
    cards: list[dict[str, Any]] = [
        {"title": card.title, "entries": _build_entries(card.entries, available, path)} for card in (*CARDS, *unused)
    ]
    entries = [entry for card in cards for entry in card["entries"]]
    if len(entries) == 1:
        visible["operate"] += entries
    elif entries:
        visible["further"].append(_build_admin([card for card in cards if card["entries"]], path))
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
    address, name = reverse(f"admin:{ADMIN}"), gettext_lazy("Admin")
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

    name, title, template = ADMIN, gettext_lazy("Admin"), "ops/site/administration.html"

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
