"""A picture of what needs what: columns from left to right, each thing in the one behind all that it needs.

The longest path gives the columns, four sweeps put each column into an order in which few lines cross. A line that
passes other columns runs in a lane of its own there, which all lines from the same box share. The work is in proportion
to boxes, lines and lanes.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

BOX_WIDTH, COLUMN_GAP, GAP, MARGIN = 196, 54, 12, 14
LANE = 6
SWEEPS = 4
MOST_LANES = 4_000
"""Beyond that, lines go straight behind the boxes that they pass."""

Spot = tuple[str, int]
"""A box in its column, or the lane of a box in a column behind it."""


@dataclass(slots=True)
class LayeredDrawing:
    """Where the boxes are, and the lines between them: ordinary ones, and those that are marked."""

    width: int = 2 * MARGIN
    height: int = 2 * MARGIN
    positions: dict[str, tuple[int, int]] = field(default_factory=dict)
    line: str = ""
    marked_line: str = ""


def draw_layered(
    columns: Mapping[str, int], edges: Iterable[tuple[str, str]], box_height: int, marked: frozenset[tuple[str, str]]
) -> LayeredDrawing:
    """Draw boxes, whose columns are known, and the lines that lead from one column to a later one."""
    forward = [(a, b) for a, b in edges if columns[a] < columns[b]]
    has_lanes = sum(columns[b] - columns[a] - 1 for a, b in forward) <= MOST_LANES * 4
    routes = {edge: _route_edge(edge, columns, has_lanes) for edge in forward}
    steps = dict.fromkeys(step for route in routes.values() for step in itertools.pairwise(route))
    order = _order_columns(_fill_columns(columns, steps), list(steps))
    tops = _spot_tops(order, list(steps), columns, box_height)
    on_marked = {step for edge, route in routes.items() if edge in marked for step in itertools.pairwise(route)}
    return _build_drawing(order, tops, columns, box_height, steps, on_marked)


def _route_edge(edge: tuple[str, str], columns: Mapping[str, int], has_lanes: bool) -> list[Spot]:
    """From box to box through the lanes of the columns between."""
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
    """Each column sorted by where its neighbours are: forth, back, forth, back."""
    left: dict[Spot, list[Spot]] = {}
    right: dict[Spot, list[Spot]] = {}
    for begin, end in steps:
        left.setdefault(end, []).append(begin)
        right.setdefault(begin, []).append(end)
    at = {spot: place / len(column) for column in order for place, spot in enumerate(column)}
    for sweep in range(SWEEPS):
        neighbors = right if sweep % 2 else left
        for column in reversed(order) if sweep % 2 else order:
            wished = {spot: fmean(at[other] for other in neighbors.get(spot) or [spot]) for spot in column}
            column.sort(key=wished.__getitem__)
            at |= {spot: place / len(column) for place, spot in enumerate(column)}
    return order


def _spot_tops(
    order: list[list[Spot]], steps: Sequence[tuple[Spot, Spot]], columns: Mapping[str, int], box_height: int
) -> dict[Spot, float]:
    """How far down each spot is: as near to the middle of what leads to it as its column leaves room."""
    left: dict[Spot, list[Spot]] = {}
    for begin, end in steps:
        left.setdefault(end, []).append(begin)
    middles: dict[Spot, float] = {}
    tops: dict[Spot, float] = {}
    tallest = max((_column_height(column, columns, box_height) for column in order), default=0)
    for column in order:
        own = (tallest - _column_height(column, columns, box_height)) / 2
        wished, moved = [], 0.0
        for spot in column:
            height = _spot_height(spot, columns, box_height)
            led = [middles[other] for other in left.get(spot, ())]
            wish = max(fmean(led) - height / 2, own) if led else own
            wished.append(wish)
            moved += (fmean(led) - height / 2 - wish) if led else 0.0
            own = wish + height + GAP
        shift = moved / max(len(column), 1)
        for spot, wish in zip(column, wished, strict=True):
            tops[spot] = wish + shift
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
    """From the right side of one to the left side of the other, and along the lane if that is one."""
    x, y, to_x, to_y = _column_x(begin[1]) + BOX_WIDTH, middle[begin], _column_x(end[1]), middle[end]
    bend = COLUMN_GAP // 2
    along = f"H{to_x + BOX_WIDTH}" if is_lane else ""
    return f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}{along}"
