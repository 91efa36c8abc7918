"""Tree of a run: loop → iteration → branch → task, built from the tasks of the run and the structure of its definition.

The timeline and the other views of a run show the same tree. It is pure: it reads no database.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ...core.document.layout import item_reference
from ...core.step_structure import Flow
from .step_places import EnclosingBody, enclosing_bodies, forks_by_join
from .task_spans import TaskSpan

FAILED_STATUSES = frozenset(("FAILED", "TIMED_OUT"))
FAILED, ACTIVE, CANCELED, SKIPPED, COMPLETED = "FAILED", "ACTIVE", "CANCELED", "SKIPPED", "COMPLETED"


class NodeKind(StrEnum):
    """What a node stands for."""

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

    @property
    def last_iteration(self) -> int:
        """Return the number of the last iteration of a loop, otherwise 0."""
        labels = (child.label for child in self.children if child.kind is NodeKind.ITERATION)
        return max((int(label) for label in labels if label.isdecimal()), default=0)

    def walk(self) -> Iterator["TreeNode"]:
        """Yield the node and all nodes below it."""
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
        """Return the node of the step with a body."""
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
