"""Lexical analysis of Python scripts. They are not parsed, because a parser may crash on untrusted text."""

import re

# An unclosed text ends with its line or the script, so that no character is read twice.
TEXT = re.compile(
    r"'''(?:[^\\]|\\.)*?(?:'''|\Z)|\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)"
    r"|'(?:[^'\\\n]|\\.)*'?|\"(?:[^\"\\\n]|\\.)*\"?|#[^\n]*",
    re.DOTALL,
)
NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")


def without_texts(script: str) -> str:
    """Return the script with every literal text empty and without comments."""
    return TEXT.sub("''", script)


def script_names(script: str) -> list[str]:
    """Return the names and keywords in the order of their first use, without attributes."""
    return list(dict.fromkeys(NAME.findall(without_texts(script))))
