"""Links to pages: their addresses, keys of runs with a button that copies the id, and the query of a run's page."""

from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import urlencode

from django.forms.utils import flatatt
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from ..core.trace_context import span_id_of, trace_id_of
from ..runs.queries.recent import RunKey, short_id
from ..settings import conf
from .badges import render_icon
from .pages import PageQuery

LOG_PARAMETERS = ("find", "log", "line")
"""Parameters of the log of one attempt. Selecting another task or attempt removes them."""
RUN_PARAMETERS = (
    "tab",
    "task",
    "attempt",
    "status",
    "from",
    "to",
    "children",
    "open",
    "shut",
    "iteration",
    "expression",
)
ID_SEPARATOR = "~"
"""Stands between the ids in the parameters `open` and `shut`."""
MAX_TOGGLED = 60


def render_trace(traceparent: str | None, attempt_id: str = "") -> SafeString | str:
    """Return the id of a trace, as a link if TRACE_URL says where traces are shown; "" without a trace.

    The address may also have a place for the id of a span, that of the attempt or of the run's parent.
    """
    if not traceparent:
        return ""
    trace_id = trace_id_of(traceparent)
    if not conf.trace_url:
        return format_html("<code>{}</code>", trace_id)
    span_id = span_id_of(attempt_id) if attempt_id else ""
    address = conf.trace_url.replace("{trace_id}", trace_id).replace("{span_id}", span_id)
    return format_html('<a href="{}" rel="noreferrer">{}</a>', address, trace_id)


def render_copy_button(text: str) -> SafeString:
    """Return a button that copies an id to the clipboard."""
    attributes = flatatt({"data-copy": text, "title": _("Copy the id")})
    return format_html('<button type="button" class="copy"{}>{}</button>', attributes, render_icon("copy"))


def render_run_link(run_id: str, keys: Mapping[str, RunKey] | None, task: str = "") -> SafeString:
    """Return the key of a run as a link to its page, where `task` is selected, and a button that copies its id.

    A run without a known key is named by the end of its id.
    """
    key = (keys or {}).get(run_id) or RunKey(short_id(run_id))
    address = reverse("admin:conductor_run_change", args=[run_id])
    query = f"?{urlencode({'task': task})}" if task else ""
    title = f"{key.field}: {key.text}\n{run_id}" if key.field else run_id
    link = format_html('<a href="{}{}" title="{}">{}</a>', address, query, title, key.text)
    return format_html('<span class="run-key">{}{}</span>', link, render_copy_button(run_id))


def render_short_id(id: str) -> SafeString:
    """Return the end of an id, with a button that copies the whole id."""
    attributes: dict[str, Any] = {"class": "id", "title": id}
    short = format_html("<code{}>{}</code>", flatatt(attributes), short_id(id))
    return format_html('<span class="run-key">{}{}</span>', short, render_copy_button(id))


class RunPageQuery(PageQuery):
    """Query parameters of a run's page."""

    parameters: ClassVar[tuple[str, ...]] = RUN_PARAMETERS + LOG_PARAMETERS

    def address(self, **changed: str | int | None) -> str:
        """Return the address of the page with changed parameters. Another task or attempt drops those of the log."""
        removed = dict.fromkeys(LOG_PARAMETERS) if changed.keys() & {"task", "attempt"} else {}
        return super().address(**{**removed, **changed})

    def node_ids(self, name: str) -> list[str]:
        """Return the ids of nodes in the parameter `open` or `shut`."""
        return [id for id in self[name].split(ID_SEPARATOR) if id]

    def fold_address(self, id: str, is_open: bool, **changed: str | int | None) -> str:
        """Return the address that closes an open node of the tree, or opens a closed one."""
        ids = {name: [each for each in self.node_ids(name) if each != id] for name in ("open", "shut")}
        ids["shut" if is_open else "open"].append(id)
        joined = {name: ID_SEPARATOR.join(each[-MAX_TOGGLED:]) for name, each in ids.items()}
        return self.address(**joined, **changed)

    def fold_summary_address(self, id: str, is_open: bool, **changed: str | int | None) -> str:
        """Return the address that opens or closes a summary of similar nodes, which is closed unless it is opened."""
        if not is_open:
            return self.fold_address(id, is_open, **changed)
        opened = [each for each in self.node_ids("open") if each != id]
        return self.address(open=ID_SEPARATOR.join(opened), **changed)


def run_address(run_id: str) -> str:
    """Return the address of a run's page."""
    return reverse("admin:conductor_run_change", args=[run_id])


def event_address(event_id: int) -> str:
    """Return the address of an event's page."""
    return reverse("admin:event", args=[event_id])


def failure_group_address(group_id: int) -> str:
    return reverse("admin:failure_group", args=[group_id])


def queue_address(name: str) -> str:
    """Return the address of the page of a queue."""
    return reverse("admin:queue", query={"name": name})


def worker_address(name: str) -> str:
    """Return the address of the page of a worker."""
    return reverse("admin:worker", query={"name": name})


def standalone_task_address(task_id: str) -> str:
    return reverse("admin:conductor_standalonetask_change", args=[task_id])


def task_group_address(group_id: str) -> str:
    return reverse("admin:conductor_taskgroup_change", args=[group_id])


def plan_address(run_id: str, **query: str) -> str:
    """Return the address of the plan for a run."""
    return reverse("admin:plan", args=[run_id], query=query or None)
