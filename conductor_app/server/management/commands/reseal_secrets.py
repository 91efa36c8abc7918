"""Encrypt all secrets with the newest key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from conductor_app.access.commands.secrets import reencrypt_secrets
from conductor_app.access.encryption import DecryptionFailed
from conductor_app.access.sign_in.commands import reencrypt_second_factors
from conductor_app.alerts.commands import reencrypt_targets
from conductor_app.events.commands.webhooks import reencrypt_webhooks
from conductor_app.utils.background import registered_work


class Command(BaseCommand):
    """`manage.py reseal_secrets`: run it after adding a new first key to SECRETS_KEYS, before removing an old one."""

    help = "Encrypt all secrets with the first key in SECRETS_KEYS, so that the other keys can be removed."

    def handle(self, *args: object, **options: Any) -> None:
        try:
            count = reencrypt_secrets("manage.py") + reencrypt_second_factors()
            count += reencrypt_webhooks() + reencrypt_targets()
            count += sum(reencrypt() for work in registered_work() for reencrypt in work.reencrypt)
        except DecryptionFailed as unreadable:
            raise CommandError(f"No key of this server decrypts the secret {unreadable}.") from None
        self.stdout.write(f"Encrypted {count} secrets with the current key.")
