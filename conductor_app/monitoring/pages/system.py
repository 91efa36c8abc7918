"""The engine: sweeps and their lag, database, configuration, and recommendations."""

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import django
from django.core import checks
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.authentication import server_address
from ...db.size import database_status
from ...utils import clock
from ...web.badges import mark_names, render_pill
from ...web.pages import Page
from ..commands import script_isolation
from ..queries.system import configuration, operator_advice, server_clocks, sweep_statuses

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
        advice, settings = list(operator_advice(statuses, database, now)), configuration()
        return {
            "loops": [(loop.sweep, render_pill(loop.tone, str(LOOP_LABELS[loop.word]))) for loop in statuses],
            "database": database,
            "clocks": server_clocks(),
            "advice": [(each.tone, mark_names(each.sentence)) for each in advice],
            "settings": sorted(settings, key=lambda setting: not setting.risk),
            "risk_count": sum(bool(setting.risk) for setting in settings),
            "checks": [
                str(each.msg) for each in checks.run_checks(include_deployment_checks=False) if not each.is_silenced()
            ],
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
