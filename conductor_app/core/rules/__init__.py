"""Rules in order. The first one that fires wins, and all rules are evaluated again."""

from .advance import advance, progress, stop_at_breakpoints, use_cached_output
from .finish import abort, catch_failure, complete, enforce_limits
from .retries_and_timeouts import retry, time_out

RULES = (
    stop_at_breakpoints, time_out, enforce_limits, use_cached_output, retry, catch_failure, abort, advance,
    progress, complete,
)  # fmt: skip
RULES_WHILE_RESTING = (stop_at_breakpoints, time_out)
"""Rules for a run that is paused or starts later."""
