"""Convert the terminal colors of worker logs to HTML. The text itself is always escaped."""

import re
from collections.abc import Iterable, Iterator

from django.utils.html import conditional_escape, escape, format_html
from django.utils.safestring import SafeString, mark_safe

CONTROL_SEQUENCE = re.compile(
    r"\x1b\[([0-9;:]*)m"  # a color or a style
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # any other control sequence: dropped
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links and other strings for the terminal
    r"|\x1b[ -/]*[0-Z\\`-~]?"  # character sets and truncated sequences
    r"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Sequences that become a style or are dropped. Bidirectional marks are dropped: they can reorder what a line shows."""
COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
TEXT_STYLES = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 9: "struck"}
STYLE_RESETS = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 29: ("struck",)}


StyledPiece = tuple[str, tuple[str, ...]]
"""A piece of text and its CSS classes."""


def to_html(text: str, find: str = "") -> SafeString:
    """Return the text as HTML with its colors, and with matches of `find` highlighted."""
    return mark_safe("".join(render_piece(part, style_names, find) for part, style_names in styled_pieces(text)))


def strip_colors(text: str) -> str:
    """Return the text without control sequences."""
    return "".join(part for part, _ in styled_pieces(text))


def split_lines(text: str) -> Iterator[list[StyledPiece]]:
    """Yield the lines of the text. A color continues on the next line until a sequence changes it."""
    line: list[StyledPiece] = []
    for part, style_names in styled_pieces(text):
        first, *others = part.split("\n")
        line.append((first, style_names))
        for other in others:
            yield line
            line = [(other, style_names)]
    yield line


def styled_pieces(text: str) -> Iterator[StyledPiece]:
    """Yield pieces of the text with their CSS classes. Text that a progress bar has overwritten is left out."""
    styles: dict[str, str] = {}
    begin = 0
    text = "\n".join(line.rsplit("\r", 1)[-1] for line in text.replace("\r\n", "\n").rstrip("\r\n").split("\n"))
    for found in CONTROL_SEQUENCE.finditer(text):
        if found.start() > begin:
            yield text[begin : found.start()], tuple(styles.values())
        begin = found.end()
        if found.group(1) is not None:
            styles = _apply_codes(styles, re.split("[;:]", found.group(1)))
    if begin < len(text):
        yield text[begin:], tuple(styles.values())


def _apply_codes(styles: dict[str, str], codes: Iterable[str]) -> dict[str, str]:
    """Return the styles after these codes. Unsupported codes change nothing."""
    styles, remaining_codes = dict(styles), [int(code[:4] or 0) for code in codes]
    while remaining_codes:
        code = remaining_codes.pop(0)
        if code == 0:
            styles = {}
        elif code in TEXT_STYLES:
            styles[TEXT_STYLES[code]] = f"ansi-{TEXT_STYLES[code]}"
        elif code in STYLE_RESETS:
            for name in STYLE_RESETS[code]:
                styles.pop(name, None)
        elif code in (38, 48):
            _apply_color(styles, "ink" if code == 38 else "ground", _palette_color(remaining_codes))
        elif 30 <= code <= 37 or 90 <= code <= 97:
            _apply_color(styles, "ink", code % 10)
        elif 40 <= code <= 47 or 100 <= code <= 107:
            _apply_color(styles, "ground", code % 10)
        elif code in (39, 49):
            styles.pop("ink" if code == 39 else "ground", None)
    return styles


def _apply_color(styles: dict[str, str], layer: str, number: int | None) -> None:
    if number is not None:
        styles[layer] = f"ansi-{layer}-{COLORS[number]}"


def _palette_color(remaining_codes: list[int]) -> int | None:
    """Remove the arguments of a 38 or 48 code and return its color. Only the first 16 of 256 colors are supported."""
    kind = remaining_codes.pop(0) if remaining_codes else 0
    arguments, remaining_codes[:] = (
        remaining_codes[: {5: 1, 2: 3}.get(kind, 0)],
        remaining_codes[{5: 1, 2: 3}.get(kind, 0) :],
    )
    return arguments[0] % 8 if kind == 5 and arguments and arguments[0] < 16 else None


def render_piece(part: str, style_names: tuple[str, ...], find: str = "") -> str:
    """Return a piece as HTML, with matches of `find` highlighted."""
    inner = _mark_matches(part, find) if find else escape(part)
    return format_html('<span class="{}">{}</span>', " ".join(style_names), inner) if style_names else inner


def _mark_matches(part: str, find: str) -> SafeString:
    parts = re.split(f"({re.escape(find)})", part, flags=re.IGNORECASE)
    parts[1::2] = [format_html("<mark>{}</mark>", hit) for hit in parts[1::2]]
    return mark_safe("".join(map(conditional_escape, parts)))
