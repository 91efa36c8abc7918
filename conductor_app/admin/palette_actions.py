"""Actions of the command palette: on the run of the current page, on runs by their keys, and starts of workflows.

A hit opens the page of the run or of the workflow with the form of the action, which asks for confirmation. The
palette offers an action only if that page would offer it to the user.
"""

from collections.abc import Iterator

from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import Resolver404, resolve, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from ..insight.bulk.selections import LAST
from ..insight.runs.run_keys import annotate_key_inputs, run_key
from ..models import Run, WorkflowDefinition
from .definitions.start_page import PERMISSION as START_PERMISSION
from .palette_hits import PaletteHit
from .runs.run_actions import RUN_ACTIONS, available_actions

MAX_RUNS, MAX_WORKFLOWS = 4, 6
START = gettext_noop("Start")


def find_actions_here(request: HttpRequest, term: str) -> Iterator[PaletteHit]:
    """Yield the actions on the run of the page on which the palette was opened, whose names contain the term."""
    run = _run_of_page(request.GET.get("on", ""))
    if run is None or not request.user.has_perm("conductor.view_run"):
        return
    for action in available_actions(run.status, request.user.has_perm)["actions"]:
        if term.lower() in str(action.button).lower() or term.lower() in f"{action.name} this run":
            yield _action_hit(str(action.button), run, action.name)


def find_actions_on_runs(request: HttpRequest, term: str) -> Iterator[PaletteHit]:
    """Yield an action on runs that the term names: `retry order-4711`, `pause 0192a3b4`."""
    verb, _blank, key = term.partition(" ")
    key = key.strip()
    action = next((each for each in RUN_ACTIONS.values() if verb.lower() in (each.name, str(each.label).lower())), None)
    if action is None or action.needs_attempt or len(key) < 4 or not request.user.has_perm("conductor.view_run"):
        return
    for run in _runs_named(key):
        if action in available_actions(run.status, request.user.has_perm)["actions"]:
            yield _action_hit(f"{action.label} {run_key(run).text}", run, action.name)


def find_starts(request: HttpRequest, term: str) -> Iterator[PaletteHit]:
    """Yield the start pages of the workflows whose names the term contains after the verb: `start checkout`."""
    verb, _blank, name = term.partition(" ")
    if verb.lower() not in (START.lower(), _(START).lower()) or not request.user.has_perm(START_PERMISSION):
        return
    found = WorkflowDefinition.objects.filter(name__icontains=name.strip()).order_by("name", "-version")
    newest: dict[str, int] = {}
    for pk, workflow in found.values_list("pk", "name")[: 10 * MAX_WORKFLOWS]:
        newest.setdefault(workflow, pk)
    for workflow, pk in list(newest.items())[:MAX_WORKFLOWS]:
        address = reverse("admin:start_run", args=[pk])
        yield PaletteHit(_("Action"), _("Start %(name)s") % {"name": workflow}, address, "do-resume")


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
    prefixed = _keyed_runs().filter(pk__gte=key, pk__lte=f"{key}{LAST}", pk__startswith=key).order_by("-pk")
    return list(correlated[:MAX_RUNS]) or list(prefixed[:MAX_RUNS])


def _keyed_runs() -> QuerySet[Run]:
    return annotate_key_inputs(Run.objects.only("id", "name", "version", "status", "correlation_id"))


def _action_hit(name: str, run: Run, action: str) -> PaletteHit:
    address = f"{reverse('admin:conductor_run_change', args=[run.pk])}#act-{action}"
    note = f"{run.name} v{run.version} · {run_key(run).text}"
    return PaletteHit(_("Action"), name, address, f"do-{action}", note)
