"""What the page of a run tells: what is it, how is it, what happened, what is inside."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import OuterRef, Q, Subquery
from django.utils.safestring import SafeString

from .. import clock
from ..core.states import RUN
from ..insight.cause import cause
from ..insight.spans import span
from ..insight.tasks import TaskWindow, task_window, window_of
from ..insight.timeline import Row, rows, scale_of
from ..models import HistoryEntry, Run, WorkflowDefinition
from .attempt_panel import Known, Panel, panel
from .documents import documents, with_documents
from .effects import in_words
from .marks import WAITING, ago, badge, exact, group_of, icon, marked

DOCUMENTS = ("input", "output", "variables")
MOST_HISTORY = 100
MOST_CHILDREN = 50


@dataclass(frozen=True, slots=True)
class Line:
    """One task in the table: its row of the timeline, how it is shown, and whether it is open."""

    row: Row
    badge: SafeString
    took: str
    waited: str
    panel: Panel | None

    @property
    def key(self) -> str:
        return str(self.row.task)


def story(run: Run, asked: Mapping[str, str]) -> dict[str, Any]:
    """Everything that the templates show, for what the address asks for."""
    now = clock.now()
    why = cause(run, now)
    chosen = asked.get("task") or (why.task if run.status in ("FAILED", "TIMED_OUT") else "")
    window = _window(run, asked, chosen)
    tone = WAITING if why.is_waiting else group_of(run.status)
    scale, known = scale_of(run, now), {why.attempt_id: why.verdicts}
    drawn = rows(window.tasks, window.attempts, scale, now)
    return {
        "run": run,
        "is_open": run.status in RUN.open,
        "badge": badge(run.status),
        "tone": tone,
        "icon": icon(tone),
        "cause": why,
        "cause_sentence": marked(why.sentence),
        "facts": _facts(run, now),
        "window": window,
        "chips": _chips(window),
        "ticks": scale.ticks(),
        "lines": [_line(row, chosen, asked.get("attempt", ""), known, now) for row in drawn],
        "chosen": chosen,
        "documents": documents(run, DOCUMENTS),
        "history": _history(run),
        "most_history": MOST_HISTORY,
        "relatives": _relatives(run),
        "read_at": now,
    }


def _window(run: Run, asked: Mapping[str, str], chosen: str) -> TaskWindow:
    status, page = asked.get("status", ""), asked.get("page", "")
    if page.isdecimal():
        return task_window(run, status, max(int(page[:6]), 1))
    return window_of(run, chosen, status) if chosen else task_window(run, status)


def _facts(run: Run, now: int) -> list[tuple[str, Any]]:
    end = now if run.ended_at is None else run.ended_at
    started = ago(run.created_at, now)
    facts = [
        ("Duration", span(end - run.created_at)),
        ("Started", started),
        ("Ended", ago(run.ended_at, now) if run.ended_at else ""),
        ("Started by", run.started_by),
        ("Correlation id", run.correlation_id),
        ("Priority", run.priority or ""),
        ("Event", run.event),
        ("Idempotency key", run.idempotency_key),
        ("Revision", run.revision),
    ]
    return [(name, value) for name, value in facts if value not in ("", None)]


def _chips(window: TaskWindow) -> list[dict[str, Any]]:
    """One filter for each status that occurs, with how many tasks are in it."""
    every = {"status": "", "label": "All", "count": sum(window.counts.values()), "badge": None}
    chips = [
        {"status": status, "label": status, "count": count, "badge": badge(status)}
        for status, count in sorted(window.counts.items())
    ]
    return [{**chip, "is_chosen": chip["status"] == window.status} for chip in (every, *chips)]


def _line(row: Row, chosen: str, number: str, known: Known, now: int) -> Line:
    last = row.last
    waiting = row.task.status == "ACTIVE" and last is not None and last.status == "PENDING"
    shown = last.status if waiting else row.task.status
    worked = sum((a.ended_at or now) - a.started_at for a in row.attempts if a.started_at is not None)
    waited = sum((a.started_at or a.ended_at or now) - a.scheduled_at for a in row.attempts)
    opened = panel(row, number, known, now) if str(row.task) == chosen else None
    return Line(row, badge(shown), span(worked) if worked or not waiting else "", span(waited), opened)


def _history(run: Run) -> list[dict[str, Any]]:
    entries = HistoryEntry.objects.filter(run_id=run.pk).order_by("-revision")[:MOST_HISTORY]
    return [
        {"entry": entry, "at": ago(entry.at), "exact": exact(entry.at), "effects": in_words(entry.effects)}
        for entry in entries
    ]


def _relatives(run: Run) -> dict[str, Any]:
    """The run above and the runs below, read together."""
    above, below = Q(pk=run.parent_id), Q(parent_id=run.pk) & ~Q(parent_id="")
    found = Run.objects.filter(above | below if run.parent_id else below)
    runs = found.only("id", "name", "version", "status", "created_at").order_by("created_at")[: MOST_CHILDREN + 1]
    return {
        "parent": next((relative for relative in runs if relative.pk == run.parent_id), None),
        "children": [{"run": child, "badge": badge(child.status)} for child in runs if child.pk != run.parent_id],
    }


def readable(run_id: str) -> Run | None:
    """The run with all that its page shows of it, and where its definition is."""
    definitions = WorkflowDefinition.objects.filter(name=OuterRef("name"), version=OuterRef("version"))
    runs = Run.objects.light().annotate(definition_pk=Subquery(definitions.values("pk")[:1]))
    return with_documents(runs, DOCUMENTS).filter(pk=run_id).first()
