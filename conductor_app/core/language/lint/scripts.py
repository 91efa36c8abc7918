"""The names that a script reads from what it is given, as far as they can be seen without running it."""

import re

READ = re.compile(r"(?<![\w$.])\$\.(\w+)|(?<![\w$.])\$\[\s*['\"](\w+)['\"]\s*\]")
QUOTED = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|//[^\n]*|/\*.*?\*/", re.DOTALL)
WRITTEN = re.compile(r"\$\.(\w+)\s*=(?!=)")


def names_read(script: str) -> set[str]:
    """`$.name` and `$['name']`; what stands in texts and comments does not count, nor what the script sets itself."""
    bare = QUOTED.sub(_unless_key, script)
    return {dotted or bracketed for dotted, bracketed in READ.findall(bare)} - set(WRITTEN.findall(bare))


def _unless_key(found: re.Match[str]) -> str:
    """A quoted text goes, unless it is the key of `$['…']`."""
    before = found.string[: found.start()].rstrip()
    return found.group() if before.endswith("$[") else "''"
