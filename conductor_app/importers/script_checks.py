"""Checks of scripts by the engines that would evaluate them here: they parse a script and do not execute it."""

import re
from textwrap import indent

from conductor_app.scripts.pool import ScriptsUnavailable, evaluate

SECONDS = 2.0
IMPORT = re.compile(r"^[ \t]*((?:import|from)[ \t]+\w.*)$", re.MULTILINE)


def script_error(language: str, source: str) -> str:
    """Return why the engine of a language refuses a script, or an empty text.

    A refusal that only an execution shows is not found.
    """
    if not source.strip() or "${" in source:
        return ""
    try:
        return evaluate(language, _wrap_unexecuted(language, source), {}, SECONDS).error or ""
    except ScriptsUnavailable:
        return ""


def _wrap_unexecuted(language: str, source: str) -> str:
    if language == "python":
        imports = "\n".join(line for line in IMPORT.findall(source) if "(" not in line)
        return f"{imports}\nif False:\n{indent(source, '    ')}\nreturn None"
    # The filter `empty` yields nothing to the script.
    return f"empty | ({source}\n)" if language == "jq" else f"if (false) {{\n{source}\n}}"
