"""Encrypt all secrets with the newest key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from conductor_app.access.vault import DecryptionFailed
from conductor_app.engine.access.client_maintenance import reencrypt_access_tokens as reseal_tokens
from conductor_app.engine.access.second_factors import reencrypt_second_factors
from conductor_app.engine.access.secrets_and_variables import reencrypt_secrets
from conductor_app.engine.ai.integrations import reencrypt_integrations
from conductor_app.engine.events.webhooks import reencrypt_webhooks
from conductor_app.engine.failures.alert_targets import reencrypt_targets


class Command(BaseCommand):
    """`manage.py reseal_secrets`: run it after adding a new first key to SECRETS_KEYS, before removing an old one."""

    help = "Encrypt all secrets with the first key in SECRETS_KEYS, so that the other keys can be removed."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            count = reencrypt_secrets("manage.py") + reseal_tokens() + reencrypt_second_factors()
            count += reencrypt_webhooks() + reencrypt_targets() + reencrypt_integrations()
        except DecryptionFailed as unreadable:
            raise CommandError(f"No key of this server decrypts the secret {unreadable}.") from None
        self.stdout.write(f"Encrypted {count} secrets with the current key.")
