"""The tree of a run with its rows: reads the tasks, those of open sub-workflows, or the tasks as of a revision."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.step_structure import DEFAULT_TYPE, STEP_STRUCTURES
from ...core.step_types.sub_workflow import SubWorkflow
from ...models import Attempt, Run
from ..definitions.parsed_definitions import parsed_definition
from .history_replay import RunAtRevision
from .run_tree import TreeNode, build_tree
from .task_spans import MAX_SPANS, TaskSpan, spans_of_run, spans_of_runs
from .tree_rows import Folding, TreeRow, has_child_run, visible_rows

MAX_CHILD_RUNS = 10
"""Sub-workflows that are expanded at the same time."""
MAX_CHILD_SPANS = 2_000
MAX_LEVELS = 2
"""Levels of sub-workflows that are expanded in place. Each takes two queries."""
CHILD_SEPARATOR = ">"
"""Stands between the id of a SUB_WORKFLOW's node and the ids of the nodes of its run."""


@dataclass(slots=True)
class LoadedTree:
    """The tree of a run and its visible rows. `spans`: its tasks. `is_cut`: earlier tasks are missing.

    `child_spans`: the tasks of expanded sub-workflows by the id of their node. `past`: the run at a revision, if the
    tree shows it.
    """

    root: TreeNode
    spans: list[TaskSpan]
    rows: list[TreeRow] = field(default_factory=list)
    is_cut: bool = False
    child_spans: dict[str, list[TaskSpan]] = field(default_factory=dict)
    past: RunAtRevision | None = None


def load_tree(run: Run, folding: Folding, now: int, past: RunAtRevision | None = None) -> LoadedTree:
    """Return the tree of a run, now or as of a revision.

    Runs one query, and two more for each level of open sub-workflows. A run with more than MAX_SPANS tasks has the
    newest ones only.
    """
    spans = spans_of_run(run.pk, now)
    is_cut = len(spans) > MAX_SPANS
    shown = spans_at_revision(past, spans) if past else spans[-MAX_SPANS:]
    loaded = LoadedTree(build_tree(shown, _steps_of(run.resolved_definition_id), run.pk), shown, is_cut=is_cut)
    loaded.past = past
    loaded.rows = visible_rows(loaded.root, folding)
    for _level in range(MAX_LEVELS if past is None else 0):
        if not _expand_children(loaded, now):
            break
        loaded.rows = visible_rows(loaded.root, folding)
    return loaded


def is_held_type(type: str) -> bool:
    """Return True if no worker executes tasks of this type: they wait, or the engine completes them at once."""
    structure = STEP_STRUCTURES.get(type)
    return structure is not None and type != DEFAULT_TYPE and not structure.is_built_in


def is_busy(span: TaskSpan) -> bool:
    """Return True if a worker, a queue or a sub-workflow has the task, so that its time is not idle."""
    return span.type == SubWorkflow.type or not is_held_type(span.type)


def spans_at_revision(past: RunAtRevision, present: list[TaskSpan]) -> list[TaskSpan]:
    """Return the tasks as of a revision. What the history does not record is that of the present task of this name."""
    known = {span.key: span for span in present}
    found = []
    for seq, task in enumerate(past.tasks, 1):
        span = known.get(task.key) or _span_of_name(task.key, task.type)
        end = past.at if task.end is None else task.end
        found.append(replace(span, seq=seq, begin=task.begin, end=end, status=task.status))
    return found


def _span_of_name(key: str, type: str) -> TaskSpan:
    """Return a span for the name of a task: `pay__2__1` is `pay` in iteration 1 of iteration 2."""
    parts = key.split("__")
    count = len(parts)
    while count > 1 and parts[count - 1].isdecimal():
        count -= 1
    ref = "__".join(parts[:count])
    return TaskSpan(key, ref, 0, 0, 0, type, tuple(parts[count:]), name=ref)


def _steps_of(hash: str) -> list[Mapping[str, Any]]:
    definition = parsed_definition(hash)
    return list(definition.document.get("tasks") or ()) if definition else []


def _expand_children(loaded: LoadedTree, now: int) -> bool:
    """Add the tasks of sub-workflows that are open and not loaded yet. Return True if there are any."""
    nodes = [row.node for row in loaded.rows if row.is_open and not row.is_summary and _is_unloaded(row.node, loaded)]
    by_attempt = {node.span.attempt_id: node for node in nodes[:MAX_CHILD_RUNS] if node.span}
    if not by_attempt:
        return False
    started = Attempt.objects.filter(pk__in=by_attempt).exclude(child_id="").values("child_id")
    runs = Run.objects.filter(pk__in=started).values_list("pk", "parent_attempt_id", "resolved_definition_id")
    children = [row for row in runs if row[1] in by_attempt]
    spans = spans_of_runs([run_id for run_id, *_ in children], now, MAX_CHILD_SPANS)
    for node in by_attempt.values():
        loaded.child_spans[node.id] = []
    for run_id, attempt_id, hash in children:
        node = by_attempt[attempt_id]
        loaded.child_spans[node.id] = spans.get(run_id, [])
        node.children = build_tree(loaded.child_spans[node.id], _steps_of(hash), run_id).children
        _prefix_ids(node.children, f"{node.id}{CHILD_SEPARATOR}")
    return True


def _is_unloaded(node: TreeNode, loaded: LoadedTree) -> bool:
    return has_child_run(node) and node.id not in loaded.child_spans


def _prefix_ids(nodes: list[TreeNode], prefix: str) -> None:
    for node in nodes:
        node.id = f"{prefix}{node.id}"
        _prefix_ids(node.children, prefix)
