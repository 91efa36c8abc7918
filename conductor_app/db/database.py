"""The database of the app: `default`, or in another Django project the one that `CONDUCTOR["DATABASE"]` names.

Modules import `connection` and `transaction` from here instead of from Django, whose own ones are for `default`.
"""

from collections.abc import Callable
from functools import cache, cached_property

from django.db import DEFAULT_DB_ALIAS, connections
from django.db import transaction as of_django
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.connection import ConnectionProxy

from ..settings import conf


@cache
def alias() -> str:
    """Return the name of the database in `DATABASES`. Modules are imported before the settings are known."""
    name: str = conf.database
    return name


def is_default() -> bool:
    """Return True if it is the database `default`, which usually has the tables of users."""
    return alias() == DEFAULT_DB_ALIAS


class _Connection(ConnectionProxy):  # type: ignore[type-arg]
    """Django's, whose alias is read from the settings when it is first used."""

    def __init__(self) -> None:
        self.__dict__["_connections"] = connections

    @cached_property
    def _alias(self) -> str:
        return alias()


connection: BaseDatabaseWrapper = _Connection()  # type: ignore[assignment]
"""The connection of the thread."""


class transaction:
    """The functions of `django.db.transaction`, for the database of the app unless `using` names another one."""

    @staticmethod
    def atomic(using: str = "", savepoint: bool = True, durable: bool = False) -> of_django.Atomic:
        """Begin a transaction or a savepoint, for a block."""
        return of_django.Atomic(using or alias(), savepoint, durable)

    @staticmethod
    def on_commit(func: Callable[[], object], using: str = "", robust: bool = False) -> None:
        """Call a function after the commit."""
        connections[using or alias()].on_commit(func, robust)

    @staticmethod
    def get_rollback(using: str = "") -> bool:
        """Return True if the innermost block will be rolled back."""
        return connections[using or alias()].get_rollback()
