"""Preferences of a user for the pages: time zone, language, columns of lists."""

from django.conf import settings
from django.db import models

from .fields import DocumentField


class Preference(models.Model):
    """A preference of a user, by name."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="preference"
    )
    choices = DocumentField(default=dict)

    def __str__(self) -> str:
        return f"preferences of {self.user}"
