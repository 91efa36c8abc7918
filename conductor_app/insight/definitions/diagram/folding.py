"""Collapsed steps and branches of a diagram: those that are collapsed in the timeline of the same run."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DiagramFolding:
    """The collapsed nodes of the run's tree, by id. `link`: returns the address that opens or closes one.

    It receives the id, and True if the node is open.
    """

    closed: frozenset[str]
    link: Callable[[str, bool], str]


def tree_id(ref: str, iteration_path: str, branch: int = 0) -> str:
    """Return the id of a task in the tree of its run, or that of one of its branches, counted from 1."""
    id = "__".join((ref, *iteration_path.split("."))) if iteration_path else ref
    return f"{id}/{branch}" if branch else id
