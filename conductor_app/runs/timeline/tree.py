"""Tree of a run: loop → iteration → branch → task, built from its tasks and the structure of its definition.

The timeline and the other views of a run show the same tree. Similar siblings are folded into summaries.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import Any

from django.db.models import OuterRef, Subquery

from ...access.visibility import visible
from ...core.definition import DEFAULT_TYPE, STEP_STRUCTURES, Flow, bodies_of, structure_of_step, types_where
from ...core.document.reading import item_reference
from ...core.states import TASK
from ...core.step_types.sub_workflows import SubWorkflow
from ...core.step_types.waiting import Human, PullWorkflowMessages, Wait, WaitForWebhook, Yield
from ...definitions.store import parsed_definition
from ..models import Attempt, Run, Task

CONTAINER_STEP_TYPES = types_where("waits_for_tasks") | types_where("forks")
"""Step types that only wait for other tasks of the same run. Those other tasks explain the wait better."""

WAITING_STEP_TYPES = frozenset((Human.type, PullWorkflowMessages.type, Wait.type, WaitForWebhook.type, Yield.type))
"""Step types that wait for people, times or events."""
LONG_STEP_TYPES = WAITING_STEP_TYPES | types_where("waits_for_tasks") | {SubWorkflow.type}
"""Step types without a worker that take time. The engine completes the others at once."""


@dataclass(frozen=True, slots=True)
class EnclosingBody:
    """One body around a step.

    `ref`: the step with the body. `loops`: number of loops around that step. `number`: index of the body. `size`:
    number of steps in the body. `has_items`: the engine adds a task for each iteration.
    """

    ref: str
    loops: int
    number: int
    flow: Flow
    label: str = ""
    size: int = 0
    has_items: bool = False


def enclosing_bodies(
    tasks: Sequence[Mapping[str, Any]], above: tuple[EnclosingBody, ...] = (), loops: int = 0
) -> dict[str, tuple[EnclosingBody, ...]]:
    """Return the bodies around each step, outermost first, by reference."""
    found: dict[str, tuple[EnclosingBody, ...]] = {}
    for task in tasks:
        ref, structure = str(task.get("taskReferenceName")), structure_of_step(task)
        found[ref] = above
        deeper = loops + structure.iterates + bool(structure.item_type)
        for number, body in enumerate(bodies_of(task)):
            label, has_items = body.label or body.name, bool(structure.item_type)
            place = EnclosingBody(ref, loops, number, structure.flow, label, len(body.steps), has_items)
            found |= enclosing_bodies(body.steps, (*above, place), deeper)
    return found


def forks_by_join(tasks: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, int]]:
    """Return the dynamic fork before each join and the number of loops around it, by the reference of the join."""
    found: dict[str, tuple[str, int]] = {}
    _find_forks(tasks, 0, found)
    return found


def _find_forks(tasks: Sequence[Mapping[str, Any]], loops: int, found: dict[str, tuple[str, int]]) -> None:
    fork = ""
    for task in tasks:
        ref, structure = str(task.get("taskReferenceName")), structure_of_step(task)
        if fork:
            found[ref] = (fork, loops)
        fork = ref if structure.flow is Flow.DYNAMIC_FORK else ""
        for body in bodies_of(task):
            _find_forks(body.steps, loops + structure.iterates + bool(structure.item_type), found)


MAX_SPANS = 10_000
"""Tasks of a run that are read, newest first."""
COLUMNS = ("pk", "attempt_id", "ref", "iteration_path", "created_at", "seq", "type", "branch_head", "status", "name")


@dataclass(frozen=True, slots=True)
class TaskSpan:
    """One task as a time span.

    `branch_head`: the head of its branch, if the task belongs to a dynamic fork. `joined_by`: the join after the branch
    that ends with it. `attempt_id`: its newest attempt.
    """

    key: str
    ref: str
    begin: int
    end: int
    seq: int
    type: str = DEFAULT_TYPE
    iteration_path: tuple[str, ...] = ()
    branch_head: str = ""
    status: str = "COMPLETED"
    name: str = ""
    task_id: str = ""
    attempt_id: str = ""
    joined_by: str = ""

    @property
    def is_open(self) -> bool:
        return self.status in TASK.open


def spans_of_run(run_id: str, now: int) -> list[TaskSpan]:
    """Return the tasks of a run in the order of their creation; one more than MAX_SPANS if there are more.

    A span ends with the newest attempt of its task; that of an open task ends now.
    """
    return spans_of_runs([run_id], now).get(run_id, [])


def spans_of_runs(run_ids: list[str], now: int, most: int = MAX_SPANS) -> dict[str, list[TaskSpan]]:
    """Return the newest tasks of some runs by run id, `most` tasks in all and one more if there are more."""
    ended = Attempt.objects.filter(pk=OuterRef("attempt_id")).values("ended_at")[:1]
    rows = Task.objects.filter(run_id__in=run_ids).annotate(end=Subquery(ended)).order_by("-seq")
    found: dict[str, list[TaskSpan]] = {}
    for run_id, *facts in rows.values_list("run_id", *COLUMNS, "joined_by", "end")[: most + 1]:
        found.setdefault(run_id, []).append(_task_span(facts, now))
    return {run_id: spans[::-1] for run_id, spans in found.items()}


def _task_span(facts: list, now: int) -> TaskSpan:
    task_id, attempt_id, ref, path, begin, seq, type, head, status, name, joined_by, end = facts
    iteration_path = tuple(path.split(".")) if path else ()
    key = "__".join((ref, *iteration_path))
    ended_at = (now if status in TASK.open else begin) if end is None else end
    return TaskSpan(
        key,
        ref,
        begin,
        max(ended_at, begin),
        seq,
        type,
        iteration_path,
        head,
        status,
        name,
        task_id,
        attempt_id,
        joined_by,
    )


FAILED_STATUSES = frozenset(("FAILED", "TIMED_OUT"))
FAILED, ACTIVE, CANCELED, SKIPPED, COMPLETED = "FAILED", "ACTIVE", "CANCELED", "SKIPPED", "COMPLETED"


class NodeKind(StrEnum):
    ROOT = "root"
    STEP = "step"
    """A task, or a step with tasks inside whose own task is not stored."""
    ITERATION = "iteration"
    BRANCH = "branch"
    PHASE = "phase"


@dataclass(slots=True, eq=False)
class TreeNode:
    """One node. `id`: unique in the tree; that of a task is its name. `label`: number of an iteration, name of a phase.

    `span`: its task, if it has one. `run_id`: the run of the task, which differs below an expanded sub-workflow.
    `state`, `has_failures`, `begin`, `end`, `task_count`: of the node and everything below it.
    """

    id: str
    kind: NodeKind
    label: str
    span: TaskSpan | None = None
    flow: Flow | None = None
    children: list["TreeNode"] = field(default_factory=list)
    run_id: str = ""
    state: str = COMPLETED
    has_failures: bool = False
    begin: int = 0
    end: int = 0
    task_count: int = 0

    @property
    def is_alike(self) -> bool:
        """Return True if its children are alike: iterations or branches."""
        return self.flow in (Flow.LOOP, Flow.FORK, Flow.DYNAMIC_FORK)

    def walk(self) -> Iterator["TreeNode"]:
        yield self
        for child in self.children:
            yield from child.walk()

    def spans(self) -> Iterator[TaskSpan]:
        """Yield the tasks of the node and of all nodes below it."""
        return (node.span for node in self.walk() if node.span)


def build_tree(spans: Sequence[TaskSpan], tasks: Sequence[Mapping[str, Any]], run_id: str = "") -> TreeNode:
    """Return the tree of a run. `spans`: in the order of their creation. `tasks`: those of the definition."""
    builder = _TreeBuilder(enclosing_bodies(tasks), forks_by_join(tasks), run_id)
    return builder.build(spans)


def summarize(node: TreeNode) -> None:
    """Compute state, span and number of tasks of a node from its children, at every level."""
    for child in node.children:
        summarize(child)
    states = {child.state for child in node.children}
    node.has_failures = any(child.has_failures for child in node.children)
    node.has_failures |= node.span is not None and node.span.status in FAILED_STATUSES
    node.task_count = (node.span is not None) + sum(child.task_count for child in node.children)
    begins = [child.begin for child in node.children if child.task_count]
    ends = [child.end for child in node.children if child.task_count]
    if node.span:
        node.begin, node.end = min([node.span.begin, *begins]), max([node.span.end, *ends])
        node.state = state_of(node.span.status)
        # A fork completes when its branches start. Its branches say how it went.
        if node.flow not in (Flow.FORK, Flow.DYNAMIC_FORK):
            return
        states.add(node.state)
    elif begins:
        node.begin, node.end = min(begins), max(ends)
    node.state = next((state for state in (FAILED, ACTIVE, CANCELED) if state in states), COMPLETED)
    if states == {SKIPPED}:
        node.state = SKIPPED


def state_of(status: str) -> str:
    """Return the state of a task as a summary counts it."""
    if status in FAILED_STATUSES:
        return FAILED
    return status if status in (ACTIVE, CANCELED, SKIPPED) else COMPLETED


def count_states(nodes: Iterable[TreeNode]) -> dict[str, int]:
    """Return the number of nodes by state: completed ones first, then the others in a fixed order."""
    counts = Counter(node.state for node in nodes)
    return {state: counts[state] for state in (COMPLETED, FAILED, ACTIVE, CANCELED, SKIPPED) if counts[state]}


class _TreeBuilder:
    """Places each task below the steps around it."""

    def __init__(
        self, places: Mapping[str, tuple[EnclosingBody, ...]], forks: Mapping[str, tuple[str, int]], run_id: str
    ) -> None:
        self.places, self.forks, self.run_id = places, forks, run_id
        self.root = TreeNode("", NodeKind.ROOT, "", run_id=run_id)
        self.nodes: dict[str, TreeNode] = {}
        self.items = {item_reference(body.ref): body for bodies in places.values() for body in bodies if body.has_items}
        self.joins: dict[str, str] = {}

    def build(self, spans: Sequence[TaskSpan]) -> TreeNode:
        self.joins = {span.branch_head: span.joined_by for span in spans if span.branch_head and span.joined_by}
        for span in spans:
            self._node_of(span).span = span
        _order(self.root)
        summarize(self.root)
        return self.root

    def _node_of(self, span: TaskSpan) -> TreeNode:
        if body := self.items.get(span.ref):
            return self._group(span, body, self._container(span, body, self._parent(span, self.places[body.ref])))
        bodies = self.places.get(span.ref)
        parent = self._parent(span, bodies) if bodies is not None else self._dynamic_parent(span)
        return self._child(parent, span.key, NodeKind.STEP, span.ref)

    def _parent(self, span: TaskSpan, bodies: Sequence[EnclosingBody]) -> TreeNode:
        node = self.root
        for body in bodies:
            if body.flow is Flow.CHOICE:
                continue
            node = self._group(span, body, self._container(span, body, node))
        return node

    def _container(self, span: TaskSpan, body: EnclosingBody, parent: TreeNode) -> TreeNode:
        return self._child(parent, "__".join((body.ref, *span.iteration_path[: body.loops])), NodeKind.STEP, body.ref)

    def _group(self, span: TaskSpan, body: EnclosingBody, node: TreeNode) -> TreeNode:
        """Return the iteration, phase or branch of a container that a task belongs to."""
        node.flow = body.flow
        if body.flow is Flow.LOOP:
            number = span.iteration_path[body.loops] if len(span.iteration_path) > body.loops else "?"
            return self._child(node, f"{node.id}/{number}", NodeKind.ITERATION, number)
        if body.flow is Flow.PHASES:
            return self._child(node, f"{node.id}/{body.number}", NodeKind.PHASE, body.label)
        if body.flow is Flow.FORK and body.size > 1:
            return self._child(node, f"{node.id}/{body.number + 1}", NodeKind.BRANCH, str(body.number + 1))
        return node

    def _dynamic_parent(self, span: TaskSpan) -> TreeNode:
        """Return the branch of a dynamic fork, or the root for a task without a known place."""
        fork, loops = self.forks.get(self.joins.get(span.branch_head, ""), ("", 0))
        if not fork:
            return self.root
        around = self._parent(span, self.places.get(fork, ()))
        node = self._child(around, "__".join((fork, *span.iteration_path[:loops])), NodeKind.STEP, fork)
        node.flow = Flow.DYNAMIC_FORK
        return self._child(node, f"{node.id}/{span.branch_head}", NodeKind.BRANCH, span.branch_head)

    def _child(self, parent: TreeNode, id: str, kind: NodeKind, label: str) -> TreeNode:
        node = self.nodes.get(id)
        if node is None:
            node = self.nodes[id] = TreeNode(id, kind, label, run_id=self.run_id)
            parent.children.append(node)
        return node


def _order(node: TreeNode) -> int:
    """Sort the children of each node by their first task and unwrap branches of a single task.

    Return the sequence number of the first task.
    """
    firsts = {child.id: _order(child) for child in node.children}
    node.children.sort(key=lambda child: firsts[child.id])
    node.children = [_without_single_branch(child) for child in node.children]
    own = [node.span.seq] if node.span else []
    return min([*own, *firsts.values()], default=0)


def _without_single_branch(node: TreeNode) -> TreeNode:
    is_single = node.kind is NodeKind.BRANCH and node.span is None and len(node.children) == 1
    return node.children[0] if is_single else node


MAX_SIBLINGS = 8
"""More alike siblings than this are folded into a summary. The most interesting ones stay visible."""
FEW_TASKS = 60
"""In a run with more tasks than this, only nodes with something to look at are open."""


@dataclass(frozen=True, slots=True)
class Folding:
    """What a user has opened and closed. `statuses`: show only tasks in these statuses, and what is around them.

    `chosen`: id of the selected node, which is always visible. `opens_children`: sub-workflows are open.
    """

    opened: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()
    chosen: str = ""
    status: str = ""
    opens_children: bool = False


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One visible row: a node, or a summary of alike siblings (`counts`: their number by state)."""

    id: str
    node: TreeNode
    depth: int
    is_foldable: bool = False
    is_open: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    siblings: Sequence[TreeNode] = ()

    @property
    def is_summary(self) -> bool:
        return bool(self.siblings)


