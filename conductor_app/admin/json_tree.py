"""Render a JSON value as a tree of `<details>`: two levels open, with limits on depth, nodes and text length."""

import json
from collections.abc import Iterator
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

OPEN_LEVELS = 2
MAX_CHILDREN = 100
MAX_CHARACTERS = 2_000
MAX_NODES = 1_500
MAX_DEPTH = 30


def render_tree(value: Any) -> SafeString:
    """Return the value as HTML."""
    return mark_safe(f'<div class="json">{"".join(_TreeRenderer().render_node(value, "", 0))}</div>')


class _TreeRenderer:
    """Renderer of one tree, with the number of nodes that it may still render."""

    def __init__(self) -> None:
        self.remaining_nodes = MAX_NODES

    def render_node(self, value: Any, name: str, depth: int) -> Iterator[str]:
        self.remaining_nodes -= 1
        if isinstance(value, dict | list) and value:
            yield from self._render_branch(value, name, depth)
        else:
            yield f'<div class="leaf">{name}{_render_leaf(value)}</div>'

    def _render_branch(self, value: dict | list, name: str, depth: int) -> Iterator[str]:
        shape = f"{{{len(value)}}}" if isinstance(value, dict) else f"[{len(value)}]"
        yield f"<details{' open' if depth < OPEN_LEVELS else ''}><summary>{name}<i>{shape}</i></summary><div>"
        yield from self._render_children(value, depth + 1)
        yield "</div></details>"

    def _render_children(self, value: dict | list, depth: int) -> Iterator[str]:
        if depth > MAX_DEPTH:
            yield _render_more("deeper levels")
            return
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for number, (key, child) in enumerate(pairs):
            if number == MAX_CHILDREN or self.remaining_nodes <= 0:
                yield _render_more(f"{len(value) - number} more")
                return
            yield from self.render_node(child, f"<b>{escape(_shorten(str(key)))}</b>", depth)


def _render_leaf(value: Any) -> str:
    if isinstance(value, str):
        return f'<span class="text">{escape(_shorten(json.dumps(value, ensure_ascii=False)))}</span>'
    if value is None or isinstance(value, bool):
        return f'<span class="word">{json.dumps(value)}</span>'
    if isinstance(value, dict | list):
        return f'<span class="word">{"{}" if isinstance(value, dict) else "[]"}</span>'
    return f'<span class="number">{escape(_shorten(str(value)))}</span>'


def _shorten(text: str) -> str:
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}… ({len(text) - MAX_CHARACTERS:,} more characters)"


def _render_more(content: str) -> str:
    return f'<div class="leaf muted">… {content}; open the raw document to see everything</div>'
