"""Clocks of the hosts that run processes of this server, compared with the clock of the database."""

from django.db import models

from ..db.fields import MomentField


class ServerClock(models.Model):
    """The clock of one host. `ahead_ms`: how far it is ahead of the database's; `measured_at`: by the database's."""

    host = models.CharField(max_length=255, primary_key=True)
    ahead_ms = models.BigIntegerField()
    measured_at = MomentField()

    def __str__(self) -> str:
        return f"{self.host}: {self.ahead_ms} ms"
