"""The table BEATS: what is called, and how often."""

from dataclasses import dataclass
from math import ceil

JOBS = "conductor_app.background.jobs"


@dataclass(frozen=True)
class Beat:
    """One job and the seconds between two calls of it."""

    job: str
    every_seconds: float
    says: str

    @property
    def expire_seconds(self) -> int:
        """The age at which a message is dropped: a pile of old ones says nothing that the newest does not."""
        return max(1, ceil(self.every_seconds * 2))


BEATS = {
    "sweep": Beat(f"{JOBS}.sweep", 0.5, "Ends leases that ran out, wakes what is due, delivers messages."),
    "work": Beat(f"{JOBS}.work", 1, "Serves the built-in workers, in case a hint was lost."),
    "bulk": Beat(f"{JOBS}.bulk", 0.5, "Goes on with operations on many runs, at their rate."),
    "measure": Beat(f"{JOBS}.measure", 60, "Measures how long runs and their steps usually take."),
    "alerts": Beat(f"{JOBS}.alerts", 30, "Looks at the alerts that are due."),
    "prune": Beat(f"{JOBS}.prune", 3600, "Removes what is older than its retention."),
}


def sync_beats() -> None:
    """Make django-celery-beat's rows say what the table says; whether an operator has switched one off is kept."""
    from django_celery_beat.models import PeriodicTask

    for name, beat in BEATS.items():
        wanted = {
            "task": beat.job,
            "interval": _interval(beat.every_seconds),
            "crontab": None,
            "expire_seconds": beat.expire_seconds,
            "description": beat.says,
        }
        if not PeriodicTask.objects.filter(name=name, **wanted).exists():
            PeriodicTask.objects.update_or_create(name=name, defaults=wanted)


def _interval(seconds: float):
    from django_celery_beat.models import IntervalSchedule

    period, every = (
        (IntervalSchedule.MICROSECONDS, round(seconds * 1_000_000))
        if seconds % 1
        else (IntervalSchedule.SECONDS, int(seconds))
    )
    found = IntervalSchedule.objects.filter(period=period, every=every).first()
    return found or IntervalSchedule.objects.create(period=period, every=every)
