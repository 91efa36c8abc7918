"""Applications and the keys that their clients log in with."""

from django.db import models

from .fields import MomentField


class AccessKey(models.Model):
    """A key with which an application asks for tokens; the secret is kept hashed."""

    id = models.CharField("key id", max_length=64, primary_key=True)
    application = models.CharField(max_length=255)
    secret_hash = models.CharField(max_length=255)
    is_active = models.BooleanField(default=True)
    created_at = MomentField()
    used_at = MomentField(null=True)

    def __str__(self) -> str:
        return f"{self.application} ({self.id})"
