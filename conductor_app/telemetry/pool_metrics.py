"""Metrics of the connection pool. Each process has its own pool and measures it periodically."""

from threading import Thread
from time import sleep

from django.db import connection

from .metrics import POOL_GAUGES

EVERY_SECONDS = 5.0
POOL_STAT_KEYS = {"size": "pool_size", "available": "pool_available", "waiting": "requests_waiting"}


def record_pool_usage() -> None:
    """Record the usage of this process's pool, if it has one."""
    pool = getattr(connection, "pool", None)
    if pool is None:
        return
    statistics = pool.get_stats()
    for name, key in POOL_STAT_KEYS.items():
        POOL_GAUGES[name].set(statistics.get(key, 0))


def start_recording() -> None:
    """Start a thread that records the usage periodically, unless the process has no pool."""
    if getattr(connection, "pool", None) is not None:
        Thread(target=_record_forever, name="pool-watch", daemon=True).start()


def _record_forever() -> None:
    while True:
        record_pool_usage()
        sleep(EVERY_SECONDS)
