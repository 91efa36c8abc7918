"""Parameters of statements: `?`, as in JDBC, becomes the placeholder of a database's driver."""

import re
from collections.abc import Callable

from conductor_app.workers.sql.statement import InvalidStatement

# In order of matching: quoted text and comments have no parameters. `??` is a question mark. Unclosed parts reach to
# the end, so that no text is searched twice.
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
    """Return the statement with each `?` replaced by its number, starting with one.

    Raises:
        InvalidStatement: when there are not `count` parameters.
    """
    found = 0

    def spelled(token: re.Match[str]) -> str:
        nonlocal found
        if token["mark"] is None:
            return token[0]
        if token["mark"] == "??":
            return "?"
        found += 1
        return format_placeholder(found)

    written = TOKENS.sub(spelled, text)
    if found != count:
        raise InvalidStatement(f"the statement has {found} parameters (?), but {count} values are given")
    return written
