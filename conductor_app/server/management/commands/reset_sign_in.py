"""Remove the second factor of a user and the lock of the account, for example after the loss of a phone."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from conductor_app.access.sign_in.commands import remove_second_factor
from conductor_app.access.sign_in.throttle import reset_failures
from conductor_app.access.tokens import end_other_sessions


class Command(BaseCommand):
    """`manage.py reset_sign_in NAME`: afterwards the user signs in with the password alone."""

    help = "Remove a user's second factor, unlock the account, and end its sessions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", help="name of the user")

    def handle(self, *args: object, username: str, **options: Any) -> None:
        user = get_user_model().objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"There is no user {username}.")
        remove_second_factor(user, "manage.py")
        reset_failures(username)
        end_other_sessions(user, None)
        self.stdout.write(f"{username} signs in with the password alone.")
