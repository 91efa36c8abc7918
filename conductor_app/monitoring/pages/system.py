"""The engine: sweeps and their lag, periodic tasks, database, configuration, and recommendations."""

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import django
from django.core import checks
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_celery_beat.models import PeriodicTask

from ...access.authentication import server_address
from ...db import replica
from ...db.size import database_status
from ...tasks.models import SweepPass
from ...utils import clock
from ...utils.formatting import format_duration
from ...web.badges import mark_names, relative_time, render_pill
from ...web.pages import Page
from ..commands import script_isolation
from ..queries.health import has_sweep_failed, is_sweep_late
from ..queries.system import configuration, operator_advice, server_clocks, sweep_statuses


class BackgroundJobsPage(Page):
    """List of sweeps and periodic tasks."""

    name, title, template = "background_jobs", gettext_lazy("Background jobs"), "ops/monitoring/background_jobs.html"
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
    return {"job": job, "schedule": _format_interval(job), "last": relative_time(last, now)}


LOOP_LABELS = {
    "failing": gettext_lazy("failing"),
    "late": gettext_lazy("not triggered"),
    "on time": gettext_lazy("on time"),
    "behind": gettext_lazy("behind"),
}


class SystemPage(Page):
    """Page about the engine."""

    name, title, template, permission = (
        "system",
        gettext_lazy("System"),
        "ops/monitoring/system.html",
        "conductor.view_sweeppass",
    )

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        now = clock.now()
        statuses, database = sweep_statuses(now), database_status()
        advice = list(operator_advice(statuses, database, now))
        return {
            "loops": [(loop.sweep, render_pill(loop.tone, str(LOOP_LABELS[loop.word]))) for loop in statuses],
            "database": database,
            "replica": replica.cached_state.value.state() if replica.is_configured() else None,
            "clocks": server_clocks(),
            "advice": [(each.tone, mark_names(each.sentence)) for each in advice],
            "settings": sorted(configuration(), key=lambda setting: not setting.risk),
            "checks": [str(each.msg) for each in checks.run_checks(include_deployment_checks=False)],
            "versions": component_versions(),
            "isolation": script_isolation().items(),
            "metrics": f"{server_address(request)}/metrics",
        }


def component_versions() -> list[tuple[str, str]]:
    """Return the components of the server with their versions."""
    return [
        ("Conductor App", _installed_version("conductor-app")),
        ("Django", django.get_version()),
        ("Python", platform.python_version()),
    ]


def _installed_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return _("from source")


def _format_interval(row: PeriodicTask) -> str:
    if row.interval is None:
        return str(row.scheduler)
    seconds = row.interval.schedule.run_every.total_seconds()
    return _("every %(span)s") % {"span": format_duration(round(seconds * 1000))}
