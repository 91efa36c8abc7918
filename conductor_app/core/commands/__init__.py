"""Commands of operators and clients. Each command is a function (run, context, now) → effects."""

from ..decide import no_command, release_lease, requeue_attempt, reset_callbacks
from .control import (
    ContinueFromStop,
    FailUndecidableRun,
    Rewind,
    pause_run,
    remove_breakpoint,
    resume_run,
    set_breakpoint,
    set_variables,
    simpler_command,
    terminate_if_open,
    terminate_run,
    update_state,
)
from .jump import jump_to_step, skip_step
from .reopen import RESUME, ResumeParent, Retry, restart_run
from .rerun import EarlierAttempt, Rerun
from .upgrade import UpgradePlan, plan_upgrade, upgrade_run

__all__ = [
    "RESUME", "ContinueFromStop", "EarlierAttempt", "FailUndecidableRun", "Rerun", "ResumeParent", "Retry",
    "Rewind", "UpgradePlan", "jump_to_step", "no_command", "pause_run", "plan_upgrade", "release_lease",
    "remove_breakpoint", "requeue_attempt", "reset_callbacks", "restart_run", "resume_run", "set_breakpoint",
    "set_variables", "simpler_command", "skip_step", "terminate_if_open", "terminate_run",
    "update_state", "upgrade_run",
]  # fmt: skip
