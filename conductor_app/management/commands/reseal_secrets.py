"""`manage.py reseal_secrets`: after a new key was put first into SECRETS_KEYS, before an old one is taken out."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from conductor_app.access.vault import DecryptionFailed
from conductor_app.engine.access.client_maintenance import reencrypt_access_tokens as reseal_tokens
from conductor_app.engine.access.secrets_and_variables import reencrypt_secrets


class Command(BaseCommand):
    """Seals every secret with the newest key."""

    help = "Seal every secret with the newest key."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            count = reencrypt_secrets("manage.py") + reseal_tokens()
        except DecryptionFailed as unreadable:
            raise CommandError(f"No key of this server decrypts the secret {unreadable}.") from None
        self.stdout.write(f"{count} secrets encrypted with the current key.")
