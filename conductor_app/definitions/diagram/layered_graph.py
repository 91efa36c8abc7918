"""Layered drawing of a dependency graph: columns from left to right, each box to the right of its dependencies.

The caller assigns the columns. Four passes reorder the boxes of each column to reduce crossings. A line that passes
other columns uses a lane there; all lines from the same box share the lane. The cost is linear in the number of boxes,
lines and lanes.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from .canvas import BOX_WIDTH, MARGIN

COLUMN_GAP, GAP = 54, 12
LANE = 6
SWEEPS = 4
MAX_LANES = 4_000
"""Above this number of lanes, lines run straight behind the boxes."""

Spot = tuple[str, int]
"""A box in its column, or the lane of that box in a later column."""


@dataclass(slots=True)
class LayeredDrawing:
    """Positions of the boxes, and SVG paths of the ordinary and the marked lines."""

    width: int = 2 * MARGIN
    height: int = 2 * MARGIN
    positions: dict[str, tuple[int, int]] = field(default_factory=dict)
    line: str = ""
    marked_line: str = ""


def draw_layered(
    columns: Mapping[str, int], edges: Iterable[tuple[str, str]], box_height: int, marked: frozenset[tuple[str, str]]
) -> LayeredDrawing:
    """Place boxes in their given columns, and draw the lines that lead from one column to a later one."""
    forward = [(a, b) for a, b in edges if columns[a] < columns[b]]
    has_lanes = sum(columns[b] - columns[a] - 1 for a, b in forward) <= MAX_LANES * 4
    routes = {edge: _route_edge(edge, columns, has_lanes) for edge in forward}
    steps = dict.fromkeys(step for route in routes.values() for step in itertools.pairwise(route))
    order = _order_columns(_fill_columns(columns, steps), list(steps))
    tops = _spot_tops(order, list(steps), columns, box_height)
    on_marked = {step for edge, route in routes.items() if edge in marked for step in itertools.pairwise(route)}
    return _build_drawing(order, tops, columns, box_height, steps, on_marked)


def _route_edge(edge: tuple[str, str], columns: Mapping[str, int], has_lanes: bool) -> list[Spot]:
    """Return the spots from one box to the other, including the lanes in between."""
    begin, end = edge
    lanes = range(columns[begin] + 1, columns[end]) if has_lanes else ()
    return [(begin, columns[begin]), *((begin, column) for column in lanes), (end, columns[end])]


def _fill_columns(columns: Mapping[str, int], steps: Iterable[tuple[Spot, Spot]]) -> list[list[Spot]]:
    found: list[list[Spot]] = [[] for _ in range(max(columns.values(), default=-1) + 1)]
    spots = dict.fromkeys([*columns.items(), *(spot for step in steps for spot in step)])
    for spot in spots:
        found[spot[1]].append(spot)
    return found


def _order_columns(order: list[list[Spot]], steps: Sequence[tuple[Spot, Spot]]) -> list[list[Spot]]:
    """Sort each column by the mean position of its neighbors, in alternating directions."""
    left: dict[Spot, list[Spot]] = {}
    right: dict[Spot, list[Spot]] = {}
    for begin, end in steps:
        left.setdefault(end, []).append(begin)
        right.setdefault(begin, []).append(end)
    at = {spot: place / len(column) for column in order for place, spot in enumerate(column)}
    for sweep in range(SWEEPS):
        neighbors = right if sweep % 2 else left
        for column in reversed(order) if sweep % 2 else order:
            targets = {spot: fmean(at[other] for other in neighbors.get(spot) or [spot]) for spot in column}
            column.sort(key=targets.__getitem__)
            at |= {spot: place / len(column) for place, spot in enumerate(column)}
    return order


def _spot_tops(
    order: list[list[Spot]], steps: Sequence[tuple[Spot, Spot]], columns: Mapping[str, int], box_height: int
) -> dict[Spot, float]:
    """Return the top of each spot, as close to the center of its predecessors as its column permits."""
    left: dict[Spot, list[Spot]] = {}
    for begin, end in steps:
        left.setdefault(end, []).append(begin)
    middles: dict[Spot, float] = {}
    tops: dict[Spot, float] = {}
    tallest = max((_column_height(column, columns, box_height) for column in order), default=0)
    for column in order:
        own = (tallest - _column_height(column, columns, box_height)) / 2
        targets, moved = [], 0.0
        for spot in column:
            height = _spot_height(spot, columns, box_height)
            sources = [middles[other] for other in left.get(spot, ())]
            target = max(fmean(sources) - height / 2, own) if sources else own
            targets.append(target)
            moved += (fmean(sources) - height / 2 - target) if sources else 0.0
            own = target + height + GAP
        shift = moved / max(len(column), 1)
        for spot, target in zip(column, targets, strict=True):
            tops[spot] = target + shift
            middles[spot] = tops[spot] + _spot_height(spot, columns, box_height) / 2
    return tops


def _spot_height(spot: Spot, columns: Mapping[str, int], box_height: int) -> int:
    return box_height if columns[spot[0]] == spot[1] else LANE


def _column_height(column: Sequence[Spot], columns: Mapping[str, int], box_height: int) -> int:
    return sum(_spot_height(spot, columns, box_height) + GAP for spot in column) - GAP


def _build_drawing(
    order: list[list[Spot]],
    tops: Mapping[Spot, float],
    columns: Mapping[str, int],
    box_height: int,
    steps: Iterable[tuple[Spot, Spot]],
    on_marked: set[tuple[Spot, Spot]],
) -> LayeredDrawing:
    highest = min(tops.values(), default=0.0)
    middle = {
        spot: round(top - highest + MARGIN + _spot_height(spot, columns, box_height) / 2) for spot, top in tops.items()
    }
    drawn = LayeredDrawing(
        width=2 * MARGIN + len(order) * (BOX_WIDTH + COLUMN_GAP) - COLUMN_GAP if order else 2 * MARGIN
    )
    for id, column in columns.items():
        drawn.positions[id] = (_column_x(column), middle[id, column] - box_height // 2)
    drawn.height = max((y for _, y in drawn.positions.values()), default=0) + box_height + MARGIN
    curves: dict[bool, list[str]] = {True: [], False: []}
    for begin, end in steps:
        is_lane = columns[end[0]] != end[1]
        curves[(begin, end) in on_marked].append(_curve_path(begin, end, middle, is_lane))
    drawn.line, drawn.marked_line = "".join(curves[False]), "".join(curves[True])
    return drawn


def _column_x(column: int) -> int:
    return MARGIN + column * (BOX_WIDTH + COLUMN_GAP)


def _curve_path(begin: Spot, end: Spot, middle: Mapping[Spot, int], is_lane: bool) -> str:
    """Return the path from the right side of a spot to the left side of the next, and along it if it is a lane."""
    x, y, to_x, to_y = _column_x(begin[1]) + BOX_WIDTH, middle[begin], _column_x(end[1]), middle[end]
    bend = COLUMN_GAP // 2
    along = f"H{to_x + BOX_WIDTH}" if is_lane else ""
    return f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}{along}"
