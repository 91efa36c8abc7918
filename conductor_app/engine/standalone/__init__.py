"""Commands on stand-alone tasks and their groups: create, schedule, claim, report, cancel, seal, expire."""

from .change import wake_task

__all__ = ["wake_task"]
