"""Rules in order. The first one that fires wins, and all rules are evaluated again."""

from .advance import advance, progress, stop_at_breakpoints, use_cached_output
from .failures import catch_failure, retry, time_out
from .finish import abort, complete, enforce_limits

RULES = (
    stop_at_breakpoints, time_out, enforce_limits, use_cached_output, retry, catch_failure, abort, advance,
    progress, complete,
)  # fmt: skip
RULES_WHILE_RESTING = (stop_at_breakpoints, time_out)
"""Rules for a run that is paused or starts later."""
