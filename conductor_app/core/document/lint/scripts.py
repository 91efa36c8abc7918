"""The names that a script reads from what it is given, as far as they can be seen without running it."""

import re

from ...expressions import script_names, without_texts

READ = re.compile(r"(?<![\w$.])\$\.(\w+)|(?<![\w$.])\$\[\s*['\"](\w+)['\"]\s*\]")
QUOTED = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|//[^\n]*|/\*.*?\*/", re.DOTALL)
JAVASCRIPT_READ = re.compile(r"\$\s*[.\[]")
WRITTEN = re.compile(r"\$\.(\w+)\s*=(?!=)")


def names_read(script: str) -> set[str]:
    """`$.name` and `$['name']`; what stands in texts and comments does not count, nor what the script sets itself."""
    bare = QUOTED.sub(_drop_unless_key, script)
    return {dotted or bracketed for dotted, bracketed in READ.findall(bare)} - set(WRITTEN.findall(bare))


def reads_as_javascript(script: str) -> bool:
    """Whether a script in Python reads `$.name` or `$['name']`."""
    return bool(JAVASCRIPT_READ.search(without_texts(script)))


def returns_nothing(script: str) -> bool:
    """Whether a script in Python has no `return`; one that only raises needs none, one not written yet neither."""
    return bool(script.strip()) and not {"return", "raise"}.intersection(script_names(script))


def _drop_unless_key(found: re.Match[str]) -> str:
    """A quoted text goes, unless it is the key of `$['…']`."""
    before = found.string[: found.start()].rstrip()
    return found.group() if before.endswith("$[") else "''"
