"""Reasons of failures. They are quoted at each level above, so their length is limited."""

MAX_REASON_LENGTH = 2_000
MAX_QUOTED_LENGTH = 1_500
"""The maximum length of a reason within another one, so that the link behind it is not cut off."""


def shorten_reason(reason: str) -> str:
    """Return the reason, cut to the maximum length."""
    return reason if len(reason) <= MAX_REASON_LENGTH else f"{reason[: MAX_REASON_LENGTH - 1]}…"


def quote_reason(reason: str, source: str) -> str:
    """Return the reason of another workflow, cut to the maximum length of a quote, with a link to that workflow."""
    return reason if len(reason) <= MAX_QUOTED_LENGTH else f"{reason[:MAX_QUOTED_LENGTH]}… (see workflow {source})"
