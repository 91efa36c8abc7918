"""Rules in order. The first one that fires wins, and all rules are evaluated again."""

from .advance import advance
from .catch_failure import catch_failure
from .complete import abort, complete
from .enforce_limits import enforce_limits
from .progress import progress
from .schedule_retry import retry
from .stop_at_breakpoints import stop_at_breakpoints
from .time_out import time_out
from .use_cached_output import use_cached_output

RULES = (
    stop_at_breakpoints,
    time_out,
    enforce_limits,
    use_cached_output,
    retry,
    catch_failure,
    abort,
    advance,
    progress,
    complete,
)
RULES_WHILE_RESTING = (stop_at_breakpoints, time_out)
"""Rules for a run that is paused or starts later."""
