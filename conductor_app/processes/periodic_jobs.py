"""The periodic jobs and their intervals."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django_celery_beat.models import IntervalSchedule

JOBS = "conductor_app.background.jobs"


SWEEP_SECONDS = 5
"""The duration of one call of the job `sweep`. The next call continues."""


@dataclass(frozen=True)
class PeriodicJob:
    """A job and the interval of its calls in seconds."""

    job: str
    every_seconds: int
    description: str

    @property
    def expire_seconds(self) -> int:
        """Return the age in seconds at which an undelivered message is dropped. A newer one has replaced it."""
        return self.every_seconds * 2


PERIODIC_JOBS = {
    "sweep": PeriodicJob(
        f"{JOBS}.sweep",
        SWEEP_SECONDS,
        "Ends expired leases, evaluates runs with due timers, delivers messages, and starts the jobs that are due.",
    ),
    "work": PeriodicJob(f"{JOBS}.work", 10, "Runs the built-in workers, which sweeps start when a task is due."),
    "bulk": PeriodicJob(f"{JOBS}.bulk", 10, "Continues bulk operations, which sweeps start when they are due."),
    "measure": PeriodicJob(f"{JOBS}.measure", 60, "Measures the typical durations of runs and steps."),
    "alerts": PeriodicJob(f"{JOBS}.alerts", 30, "Checks due alerts."),
    "prune": PeriodicJob(f"{JOBS}.prune", 3600, "Deletes runs and records that exceed their retention period."),
}


def sync_periodic_jobs() -> None:
    """Write the periodic jobs to django-celery-beat's tables. Jobs that an operator has disabled stay disabled."""
    from django_celery_beat.models import PeriodicTask

    for name, beat in PERIODIC_JOBS.items():
        values = {
            "task": beat.job,
            "interval": _interval_schedule(beat.every_seconds),
            "crontab": None,
            "expire_seconds": beat.expire_seconds,
            "description": beat.description,
        }
        if not PeriodicTask.objects.filter(name=name, **values).exists():
            PeriodicTask.objects.update_or_create(name=name, defaults=values)


def _interval_schedule(seconds: int) -> "IntervalSchedule":
    from django_celery_beat.models import IntervalSchedule

    period = IntervalSchedule.SECONDS
    schedule = IntervalSchedule.objects.filter(period=period, every=seconds).first()
    return schedule or IntervalSchedule.objects.create(period=period, every=seconds)
