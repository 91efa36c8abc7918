"""SkipTaskRequest as some clients put it into a query parameter: as Python or as Go prints it (api §8.3)."""

import ast
import json
import re
from typing import Any

from ....core.errors import Invalid

MAX_LENGTH = 65_536
GO_REQUEST = re.compile(r"\{map\[.*\] map\[.*\]\}", re.DOTALL)
GO_ENTRY = re.compile(r"(?:^| )([^\s:\[\]]+):")
GO_WORDS = {"true": True, "false": False, "<nil>": None}


def parse_query_document(text: str) -> dict[str, Any]:
    """Return the request that a text represents.

    Raises:
        Invalid: when the text is in none of the known formats.
    """
    text = text.strip()
    if len(text) > MAX_LENGTH:
        raise Invalid(f"skipTaskRequest may have at most {MAX_LENGTH} characters. Send it as the JSON body.")
    if text in ("", "{}", "None", "null", "{map[] map[]}"):
        return {}
    if GO_REQUEST.fullmatch(text):
        return _parse_go_request(text)
    try:
        # Encode and parse as JSON: keys become texts, and values that JSON cannot represent are refused.
        parsed = json.loads(json.dumps(_parse_python_value(text), allow_nan=False))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise Invalid("Invalid skipTaskRequest. Send it as the JSON body.") from None
    if not isinstance(parsed, dict):
        raise Invalid("skipTaskRequest must be an object with taskInput and taskOutput.")
    return parsed


def _parse_python_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return ast.literal_eval(text)


def _parse_go_request(text: str) -> dict[str, Any]:
    """Parse `{map[a:1] map[b:two words]}`, which is input and output. Types are guessed because the text has none."""
    first, position = _parse_brackets(text, text.find("["))
    second, _ = _parse_brackets(text, text.find("[", position))
    return {"taskInput": _parse_go_map(first), "taskOutput": _parse_go_map(second)}


def _parse_brackets(text: str, start: int) -> tuple[str, int]:
    """Return the text between the bracket at `start` and its closing bracket, and the position after that.

    Raises:
        Invalid: when the brackets are not balanced.
    """
    depth = 0
    for position in range(start, len(text)) if start >= 0 else ():
        depth += {"[": 1, "]": -1}.get(text[position], 0)
        if depth == 0:
            return text[start + 1 : position], position + 1
    raise Invalid("Invalid skipTaskRequest: unbalanced brackets. Send it as the JSON body.")


def _parse_go_map(inner: str, level: int = 0) -> dict[str, Any]:
    depths = _bracket_depths(inner)
    entries = [found for found in GO_ENTRY.finditer(inner) if depths[found.start(1)] == 0]
    ends = [*(found.start() for found in entries), len(inner)][1:]
    return {
        found[1]: _parse_go_value(inner[found.end() : end], level) for found, end in zip(entries, ends, strict=True)
    }


def _bracket_depths(text: str) -> list[int]:
    depths, depth = [], 0
    for letter in text:
        depth += {"[": 1, "]": -1}.get(letter, 0)
        depths.append(depth)
    return depths


def _parse_go_value(text: str, level: int) -> Any:
    if text.startswith("map[") and text.endswith("]") and level < 50:
        return _parse_go_map(text[4:-1], level + 1)
    if text.startswith("[") and text.endswith("]") and "[" not in text[1:]:
        return [_parse_go_value(each, level) for each in text[1:-1].split(" ") if each]
    if text in GO_WORDS:
        return GO_WORDS[text]
    try:
        return json.loads(text) if re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d{1,2})?", text) else text
    except ValueError:
        return text
