"""The Django app of this project, with system checks of its settings."""

import os

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import Error, Warning, register

from .in_process import checks
from .settings import conf


class ConductorConfig(AppConfig):
    """Connects the slices, and registers the system checks."""

    name = "conductor_app"
    label = "conductor"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Conductor"

    def import_models(self) -> None:
        if not conf.is_server:
            checks.require_apps()
        super().import_models()

    def ready(self) -> None:
        from .site import wiring

        wiring.connect()
        register(check_settings, conf.CHECKS)
        register(check_open_access, conf.CHECKS)
        register(check_script_isolation, conf.CHECKS)
        if not conf.is_server:
            checks.register_checks()


def create_first_access() -> None:
    """Create what the first callers of a new server need."""
    from .site import wiring

    wiring.create_first_access()


def check_settings(**_: object) -> list[Error]:
    """Check that each setting exists and has a valid value."""
    return [Error(each, id="conductor.E001") for each in conf.setting_errors()]


def check_open_access(**_: object) -> list[Error]:
    """Check that a server that other machines can reach requires authentication."""
    if conf.api_access == "token" or not conf.is_server or settings.ON_LOOPBACK:
        return []
    return [
        Error(
            f"CONDUCTOR_API_ACCESS is open, but HOST={settings.HOST} can be reached from other machines.",
            hint="Set CONDUCTOR_API_ACCESS=token, or listen on HOST=127.0.0.1.",
            id="conductor.E002",
        )
    ]


def check_script_isolation(**_: object) -> list[Warning]:
    """Check that the kernel isolates the helper processes of scripts, in the cluster profile."""
    from .monitoring.commands import isolation_warnings

    if not conf.redis_url:
        return []
    hint = "Run the server on Linux, as a user other than root, and allow the system call seccomp."
    return [Warning(each, hint=hint, id="conductor.W001") for each in isolation_warnings(os.geteuid() == 0)]
