"""Lengths of the reasons of failures. A reason is quoted at each level above, so its length is limited."""

MAX_ATTEMPT_REASON_LENGTH = 8_000
"""The maximum length of an attempt's reason: a stack trace of about a hundred lines."""
CONDUCTOR_LENGTH = 500
"""The maximum length of a task's reason in the responses of Conductor (api §3.6)."""
MAX_REASON_LENGTH = 2_000
MAX_QUOTED_LENGTH = 1_500
"""The maximum length of a reason within another one, so that the link behind it is not cut off."""
_GAP = "\n…\n"


def shorten_reason(reason: str, most: int = MAX_REASON_LENGTH) -> str:
    """Return the reason, cut to the maximum length.

    A reason of several lines is cut in its middle, because the last lines of a stack trace name its cause.
    """
    if len(reason) <= most:
        return reason
    if "\n" not in reason:
        return f"{reason[: most - 1]}…"
    end = reason[-(most // 2) :]
    end = end.partition("\n")[2] or end
    return reason[: most - most // 2 - len(_GAP)] + _GAP + end


def quote_reason(reason: str, source: str) -> str:
    """Return the reason of another workflow, cut to the maximum length of a quote, with a link to that workflow."""
    if len(reason) <= MAX_QUOTED_LENGTH:
        return reason
    return f"{shorten_reason(reason, MAX_QUOTED_LENGTH).removesuffix('…')}… (see workflow {source})"
