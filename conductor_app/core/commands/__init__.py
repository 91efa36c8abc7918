"""What operators may ask of a run, a module for each idea; every command is a function (run, know, now) → effects."""

from ..decide import nothing
from .callbacks import reset_callbacks
from .controls import Abandon, pause, release, resume, stop, terminate
from .jump import jump
from .queueing import requeue, take_back
from .repair import Repair
from .rerun import Rerun
from .restart import restart
from .retry import retry
from .skip import skip
from .state import set_variables, update_state
from .upgrade import Upgrade, plan_upgrade, upgrade

__all__ = [
    "Abandon",
    "Repair",
    "Rerun",
    "Upgrade",
    "jump",
    "nothing",
    "pause",
    "plan_upgrade",
    "release",
    "requeue",
    "reset_callbacks",
    "restart",
    "resume",
    "retry",
    "set_variables",
    "skip",
    "stop",
    "take_back",
    "terminate",
    "update_state",
    "upgrade",
]
