"""Checks of scripts by the engines that would evaluate them here: they parse a script and do not execute it."""

from conductor_app.scripts.syntax import ScriptText, syntax_faults


def script_error(language: str, source: str) -> str:
    """Return why the engine of a language refuses a script, or an empty text.

    A refusal that only an execution shows is not found.
    """
    if not source.strip() or "${" in source:
        return ""
    script = ScriptText(language, source)
    fault = syntax_faults([script]).get(script)
    return str(fault) if fault else ""
