"""Numbers of random examples: `make test` tries a fifth of them, `make test EXAMPLE_FACTOR=20` twenty times as many."""

import os

from django.db import connection
from hypothesis import HealthCheck, settings

EXAMPLE_FACTOR = float(os.environ.get("EXAMPLE_FACTOR", "1"))


def scaled(number: int) -> int:
    """Return the number of examples to try instead of this one."""
    return max(round(number * EXAMPLE_FACTOR), 1)


def load_profile() -> None:
    """Set the defaults of properties. A busy machine may be slow: health checks would report it as a failure."""
    checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    settings.register_profile("patient", deadline=None, max_examples=scaled(100), suppress_health_check=checks)
    settings.load_profile("patient")


def property_settings(number: int) -> settings:
    """Return settings with the number of examples of a property."""
    return settings(max_examples=scaled(number))


def seeds(first: int, last: int) -> range:
    """Return the seeds of a property: even ones on one database, odd ones on the other."""
    return range(first + (connection.vendor == "postgresql"), first + scaled(last - first), 2)
