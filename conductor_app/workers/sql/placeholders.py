"""Where the parameters of a statement go: `?`, as JDBC writes them, becomes what a database's driver wants."""

import re
from collections.abc import Callable

from conductor_app.workers.sql.statement import InvalidStatement

# In the order in which they are tried: what is quoted or a comment holds no parameters. `??` is a question mark.
# What is not closed reaches to the end, so that no text is looked through more than once.
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
    """The statement with each `?` spelled by its number, from one on; raises BadStatement if there are not `count`."""
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
        raise InvalidStatement(f"the statement has {found} parameters (?), and {count} are given")
    return written
