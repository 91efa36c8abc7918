"""The tabs of a run's page: a table of names, labels, templates and contexts."""

from collections.abc import Callable
from typing import Any

from django.urls import get_script_prefix
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.signed_links import file_address
from ...insight.definitions.diagram import (
    Diagram,
    DiagramFolding,
    IterationChoice,
    iteration_filters,
    marks_of_run,
    marks_of_tree,
    parse_choice,
)
from ...insight.payloads.files import files_of
from ...insight.runs.history_replay import RunAtRevision
from ...insight.runs.time_scale import TimeScale
from ...insight.runs.timeline import task_rows
from ...insight.runs.tree_loading import load_tree
from ...insight.runs.tree_rows import Folding
from ...insight.tasks.task_list import TaskRequest, TaskWindow, page_of, task_window
from ...models import AuditEntry, FileHandle, ResolvedDefinition
from ...models.files import UPLOADED
from ..badges import format_size, relative_time, render_badge
from ..documents import payload_documents
from ..json_tree import render_tree
from ..page_tabs import PageTab
from ..pictures import draw_definition
from .breakpoint_forms import DEBUG_PERMISSION
from .revision_slider import revision_slider
from .run_debugger import debugger_tab
from .run_history import run_events
from .run_timeline import requested_past, timeline_tab
from .run_view_model import DOCUMENTS, NO_TASK, RunViewModel

MAX_AUDIT_ENTRIES = 100


def diagram_tab(view_model: RunViewModel) -> dict[str, Any]:
    """Return the diagram of the version that ran, with the status of each step in the chosen iterations.

    It shows the same revision as the timeline, and collapses what is collapsed there.
    """
    plan = ResolvedDefinition.objects.filter(pk=view_model.run.resolved_definition_id).first()
    past = requested_past(view_model)
    return {
        "picture": _draw_run(view_model, plan.document, past) if plan else None,
        "name": f"{view_model.run.name} v{view_model.run.version}",
        **revision_slider(view_model, past),
    }


def _draw_run(view_model: RunViewModel, document: dict[str, Any], past: RunAtRevision | None) -> Diagram:
    query = view_model.query
    choice = IterationChoice(
        parse_choice(query["iteration"]), lambda iteration: query.address(iteration=iteration or None)
    )
    filters = iteration_filters(document, choice.chosen)
    if past is None:
        marks = marks_of_run(view_model.run, filters)
    else:
        marks = marks_of_tree(load_tree(view_model.run, Folding(), view_model.now, past).root, filters)
    folding = DiagramFolding(frozenset(query.node_ids("shut")), query.fold_address)
    ref = view_model.task.ref if view_model.task else ""
    picture = draw_definition(
        document, marks, chosen=ref, link=_step_address(view_model), iterations=choice, folding=folding
    )
    for node in picture.nodes:
        node.selects = True
        if node.mark and node.mark.iteration_path:
            node.href = query.address(task=f"{node.ref}__{node.mark.iteration_path.replace('.', '__')}", attempt=None)
    return picture


def _step_address(view_model: RunViewModel) -> Callable[[str, str], str]:
    return lambda ref, path: view_model.query.address(task=ref, attempt=None)


def tasks_tab(view_model: RunViewModel) -> dict[str, Any]:
    """Return all tasks as a table. Similar tasks of a large run are grouped."""
    window = task_window(view_model.run, requested_tasks(view_model))
    scale = TimeScale(view_model.run.created_at, view_model.now)
    rows = task_rows(window.tasks, window.attempts, scale, view_model.now, view_model.usual)
    return {
        "window": window,
        "rows": [_task_row(row, view_model) for row in rows],
        "groups": [_group_row(group, view_model) for group in window.groups],
        **_task_filters(window, view_model),
    }


def requested_tasks(view_model: RunViewModel) -> TaskRequest:
    """Return which tasks the address requests. The window contains the selected task."""
    query = view_model.query
    page = query.number("page")
    if page is None:
        page = page_of(view_model.run, view_model.chosen) if query["only"] and view_model.chosen else 1
    return TaskRequest(query["status"], query["only"], max(page, 1))