def visible_rows(root: TreeNode, folding: Folding) -> list[TreeRow]:
    """Return the rows of a tree from top to bottom."""
    flattener = _Flattener(folding, root.task_count <= FEW_TASKS, set(_ids_to(root, folding.chosen)))
    if folding.status:
        return list(_matching_rows(root, folding.status, 0))
    return list(flattener.rows_below(root, 0))


def _ids_to(node: TreeNode, chosen: str) -> list[str]:
    if chosen and node.id == chosen:
        return [node.id]
    for child in node.children if chosen else ():
        if below := _ids_to(child, chosen):
            return [node.id, *below]
    return []


def _matching_rows(node: TreeNode, status: str, depth: int) -> Iterator[TreeRow]:
    """Yield the tasks in a status and the nodes around them."""
    for child in node.children:
        below = list(_matching_rows(child, status, depth + 1))
        if below or (child.span and child.span.status == status):
            yield TreeRow(child.id, child, depth, is_open=bool(below))
            yield from below


@dataclass(frozen=True, slots=True)
class _Flattener:
    folding: Folding
    is_small: bool
    chosen_path: set[str]

    def rows_below(self, node: TreeNode, depth: int) -> Iterator[TreeRow]:
        for family, siblings in _families(node):
            if len(siblings) <= MAX_SIBLINGS:
                for child in siblings:
                    yield from self._rows_of(child, depth)
                continue
            is_open = family in self.folding.opened
            yield TreeRow(family, siblings[0], depth, True, is_open, count_states(siblings), siblings)
            for child in siblings if is_open else self._interesting(siblings):
                yield from self._rows_of(child, depth + 1)

    def _rows_of(self, node: TreeNode, depth: int) -> Iterator[TreeRow]:
        is_foldable = bool(node.children) or has_child_run(node)
        is_open = is_foldable and self._is_open(node)
        yield TreeRow(node.id, node, depth, is_foldable, is_open)
        if is_open:
            yield from self.rows_below(node, depth + 1)

    def _is_open(self, node: TreeNode) -> bool:
        if node.id in self.folding.opened or node.id in self.folding.closed:
            return node.id in self.folding.opened
        if node.id in self.chosen_path and node.id != self.folding.chosen:
            return True
        if has_child_run(node):
            return self.folding.opens_children
        return self.is_small or node.has_failures or node.state == ACTIVE

    def _interesting(self, siblings: Sequence[TreeNode]) -> list[TreeNode]:
        """Return the siblings that stay visible: the selected one, failed ones, then those that are active."""
        chosen = [node for node in siblings if node.id in self.chosen_path]
        others = [node for node in siblings if (node.has_failures or node.state == ACTIVE) and node not in chosen]
        others.sort(key=lambda node: not node.has_failures)
        kept = {node.id for node in [*chosen, *others][:MAX_SIBLINGS]}
        return [node for node in siblings if node.id in kept]


