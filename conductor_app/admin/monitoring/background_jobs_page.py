"""Background jobs: the last pass of each sweep, its result and lag, and the periodic tasks that trigger sweeps."""

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy
from django_celery_beat.models import PeriodicTask

from ... import clock
from ...insight.durations import format_duration
from ...insight.monitoring.health import has_sweep_failed, is_sweep_late
from ...models import SweepPass
from ..badges import relative_time
from ..pages import Page
from ..schedules.periodic_tasks import format_interval


class BackgroundJobsPage(Page):
    """List of sweeps and periodic tasks."""

    name, title, template = "background_jobs", gettext_lazy("Background jobs"), "ops/background_jobs.html"
    permission = "conductor.view_sweeppass"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        now = clock.now()
        return {
            "sweeps": [_sweep_row(sweep, now) for sweep in SweepPass.objects.order_by("name")],
            "jobs": [_job_row(job, now) for job in PeriodicTask.objects.select_related().order_by("name")],
        }


def _sweep_row(sweep: SweepPass, now: int) -> dict[str, Any]:
    return {
        "sweep": sweep,
        "began": relative_time(sweep.began_at, now),
        "duration": format_duration(sweep.ended_at - sweep.began_at),
        "worked": relative_time(sweep.worked_at, now),
        "lag": format_duration(sweep.lag_ms),
        "failed": relative_time(sweep.failed_at, now),
        "is_late": is_sweep_late(sweep, now),
        "has_failed": has_sweep_failed(sweep),
    }


def _job_row(job: PeriodicTask, now: int) -> dict[str, Any]:
    last = int(job.last_run_at.timestamp() * 1000) if job.last_run_at else None
    return {"job": job, "schedule": format_interval(job), "last": relative_time(last, now)}
