"""Create an access key, which clients of an application exchange for tokens."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from conductor_app.access.permissions import other_database_of_users
from conductor_app.access.tokens import create_key
from conductor_app.db.database import alias


class Command(BaseCommand):
    """`manage.py conductor_access_key NAME`: prints the key and its secret, which is not displayed again."""

    help = "Create an access key for an application. The secret is displayed only once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("application", help="name of the application; it is created if it does not exist")

    def handle(self, *args: object, application: str, **options: Any) -> None:
        if other := other_database_of_users():
            raise CommandError(
                f"An application has a user, but users are in the database {other!r}, not in {alias()!r}. The API "
                "is not available there: use the Python API."
            )
        key, secret = create_key(application)
        self.stdout.write(f"CONDUCTOR_AUTH_KEY {key}")
        self.stdout.write(f"CONDUCTOR_AUTH_SECRET {secret}")
