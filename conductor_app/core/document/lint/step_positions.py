"""Compare where two steps stand in a document: which of them has ended before the other is entered."""

from ...step_structure import Flow
from ...step_tree import PathLevel, StepSpot

BEFORE, LATER, BESIDE, SELF = "before", "later", "beside", "itself"


def compare_order(source: StepSpot, reader: StepSpot) -> str:
    """Return the order of one step relative to another.

    BEFORE means that it may have ended by the time the other starts.
    """
    if source.levels == reader.levels:
        return BEFORE if _shares_loop(source.levels[:-1]) else SELF
    for depth, (theirs, ours) in enumerate(zip(source.levels, reader.levels, strict=False)):
        if theirs == ours:
            continue
        if _shares_loop(source.levels[:depth]):
            return BEFORE
        if theirs.index != ours.index:
            return BEFORE if theirs.index < ours.index else LATER
        return _compare_nested(theirs, ours)
    return BEFORE


def _compare_nested(theirs: PathLevel, ours: PathLevel) -> str:
    """Compare two steps of which one is the other, or is inside it."""
    if ours.body == -1:
        return BEFORE if theirs.flow is Flow.LOOP else LATER
    if theirs.body == -1 or theirs.flow is Flow.PHASES:
        return BEFORE if theirs.body < ours.body else BESIDE
    return BESIDE


def _shares_loop(levels: tuple[PathLevel, ...]) -> bool:
    """Return True if a loop encloses both: a later step ran in the previous iteration."""
    return any(level.flow is Flow.LOOP for level in levels)
