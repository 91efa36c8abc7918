"""The rules, in the order in which they are asked: the first that speaks is heard, then all are asked again."""

from .advance import advance
from .catch_failure import catch_failure
from .complete import abort, complete
from .progress import progress
from .retry import retry
from .time_out import time_out
from .use_cached_output import use_cached_output

RULES = (time_out, use_cached_output, retry, catch_failure, abort, advance, progress, complete)
RULES_WHILE_RESTING = (time_out,)
"""Those of a run that is paused, or whose start is yet to come."""
