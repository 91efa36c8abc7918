"""Commands on schedules: kept, held and forgotten; fired by the clock, by hand, or for a span that is past."""

from .asking import backfill, next_moments, run_now
from .firing import fire, start_waiting
from .holding import hold_all, let_all_go, pause, requeue, resume
from .saving import delete, save, set_tags

__all__ = [
    "backfill",
    "delete",
    "fire",
    "hold_all",
    "let_all_go",
    "next_moments",
    "pause",
    "requeue",
    "resume",
    "run_now",
    "save",
    "set_tags",
    "start_waiting",
]
