"""What a script in Python says, as far as it can be seen without parsing it: a parser of untrusted text may crash."""

import re

# A text that stays open ends with its line or the script: nothing is looked at twice, however many there are.
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
