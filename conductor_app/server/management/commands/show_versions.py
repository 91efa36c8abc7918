"""Print the versions of the server and of what it runs on."""

import platform
from importlib.metadata import version

import django
from django.core.management.base import BaseCommand
from django.db import DatabaseError

from conductor_app.db.database import connection


class Command(BaseCommand):
    """`conductor-app version`."""

    help = "Print the versions of the server, Python, Django and the database."
    requires_system_checks = ()

    def handle(self, *args: object, **options: object) -> None:
        for name, value in (
            ("conductor-app", version("conductor-app")),
            ("Python", platform.python_version()),
            ("Django", django.get_version()),
            (connection.display_name, _database_version()),
        ):
            self.stdout.write(f"{name:<14}{value}")


def _database_version() -> str:
    try:
        return ".".join(map(str, connection.get_database_version()))
    except DatabaseError as error:
        return f"not reachable: {' '.join(str(error).split())}"
