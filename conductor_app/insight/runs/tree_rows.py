"""Rows of a run's tree: which nodes are visible, and summaries of folded siblings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from ...core.step_types.sub_workflow import SubWorkflow
from .run_tree import ACTIVE, NodeKind, TreeNode, count_states

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
