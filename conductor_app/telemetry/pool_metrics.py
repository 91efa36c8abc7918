"""How the database's pool of this process is used: looked at now and then, because each process has its own."""

from threading import Thread
from time import sleep

from django.db import connection

from .metrics import POOL

EVERY_SECONDS = 5.0
KEYS = {"size": "pool_size", "available": "pool_available", "waiting": "requests_waiting"}


def look() -> None:
    """Note how the pool of this process is used, if it has one."""
    pool = getattr(connection, "pool", None)
    if pool is None:
        return
    found = pool.get_stats()
    for name, key in KEYS.items():
        POOL[name].set(found.get(key, 0))


def keep_looking() -> None:
    """Look for as long as the process lives; nothing is begun where there is no pool."""
    if getattr(connection, "pool", None) is not None:
        Thread(target=_look_for_ever, name="pool-watch", daemon=True).start()


def _look_for_ever() -> None:
    while True:
        look()
        sleep(EVERY_SECONDS)
