"""System checks of another Django project that has the app among its own. Each message says what to do."""

import sys
from collections.abc import Sequence
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connections, router
from django.urls import get_resolver
from django.utils.module_loading import import_string

from ..db.database import alias
from ..settings import conf

OWN_SQLITE = "conductor_app.db.sqlite"
REQUIRED_APPS = ("django.contrib.auth", "django.contrib.contenttypes")
"""The apps whose tables those of this app refer to."""
PAGE_APPS = ("django.contrib.admin", "django.contrib.messages", "django.contrib.staticfiles")
ROUTER = "conductor_app.in_process.routers.ConductorRouter"
SESSION_APP = "django.contrib.sessions"
PAGE_MIDDLEWARE = (
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
)


def require_apps() -> None:
    """Check, before the models are imported, that the apps are installed that they refer to.

    Raises:
        ImproperlyConfigured: when one is missing.
    """
    if missing := [name for name in REQUIRED_APPS if not apps.is_installed(name)]:
        raise ImproperlyConfigured(
            f"conductor_app requires {' and '.join(map(repr, missing))}. Add what is missing to INSTALLED_APPS."
        )


def register_checks() -> None:
    """Register the checks of this module."""
    register(check_database, conf.CHECKS)
    register(check_pages, conf.CHECKS)
    register(check_definitions, Tags.database)


def check_database(**_: object) -> list[CheckMessage]:
    """Check that the tables are in a database that can be used, whose writers wait."""
    from ..runs.models import Run

    if alias() not in connections:
        return [
            Error(
                f"CONDUCTOR['DATABASE'] is {alias()!r}, but DATABASES has no such database.",
                hint=f"Add it to DATABASES, or name one of: {', '.join(connections)}.",
                id="conductor.E003",
            )
        ]
    wrong = {router.db_for_read(Run), router.db_for_write(Run)} - {alias()}
    if wrong or not router.allow_migrate_model(alias(), Run):
        return [
            Error(
                f"CONDUCTOR['DATABASE'] is {alias()!r}, but the database routers send the tables of conductor_app to "
                f"{min(wrong, default='no database')!r}.",
                hint=f"Put {ROUTER!r} first in DATABASE_ROUTERS, and name the database in CONDUCTOR['DATABASE'].",
                id="conductor.E003",
            )
        ]
    database = connections[alias()]
    if database.vendor not in ("sqlite", "postgresql"):
        return [
            Error(
                f"The database {alias()!r} is {database.display_name}, which conductor_app does not support.",
                hint="Use PostgreSQL or SQLite.",
                id="conductor.E004",
            )
        ]
    options = database.settings_dict
    is_immediate = options["OPTIONS"].get("transaction_mode") in ("IMMEDIATE", "EXCLUSIVE")
    if database.vendor == "sqlite" and options["ENGINE"] != OWN_SQLITE and not is_immediate:
        return [
            Warning(
                f"Transactions of the SQLite database {alias()!r} that read before they write fail with 'database is "
                "locked' when another process writes meanwhile.",
                hint=f"Set ENGINE to {OWN_SQLITE!r}, or the option transaction_mode to 'IMMEDIATE'.",
                id="conductor.W002",
            )
        ]
    return []


def check_pages(**_: object) -> list[CheckMessage]:
    """Check, if `urls.py` includes the pages, that the project has the apps and the middleware for them."""
    from ..access.permissions import other_database_of_users

    if not _has_pages():
        return []
    wanted_apps = [*PAGE_APPS, *([SESSION_APP] if settings.SESSION_ENGINE.endswith("db") else [])]
    found: list[CheckMessage] = [
        _missing("app", name, "INSTALLED_APPS") for name in wanted_apps if not apps.is_installed(name)
    ]
    classes = [each for each in map(_middleware_class, settings.MIDDLEWARE) if each is not None]
    for name in PAGE_MIDDLEWARE:
        wanted = import_string(name)
        if not any(issubclass(each, wanted) for each in classes):
            found.append(_missing("middleware", name, "MIDDLEWARE"))
    if other := other_database_of_users():
        found.append(
            Error(
                "The pages of conductor_app join its tables with those of users, groups and permissions, which are in "
                f"the database {other!r}, not in {alias()!r}.",
                hint="Remove conductor_app.in_process.urls from urls.py, or have these tables in one database.",
                id="conductor.E008",
            )
        )
    return found


def _has_pages() -> bool:
    try:
        # It imports the modules that `urls.py` includes.
        _ = get_resolver().url_patterns
    except Exception:
        # The checks of Django report it.
        return False
    return "conductor_app.in_process.urls" in sys.modules


def _middleware_class(path: str) -> Any:
    try:
        found = import_string(path)
    except ImportError:
        return None
    return found if isinstance(found, type) else None


def _missing(what: str, name: str, setting: str) -> Error:
    return Error(
        f"The pages of conductor_app need the {what} {name!r}.",
        hint=f"Add it to {setting}, or remove conductor_app.in_process.urls from urls.py.",
        id="conductor.E007",
    )


def check_definitions(databases: Sequence[str] | None = None, **_: object) -> list[CheckMessage]:
    """Check, with `check --database NAME`, that the database has the definitions of the project."""
    from ..core.errors import RequestRefused
    from ..tools.remote.files import FolderError
    from .definitions import plan_project

    if alias() not in (databases or ()):
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
