"""Colours of terminals in what workers have written, as marks of ours: none of their text is ever taken for HTML."""

import re
from collections.abc import Iterable, Iterator

from django.utils.html import conditional_escape, escape, format_html
from django.utils.safestring import SafeString, mark_safe

SEQUENCE = re.compile(
    r"\x1b\[([0-9;:]*)m"  # a colour or a weight
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # any other movement of a terminal: left out
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links, what terminals are told
    r"|\x1b[ -/]*[0-Z\\`-~]?"  # sets of characters, and what is cut off
    r"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""What is drawn as a look of ours, or left out: what turns the direction of text makes a line say what it does not."""
COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
WEIGHTS = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 9: "struck"}
ENDED_BY = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 29: ("struck",)}


Piece = tuple[str, tuple[str, ...]]
"""A stretch of text, and the names of its looks."""


def to_html(text: str, find: str = "") -> SafeString:
    """The text with its colours, and what was looked for marked in it."""
    return mark_safe("".join(render_piece(part, looks, find) for part, looks in styled_pieces(text)))


def strip_colors(text: str) -> str:
    """The text without them."""
    return "".join(part for part, _ in styled_pieces(text))


def split_lines(text: str) -> Iterator[list[Piece]]:
    """Its lines; a colour holds until it is changed, over their ends too."""
    line: list[Piece] = []
    for part, looks in styled_pieces(text):
        first, *others = part.split("\n")
        line.append((first, looks))
        for other in others:
            yield line
            line = [(other, looks)]
    yield line


def styled_pieces(text: str) -> Iterator[Piece]:
    """Stretches of the text, each with the names of its looks. What a progress bar has overwritten is left out."""
    look: dict[str, str] = {}
    begin = 0
    text = "\n".join(line.rsplit("\r", 1)[-1] for line in text.replace("\r\n", "\n").rstrip("\r\n").split("\n"))
    for found in SEQUENCE.finditer(text):
        if found.start() > begin:
            yield text[begin : found.start()], tuple(look.values())
        begin = found.end()
        if found.group(1) is not None:
            look = _apply_codes(look, re.split("[;:]", found.group(1)))
    if begin < len(text):
        yield text[begin:], tuple(look.values())


def _apply_codes(look: dict[str, str], codes: Iterable[str]) -> dict[str, str]:
    """How it looks after these codes; those that we do not draw change nothing."""
    look, left = dict(look), [int(code[:4] or 0) for code in codes]
    while left:
        code = left.pop(0)
        if code == 0:
            look = {}
        elif code in WEIGHTS:
            look[WEIGHTS[code]] = f"ansi-{WEIGHTS[code]}"
        elif code in ENDED_BY:
            for name in ENDED_BY[code]:
                look.pop(name, None)
        elif code in (38, 48):
            _apply_color(look, "ink" if code == 38 else "ground", _palette_color(left))
        elif 30 <= code <= 37 or 90 <= code <= 97:
            _apply_color(look, "ink", code % 10)
        elif 40 <= code <= 47 or 100 <= code <= 107:
            _apply_color(look, "ground", code % 10)
        elif code in (39, 49):
            look.pop("ink" if code == 39 else "ground", None)
    return look


def _apply_color(look: dict[str, str], layer: str, number: int | None) -> None:
    if number is not None:
        look[layer] = f"ansi-{layer}-{COLOURS[number]}"


def _palette_color(left: list[int]) -> int | None:
    """Of a palette of 256 the first sixteen, which are ours too; takes the codes that belong to it."""
    kind = left.pop(0) if left else 0
    taken, left[:] = left[: {5: 1, 2: 3}.get(kind, 0)], left[{5: 1, 2: 3}.get(kind, 0) :]
    return taken[0] % 8 if kind == 5 and taken and taken[0] < 16 else None


def render_piece(part: str, looks: tuple[str, ...], find: str = "") -> str:
    """A piece as HTML, with what was looked for marked in it."""
    inner = _mark_matches(part, find) if find else escape(part)
    return format_html('<span class="{}">{}</span>', " ".join(looks), inner) if looks else inner


def _mark_matches(part: str, find: str) -> SafeString:
    parts = re.split(f"({re.escape(find)})", part, flags=re.IGNORECASE)
    parts[1::2] = [format_html("<mark>{}</mark>", hit) for hit in parts[1::2]]
    return mark_safe("".join(map(conditional_escape, parts)))
