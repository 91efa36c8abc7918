"""Settings of `manage.py migrate` in a database of PostgreSQL that a test has created."""

import os

from conductor_app.settings import services
from conductor_app.settings.testing import *  # noqa: F403
from conductor_app.settings.testing import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.management.contended_app"]
DATABASES = {
    "default": services.postgresql("CONTENDED_DATABASE_URL", os.environ["CONTENDED_DATABASE_URL"], statement_seconds=1)
}
