"""A JSON value as a tree of `<details>`, two levels open, bounded in every direction."""

import json
from collections.abc import Iterator
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

OPEN_LEVELS = 2
MOST_CHILDREN = 100
MOST_CHARACTERS = 2_000
MOST_NODES = 1_500
DEEPEST = 30


def render_tree(value: Any) -> SafeString:
    """The value as HTML."""
    return mark_safe(f'<div class="json">{"".join(_Drawing().node(value, "", 0))}</div>')


class _Drawing:
    """One drawing, with what is left of its budget."""

    def __init__(self) -> None:
        self.left = MOST_NODES

    def node(self, value: Any, name: str, depth: int) -> Iterator[str]:
        self.left -= 1
        if isinstance(value, dict | list) and value:
            yield from self._branch(value, name, depth)
        else:
            yield f'<div class="leaf">{name}{_leaf(value)}</div>'

    def _branch(self, value: dict | list, name: str, depth: int) -> Iterator[str]:
        shape = f"{{{len(value)}}}" if isinstance(value, dict) else f"[{len(value)}]"
        yield f"<details{' open' if depth < OPEN_LEVELS else ''}><summary>{name}<i>{shape}</i></summary><div>"
        yield from self._children(value, depth + 1)
        yield "</div></details>"

    def _children(self, value: dict | list, depth: int) -> Iterator[str]:
        if depth > DEEPEST:
            yield _more("deeper levels")
            return
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for number, (key, child) in enumerate(pairs):
            if number == MOST_CHILDREN or self.left <= 0:
                yield _more(f"{len(value) - number} more")
                return
            yield from self.node(child, f"<b>{escape(_shorten(str(key)))}</b>", depth)


def _leaf(value: Any) -> str:
    if isinstance(value, str):
        return f'<span class="text">{escape(_shorten(json.dumps(value, ensure_ascii=False)))}</span>'
    if value is None or isinstance(value, bool):
        return f'<span class="word">{json.dumps(value)}</span>'
    if isinstance(value, dict | list):
        return f'<span class="word">{"{}" if isinstance(value, dict) else "[]"}</span>'
    return f'<span class="number">{escape(_shorten(str(value)))}</span>'


def _shorten(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}… ({len(text) - MOST_CHARACTERS:,} more characters)"


def _more(what: str) -> str:
    return f'<div class="leaf quiet">… {what}; open the raw document to see all</div>'
