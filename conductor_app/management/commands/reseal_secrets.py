"""`manage.py reseal_secrets`: after a new key was put first into SECRETS_KEYS, before an old one is taken out."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from conductor_app.access.vault import Unreadable
from conductor_app.engine.access.client_upkeep import reseal as reseal_tokens
from conductor_app.engine.secrets_and_variables import reseal


class Command(BaseCommand):
    """Seals every secret with the newest key."""

    help = "Seal every secret with the newest key."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            count = reseal("manage.py") + reseal_tokens()
        except Unreadable as unreadable:
            raise CommandError(f"No key of this server opens the secret {unreadable}.") from None
        self.stdout.write(f"{count} secrets were sealed anew.")
