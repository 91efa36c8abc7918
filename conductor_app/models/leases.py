"""Leases: which process is active in a role that only one process may have."""

from django.db import models


class Lease(models.Model):
    """The holder of a role. The holder increases the revision continuously; a constant revision means it is gone.

    The row contains no time, so a lease does not depend on the clocks of its hosts.
    """

    name = models.CharField(max_length=64, primary_key=True)
    holder = models.CharField(max_length=255, default="", blank=True)
    revision = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name}: {self.holder}"
