"""The settings of a Django project with the database `BENCH_DATABASE_URL`, for both backends of tasks."""

import os
from urllib.parse import urlsplit

from django.conf import settings


def configure(app: str, backend: str) -> None:
    """Configure Django for an app that executes tasks, with its backend of the framework."""
    place = urlsplit(os.environ["BENCH_DATABASE_URL"])
    settings.configure(
        SECRET_KEY="bench",
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions", app],
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": place.path[1:],
                "USER": place.username,
                "HOST": place.hostname,
                "PORT": place.port,
                "CONN_MAX_AGE": None,
            }
        },
        TASKS={"default": {"BACKEND": backend}},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        USE_TZ=True,
        LOGGING={"version": 1, "disable_existing_loggers": True, "root": {"level": "ERROR"}},
    )
    import django

    django.setup()
