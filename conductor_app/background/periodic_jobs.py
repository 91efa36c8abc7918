"""The periodic jobs and their intervals."""

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django_celery_beat.models import IntervalSchedule

JOBS = "conductor_app.background.jobs"


@dataclass(frozen=True)
class PeriodicJob:
    """A job and the interval of its calls in seconds."""

    job: str
    every_seconds: float
    description: str

    @property
    def expire_seconds(self) -> int:
        """Return the age in seconds at which an undelivered message is dropped. A newer one has replaced it."""
        return max(1, ceil(self.every_seconds * 2))


PERIODIC_JOBS = {
    "sweep": PeriodicJob(
        f"{JOBS}.sweep", 0.5, "Ends expired leases, evaluates runs with due timers, and delivers messages."
    ),
    "work": PeriodicJob(f"{JOBS}.work", 1, "Runs the built-in workers, in case a notification was lost."),
    "bulk": PeriodicJob(f"{JOBS}.bulk", 0.5, "Continues bulk operations at their rate."),
    "measure": PeriodicJob(f"{JOBS}.measure", 60, "Measures the typical durations of runs and steps."),
    "alerts": PeriodicJob(f"{JOBS}.alerts", 30, "Checks due alerts and watched task groups."),
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


def _interval_schedule(seconds: float) -> "IntervalSchedule":
    from django_celery_beat.models import IntervalSchedule

    period, every = (
        (IntervalSchedule.MICROSECONDS, round(seconds * 1_000_000))
        if seconds % 1
        else (IntervalSchedule.SECONDS, int(seconds))
    )
    schedule = IntervalSchedule.objects.filter(period=period, every=every).first()
    return schedule or IntervalSchedule.objects.create(period=period, every=every)
