from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate


class ContendedConfig(AppConfig):
    """The only app with tables in its database: without the rows that the server creates after a migration."""

    name = "tests.management.contended_app"

    def ready(self) -> None:
        # Models can be imported when the apps are ready.
        from conductor_app.site.wiring import create_first_access, update_periodic_jobs, update_roles

        last = apps.get_app_config("django_celery_beat")
        for handler in (update_periodic_jobs, update_roles, create_first_access):
            post_migrate.disconnect(handler, sender=last)
