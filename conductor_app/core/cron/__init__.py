"""Cron with six fields, seconds first, as Spring reads it: a leaf that knows texts, days and time zones."""

from .expression import Cron, parse_cron
from .zones import parse_zone

__all__ = ["Cron", "parse_cron", "parse_zone"]
