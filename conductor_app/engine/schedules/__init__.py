"""Commands on schedules: save, delete, pause, resume, run now and backfill; and the firing of due slots."""

from .firing import fire_schedule, start_waiting_execution
from .manual_runs import backfill, next_times, run_now
from .pausing import pause_all, pause_schedule, repair_schedules, resume_all, resume_schedule
from .saving import change_tags, delete_schedule, save_schedule

__all__ = [
    "backfill",
    "change_tags",
    "delete_schedule",
    "fire_schedule",
    "next_times",
    "pause_all",
    "pause_schedule",
    "repair_schedules",
    "resume_all",
    "resume_schedule",
    "run_now",
    "save_schedule",
    "start_waiting_execution",
]
