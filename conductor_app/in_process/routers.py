"""The router of a Django project that has the tables of the app in another database than `default`."""

from typing import Any

from ..db.database import alias

LABEL = "conductor"


class ConductorRouter:
    """Sends the tables of the app to the database `CONDUCTOR["DATABASE"]`. It decides nothing about other tables."""

    def db_for_read(self, model: Any, **_: object) -> str | None:
        """Return the database for the rows of a table."""
        return alias() if model._meta.app_label == LABEL else None

    db_for_write = db_for_read

    def allow_relation(self, one: Any, other: Any, **_: object) -> bool | None:
        """Allow that a row of the app refers to a user in another database."""
        return True if LABEL in (one._meta.app_label, other._meta.app_label) else None

    def allow_migrate(self, db: str, app_label: str, **_: object) -> bool | None:
        """Return True if migrations create tables of the app in this database."""
        return db == alias() if app_label == LABEL else None
