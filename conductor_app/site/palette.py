"""The command palette (Ctrl-K): finds pages, runs, definitions, and actions on runs and queues.

Each source takes the request and the search term and yields hits. `SOURCES` lists the sources in order. To make
something searchable, write a source and add it to the list.

The hit of an action opens the page with its form, which asks for confirmation. The palette offers an action only if
that page would offer it to the user.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from django.contrib.admin import AdminSite
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import Resolver404, URLPattern, path, resolve, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from ..access.authentication import current_actor
from ..access.permissions import EXECUTE, WORKFLOW_DEF
from ..access.visibility import allowed_to, may, shown_to, visible
from ..bulk.selections import shows_words
from ..core.failure_grouping import informative_line
from ..core.step_types.base import queue_name
from ..db.fields import LAST_ID_PART
from ..definitions.models import TaskDefinition, WorkflowDefinition
from ..failures.models import FailureGroup
from ..runs.models import Run
from ..runs.pages.actions import RUN_ACTIONS, available_actions
from ..runs.pages.start import PERMISSION as START_PERMISSION
from ..runs.queries.recent import annotate_key_inputs, run_key
from ..runs.search import RUNS
from ..runs.search.results import query_for_value
from ..taskcluster.pages.tasks import find_standalone_tasks
from ..tasks.models import Poller
from ..web.badges import STATUS_TONES, format_status
from ..web.pages import Page, PaletteHit, Source

VIEW_RUN, VIEW_ATTEMPT = "conductor.view_run", "conductor.view_attempt"
VIEW_FAILURE = "conductor.view_failuregroup"
VIEW_WORKFLOW, VIEW_TASK = "conductor.view_workflowdefinition", "conductor.view_taskdefinition"
MAX_RUNS, MAX_WORKFLOWS = 4, 6
START = gettext_noop("Start")
MAX_PER_SOURCE, MAX_HITS = 6, 30
COMMANDS = (
    (gettext_noop("New workflow"), "conductor_workflowdefinition_add", "conductor.add_workflowdefinition", "workflows"),
    (gettext_noop("New task definition"), "taskdefinition_form_new", "conductor.add_taskdefinition", "tasks"),
    (gettext_noop("New schedule"), "conductor_schedule_add", "conductor.add_schedule", "schedules"),
    (gettext_noop("New event handler"), "conductor_eventhandler_add", "conductor.change_event_handler", "events"),
    (gettext_noop("Approve a task"), "human_tasks", "conductor.change_run", "inbox"),
    (gettext_noop("Invite a person"), "invite", "auth.add_user", "people"),
    (gettext_noop("Dark theme"), "preferences#theme-dark", "", "moon"),
    (gettext_noop("Light theme"), "preferences#theme-light", "", "sun"),
)
"""The commands that need no object: name, page, permission and icon. A script switches the theme at once."""
RANKED_RUNS = 20
"""Number of the newest runs with a key that are ranked."""
STATUSES_FIRST = frozenset({"RUNNING", "PAUSED", "FAILED", "TIMED_OUT"})
"""A run with one of these statuses is shown before those that have ended as intended."""
MIN_ERROR_LENGTH = 3
"""The shortest text of an error that is searched, such as 503."""
MAX_SCANNED_REASONS = 2_000
"""Number of the newest runs with a reason that a search for an error text scans."""
MAX_SCANNED_KEYS = 2_000
"""Number of the newest runs whose keys are searched for a part."""
LAST_ID_SUFFIX = "z" * 8
MIN_VALUE_LENGTH = 2
QUEUE_ACTIONS = {gettext_noop("Pause"): "act-pause", gettext_noop("Resume"): "act-resume"}
"""Queue actions of the palette: the verb and the anchor of its form on the page of the queue."""


def find_actions_here(request: HttpRequest, term: str) -> Iterator[PaletteHit]:
    """Yield the actions on the run of the page on which the palette was opened, whose names contain the term."""
    run = _run_of_page(request.GET.get("on", "")) if may(request.user, VIEW_RUN) else None
    if run is None:
        return
    for action in available_actions(run.status, _has_permission_on(request, run))["actions"]:
        if term.lower() in str(action.button).lower() or term.lower() in f"{action.name} this run":
            yield _action_hit(str(action.button), run, action.name)


def find_actions_on_runs(request: HttpRequest, term: str) -> Iterator[PaletteHit]:
    """Yield an action on runs that the term names: `retry order-4711`, `pause 0192a3b4`."""
    verb, _blank, key = term.partition(" ")
    key = key.strip()
    action = next((each for each in RUN_ACTIONS.values() if verb.lower() in (each.name, str(each.label).lower())), None)
    if action is None or action.needs_attempt or len(key) < 4 or not may(request.user, VIEW_RUN):
        return
    for run in _runs_named(key):
        if action in available_actions(run.status, _has_permission_on(request, run))["actions"]:
            yield _action_hit(f"{action.label} {run_key(run).text}", run, action.name)


def find_starts(request: HttpRequest, term: str) -> Iterator[PaletteHit]:
    """Yield the start pages of the workflows whose names the term contains after the verb: `start checkout`."""
    verb, _blank, name = term.partition(" ")
    if verb.lower() not in (START.lower(), _(START).lower()) or not may(request.user, START_PERMISSION):
        return
    found = WorkflowDefinition.objects.filter(name__icontains=name.strip()).order_by("name", "-version")
    actor = current_actor()
    if actor is not None and not request.user.has_perm(START_PERMISSION):
        found = allowed_to(actor, visible(found), {(EXECUTE, WORKFLOW_DEF): "name"})
    newest: dict[str, int] = {}
    for pk, workflow in found.values_list("pk", "name")[: 10 * MAX_WORKFLOWS]:
        newest.setdefault(workflow, pk)
    for workflow, pk in list(newest.items())[:MAX_WORKFLOWS]:
        address = reverse("admin:start_run", args=[pk])
        yield PaletteHit(_("Action"), _("Start %(name)s") % {"name": workflow}, address, "do-resume")


def find_commands(request: HttpRequest, term: str) -> Iterator[PaletteHit]:
    """Yield the commands whose names contain all words of the term, as far as the user may use them."""
    for name, page, permission, icon in COMMANDS:
        is_found = all(word in f"{name} {_(name)}".lower() for word in term.lower().split())
        if is_found and (not permission or may(request.user, permission)):
            page, sign, fragment = page.partition("#")
            yield PaletteHit(_("Action"), _(name), reverse(f"admin:{page}") + sign + fragment, icon)


def _has_permission_on(request: HttpRequest, run: Run) -> Callable[[str], bool]:
    return lambda permission: may(request.user, permission, run)


def _run_of_page(path: str) -> Run | None:
    """Return the run whose page has this path."""
    try:
        found = resolve(path)
    except Resolver404:
        return None
    if found.view_name != "admin:conductor_run_change":
        return None
    return _keyed_runs().filter(pk=found.kwargs["object_id"]).first()


def _runs_named(key: str) -> list[Run]:
    """Return the newest runs with a correlation id, or those whose ids begin with the text."""
    correlated = _keyed_runs().filter(correlation_id=key).exclude(correlation_id="").order_by("-created_at")
    prefixed = _keyed_runs().filter(pk__gte=key, pk__lte=f"{key}{LAST_ID_PART}", pk__startswith=key).order_by("-pk")
    return _rank_runs(correlated)[:MAX_RUNS] or list(prefixed[:MAX_RUNS])


def _rank_runs(runs: QuerySet[Run]) -> list[Run]:
    """Return the newest of these runs: failed and open ones first, and those that no run has started before others."""
    return sorted(runs[:RANKED_RUNS], key=lambda run: (run.status not in STATUSES_FIRST, run.depth > 0))


def _keyed_runs() -> QuerySet[Run]:
    return annotate_key_inputs(visible(Run.objects.only("id", "name", "version", "status", "correlation_id", "depth")))


def _action_hit(name: str, run: Run, action: str) -> PaletteHit:
    address = f"{reverse('admin:conductor_run_change', args=[run.pk])}#act-{action}"
    note = f"{run.name} v{run.version} · {run_key(run).text}"
    return PaletteHit(_("Action"), name, address, f"do-{action}", note)


def find_pages(site: AdminSite, request: HttpRequest, term: str) -> Iterator[PaletteHit]:
    """Yield the pages of the sidebar whose name contains the term."""
    for entry in (entry for section in site.get_app_list(request) for entry in section["models"]):
        for page in entry["pages"]:
            name, of = str(page["name"]), str(entry["name"])
            if term.lower() in name.lower() and page.get("admin_url"):
                note, key = of if of != name else "", page.get("key", "")
                yield PaletteHit(_("Page"), name, page["admin_url"], page["icon"], note, True, key)


def find_statuses(request: HttpRequest, term: str) -> Iterator[PaletteHit]:
    """Yield lists of runs by status: `failed`, `paused runs`."""
    if not may(request.user, VIEW_RUN):
        return
    for status in ("RUNNING", "PAUSED", "FAILED", "TIMED_OUT", "TERMINATED", "COMPLETED"):
        label = _("%(status)s runs") % {"status": format_status(status)}
        if any(name.lower().startswith(term.lower()) for name in (label, status.replace("_", " "))):
            address = reverse("admin:conductor_run_changelist", query={"status": status})
            yield PaletteHit(_("List"), label, address, STATUS_TONES[status])


def find_runs(request: HttpRequest, term: str) -> Iterator[PaletteHit]:
    """Yield runs by the start of an id, or by a whole correlation id or idempotency key; otherwise by a part of one."""
    if len(term) < 4 or not may(request.user, VIEW_RUN):
        return
    conditions = [~Q(correlation_id="") & Q(correlation_id=term), Q(idempotency_key=term)]
    if could_be_id_prefix(term):
        conditions.insert(0, Q(id__gte=term, id__lte=term + LAST_ID_SUFFIX, id__startswith=term))
    matching = (_keyed_runs().filter(each).order_by("-created_at") for each in conditions)
    found = [run for runs in matching for run in _rank_runs(runs)[:MAX_PER_SOURCE]]
    newest = visible(Run.objects.all()).order_by("-created_at").values("pk")[:MAX_SCANNED_KEYS]
    parts = _keyed_runs().filter(shows_words(term), pk__in=newest).order_by("-created_at")
    for run in found or _rank_runs(parts)[:MAX_PER_SOURCE]:
        yield _run_hit(run, run_key(run).text if run.correlation_id or not found else run.pk)


def find_errors(request: HttpRequest, term: str) -> Iterator[PaletteHit]:
    """Yield runs whose reason contains the term, among the newest that have a reason."""
    if len(term) < MIN_ERROR_LENGTH or not may(request.user, VIEW_RUN):
        return
    newest = visible(Run.objects.exclude(reason="")).order_by("-created_at").values("pk")[:MAX_SCANNED_REASONS]
    found = Run.objects.filter(pk__in=newest, reason__icontains=term).order_by("-created_at")
    for run in found.only("id", "name", "version", "status", "correlation_id", "reason")[:MAX_PER_SOURCE]:
        reason = informative_line(run.reason, 100)
        yield _run_hit(run, f"{run_key(run).text} · {reason}" if run.correlation_id else reason)


def find_failures(request: HttpRequest, term: str) -> Iterator[PaletteHit]:
    """Yield the newest causes of failures whose message or last error contains the term."""
    if len(term) < MIN_ERROR_LENGTH or not may(request.user, VIEW_FAILURE):
        return
    newest = visible(FailureGroup.objects.not_merged()).order_by("-last_at").values("pk")[:MAX_SCANNED_REASONS]
    contains = Q(message__icontains=term) | Q(sample__icontains=term)
    for row in FailureGroup.objects.filter(contains, pk__in=newest).order_by("-last_at")[:MAX_PER_SOURCE]:
        address = reverse("admin:failure_group", args=[row.pk])
        yield PaletteHit(_("Failure"), row.definition, address, "failed", informative_line(row.title, 100))


def find_definitions(request: HttpRequest, term: str) -> Iterator[PaletteHit]:
    """Yield definitions of workflows and tasks whose name contains the term."""
    workflows = WorkflowDefinition.objects.filter(name__icontains=term).only("id", "name", "version")
    if may(request.user, VIEW_WORKFLOW):
        for row in shown_to(request.user, VIEW_WORKFLOW, workflows)[:MAX_PER_SOURCE]:
            address = reverse("admin:conductor_workflowdefinition_change", args=[row.pk])
            yield PaletteHit(_("Workflow"), row.name, address, "workflows", f"v{row.version}")
    tasks = TaskDefinition.objects.filter(name__icontains=term).only("id", "name")
    if may(request.user, VIEW_TASK):
        for task in shown_to(request.user, VIEW_TASK, tasks)[:MAX_PER_SOURCE]:
            address = reverse("admin:conductor_taskdefinition_change", args=[task.pk])
            yield PaletteHit(_("Task"), task.name, address, "tasks")


def find_queues(request: HttpRequest, term: str) -> Iterator[PaletteHit]:
    """Yield queues whose name contains the term. After `pause` or `resume`, yield the action on these queues."""
    if not may(request.user, VIEW_ATTEMPT):
        return
    verb, _blank, name = term.partition(" ")
    word = next((str(word) for word in QUEUE_ACTIONS if verb.lower() in (word.lower(), _(word).lower())), "")
    name = (name if word else term).removeprefix("queue ").strip()
    if not name or (word and not request.user.has_perm("conductor.change_run")):
        return
    polled = Poller.objects.filter(task_type__icontains=name).order_by("task_type", "domain")
    found = shown_to(request.user, VIEW_ATTEMPT, polled)
    for task_type, domain in found.values_list("task_type", "domain").distinct()[:MAX_PER_SOURCE]:
        queue = queue_name(task_type, domain)
        address = reverse("admin:queue", query={"name": queue})
        if word:
            yield PaletteHit(_("Action"), f"{_(word)}: {queue}", f"{address}#{QUEUE_ACTIONS[word]}", "queues")
        else:
            yield PaletteHit(_("Queue"), queue, address, "queues")


def find_values(request: HttpRequest, term: str) -> Iterator[PaletteHit]:
    """Yield the list of runs whose inputs contain the term, or that match it if it is a query."""
    if len(term) < MIN_VALUE_LENGTH or not may(request.user, VIEW_RUN):
        return
    is_query = RUNS.is_query(term)
    name = _("List runs where %(query)s") if is_query else _("Search inputs for “%(value)s”")
    address = reverse("admin:conductor_run_changelist", query={"q": term if is_query else query_for_value(term)})
    yield PaletteHit(_("Search"), name % {"query": term, "value": term}, address, "search")


SOURCES: list[Source] = [
    find_commands,
    find_actions_on_runs,
    find_starts,
    find_runs,
    find_standalone_tasks,
    find_queues,
    find_statuses,
    find_definitions,
    find_failures,
    find_errors,
]


class PalettePage(Page):
    """Search page for everything. With JavaScript it is a dialog over any page."""

    name, title, template = "search", gettext_lazy("Search"), "ops/site/search.html"

    def is_open_to(self, request: HttpRequest) -> bool:
        return request.user.is_staff

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        term = request.GET.get("q", "").strip().replace("\0", "")[:200]
        pages = partial(find_pages, self.site)
        sources: tuple[Source, ...] = (find_actions_here, pages, *SOURCES) if term else (find_actions_here, pages)
        hits = dict.fromkeys(hit for source in sources for hit in islice(source(request, term), 12))
        return {"term": term, "hits": [*list(hits)[:MAX_HITS], *find_values(request, term)]}

    def urls(self, site: AdminSite) -> list[URLPattern]:
        self.site = site

        def hits(request: HttpRequest) -> HttpResponse:
            return TemplateResponse(request, "ops/site/search_results.html", self.get_context(request))

        return [*super().urls(site), path("search/hits/", site.admin_view(hits), name="search_hits")]


def could_be_id_prefix(term: str) -> bool:
    """Return True if an id could start with the term."""
    return all(character in "0123456789abcdefABCDEF-" for character in term)


def _run_hit(run: Run, note: str) -> PaletteHit:
    address = reverse("admin:conductor_run_change", args=[run.pk])
    return PaletteHit(_("Run"), f"{run.name} v{run.version}", address, STATUS_TONES.get(run.status, "runs"), note)
