"""Cron with six fields, seconds first, as Spring reads it: a leaf that knows texts, days and time zones."""

from .expression import Cron, cron
from .zones import zone

__all__ = ["Cron", "cron", "zone"]
