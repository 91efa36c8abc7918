"""Create an administrator, or reset the password of a user."""

import os
import secrets
from argparse import ArgumentParser

from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from conductor_app.access.tokens import end_other_sessions

VARIABLE = "DJANGO_SUPERUSER_PASSWORD"


class Command(BaseCommand):
    """`conductor-app user NAME`: prints a generated password, unless the environment has one."""

    help = f"Create an administrator, or reset a password. The variable {VARIABLE} may have the password."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", help="name of the user")
        parser.add_argument("--email", default="", help="address of a new administrator")
        parser.add_argument("--reset-password", action="store_true", help="reset the password of an existing user")

    def handle(self, *args: object, username: str, email: str, reset_password: bool, **options: object) -> None:
        users = get_user_model().objects
        user = users.filter(username=username).first()
        if user is None and reset_password:
            raise CommandError(f"There is no user {username}.")
        if user is not None and not reset_password:
            raise CommandError(f"The user {username} exists. To reset the password, add --reset-password.")
        configured_password = os.environ.get(VARIABLE)
        password = configured_password or secrets.token_urlsafe(12)
        user = user or get_user_model()(username=username, email=email, is_staff=True, is_superuser=True)
        try:
            validate_password(password, user)
            user.set_password(password)
            user.full_clean()
        except ValidationError as refusal:
            raise CommandError(" ".join(refusal.messages)) from refusal
        user.save()
        end_other_sessions(user, None)
        self.stdout.write(f"{'Reset the password of' if reset_password else 'Created the administrator'} {username}.")
        if not configured_password:
            self.stdout.write(f"Password: {password} (shown only once)")
