"""Cron expressions with six fields, seconds first, as in Spring. The package depends on nothing else of the core."""

from .expression import Cron, parse_cron
from .zones import parse_zone

__all__ = ["Cron", "parse_cron", "parse_zone"]
