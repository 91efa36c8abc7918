"""Number of examples of property tests: few by default, more with `EXAMPLE_FACTOR=20 make test`."""

import os

from django.db import connection
from hypothesis import settings

EXAMPLE_FACTOR = int(os.environ.get("EXAMPLE_FACTOR", "1"))


def property_settings(number: int) -> settings:
    """Return settings with the number of examples of a property."""
    return settings(max_examples=number * EXAMPLE_FACTOR)


def seeds(first: int, last: int) -> range:
    """Return the seeds of a property: even ones on one database, odd ones on the other."""
    return range(first + (connection.vendor == "postgresql"), first + (last - first) * EXAMPLE_FACTOR, 2)