def _families(node: TreeNode) -> Iterator[tuple[str, list[TreeNode]]]:
    """Yield alike siblings with the id of their summary: iterations, branches, or adjacent tasks of one name."""
    if node.is_alike:
        yield f"{node.id}/*", node.children
        return
    for name, siblings in groupby(node.children, key=_family_name):
        yield f"{node.id}/*{name}", list(siblings)


def _family_name(node: TreeNode) -> str:
    return node.span.name if node.span and node.kind is NodeKind.STEP and not node.children else node.id


def has_child_run(node: TreeNode) -> bool:
    """Return True if the node is a sub-workflow, whose tasks are those of another run."""
    return node.span is not None and node.span.type == SubWorkflow.type


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

    `child_spans`: the tasks of expanded sub-workflows by the id of their node.
    """

    root: TreeNode
    spans: list[TaskSpan]
    rows: list[TreeRow] = field(default_factory=list)
    is_cut: bool = False
    child_spans: dict[str, list[TaskSpan]] = field(default_factory=dict)


def load_tree(run: Run, folding: Folding, now: int) -> LoadedTree:
    """Return the tree of a run.

    Runs one query, and two more for each level of open sub-workflows. A run with more than MAX_SPANS tasks has the
    newest ones only.
    """
    spans = spans_of_run(run.pk, now)
    is_cut = len(spans) > MAX_SPANS
    shown = spans[-MAX_SPANS:]
    loaded = LoadedTree(build_tree(shown, _steps_of(run.resolved_definition_id), run.pk), shown, is_cut=is_cut)
    loaded.rows = visible_rows(loaded.root, folding)
    for _level in range(MAX_LEVELS):
        if not _expand_children(loaded, now):
            break
        loaded.rows = visible_rows(loaded.root, folding)
    return loaded


def is_held_type(type: str) -> bool:
    """Return True if no worker executes tasks of this type: they wait, or the engine completes them at once."""
    structure = STEP_STRUCTURES.get(type)
    return structure is not None and type != DEFAULT_TYPE and not structure.is_built_in


def shown_status(type: str, status: str) -> str:
    """Return the status of a task or attempt as pages show it: an open one that waits is not called running."""
    return "WAITING" if type in WAITING_STEP_TYPES and status in (ACTIVE, "LEASED") else status


def is_busy(span: TaskSpan) -> bool:
    """Return True if a worker, a queue or a sub-workflow has the task, so that its time is not idle."""
    return span.type == SubWorkflow.type or not is_held_type(span.type)


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
    runs = visible(Run.objects.filter(pk__in=started)).values_list("pk", "parent_attempt_id", "resolved_definition_id")
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
