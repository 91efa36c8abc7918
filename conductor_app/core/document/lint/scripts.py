"""The names that a script reads from its inputs, as far as they can be seen without executing it."""

import re

from ...expressions import script_names, without_texts

READ = re.compile(r"(?<![\w$.])\$\.(\w+)|(?<![\w$.])\$\[\s*['\"](\w+)['\"]\s*\]")
QUOTED = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|//[^\n]*|/\*.*?\*/", re.DOTALL)
JAVASCRIPT_READ = re.compile(r"\$\s*[.\[]")
WRITTEN = re.compile(r"\$\.(\w+)\s*=(?!=)")


def names_read(script: str) -> set[str]:
    """Return the names of `$.name` and `$['name']`. Texts, comments and names that the script assigns are ignored."""
    bare = QUOTED.sub(_drop_unless_key, script)
    return {dotted or bracketed for dotted, bracketed in READ.findall(bare)} - set(WRITTEN.findall(bare))


def reads_as_javascript(script: str) -> bool:
    """Return True if a script in Python reads `$.name` or `$['name']`."""
    return bool(JAVASCRIPT_READ.search(without_texts(script)))


def returns_nothing(script: str) -> bool:
    """Return True if a script in Python has no `return`. One that only raises, or an empty one, returns False."""
    return bool(script.strip()) and not {"return", "raise"}.intersection(script_names(script))


def _drop_unless_key(found: re.Match[str]) -> str:
    """Remove a quoted text unless it is the key of `$['…']`."""
    before = found.string[: found.start()].rstrip()
    return found.group() if before.endswith("$[") else "''"
