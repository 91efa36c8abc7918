"""What operators may ask of a run, a module for each idea; every command is a function (run, know, now) → effects."""

from ..decide import nothing
from .callbacks import reset_callbacks
from .controls import Abandon, pause, release, resume, stop, terminate
from .jump import jump
from .queueing import requeue, take_back
from .reopening import RESUME
from .rerun import EarlierAttempt, Rerun
from .restart import restart
from .resume_parent import Repair
from .retry import Retry
from .skip import skip
from .state import set_variables, update_state
from .upgrade import Upgrade, plan_upgrade, upgrade

__all__ = [
    "RESUME",
    "Abandon",
    "EarlierAttempt",
    "Repair",
    "Rerun",
    "Retry",
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
    "set_variables",
    "skip",
    "stop",
    "take_back",
    "terminate",
    "update_state",
    "upgrade",
]
