"""The Django app of this project, with system checks of its settings."""

import os
from collections.abc import Sequence

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, router

from .settings import conf

OWN_SQLITE = "conductor_app.db.sqlite"


class ConductorConfig(AppConfig):
    """Connects the slices, and registers the system checks."""

    name = "conductor_app"
    label = "conductor"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Conductor"

    def ready(self) -> None:
        from .site import wiring

        wiring.connect()
        register(check_settings, conf.CHECKS)
        register(check_open_access, conf.CHECKS)
        register(check_script_isolation, conf.CHECKS)
        if not conf.is_server:
            register(check_database, conf.CHECKS)
            register(check_definitions, Tags.database)


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


def check_database(**_: object) -> list[CheckMessage]:
    """Check that another Django project has the tables in a database that can be used, whose writers wait."""
    from .runs.models import Run

    if (alias := router.db_for_write(Run)) != DEFAULT_DB_ALIAS:
        return [
            Error(
                f"A database router sends the tables of conductor_app to the database {alias!r}.",
                hint="They must be in the database 'default', whose transactions workflows are part of.",
                id="conductor.E003",
            )
        ]
    database = connections[DEFAULT_DB_ALIAS]
    if database.vendor not in ("sqlite", "postgresql"):
        return [
            Error(
                f"The database 'default' is {database.display_name}, which conductor_app does not support.",
                hint="Use PostgreSQL or SQLite.",
                id="conductor.E004",
            )
        ]
    settings = database.settings_dict
    is_immediate = settings["OPTIONS"].get("transaction_mode") in ("IMMEDIATE", "EXCLUSIVE")
    if database.vendor == "sqlite" and settings["ENGINE"] != OWN_SQLITE and not is_immediate:
        return [
            Warning(
                "Transactions of the SQLite database 'default' that read before they write fail with 'database is "
                "locked' when another process writes meanwhile.",
                hint=f"Set ENGINE to {OWN_SQLITE!r}, or the option transaction_mode to 'IMMEDIATE'.",
                id="conductor.W002",
            )
        ]
    return []


def check_definitions(databases: Sequence[str] | None = None, **_: object) -> list[CheckMessage]:
    """Check, with `check --database default`, that the database has the definitions of another Django project."""
    from .core.errors import RequestRefused
    from .in_process.definitions import plan_project
    from .tools.remote.files import FolderError

    if DEFAULT_DB_ALIAS not in (databases or ()):
        return []
    try:
        found = plan_project("check")
    except (FolderError, RequestRefused) as error:
        return [Error(f"The definitions of the project cannot be read: {error}", id="conductor.E005")]
    except DatabaseError:
        # Before the first migration, there are no tables.
        return []
    hint = "Apply them with: manage.py conductor_definitions --apply"
    return [
        *(Error(f"A definition of the project is invalid: {line}", id="conductor.E005") for line in found.problems),
        *(
            Warning(f"The database has another definition: {each}", hint=hint, id="conductor.W003")
            for each in found.differences
        ),
    ]
