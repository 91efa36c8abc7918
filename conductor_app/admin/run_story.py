"""What the page of a run tells: what is it, how is it, what happened, what is inside."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils.safestring import SafeString

from .. import clock
from ..core.states import RUN
from ..insight.cause import cause
from ..insight.spans import span
from ..insight.tasks import TaskWindow, task_window
from ..insight.timeline import Row, Scale, rows, scale_of
from ..models import HistoryEntry, Run, Task, WorkflowDefinition
from .attempt_panel import Panel, panel
from .documents import documents
from .effects import in_words
from .marks import ago, badge, exact, group_of, icon, marked

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
    scale = scale_of(run, now)
    return {
        "run": run,
        "is_open": run.status in RUN.open,
        "badge": badge(run.status),
        "group": group_of(run.status),
        "icon": icon(group_of(run.status)),
        "cause": why,
        "cause_sentence": marked(why.sentence),
        "facts": _facts(run, now),
        "window": window,
        "chips": _chips(window),
        "ticks": scale.ticks(),
        "lines": _lines(run, window, scale, chosen, asked.get("attempt", ""), now),
        "chosen": chosen,
        "documents": documents(run, ("input", "output", "variables")),
        "history": _history(run),
        "most_history": MOST_HISTORY,
        "relatives": _relatives(run),
        "read_at": now,
    }


def _window(run: Run, asked: Mapping[str, str], chosen: str) -> TaskWindow:
    status, page = asked.get("status", ""), asked.get("page", "")
    if page.isdecimal() or not chosen:
        return task_window(run, status, int(page[:6]) if page.isdecimal() else 1)
    return task_window(run, status, around=_seq(run, chosen))


def _seq(run: Run, chosen: str) -> int:
    """The place of the chosen task. A reference may hold two underscores of its own, so the whole name comes first."""
    ref, _, turn = chosen.partition("__")
    tasks = Task.objects.filter(run_id=run.pk, ref__in=[chosen, ref], turn__in=["", turn.replace("__", ".")])
    return next((task.seq for task in tasks.only("ref", "turn", "seq") if str(task) == chosen), 0)


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


def _lines(run: Run, window: TaskWindow, scale: Scale, chosen: str, number: str, now: int) -> list[Line]:
    return [_line(run, row, chosen, number, now) for row in rows(window.tasks, window.attempts, scale, now)]


def _line(run: Run, row: Row, chosen: str, number: str, now: int) -> Line:
    last = row.last
    waiting = row.task.status == "ACTIVE" and last is not None and last.status == "PENDING"
    shown = last.status if waiting else row.task.status
    worked = sum((a.ended_at or now) - a.started_at for a in row.attempts if a.started_at is not None)
    waited = sum((a.started_at or a.ended_at or now) - a.scheduled_at for a in row.attempts)
    opened = panel(run, row, number, now) if str(row.task) == chosen else None
    return Line(row, badge(shown), span(worked) if worked or not waiting else "", span(waited), opened)


def _history(run: Run) -> list[dict[str, Any]]:
    entries = HistoryEntry.objects.filter(run_id=run.pk).order_by("-revision")[:MOST_HISTORY]
    return [
        {"entry": entry, "at": ago(entry.at), "exact": exact(entry.at), "effects": in_words(entry.effects)}
        for entry in entries
    ]


def _relatives(run: Run) -> dict[str, Any]:
    """The run above, the runs below, and the definition as it stands now."""
    ids = Run.objects.filter(pk=run.parent_id) if run.parent_id else Run.objects.none()
    definition = WorkflowDefinition.objects.filter(name=run.name, version=run.version).only("pk", "name", "version")
    return {
        "parent": _brief(ids).first(),
        "children": [
            {"run": child, "badge": badge(child.status)}
            for child in _brief(Run.objects.exclude(parent_id="").filter(parent_id=run.pk))[:MOST_CHILDREN]
        ],
        "definition": definition.first(),
    }


def _brief(runs: QuerySet[Run]) -> QuerySet[Run]:
    return runs.only("id", "name", "version", "status", "created_at").order_by("created_at")
