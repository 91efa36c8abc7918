"""Words and syntax of the API for its clients in this package: the remote commands, and the tools of agents."""

RUN_STATUSES = ("RUNNING", "PAUSED", "COMPLETED", "FAILED", "TIMED_OUT", "TERMINATED")
RUN_OPERATIONS = ("retry", "rerun", "rewind", "restart", "skip", "jump", "upgrade", "pause", "resume", "terminate")
"""The operations that can be planned and applied."""
FAILURE_VIEWS = ("open", "new", "regressed", "resolved", "ignored", "all")
"""The states by which failure groups are listed."""


def quote_search_value(text: str) -> str:
    """Return a text as a value in the query of a search."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
