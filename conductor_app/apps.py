"""The Django app of this project, with system checks of its settings."""

import os
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.core.checks import Error, Warning, register
from django.db.models.signals import post_migrate

from .core.step_types.worker_tasks import EventStep, HttpPollStep, HttpStep, JdbcStep, KafkaPublishStep
from .settings import conf


class ConductorConfig(AppConfig):
    """Connects signal handlers, triggers and system checks."""

    name = "conductor_app"
    label = "conductor"
    verbose_name = "Conductor"

    def ready(self) -> None:
        from .access import audit as change_signals
        from .access import secrets as masking
        from .access.commands import applications as cleanup_on_delete
        from .access.sign_in import throttle as sign_in_signals
        from .ai import wiring as ai
        from .core.step_types import unregister_ai_types
        from .processes import job_trigger, message_handlers
        from .system_tasks import registry
        from .telemetry import spans

        job_trigger.connect_triggers()
        spans.start_tracing(conf.traces_endpoint)
        change_signals.connect_access_signals()
        cleanup_on_delete.connect_cleanup_signals()
        masking.register_decryption()
        sign_in_signals.connect_sign_in_signals()
        message_handlers.connect_handlers()
        registry.register_workers(SYSTEM_TASKS, load_system_workers)
        ai.connect()
        if not registry.slow_queues():
            unregister_ai_types()
        # The last app: when it has migrated, all tables and permissions exist.
        last = apps.get_app_config("django_celery_beat")
        post_migrate.connect(update_periodic_jobs, sender=last)
        post_migrate.connect(sync_roles, sender=last)
        post_migrate.connect(sync_clients, sender=last)
        register(check_settings, conf.CHECKS)
        register(check_open_access, conf.CHECKS)
        register(check_script_isolation, conf.CHECKS)


def update_periodic_jobs(**_: Any) -> None:
    """Write the periodic jobs to the tables of django-celery-beat after a migration."""
    from .processes.periodic_jobs import sync_periodic_jobs

    sync_periodic_jobs()


def sync_roles(**_: Any) -> None:
    """Create or update the groups of predefined roles, with the permissions that migrations have created."""
    from .access.permissions import ensure_system_roles

    ensure_system_roles()


def sync_clients(**_: Any) -> None:
    """Create the configured Taskcluster client, and the role of all callers."""
    from .access.commands.applications import ensure_first_access

    ensure_first_access()


SYSTEM_TASKS = (HttpStep.type, HttpPollStep.type, JdbcStep.type, EventStep.type, KafkaPublishStep.type)
"""The types of tasks that `load_system_workers` returns the workers of."""


def load_system_workers() -> Any:
    """Return the workers of HTTP, SQL, Kafka and events, imported at their first use."""
    from .system_tasks.http import Http
    from .system_tasks.http_poll import HttpPoll
    from .system_tasks.publishing import EventWorker, KafkaPublish
    from .system_tasks.sql import Jdbc

    return (Http(), HttpPoll(), Jdbc(), EventWorker(), KafkaPublish())


def check_settings(**_: Any) -> list[Error]:
    """Check that each setting exists and has a valid value."""
    return [Error(each, id="conductor.E001") for each in conf.setting_errors()]


def check_open_access(**_: Any) -> list[Error]:
    """Check that a server that other machines can reach requires authentication."""
    if conf.api_access == "token" or settings.ON_LOOPBACK:
        return []
    return [
        Error(
            f"CONDUCTOR_API_ACCESS is open, but HOST={settings.HOST} can be reached from other machines.",
            hint="Set CONDUCTOR_API_ACCESS=token, or listen on HOST=127.0.0.1.",
            id="conductor.E002",
        )
    ]


def check_script_isolation(**_: Any) -> list[Warning]:
    """Check that the kernel isolates the helper processes of scripts, in the cluster profile."""
    from .monitoring.commands import isolation_warnings

    if not conf.redis_url:
        return []
    hint = "Run the server on Linux, as a user other than root, and allow the system call seccomp."
    return [Warning(each, hint=hint, id="conductor.W001") for each in isolation_warnings(os.geteuid() == 0)]
