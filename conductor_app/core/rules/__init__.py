"""The rules, in the order in which they are asked: the first that speaks is heard, then all are asked again."""

from .advance import advance
from .catch_failure import rescue
from .conclude import break_off, conclude
from .recall import recall
from .retry import retry
from .settle import settle
from .time_out import time_out

RULES = (time_out, recall, retry, rescue, break_off, advance, settle, conclude)
RULES_WHILE_RESTING = (time_out,)
"""Those of a run that is paused, or whose start is yet to come."""
