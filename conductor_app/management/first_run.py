"""Setup at the start of a server: tables, periodic jobs, and an administrator."""

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
    """The created administrator. `generated_password`: to be displayed once; None if the environment sets it."""

    username: str
    generated_password: str | None


def prepare_server() -> Administrator | None:
    """Migrate the database and create the periodic jobs. Returns the administrator if this call created one."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", verbosity=0, interactive=False)
    sync_periodic_jobs()
    ensure_first_access()
    return None if get_user_model().objects.exists() else _create_administrator()


def _create_administrator() -> Administrator:
    username = os.environ.get("DJANGO_SUPERUSER_USERNAME") or "admin"
    configured_password = os.environ.get("DJANGO_SUPERUSER_PASSWORD")
    password = configured_password or secrets.token_urlsafe(12)
    email = os.environ.get("DJANGO_SUPERUSER_EMAIL", "")
    get_user_model().objects.create_superuser(username, email, password)
    return Administrator(username, None if configured_password else password)
