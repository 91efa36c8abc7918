"""Where in a JSON text a path such as `tasks[0].name` begins, so that a complaint can point at its line."""

import re
from collections.abc import Iterator

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def lines_of_paths(text: str) -> dict[str, int]:
    """The line, counted from one, on which each path of a well-formed JSON text begins."""
    tokens = _tokens(text)
    places: dict[str, int] = {}
    stack: list[tuple[str, int | None]] = []  # the path of each open bracket; its index, if it is a list
    path, is_key = "", False
    for token, line in tokens:
        if token in "{[":
            places.setdefault(path, line)
            stack.append((path, 0 if token == "[" else None))
            is_key = token == "{"
            path = f"{path}[0]" if token == "[" else path
        elif token in "}]":
            stack.pop()
            is_key = False
        elif token == ",":
            path, is_key = _next(stack)
        elif token == ":":
            is_key = False
        elif is_key:
            path = ".".join(filter(None, (stack[-1][0], token[1:-1])))
            places.setdefault(path, line)
        else:
            places.setdefault(path, line)
    return places


def _next(stack: list[tuple[str, int | None]]) -> tuple[str, bool]:
    """The path after a comma, and whether a key follows."""
    parent, index = stack[-1]
    if index is None:
        return parent, True
    stack[-1] = (parent, index + 1)
    return f"{parent}[{index + 1}]", False


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    line, last = 1, 0
    for found in TOKEN.finditer(text):
        line += text.count("\n", last, found.start())
        last = found.start()
        yield found.group(), line


def line_of(path: str, places: dict[str, int]) -> int | None:
    """The line of a path, or of the nearest thing around it."""
    while path and path not in places:
        path = re.sub(r"(\.[^.\[]*|\[\d+\])$", "", path) if re.search(r"[.\[]", path) else ""
    return places.get(path)
