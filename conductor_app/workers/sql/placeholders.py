"""Convert the JDBC placeholder `?` in statements to the placeholders of database drivers."""

import re
from collections.abc import Callable

from conductor_app.workers.sql.statement import InvalidStatement

# Alternatives in order of precedence. Quoted text and comments contain no parameters. `??` is a question mark. An
# unclosed part extends to the end, so that no text is searched twice.
TOKENS = re.compile(
    r"""
    [eE]'(?:[^'\\]|\\.|'')*(?:'|\Z)
    | '(?:[^']|'')*(?:'|\Z)
    | "(?:[^"]|"")*(?:"|\Z)
    | --[^\n]*
    | /\*.*?(?:\*/|\Z)
    | \$(?P<tag>(?:[A-Za-z_\x80-\uffff][\w\x80-\uffff]*)?)\$.*?(?:\$(?P=tag)\$|\Z)
    | [\w\x80-\uffff$]+
    | (?P<mark>\?\??)
    """,
    re.DOTALL | re.VERBOSE,
)


def replace_placeholders(text: str, count: int, format_placeholder: Callable[[int], str]) -> str:
    """Return the statement with each `?` replaced by the placeholder of its number, which starts with 1.

    Raises:
        InvalidStatement: when the number of parameters is not `count`.
    """
    placeholder_count = 0

    def replacement(token: re.Match[str]) -> str:
        nonlocal placeholder_count
        if token["mark"] is None:
            return token[0]
        if token["mark"] == "??":
            return "?"
        placeholder_count += 1
        return format_placeholder(placeholder_count)

    written = TOKENS.sub(replacement, text)
    if placeholder_count != count:
        raise InvalidStatement(f"the statement has {placeholder_count} parameters (?), but {count} values are given")
    return written
