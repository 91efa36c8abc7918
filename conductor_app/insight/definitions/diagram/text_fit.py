"""Texts that fit into a box: estimated widths, names cut in the middle, and parts left out.

The server does not know the browser's font, so the widths are those of DejaVu Sans, which is wider than most fonts.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

TITLE_SIZE, TEXT_SIZE = 13, 12
"""Font sizes of names and of all other texts, in units of the drawing (`static/ops/diagram.css`)."""
REGULAR = 0.9
"""Width of the regular weight, relative to the bold one."""
ELLIPSIS = "…"
SEPARATORS = " -_./:"
WORDS = re.compile(r"[^ \-_./:]+[ \-_./:]*|[ \-_./:]+")
"""The words of a name, each with the separators behind it."""
WIDE_FROM = 0x2E80
"""The first character of the scripts with square characters."""
WIDTH_BY_CHARACTERS = (
    (".,:;'|!/ -·ijlI", 0.42),
    ('ftr()[]_"', 0.52),
    ("mwMW@%", 1.05),
    ("ABCDEFGHKLNOPQRSTUVXYZ&", 0.8),
)
WIDTHS = {character: width for characters, width in WIDTH_BY_CHARACTERS for character in characters}
DEFAULT_WIDTH = 0.69


def text_width(text: str, size: float = TEXT_SIZE, *, is_bold: bool = False) -> float:
    """Return the estimated width of a text. `size`: its font size."""
    ems = sum(WIDTHS.get(each, 1.05 if ord(each) >= WIDE_FROM else DEFAULT_WIDTH) for each in text)
    return ems * size * (1 if is_bold else REGULAR)


def cut_middle(text: str, width: float, size: float = TEXT_SIZE, *, is_bold: bool = False) -> str:
    """Return a text that fits into a width. The middle of a longer text is left out: names often differ at the end."""
    if text_width(text, size, is_bold=is_bold) <= width:
        return text
    for kept in range(min(len(text) - 1, int(width)), 2, -1):
        cut = text[: kept // 2].rstrip() + ELLIPSIS + text[len(text) - (kept - kept // 2) :].lstrip()
        if text_width(cut, size, is_bold=is_bold) <= width:
            return cut
    return text[:1] + ELLIPSIS


def join_fitting(parts: Sequence[tuple[int, str]], width: float, separator: str = " · ") -> str:
    """Join texts with their ranks. Texts with the highest ranks are left out until the rest fits into the width."""
    kept = [part for part in parts if part[1]]
    while len(kept) > 1 and text_width(separator.join(text for _rank, text in kept)) > width:
        kept.remove(max(kept, key=lambda part: part[0]))
    return cut_middle(separator.join(text for _rank, text in kept), width)


def join_first(texts: Sequence[str], width: float) -> str:
    """Join as many of the first texts as fit into a width, with an ellipsis for the rest."""
    for kept in range(len(texts), 0, -1):
        joined = ", ".join([*texts[:kept], *([ELLIPSIS] if kept < len(texts) else [])])
        if text_width(joined) <= width:
            return joined
    return cut_middle(texts[0], width) if texts else ""


def drop_shared_parts(names: Iterable[str], width: float, *, keeps_start: bool = False) -> dict[str, str]:
    """Return the names without words that they share with the others of the same first word.

    Only names that do not fit into the width are changed, and only as far as necessary. `keeps_start`: keep the first
    word. Names that would become the same are not in the result.
    """
    by_word: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        if not _fits(name, width):
            by_word.setdefault(WORDS.findall(name)[0].rstrip(SEPARATORS), []).append(name)
    found: dict[str, str] = {}
    for alike in by_word.values():
        if len(alike) > 1:
            found |= _drop_words({name: WORDS.findall(name) for name in alike}, width, keeps_start)
    texts = Counter(found.values())
    return {name: text for name, text in found.items() if texts[text] == 1}


def _drop_words(words: Mapping[str, Sequence[str]], width: float, keeps_start: bool) -> dict[str, str]:
    counts = Counter(word for own in words.values() for word in {each.rstrip(SEPARATORS) for each in own})
    found = {}
    for name, own in words.items():
        shared = {place: counts[word.rstrip(SEPARATORS)] for place, word in enumerate(own)}
        if min(shared.values()) == len(words):
            continue
        ranked = sorted(shared, key=lambda place: (-shared[place], place))
        often = [place for place in ranked if shared[place] * 2 > len(words) and (place or not keeps_start)]
        left_out: set[int] = set()
        for place in often:
            if _fits(_without(own, left_out), width):
                break
            left_out.add(place)
        found[name] = _without(own, left_out)
    return found


def _without(words: Sequence[str], left_out: Collection[int]) -> str:
    """Join the words, with an ellipsis for each sequence of words that are left out."""
    text = ""
    for place, word in enumerate(words):
        if place not in left_out:
            text += word
        elif not text.endswith(ELLIPSIS):
            text = text.rstrip(SEPARATORS) + ELLIPSIS
    return text


def _fits(name: str, width: float) -> bool:
    return text_width(name, TITLE_SIZE, is_bold=True) <= width
