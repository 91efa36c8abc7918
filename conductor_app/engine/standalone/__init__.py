"""Commands on standalone tasks and task groups: create, schedule, claim, report, cancel, seal and expire."""

from .change import wake_task

__all__ = ["wake_task"]
