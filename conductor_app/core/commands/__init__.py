"""Commands of operators and clients. Each command is a function (run, context, now) → effects."""

from ..decide import no_command
from .callbacks import reset_callbacks
from .debug import ReleaseStop, Rewind, remove_breakpoint, set_breakpoint
from .jump import jump_to_step
from .lifecycle import (
    FailUndecidableRun,
    pause_run,
    release_held_run,
    resume_run,
    simpler_command,
    terminate_if_open,
    terminate_run,
)
from .queueing import release_lease, requeue_attempt
from .reopen import RESUME
from .rerun import EarlierAttempt, Rerun
from .restart import restart_run
from .resume_parent import ResumeParent
from .retry import Retry
from .skip import skip_step
from .update_state import set_variables, update_state
from .upgrade import UpgradePlan, plan_upgrade, upgrade_run

__all__ = [
    "RESUME",
    "EarlierAttempt",
    "FailUndecidableRun",
    "ReleaseStop",
    "Rerun",
    "ResumeParent",
    "Retry",
    "Rewind",
    "UpgradePlan",
    "jump_to_step",
    "no_command",
    "pause_run",
    "plan_upgrade",
    "release_held_run",
    "release_lease",
    "remove_breakpoint",
    "requeue_attempt",
    "reset_callbacks",
    "restart_run",
    "resume_run",
    "set_breakpoint",
    "set_variables",
    "simpler_command",
    "skip_step",
    "terminate_if_open",
    "terminate_run",
    "update_state",
    "upgrade_run",
]
