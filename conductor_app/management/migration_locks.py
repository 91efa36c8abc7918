"""Limits for migrations on PostgreSQL, so that other processes never wait long for a migration that waits itself.

While a migration waits for the lock of a table, all later statements on the table wait behind it.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

RETRYABLE = {"55P03": "a lock was not available", "40P01": "it was part of a deadlock"}
"""The SQLSTATEs of transactions that another transaction blocked."""

LIMITS = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")

OPEN_TRANSACTIONS = """
    SELECT pid, coalesce(nullif(application_name, ''), backend_type), round(extract(epoch FROM now() - xact_start))
    FROM pg_stat_activity
    WHERE xact_start IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()
    ORDER BY xact_start LIMIT 3
"""


@dataclass(frozen=True)
class LockPolicy:
    """The maximum wait for a lock, and how often and after which pause a migration is repeated."""

    wait_seconds: float
    attempts: int
    pause_seconds: float


def repeat_until_unlocked(
    connection: BaseDatabaseWrapper, policy: LockPolicy, migrate: Callable[[], object], report: Callable[[str], None]
) -> None:
    """Migrate, and repeat that while another transaction blocks it. Migrations that are applied are not repeated."""
    for attempt in range(1, policy.attempts + 1):
        try:
            with limited_lock_waits(connection, policy.wait_seconds):
                migrate()
            return
        except OperationalError as error:
            reason = RETRYABLE.get(getattr(error.__cause__, "sqlstate", ""))
            if reason is None or attempt == policy.attempts:
                raise
            report(
                f"\nThe migration was rolled back, because {reason} within {policy.wait_seconds:g} s. "
                f"{describe_open_transactions(connection)} "
                f"Attempt {attempt + 1} of {policy.attempts} starts in {policy.pause_seconds:g} s."
            )
            time.sleep(policy.pause_seconds)


@contextmanager
def limited_lock_waits(connection: BaseDatabaseWrapper, seconds: float) -> Iterator[None]:
    """Limit the wait for locks. The duration of statements is not limited. Restore the limits of the session."""
    with connection.cursor() as cursor:
        values = dict(zip(LIMITS, (f"{round(seconds * 1000)}ms", "0", "0"), strict=True))
        for name, value in values.items():
            cursor.execute("SELECT set_config(%s, %s, false)", [name, value])
    try:
        yield
    finally:
        if connection.is_usable():
            with connection.cursor() as cursor:
                for name in LIMITS:
                    cursor.execute(f"RESET {name}")


def describe_open_transactions(connection: BaseDatabaseWrapper) -> str:
    """Return a sentence that names the oldest transactions, which probably hold the lock."""
    with connection.cursor() as cursor:
        cursor.execute(OPEN_TRANSACTIONS)
        rows = cursor.fetchall()
    if not rows:
        return "No other transaction is open now."
    return f"Oldest open transactions: {', '.join(f'pid {pid} ({name}, {age} s)' for pid, name, age in rows)}."
