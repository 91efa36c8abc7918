"""The tokens of a script."""

import re
from typing import NamedTuple

from .script_values import NeedsQuickJS

# Sources with other characters, such as control characters or letters of other alphabets in names, are refused.
_TOKEN = re.compile(
    r"""
    (?P<space> [ \t\n\r]+ | //[^\x00-\x08\x0a-\x1f\u2028\u2029\ud800-\udfff]* | /\*(?:[^*\ud800-\udfff]|\*(?!/))*\*/ )
    | (?P<number> (?:0|[1-9][0-9]*) (?:\.[0-9]+)? (?![\w$.]) )
    | (?P<text> "(?:[^"\\\x00-\x1f\u2028\u2029\ud800-\udfff]|\\["'\\/nrt])*"
              | '(?:[^'\\\x00-\x1f\u2028\u2029\ud800-\udfff]|\\["'\\/nrt])*' )
    | (?P<name> [A-Za-z_$][\w$]* )
    | (?P<mark> >>>=|\.\.\.|===|!==|\*\*=|<<=|>>=|>>>|&&=|\|\|=|\?\?=|=>|==|!=|<=|>=|&&|\|\||\?\?|\?\.(?![0-9])
              | \+\+|--|\+=|-=|\*=|/=|%=|&=|\|=|\^=|<<|>>|\*\*|[{}()\[\];,<>+\-*/%&|^!~?:=.] )
    """,
    re.VERBOSE | re.ASCII,
)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_LINE_END = re.compile(r"[\n\r\u2028\u2029]")


class ScriptToken(NamedTuple):
    """A token. `kind`: number, text, name, mark or end. `begins_line`: a line ends between the last token and it."""

    kind: str
    text: str
    begins_line: bool


def read_tokens(source: str) -> list[ScriptToken]:
    """Return the tokens of a script, with the end as the last one.

    Raises:
        NeedsQuickJS: when a part of the source is no token of the subset.
    """
    tokens, position, begins_line = [], 0, False
    while position < len(source):
        found = _TOKEN.match(source, position)
        if found is None or found.lastgroup is None:
            raise NeedsQuickJS
        position = found.end()
        if found.lastgroup == "space":
            begins_line = begins_line or _LINE_END.search(found[0]) is not None
            continue
        text = found[0]
        tokens.append(
            ScriptToken(found.lastgroup, _text_value(text) if found.lastgroup == "text" else text, begins_line)
        )
        begins_line = False
    return [*tokens, ScriptToken("end", "", begins_line)]


def _text_value(literal: str) -> str:
    """Return the text that a literal stands for."""
    return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), literal[1:-1])
