"""The linter of migrations reads their statements on PostgreSQL in `make lint`. Its rules are in pyproject.toml."""

from .testing_cluster import *  # noqa: F403
from .testing_cluster import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "django_migration_linter"]
