"""The limits of scripts in all languages, and the format of results that helper processes send."""

import json
import time

SCRIPT_MEMORY = 64 << 20
MAX_RESULT_SIZE = 10 << 20
MAX_RESULT_DEPTH = 200
LOG_LINES, LOG_LINE_LENGTH = 100, 1000
OUT_OF_MEMORY = "The script used more than 64 MB of memory and was stopped."
TOO_LARGE = "The script's result is larger than 10 MB."
TOO_DEEP = f"The result is nested deeper than {MAX_RESULT_DEPTH} levels."


NOT_EVALUATED = "null"
"""The response of a helper that cannot evaluate another script. It has not evaluated this one."""


def answer_document(value=None, error=None, timed_out=False, logs=()):
    """Return a result as JSON text."""
    return json.dumps({"value": value, "error": error, "timed_out": timed_out, "logs": list(logs)})


def is_too_deep(text):
    """Return True if a result, given as JSON, is nested too deeply.

    The recursion limit of Python is no substitute: since 3.12, it does not apply to json.dumps.
    """
    if text.count("[") + text.count("{") <= MAX_RESULT_DEPTH:
        return False
    try:
        level, depth = [json.loads(text)], 0
    except ValueError:
        # jq writes a remark instead of a value that is nested deeper than its own limit.
        return True
    while level and depth <= MAX_RESULT_DEPTH:
        depth += 1
        inner = (each for each in level if isinstance(each, dict | list))
        level = [each for one in inner for each in (one.values() if isinstance(one, dict) else one)]
    # Containers remain after MAX_RESULT_DEPTH levels.
    return bool(level)


def parse_all(order, inputs, error_of):
    """Return the errors of the scripts in the inputs: as many as half of the time limit allows."""
    errors, end = [], time.monotonic() + order["limit"] / 2
    for source in json.loads(inputs):
        if time.monotonic() > end:
            break
        errors.append(error_of(source))
    return answer_document(errors)
