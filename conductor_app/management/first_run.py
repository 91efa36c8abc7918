"""Setup of a new checkout: tables, periodic jobs and an administrator."""

import os
import secrets
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from conductor_app.background.periodic_jobs import sync_periodic_jobs
from conductor_app.engine.access.bootstrap import ensure_first_access


@dataclass(frozen=True)
class Administrator:
    """The created administrator; the password is set only if it was generated, to display it once."""

    username: str
    generated_password: str | None


def prepare_server() -> Administrator | None:
    """Bring the database up to date; returns the administrator if this run created one."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", verbosity=0, interactive=False)
    sync_periodic_jobs()
    ensure_first_access()
    return None if get_user_model().objects.exists() else _create_administrator()


def _create_administrator() -> Administrator:
    username = os.environ.get("DJANGO_SUPERUSER_USERNAME") or "admin"
    given = os.environ.get("DJANGO_SUPERUSER_PASSWORD")
    password = given or secrets.token_urlsafe(12)
    email = os.environ.get("DJANGO_SUPERUSER_EMAIL", "")
    get_user_model().objects.create_superuser(username, email, password)
    return Administrator(username, None if given else password)
