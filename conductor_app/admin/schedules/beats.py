"""What Celery's beat rings, as its tables hold it: looked at here, written by our own table of beats."""

from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from ..read_only import ReadOnlyAdmin


class PeriodicTaskAdmin(ReadOnlyAdmin):
    """Jobs with their rhythm."""

    list_display = ("name", "task", "scheduler", "enabled", "last_run_at", "total_run_count")
    list_select_related = ("interval", "crontab", "solar", "clocked")
    ordering = ("name",)
    search_fields = ("name", "task")


class RhythmAdmin(ReadOnlyAdmin):
    """Intervals and crontabs."""

    list_display = ("__str__",)


SCHEDULES = {PeriodicTask: PeriodicTaskAdmin, IntervalSchedule: RhythmAdmin, CrontabSchedule: RhythmAdmin}
