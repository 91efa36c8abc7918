"""The one Django app."""

from django.apps import AppConfig


class ConductorConfig(AppConfig):
    """Workflows and tasks."""

    name = "conductor_app"
    label = "conductor"
    verbose_name = "Conductor"
    default_auto_field = "django.db.models.BigAutoField"