def _task_filters(window: TaskWindow, view_model: RunViewModel) -> dict[str, Any]:
    """Return the status filters, and links to other windows."""
    query, counts = view_model.query, window.counts
    every = [("", sum(counts.values())), *sorted(counts.items())]
    return {
        "chips": [
            {
                "label": _("All"),
                "badge": render_badge(status) if status else None,
                "count": count,
                "address": query.address(status=status, page=None, task=NO_TASK),
                "is_chosen": status == window.criteria.status,
            }
            for status, count in every
        ],
        "only": window.criteria.only,
        "only_address": query.address(only=None, page=None),
        "earlier": query.address(page=window.previous) if window.previous else "",
        "later": query.address(page=window.next) if window.next else "",
        "unfiltered_address": query.address(status=None, only=None, page=None),
    }


def _task_row(row: Any, view_model: RunViewModel) -> dict[str, Any]:
    last = row.last
    return {
        "task": row.task,
        "last": last,
        "badge": render_badge(row.task.status),
        "tries": len(row.attempts),
        "address": view_model.query.address(task=str(row.task), attempt=None),
        "is_chosen": view_model.task is not None and row.task.pk == view_model.task.pk,
    }


def _group_row(group: Any, view_model: RunViewModel) -> dict[str, Any]:
    by_status = [
        (render_badge(status), count, view_model.query.address(only=group.name, status=status, page=None))
        for status, count in sorted(group.counts.items())
    ]
    return {"group": group, "address": view_model.query.address(only=group.name, page=None), "by_status": by_status}


def data_tab(view_model: RunViewModel) -> dict[str, Any]:
    """Return input, output and variables, and their files."""
    return {
        "documents": payload_documents(view_model.run, DOCUMENTS),
        "files": [_file_row(row) for row in files_of(view_model.run.pk)],
    }


def _file_row(row: FileHandle) -> dict[str, Any]:
    # The address carries its own permission. It expires after the longest time that a page stays open.
    address = file_address(row.run_id, row.pk, "GET")[0] if row.status == UPLOADED else ""
    shown = "–" if row.size is None else format_size(row.size)
    return {"file": row, "address": address, "size": shown, "at": relative_time(row.created_at)}


def audit_tab(view_model: RunViewModel) -> dict[str, Any]:
    """Return the actions of users and clients on the run."""
    entries = AuditEntry.objects.filter(object_type="run", object_id=view_model.run.pk).order_by("-at", "-id")
    return {
        "entries": [
            {"entry": entry, "at": relative_time(entry.at), "facts": format_audit_facts(entry.facts)}
            for entry in entries[:MAX_AUDIT_ENTRIES]
        ]
    }


def format_audit_facts(facts: Any) -> str:
    """Return the facts of an audit entry, without its reason, on one line."""
    return ", ".join(f"{name}: {value}" for name, value in facts.items()) if isinstance(facts, dict) else ""


def raw_tab(view_model: RunViewModel) -> dict[str, Any]:
    """Return the stored row, and the address of the API's view."""
    run = view_model.run
    fields = [field for field in run._meta.concrete_fields if field.attname not in DOCUMENTS]
    facts = {field.attname: getattr(run, field.attname) for field in fields if field.attname != "domains"}
    tree = render_tree({name: value for name, value in facts.items() if value not in ("", None, [], {})})
    return {"tree": tree, "script_prefix": get_script_prefix()}


TABS: dict[str, PageTab[RunViewModel]] = {
    tab.name: tab
    for tab in (
        PageTab("timeline", gettext_lazy("Timeline"), "ops/run/timeline.html", timeline_tab),
        PageTab("diagram", gettext_lazy("Diagram"), "ops/run/diagram.html", diagram_tab),
        PageTab("tasks", gettext_lazy("Tasks"), "ops/run/tasks.html", tasks_tab),
        PageTab("data", gettext_lazy("Data"), "ops/run/data.html", data_tab),
        PageTab("events", gettext_lazy("Events"), "ops/run/events.html", run_events),
        PageTab("audit", gettext_lazy("Audit log"), "ops/run/audit.html", audit_tab, "conductor.view_auditentry"),
        PageTab("debugger", gettext_lazy("Debugger"), "ops/run/debugger.html", debugger_tab, DEBUG_PERMISSION),
        PageTab("raw", gettext_lazy("Raw"), "ops/run/raw.html", raw_tab),
    )
}
