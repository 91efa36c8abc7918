"""What operators may ask of a run, a module for each idea; every command is a function (run, know, now) → effects."""

from ..decide import nothing
from .callbacks import reset_callbacks
from .controls import Abandon, pause, release, resume, terminate
from .jump import jump
from .retry import retry
from .skip import skip
from .state import set_variables, update_state
from .upgrade import Upgrade, plan_upgrade, upgrade

__all__ = [
    "Abandon",
    "Upgrade",
    "jump",
    "nothing",
    "pause",
    "plan_upgrade",
    "release",
    "reset_callbacks",
    "resume",
    "retry",
    "set_variables",
    "skip",
    "terminate",
    "update_state",
    "upgrade",
]
