"""What a program has written for a terminal, as HTML: colours as classes, everything else as text.

Nothing of what was written becomes markup but the spans made here; sequences that move a cursor or speak to a terminal
are left out.
"""

import re
from collections.abc import Iterator

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

SEQUENCE = re.compile(
    r"\x1b\[([0-9;:]*)m"  # colours and weights, the only ones that are shown
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # others that begin alike: cursors, erasing
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links, what terminals are told
    r"|\x1b[ -/]*[0-~]?"
)
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f\x80-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that are no text; those that turn the direction of what follows make a line say what it does not."""
BAD = re.compile(r"\b(?:ERROR|FATAL|CRITICAL|FAILED|Traceback)\b")
LONGEST_LINE = 4_000
WEIGHTS = {"1": "bold", "2": "faint", "3": "italic", "4": "underlined"}
COLOURS = {**{str(30 + n): f"ansi-{n}" for n in range(8)}, **{str(90 + n): f"ansi-{n}" for n in range(8)}}


def shown(text: str) -> SafeString:
    """The lines as items of a list; a colour holds until it is changed, over ends of lines too."""
    return mark_safe("".join(_lines(text)))


def _lines(text: str) -> Iterator[str]:
    style: dict[str, str] = {}
    for line in text.removesuffix("\n").split("\n"):
        # What a line overwrites of itself is what progress is drawn with: the last of it stays.
        seen = line.rstrip("\r").rpartition("\r")[2]
        spans = "".join(_spans(seen[:LONGEST_LINE], style))
        more = f'<i class="quiet">… {len(seen) - LONGEST_LINE:,}</i>' if len(seen) > LONGEST_LINE else ""
        bad = ' class="error"' if BAD.search(seen) else ""
        yield f"<li{bad}>{spans}{more}</li>"


def _spans(line: str, style: dict[str, str]) -> Iterator[str]:
    at = 0
    for found in SEQUENCE.finditer(line):
        yield _span(line[at : found.start()], style)
        if found.group(1) is not None:
            _learn(found.group(1), style)
        at = found.end()
    yield _span(line[at:], style)


def _span(text: str, style: dict[str, str]) -> str:
    said = escape(UNSEEN.sub("", text))
    if not said or not style:
        return said
    return f'<span class="{" ".join(dict.fromkeys(style.values()))}">{said}</span>'


def _learn(codes: str, style: dict[str, str]) -> None:
    """What holds from here on."""
    parts = re.split("[;:]", codes) if codes else ["0"]
    while parts:
        code = parts.pop(0).lstrip("0") or "0"
        if code == "0":
            style.clear()
        elif code in ("38", "48"):
            # A colour out of hundreds, or of millions: its numbers are passed over, its text stays readable.
            del parts[: {"5": 2, "2": 4}.get(parts[0] if parts else "", 0)]
        elif code == "39":
            style.pop("colour", None)
        elif code == "22":
            style.pop("1", None)
            style.pop("2", None)
        elif code in ("23", "24"):
            style.pop(code[1], None)
        elif code in COLOURS:
            style["colour"] = COLOURS[code]
        elif code in WEIGHTS:
            style[code] = WEIGHTS[code]
